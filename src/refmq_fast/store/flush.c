/* Flushes log, queues and index, and writes the checkpoint, each as a job. */
#include "flush.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mistakes.h"

/* --- the log ----------------------------------------------------------------------------------------------------- */

void rmq_flush_log_begin(rmq_flush_log *job, rmq_store *store)
{
    memset(job, 0, sizeof *job);
    job->store = store;
    job->before = store->log.files.flushed;
    rmq_log_flush_begin(&job->log, &store->log);
}

rmq_status rmq_flush_log_next(rmq_flush_log *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_event event = {.action = RMQ_FLUSH_LOG, .queue_id = -1};
    rmq_status status;

    RMQ_JOB_BEGIN;
    RMQ_AWAIT(rmq_log_flush_next, &job->log);
    RMQ_TRY(status);
    assert(store->log.files.flushed >= job->before || store->log.files.flushed == store->log.files.wrote);
    if (store->log.files.flushed > job->before) {
        event.a = store->log.files.flushed;
        event.b = store->log.flushed_store_ms;
        RMQ_TRY(rmq_emit_event(store, &event));
    }
    RMQ_JOB_END;
}

/* --- queues ------------------------------------------------------------------------------------------------------ */

void rmq_flush_queues_begin(rmq_flush_queues *job, rmq_store *store, int64_t least_pages)
{
    assert(least_pages >= 0);
    memset(job, 0, sizeof *job);
    job->store = store;
    job->least_pages = least_pages;
}

static int by_topic(const void *a, const void *b)
{
    const rmq_queue_entry *first = *(rmq_queue_entry *const *)a, *second = *(rmq_queue_entry *const *)b;
    const int order = rmq_text_compare(first->key.text, second->key.text);

    return order != 0 ? order : (first->key.number > second->key.number) - (first->key.number < second->key.number);
}

/* The dirty queues of this moment, by name; they stay known until they are released. */
static rmq_status hold_dirty(rmq_flush_queues *job)
{
    size_t at = 0;
    rmq_queue_entry *entry;

    job->sorted = malloc((job->store->queues.count + 1) * sizeof *job->sorted);
    if (job->sorted == NULL) {
        return RMQ_NO_MEMORY;
    }
    while ((entry = rmq_table_next(&job->store->queues, &at)) != NULL) {
        if (entry->is_dirty) {
            entry->holders += 1;
            job->sorted[job->count] = entry;
            job->count += 1;
        }
    }
    qsort(job->sorted, job->count, sizeof *job->sorted, by_topic);
    return RMQ_OK;
}

static void release_dirty(rmq_flush_queues *job)
{
    for (size_t i = 0; i < job->count; i++) {
        job->sorted[i]->holders -= 1;
        rmq_drop_entry(job->store, job->sorted[i]);
    }
    free(job->sorted);
    job->sorted = NULL;
    job->count = 0;
}

static bool has_full_pages(const rmq_flush_queues *job, const rmq_queue *queue)
{
    const int64_t page_bytes = job->store->config.flush_page_bytes;
    const int64_t pages = queue->files.wrote / page_bytes - queue->files.flushed / page_bytes;

    return job->least_pages == 0 || pages >= job->least_pages;
}

static rmq_status has_flushed(rmq_flush_queues *job, rmq_queue_entry *entry)
{
    const rmq_queue *queue = job->queue;
    const rmq_event event = {
        .action = RMQ_FLUSH_QUEUE,
        .subject = queue->topic,
        .queue_id = queue->queue_id,
        .a = queue->files.flushed / RMQ_UNIT_BYTES,
    };

    if (entry->queue == queue && queue->files.flushed == queue->files.wrote) { /* not another one of this name */
        entry->is_dirty = false;
    }
    return rmq_emit_event(job->store, &event);
}

static rmq_status flush_queues(rmq_flush_queues *job, rmq_status performed, rmq_operation *operation)
{
    rmq_status status;

    RMQ_JOB_BEGIN;
    RMQ_TRY(hold_dirty(job));
    for (job->at = 0; job->at < job->count; job->at++) {
        job->queue = job->sorted[job->at]->queue;
        /* What was deleted and came back meanwhile is flushed if its name is dirty again, or was all the time. */
        if (job->queue == NULL || !has_full_pages(job, job->queue)) {
            job->queue = NULL;
            continue;
        }
        job->queue->holders += 1;
        rmq_files_flush_begin(&job->files, &job->queue->files, job->queue->files.wrote);
        RMQ_AWAIT(rmq_files_flush_next, &job->files);
        RMQ_TRY(status);
        RMQ_TRY(has_flushed(job, job->sorted[job->at]));
        rmq_release_queue(job->queue);
        job->queue = NULL;
    }
    RMQ_JOB_END;
}

rmq_status rmq_flush_queues_next(rmq_flush_queues *job, rmq_status performed, rmq_operation *operation)
{
    const rmq_status status = flush_queues(job, performed, operation);

    if (status != RMQ_PENDING) {
        if (job->queue != NULL) {
            rmq_release_queue(job->queue);
            job->queue = NULL;
        }
        release_dirty(job);
    }
    return status;
}

