/* Mistakes of the shell that a build for tests can be made with, as those of store/mistakes.h, and found by the tests of the
 * threads under a broker. */
#ifndef RMQ_SHELL_MISTAKES_H
#define RMQ_SHELL_MISTAKES_H

#include "../store/mistakes.h"

#define RMQ_MISTAKE_LATE_WRITE 201       /* answers leave before what they promise is written */
#define RMQ_MISTAKE_BARS_IGNORED 202     /* frames behind one that was handed over are served at once */
#define RMQ_MISTAKE_ARRIVALS_UNTOLD 203  /* the control plane never hears of new messages */
#define RMQ_MISTAKE_FLUSH_UNTOLD 204     /* it never hears that a flush has ended */
#define RMQ_MISTAKE_NO_DRAIN 205         /* pulls that wait when the broker stops get no answer */
#define RMQ_MISTAKE_NO_LIMIT 206         /* there may be any number of connections */
#define RMQ_MISTAKE_IN_FLIGHT_LEAK 207   /* an answered request counts as one that is under way */
#define RMQ_MISTAKE_IDLE_FOREVER 208     /* connections are not looked through for those whose time is up */
#define RMQ_MISTAKE_PORTS_ALIKE 209      /* the VIP port serves what the main port serves */

#endif
