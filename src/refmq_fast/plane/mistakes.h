/* Mistakes of the plane that a build for tests can be made with, as those of store/mistakes.h, and found by histories of
 * clusters. */
#ifndef RMQ_PLANE_MISTAKES_H
#define RMQ_PLANE_MISTAKES_H

#include "../store/mistakes.h"

#define RMQ_MISTAKE_ACK_BEFORE_FLUSH 101  /* a put is acknowledged without waiting for its flush */
#define RMQ_MISTAKE_TAGS_IGNORED 102      /* a pull brings messages whatever their tags */
#define RMQ_MISTAKE_WAKE_OFF_BY_ONE 103   /* a pull that waits for the very message that arrives is not woken */
#define RMQ_MISTAKE_OLD_TABLES 104        /* a topic that changes goes on as it was */
#define RMQ_MISTAKE_COMMIT_UNTOLD 105     /* the control plane never learns of a committed offset */
#define RMQ_MISTAKE_DELAY_IGNORED 106     /* a delayed message is there at once */
#define RMQ_MISTAKE_FAILED_IS_OK 107      /* a put whose flush failed is acknowledged as durable */
#define RMQ_MISTAKE_CLOSED_TAKES_ALL 108  /* a connection that ends takes the pulls of all */
#define RMQ_MISTAKE_PROPERTY_LOST 109     /* the last property of a message is not stored */
#define RMQ_MISTAKE_ONE_QUEUE 110         /* offsets of all queues of a topic are one */
#define RMQ_MISTAKE_NEVER_DUE 111         /* waiting pulls are not looked through when their time is up */
#define RMQ_MISTAKE_KEEP_WAIT 112         /* WAIT, which is for the broker, is stored */
#define RMQ_MISTAKE_ACCESS_UNCHECKED 113  /* with access control on, the hot path is served unchecked */

#endif
