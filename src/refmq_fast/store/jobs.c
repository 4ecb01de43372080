/* The clock of maintenance, and what a failure means to the store as a whole. */
#include "jobs.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "dispatch.h"

/* --- maintain ---------------------------------------------------------------------------------------------------- */

#define NOT_DUE (-1)

/* Whether an interval has passed. If the clock was set back nobody knows, and it counts as passed. */
static bool is_over(int64_t interval_ms, int64_t since_ms, int64_t now_ms)
{
    return now_ms < since_ms || now_ms - since_ms >= interval_ms;
}

/* How many pages must be full for the log to be flushed now; NOT_DUE if it is not time. */
static int64_t log_pages_due(const rmq_store *store, int64_t now_ms)
{
    const rmq_store_config *config = &store->config;

    if (!is_over(config->log_flush_interval_ms, store->clock.log_ms, now_ms)) {
        return NOT_DUE;
    }
    return is_over(config->log_flush_thorough_ms, store->clock.log_thorough_ms, now_ms) ? 0 : config->log_flush_pages;
}

static int64_t queue_pages_due(const rmq_store *store, int64_t now_ms)
{
    const rmq_store_config *config = &store->config;

    if (!is_over(config->queue_flush_interval_ms, store->clock.queue_ms, now_ms)) {
        return NOT_DUE;
    }
    return is_over(config->queue_flush_thorough_ms, store->clock.queue_thorough_ms, now_ms) ? 0
                                                                                            : config->queue_flush_pages;
}

static rmq_status maintain_next(rmq_maintain_rounds *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_status status;

    RMQ_JOB_BEGIN;
    job->pages = store->config.sync_flush ? 0 : log_pages_due(store, job->now_ms);
    if (job->pages != NOT_DUE) {
        store->clock.log_ms = job->now_ms;
        store->clock.log_thorough_ms = job->pages == 0 ? job->now_ms : store->clock.log_thorough_ms;
        if (rmq_log_pages_to_flush(&store->log) >= job->pages && store->log.files.flushed < store->log.files.wrote) {
            rmq_flush_log_begin(&job->part.log, store);
            RMQ_AWAIT(rmq_flush_log_next, &job->part.log);
            RMQ_TRY(status);
        }
    }
    job->pages = store->wants_checkpoint ? 0 : queue_pages_due(store, job->now_ms);
    if (job->pages != NOT_DUE) {
        store->clock.queue_ms = job->now_ms;
        if (job->pages > 0) {
            rmq_flush_queues_begin(&job->part.queues, store, job->pages);
            RMQ_AWAIT(rmq_flush_queues_next, &job->part.queues);
            RMQ_TRY(status);
        } else {
            store->clock.queue_thorough_ms = job->now_ms;
            store->wants_checkpoint = false; /* before the wait: a topic deleted meanwhile wants the next one */
            rmq_write_checkpoint_begin(&job->part.checkpoint, store, false);
            RMQ_AWAIT(rmq_write_checkpoint_next, &job->part.checkpoint);
            RMQ_TRY(status);
            if (job->part.checkpoint.is_written) {
                rmq_follow_log_min_begin(&job->part.follow, store); /* a file may have had to stay until now */
                RMQ_AWAIT(rmq_follow_log_min_next, &job->part.follow);
                RMQ_TRY(status);
            } else {
                store->wants_checkpoint = true;
            }
            store->lacks_maintain = false;
        }
    }
    RMQ_JOB_END;
}

/* --- what a caller waits for ------------------------------------------------------------------------------------- */

static void start(rmq_job *job, rmq_store *store)
{
    memset(job, 0, sizeof *job);
    job->store = store;
}

/* A failed flush fails the store, if the setting does not say that it is ignored. */
static void note_failure(rmq_store *store, rmq_status status)
{
    store->has_failed |= status == RMQ_DISK_FAILED && !store->config.ignore_flush_failure;
}

void rmq_start_flush(rmq_job *job, rmq_store *store)
{
    start(job, store);
    job->kind = RMQ_JOB_FLUSH;
    if (!store->has_failed) {
        rmq_flush_log_begin(&job->part.flush, store);
    }
}

static rmq_status flush_next(rmq_job *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_status status;

    RMQ_JOB_BEGIN;
    if (store->has_failed) {
        return RMQ_FAILED;
    }
    RMQ_AWAIT(rmq_flush_log_next, &job->part.flush);
    note_failure(store, status);
    if (status == RMQ_DISK_FAILED && !store->has_failed) {
        store->log.files.flushed = store->log.files.wrote;
        status = RMQ_OK;
    }
    RMQ_TRY(status);
    job->result = store->log.files.flushed;
    RMQ_JOB_END;
}

void rmq_start_maintain(rmq_job *job, rmq_store *store, int64_t now_ms)
{
    start(job, store);
    job->kind = RMQ_JOB_MAINTAIN;
    job->part.maintain.store = store;
    job->part.maintain.now_ms = now_ms;
}

