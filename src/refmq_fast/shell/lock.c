/* See lock.h. */
#include "lock.h"

#include <assert.h>

rmq_status rmq_lock_open(rmq_lock *lock)
{
    lock->drawn = lock->serving = 0;
    if (pthread_mutex_init(&lock->mutex, NULL) != 0) {
        return RMQ_NO_MEMORY;
    }
    if (pthread_cond_init(&lock->turn, NULL) != 0) {
        (void)pthread_mutex_destroy(&lock->mutex);
        return RMQ_NO_MEMORY;
    }
    return RMQ_OK;
}

void rmq_lock_close(rmq_lock *lock)
{
    assert(lock->drawn == lock->serving);
    (void)pthread_cond_destroy(&lock->turn);
    (void)pthread_mutex_destroy(&lock->mutex);
}

void rmq_lock_take(rmq_lock *lock)
{
    uint64_t ticket;

    (void)pthread_mutex_lock(&lock->mutex);
    ticket = lock->drawn++;
    while (lock->serving != ticket) {
        (void)pthread_cond_wait(&lock->turn, &lock->mutex);
    }
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool rmq_lock_try(rmq_lock *lock)
{
    bool is_free;

    (void)pthread_mutex_lock(&lock->mutex);
    is_free = lock->serving == lock->drawn;
    if (is_free) {
        lock->drawn += 1;
    }
    (void)pthread_mutex_unlock(&lock->mutex);
    return is_free;
}

void rmq_lock_release(rmq_lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
    assert(lock->serving < lock->drawn);
    lock->serving += 1;
    if (lock->serving != lock->drawn) {
        (void)pthread_cond_broadcast(&lock->turn); /* there are two or three threads: no queue of conditions pays */
    }
    (void)pthread_mutex_unlock(&lock->mutex);
}