/* --- the checkpoint ---------------------------------------------------------------------------------------------- */

void rmq_write_checkpoint_begin(rmq_write_checkpoint *job, rmq_store *store, bool is_clean)
{
    memset(job, 0, sizeof *job);
    job->store = store;
    job->is_clean = is_clean;
}

/* Index and queue stamp as Java needs them: see _stamps_for_java in refmq/store/flush.py. */
static void set_stamps_for_java(const rmq_index *index, rmq_checkpoint *checkpoint)
{
    for (size_t i = 0; i < index->count; i++) {
        const rmq_index_file *file = index->files[i];
        if (rmq_index_file_is_full(file) && file->end_ms > checkpoint->index_ms) {
            checkpoint->index_ms = file->end_ms;
        }
    }
    for (size_t i = 0; i < index->count; i++) {
        const rmq_index_file *file = index->files[i];
        if (rmq_index_file_count(file) > 0 && file->end_ms > checkpoint->index_ms &&
            file->begin_ms < checkpoint->queue_ms) {
            checkpoint->queue_ms = file->begin_ms;
        }
    }
}

/* What is true now, before the flushes. */
static void note_what_is_true(rmq_write_checkpoint *job)
{
    const rmq_store *store = job->store;

    job->checkpoint = (rmq_checkpoint){
        .queue_ms = store->dispatched_ms,
        .queues_to = store->dispatched_to,
        .index_to = store->dispatched_to,
        .queue_sum = rmq_queue_sum(store),
        .index_end = {-1, 0, 0},
        .is_clean = job->is_clean,
    };
    if (store->config.index_enabled) {
        job->checkpoint.index_end = rmq_index_end_of(&store->index);
        set_stamps_for_java(&store->index, &job->checkpoint);
    }
}

static rmq_status has_written_checkpoint(rmq_write_checkpoint *job)
{
    const rmq_event event = {
        .action = RMQ_WRITE_CHECKPOINT,
        .queue_id = -1,
        .a = job->checkpoint.log_ms,
        .b = job->checkpoint.queue_ms,
        .c = job->checkpoint.index_ms,
        .d = job->checkpoint.queues_to & UINT32_MAX,
    };

    job->is_written = true;
    job->store->checkpointed_to = job->checkpoint.queues_to;
    return rmq_emit_event(job->store, &event);
}

rmq_status rmq_write_checkpoint_next(rmq_write_checkpoint *job, rmq_status performed, rmq_operation *operation)
{
    rmq_store *store = job->store;
    rmq_event event = {.action = RMQ_FLUSH_INDEX, .queue_id = -1};
    rmq_status status;

    RMQ_JOB_BEGIN;
    note_what_is_true(job);
    if (job->checkpoint.index_end.last >= job->checkpoint.queues_to) {
        return RMQ_OK; /* a message is half indexed */
    }
    rmq_flush_log_begin(&job->part.log, store);
    RMQ_AWAIT(rmq_flush_log_next, &job->part.log);
    RMQ_TRY(status);
    job->checkpoint.log_to = store->log.files.flushed;
    job->checkpoint.log_ms = store->log.flushed_store_ms;
    if (RMQ_IS_RIGHT(RMQ_MISTAKE_QUEUES_UNFLUSHED)) {
        rmq_flush_queues_begin(&job->part.queues, store, 0);
        RMQ_AWAIT(rmq_flush_queues_next, &job->part.queues);
        RMQ_TRY(status);
    }
    if (store->config.index_enabled) {
        job->index_last = rmq_index_end_of(&store->index).last;
        job->entries_to = store->dispatched_to;
        rmq_index_flush_begin(&job->part.index, &store->index);
        RMQ_AWAIT(rmq_index_flush_next, &job->part.index);
        RMQ_TRY(status);
        event.a = job->index_last;
        event.b = job->entries_to;
        RMQ_TRY(rmq_emit_event(store, &event));
    }
    rmq_names_flush_all_begin(&job->part.names, &store->names);
    RMQ_AWAIT(rmq_names_flush_all_next, &job->part.names);
    RMQ_TRY(status);
    if (!RMQ_IS_RIGHT(RMQ_MISTAKE_CHECKPOINT_EARLY)) {
        job->checkpoint.queues_to = job->checkpoint.index_to = store->dispatched_to;
        job->checkpoint.queue_sum = rmq_queue_sum(store);
        job->checkpoint.index_end = rmq_index_end_of(&store->index);
    }
    assert(RMQ_MISTAKE != 0 || job->checkpoint.log_to >= job->checkpoint.queues_to);
    rmq_checkpoint_write_begin(&job->part.write, &store->names, &job->checkpoint);
    RMQ_AWAIT(rmq_checkpoint_write_next, &job->part.write);
    RMQ_TRY(status);
    RMQ_TRY(has_written_checkpoint(job));
    RMQ_JOB_END;
}
