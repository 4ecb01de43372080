/* The thread that waits for the medium, so that nobody else does. It performs one flush at a time, knows nothing of the
 * store, and shares with the IO thread one slot: a flush that is to be performed, or has been. */
#ifndef RMQ_SHELL_FLUSHER_H
#define RMQ_SHELL_FLUSHER_H

#include <pthread.h>

#include "disk_posix.h"

typedef struct {
    int bell; /* rung when an operation has ended */
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    enum { RMQ_FLUSHER_RESTS, RMQ_FLUSHER_ASKED, RMQ_FLUSHER_HAS_ENDED } state;
    bool is_over;
    rmq_disk_work *work;
} rmq_flusher;

/* RMQ_NO_MEMORY, also when there can be no more threads. */
rmq_status rmq_flusher_start(rmq_flusher *flusher, int bell);

/* Ends the thread. No operation may be under way. */
void rmq_flusher_stop(rmq_flusher *flusher);

/* Has a flush performed, which stays where it is; the last one has been heard of. */
void rmq_flusher_ask(rmq_flusher *flusher, rmq_disk_work *work);

/* Whether it has been performed. Each end is heard of once. */
bool rmq_flusher_heard(rmq_flusher *flusher);

/* Waits until it has been performed, and hears of it. */
void rmq_flusher_wait(rmq_flusher *flusher);

#endif
