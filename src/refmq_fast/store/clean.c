/* Removes one file at a time, and flushes its directory before the next one. */
#include "clean.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- pressure ---------------------------------------------------------------------------------------------------- */

/* Used space in whole percent, rounded up, as Java computes it; -1 if the disk does not say. */
static int64_t used_percent(int64_t total_bytes, int64_t free_bytes)
{
    int64_t used = total_bytes - free_bytes;

    if (total_bytes <= 0) {
        return -1;
    }
    while (used > INT64_MAX / 100) { /* of such a disk, two bytes more or less do not matter */
        used /= 2;
        total_bytes /= 2;
    }
    return (100 * used + total_bytes - 1) / total_bytes;
}

rmq_status rmq_look_at_pressure(rmq_store *store)
{
    static const char *const directories[] = {RMQ_LOG_DIRECTORY, RMQ_QUEUE_DIRECTORY};
    const rmq_store_config *config = &store->config;
    bool is_full = false, remove_any = false, remove_expired = false;

    for (size_t i = 0; i < 2; i++) {
        int64_t total, left, percent;
        const rmq_status status = store->disk.usage(store->disk.context, directories[i], &total, &left);

        if (status == RMQ_DISK_FULL || status == RMQ_DISK_FAILED) {
            remove_expired = true;
            continue;
        }
        RMQ_TRY(status);
        percent = used_percent(total, left);
        is_full |= percent > config->disk_full_percent;
        remove_any |= percent > config->disk_clean_forcibly_percent && config->clean_forcibly;
        remove_expired |= percent > config->disk_used_percent_max || percent < 0;
    }
    store->is_full = is_full;
    store->remove_any = remove_any;
    store->remove_expired = remove_expired;
    return RMQ_OK;
}

/* --- what follows the log ---------------------------------------------------------------------------------------- */

void rmq_follow_log_min_begin(rmq_follow_log_min *job, rmq_store *store)
{
    memset(job, 0, sizeof *job);
    job->store = store;
}

static rmq_status hold_queues(rmq_follow_log_min *job)
{
    rmq_store *store = job->store;
    size_t count = 0;

    for (rmq_queue *queue = store->first_queue; queue != NULL; queue = queue->after) {
        count += 1;
    }
    job->queues = malloc((count + 1) * sizeof *job->queues);
    if (job->queues == NULL) {
        return RMQ_NO_MEMORY;
    }
    for (rmq_queue *queue = store->first_queue; queue != NULL; queue = queue->after) {
        queue->holders += 1;
        job->queues[job->count] = queue;
        job->count += 1;
    }
    return RMQ_OK;
}

static void release_queues(rmq_follow_log_min *job)
{
    for (size_t i = 0; i < job->count; i++) {
        rmq_release_queue(job->queues[i]);
    }
    free(job->queues);
    job->queues = NULL;
    job->count = 0;
}

static rmq_status follow_log_min(rmq_follow_log_min *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_status status;
    bool has_removed;

    RMQ_JOB_BEGIN;
    job->log_min = rmq_files_begin(&store->log.files);
    RMQ_TRY(hold_queues(job));
    for (job->at = 0; job->at < job->count; job->at++) {
        int64_t ignored;
        RMQ_TRY(rmq_queue_min_at(job->queues[job->at], job->log_min, &ignored)); /* first: it changes no file */
    }
    for (job->at = 0; job->at < job->count; job->at++) {
        for (;;) {
            RMQ_TRY(rmq_queue_remove_expired(job->queues[job->at], job->log_min, store->checkpointed_to, &has_removed));
            if (!has_removed) {
                break;
            }
            rmq_names_flush_begin(&job->names, &store->names, job->queues[job->at]->files.directory);
            RMQ_AWAIT(rmq_names_flush_next, &job->names);
            RMQ_TRY(status);
        }
    }
    if (store->config.index_enabled) {
        RMQ_TRY(rmq_index_remove_expired(&store->index, job->log_min, store->checkpointed_to, &has_removed));
        if (has_removed) {
            rmq_names_flush_begin(&job->names, &store->names, RMQ_INDEX_DIRECTORY);
            RMQ_AWAIT(rmq_names_flush_next, &job->names);
            RMQ_TRY(status);
        }
    }
    RMQ_JOB_END;
}

rmq_status rmq_follow_log_min_next(rmq_follow_log_min *job, rmq_status performed, rmq_operation *operation)
{
    const rmq_status status = follow_log_min(job, performed, operation);

    if (status != RMQ_PENDING) {
        release_queues(job);
    }
    return status;
}

/* --- the log ----------------------------------------------------------------------------------------------------- */

void rmq_expire_files_begin(rmq_expire_files *job, rmq_store *store, int64_t now_ms, int hour)
{
    assert(hour >= -1 && hour <= 23);
    memset(job, 0, sizeof *job);
    job->store = store;
    job->now_ms = now_ms;
    job->hour = hour;
}

static bool is_due(const rmq_expire_files *job)
{
    const rmq_store *store = job->store;

    return job->hour < 0 || (store->config.delete_hours >> job->hour & 1u) != 0 || store->remove_expired ||
           store->remove_any;
}

static rmq_status first_may_go(const rmq_expire_files *job, bool *may_go)
{
    rmq_store *store = job->store;
    const rmq_files *files = &store->log.files;
    int64_t modified_ms;
    char path[sizeof RMQ_LOG_DIRECTORY + 1 + RMQ_NAME_DIGITS + 1];

    *may_go = false;
    /* A unit of a record that is gone cannot be rebuilt, and it says at which offset its queue continues. */
    if (files->count < 2 || files->list[0].base + files->file_bytes > store->checkpointed_to) {
        return RMQ_OK;
    }
    *may_go = store->remove_any;
    if (!*may_go) {
        rmq_files_path(files, files->list[0].base, path);
        RMQ_TRY(store->disk.modified_ms(store->disk.context, path, &modified_ms));
        *may_go = job->now_ms >= modified_ms + store->config.file_reserved_ms;
    }
    return RMQ_OK;
}

rmq_status rmq_expire_files_next(rmq_expire_files *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_event event = {.action = RMQ_EXPIRE_FILE, .queue_id = -1};
    rmq_status status;
    bool may_go;

    RMQ_JOB_BEGIN;
    while (is_due(job) && job->removed < store->config.delete_files_max) {
        RMQ_TRY(first_may_go(job, &may_go));
        if (!may_go) {
            break;
        }
        job->base = store->log.files.list[0].base;
        RMQ_TRY(rmq_files_remove(&store->log.files, 0));
        rmq_names_flush_begin(&job->part.names, &store->names, RMQ_LOG_DIRECTORY);
        RMQ_AWAIT(rmq_names_flush_next, &job->part.names);
        RMQ_TRY(status);
        event.a = job->base;
        event.b = rmq_files_begin(&store->log.files);
        RMQ_TRY(rmq_emit_event(store, &event));
        job->removed += 1;
    }
    if (job->removed > 0) {
        /* Not before the removals are durable: a file that a power loss brings back needs its units. */
        rmq_follow_log_min_begin(&job->part.follow, store);
        RMQ_AWAIT(rmq_follow_log_min_next, &job->part.follow);
        RMQ_TRY(status);
    }
    RMQ_JOB_END;
}