static rmq_status maintain_job_next(rmq_job *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_status status;

    RMQ_JOB_BEGIN;
    if (store->is_maintaining || store->has_failed) {
        job->is_idle = true;
        return RMQ_OK;
    }
    store->is_maintaining = true;
    RMQ_AWAIT(maintain_next, &job->part.maintain);
    store->is_maintaining = false;
    if (status == RMQ_DISK_FULL) { /* nothing is wrong but the moment: the next round tries again */
        store->wants_checkpoint = true;
        store->lacks_maintain = true;
        status = RMQ_OK;
    }
    note_failure(store, status);
    if (status == RMQ_DISK_FAILED && !store->has_failed) {
        status = RMQ_OK;
    }
    RMQ_TRY(status);
    RMQ_JOB_END;
}

void rmq_start_clean(rmq_job *job, rmq_store *store, int64_t now_ms, int hour)
{
    start(job, store);
    job->kind = RMQ_JOB_CLEAN;
    rmq_expire_files_begin(&job->part.clean, store, now_ms, hour);
}

static rmq_status clean_next(rmq_job *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_status status;

    RMQ_JOB_BEGIN;
    RMQ_TRY(rmq_look_at_pressure(store));
    if (store->has_failed) { /* nobody knows what is durable: nothing may go */
        return RMQ_OK;
    }
    RMQ_AWAIT(rmq_expire_files_next, &job->part.clean);
    note_failure(store, status);
    RMQ_TRY(status);
    job->result = job->part.clean.removed;
    RMQ_JOB_END;
}

void rmq_start_clean_queues(rmq_job *job, rmq_store *store)
{
    start(job, store);
    job->kind = RMQ_JOB_CLEAN_QUEUES;
    rmq_follow_log_min_begin(&job->part.follow, store);
}

static rmq_status clean_queues_next(rmq_job *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_status status;

    RMQ_JOB_BEGIN;
    if (store->has_failed) {
        return RMQ_OK;
    }
    RMQ_AWAIT(rmq_follow_log_min_next, &job->part.follow);
    note_failure(store, status);
    RMQ_TRY(status);
    RMQ_JOB_END;
}

void rmq_start_stop(rmq_job *job, rmq_store *store)
{
    start(job, store);
    job->kind = RMQ_JOB_STOP;
    if (!store->has_failed && !store->is_maintaining) {
        rmq_flush_log_begin(&job->part.flush, store);
    }
}

/* What cannot be dispatched, because a record is not whole, leaves the abort file where it is. */
static rmq_status dispatch_the_rest(rmq_store *store)
{
    const int64_t at_once = store->config.piece_bytes / RMQ_RECORD_BYTES_MIN;
    int64_t before = -1;

    while (before != store->dispatched_to && store->dispatched_to < store->log.files.wrote) {
        before = store->dispatched_to;
        RMQ_TRY(rmq_dispatch_up_to(store, store->log.files.wrote, at_once > 1 ? at_once : 1));
    }
    return RMQ_OK;
}

static rmq_status stop_next(rmq_job *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_event event = {.action = RMQ_STOP_STORE, .queue_id = -1};
    rmq_status status;

    RMQ_JOB_BEGIN;
    RMQ_AWAIT(rmq_flush_log_next, &job->part.flush);
    RMQ_TRY(status);
    RMQ_TRY(dispatch_the_rest(store));
    if (store->dispatched_to < store->log.files.wrote) {
        return RMQ_OK;
    }
    rmq_write_checkpoint_begin(&job->part.checkpoint, store, true);
    RMQ_AWAIT(rmq_write_checkpoint_next, &job->part.checkpoint);
    RMQ_TRY(status);
    if (!job->part.checkpoint.is_written) {
        return RMQ_OK;
    }
    RMQ_TRY(store->disk.remove(store->disk.context, RMQ_ABORT_FILE));
    RMQ_TRY(rmq_names_changed(&store->names, ""));
    rmq_names_flush_begin(&job->part.names, &store->names, "");
    RMQ_AWAIT(rmq_names_flush_next, &job->part.names);
    RMQ_TRY(status);
    event.a = store->log.files.wrote;
    RMQ_TRY(rmq_emit_event(store, &event));
    RMQ_JOB_END;
}

static rmq_status stop_job_next(rmq_job *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_status status;

    if (!job->is_begun) {
        if (store->is_maintaining) {
            (void)snprintf(store->message, sizeof store->message, "the store is stopped while `maintain` is under way");
            return RMQ_MISUSE;
        }
        if (store->has_failed) {
            return RMQ_FAILED;
        }
        store->is_maintaining = job->is_begun = true;
    }
    status = stop_next(job, performed, operation);
    if (status != RMQ_PENDING) {
        store->is_maintaining = false;
    }
    return status;
}

rmq_status rmq_job_next(rmq_job *job, rmq_status performed, rmq_operation *operation)
{
    switch (job->kind) {
    case RMQ_JOB_FLUSH:
        return flush_next(job, performed, operation);
    case RMQ_JOB_MAINTAIN:
        return maintain_job_next(job, performed, operation);
    case RMQ_JOB_CLEAN:
        return clean_next(job, performed, operation);
    case RMQ_JOB_CLEAN_QUEUES:
        return clean_queues_next(job, performed, operation);
    case RMQ_JOB_STOP:
        return stop_job_next(job, performed, operation);
    }
    return RMQ_MISUSE;
}
