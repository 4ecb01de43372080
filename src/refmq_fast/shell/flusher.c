/* See flusher.h. */
#include "flusher.h"

#include <assert.h>
#include <string.h>

#include "mail.h"

static void *run(void *given)
{
    rmq_flusher *flusher = given;

    (void)pthread_mutex_lock(&flusher->mutex);
    for (;;) {
        while (flusher->state != RMQ_FLUSHER_ASKED && !flusher->is_over) {
            (void)pthread_cond_wait(&flusher->changed, &flusher->mutex);
        }
        if (flusher->state != RMQ_FLUSHER_ASKED) {
            break;
        }
        {
            rmq_disk_work *work = flusher->work;

            (void)pthread_mutex_unlock(&flusher->mutex);
            rmq_disk_perform(work);
            (void)pthread_mutex_lock(&flusher->mutex);
            flusher->state = RMQ_FLUSHER_HAS_ENDED;
            (void)pthread_cond_broadcast(&flusher->changed);
            rmq_ring(flusher->bell);
        }
    }
    (void)pthread_mutex_unlock(&flusher->mutex);
    return NULL;
}

rmq_status rmq_flusher_start(rmq_flusher *flusher, int bell)
{
    memset(flusher, 0, sizeof *flusher);
    flusher->bell = bell;
    if (pthread_mutex_init(&flusher->mutex, NULL) != 0) {
        return RMQ_NO_MEMORY;
    }
    if (pthread_cond_init(&flusher->changed, NULL) != 0) {
        (void)pthread_mutex_destroy(&flusher->mutex);
        return RMQ_NO_MEMORY;
    }
    if (pthread_create(&flusher->thread, NULL, run, flusher) != 0) {
        (void)pthread_cond_destroy(&flusher->changed);
        (void)pthread_mutex_destroy(&flusher->mutex);
        return RMQ_NO_MEMORY;
    }
    return RMQ_OK;
}

void rmq_flusher_stop(rmq_flusher *flusher)
{
    (void)pthread_mutex_lock(&flusher->mutex);
    assert(flusher->state == RMQ_FLUSHER_RESTS);
    flusher->is_over = true;
    (void)pthread_cond_broadcast(&flusher->changed);
    (void)pthread_mutex_unlock(&flusher->mutex);
    (void)pthread_join(flusher->thread, NULL);
    (void)pthread_cond_destroy(&flusher->changed);
    (void)pthread_mutex_destroy(&flusher->mutex);
}

void rmq_flusher_ask(rmq_flusher *flusher, rmq_disk_work *work)
{
    (void)pthread_mutex_lock(&flusher->mutex);
    assert(flusher->state == RMQ_FLUSHER_RESTS && !flusher->is_over);
    flusher->work = work;
    flusher->state = RMQ_FLUSHER_ASKED;
    (void)pthread_cond_broadcast(&flusher->changed);
    (void)pthread_mutex_unlock(&flusher->mutex);
}

bool rmq_flusher_heard(rmq_flusher *flusher)
{
    bool has_ended;

    (void)pthread_mutex_lock(&flusher->mutex);
    has_ended = flusher->state == RMQ_FLUSHER_HAS_ENDED;
    if (has_ended) {
        flusher->state = RMQ_FLUSHER_RESTS;
    }
    (void)pthread_mutex_unlock(&flusher->mutex);
    return has_ended;
}

void rmq_flusher_wait(rmq_flusher *flusher)
{
    (void)pthread_mutex_lock(&flusher->mutex);
    assert(flusher->state != RMQ_FLUSHER_RESTS);
    while (flusher->state != RMQ_FLUSHER_HAS_ENDED) {
        (void)pthread_cond_wait(&flusher->changed, &flusher->mutex);
    }
    flusher->state = RMQ_FLUSHER_RESTS;
    (void)pthread_mutex_unlock(&flusher->mutex);
}
