/* The lock around a plane and the store below it. Whoever steps either holds it: the IO thread for the part of a turn that
 * serves frames, the control plane for a step of its own. It is fair, first come first served: with an ordinary mutex a
 * busy IO thread would take it again and again before the other has woken up.
 */
#ifndef RMQ_SHELL_LOCK_H
#define RMQ_SHELL_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "../core/status.h"

typedef struct {
    pthread_mutex_t mutex; /* of the two numbers */
    pthread_cond_t turn;
    uint64_t drawn;   /* tickets that were handed out */
    uint64_t serving; /* the ticket whose turn it is; it holds the lock if it was drawn */
} rmq_lock;

rmq_status rmq_lock_open(rmq_lock *lock);
void rmq_lock_close(rmq_lock *lock);

void rmq_lock_take(rmq_lock *lock);

/* Takes it if nobody holds it or waits for it. */
bool rmq_lock_try(rmq_lock *lock);

void rmq_lock_release(rmq_lock *lock);

#endif
