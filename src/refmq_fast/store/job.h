/* Flushes as resumable jobs. Nothing of the store is on the stack while a flush waits.
 *
 *     status = next(&job, RMQ_OK, &operation);
 *     while (status == RMQ_PENDING) {
 *         performed = ... perform `operation` ...;   // the only part that may happen in another thread
 *         status = next(&job, performed, &operation);
 *     }
 *
 * Between two calls of `next` anything may happen to the store: appends, reads, other jobs. A job must be taken to its
 * end; RMQ_DIED as the outcome of an operation ends it without further effects.
 *
 * Threads. A store belongs to one thread at a time, and `next` is a call of the store like any other. Only performing an
 * operation is not: it touches nothing but the file or directory that the operation names. So a flusher thread and an IO
 * thread share the operation and its outcome, which they pass to each other through a queue of their own, and not one
 * word of the store.
 *
 * Inside, a job is a function that goes on where it was (a switch over line numbers). What it must remember across a wait
 * is in its struct; its local variables are lost there. The macros below rely on the names of the arguments.
 */
#ifndef RMQ_STORE_JOB_H
#define RMQ_STORE_JOB_H

#include "disk.h"

#define RMQ_JOB_BEGIN                                                                                                  \
    switch (job->line) {                                                                                               \
    case 0:

#define RMQ_JOB_END                                                                                                    \
    }                                                                                                                  \
    job->line = 0;                                                                                                     \
    return RMQ_OK

/* Hands out `operation` and goes on when it has been performed: `performed` is how it ended. */
#define RMQ_PERFORM                                                                                                    \
    do {                                                                                                               \
        job->line = __LINE__;                                                                                          \
        return RMQ_PENDING;                                                                                            \
    case __LINE__:;                                                                                                    \
    } while (0)

/* Runs another job to its end; `status` is how it ended. */
#define RMQ_AWAIT(next, child)                                                                                         \
    do {                                                                                                               \
        performed = RMQ_OK;                                                                                            \
        job->line = __LINE__;                                                                                          \
        __attribute__((fallthrough));                                                                                  \
    case __LINE__:                                                                                                     \
        status = next(child, performed, operation);                                                                    \
        if (status == RMQ_PENDING) {                                                                                   \
            return RMQ_PENDING;                                                                                        \
        }                                                                                                              \
    } while (0)

#endif
