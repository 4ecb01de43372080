/* Puts a store where a recovery left it. */
#include "open.h"

#include <assert.h>
#include <string.h>

#include "clean.h"

rmq_status rmq_open_name(rmq_store *store, const char *path, int64_t changed, int64_t flushed)
{
    rmq_name *name;

    RMQ_TRY(rmq_name_of(&store->names, path, strlen(path), &name));
    name->changed = changed;
    name->flushed = flushed;
    name->was_changed = changed > 0;
    if (changed > store->names.changes) {
        store->names.changes = changed;
    }
    return RMQ_OK;
}

static rmq_status open_files(rmq_files *files, const int64_t *bases, size_t count, int64_t wrote, int64_t flushed,
                             int64_t zeroed_base)
{
    for (size_t i = 0; i < count; i++) {
        RMQ_TRY(rmq_files_found(files, bases[i]));
    }
    files->wrote = wrote;
    files->flushed = flushed;
    files->zeroed_base = zeroed_base;
    return RMQ_OK;
}

rmq_status rmq_open_log(rmq_store *store, const int64_t *bases, size_t count, int64_t wrote, int64_t flushed,
                        int64_t zeroed_base, int64_t last_store_ms, int64_t flushed_store_ms)
{
    RMQ_TRY(open_files(&store->log.files, bases, count, wrote, flushed, zeroed_base));
    store->log.last_store_ms = last_store_ms;
    store->log.flushed_store_ms = flushed_store_ms;
    return RMQ_OK;
}

rmq_status rmq_open_queue(rmq_store *store, const rmq_opened_queue *opened)
{
    rmq_queue_entry *entry;

    RMQ_TRY(rmq_entry_for(store, opened->topic, opened->queue_id, &entry));
    RMQ_TRY(rmq_add_queue(store, entry));
    RMQ_TRY(open_files(&entry->queue->files, opened->bases, opened->count, opened->wrote, opened->flushed,
                       opened->zeroed_base));
    entry->is_dirty = opened->is_dirty;
    entry->queue->min_offset = opened->min_offset;
    entry->queue->log_min = opened->log_min;
    entry->queue->last_physical_end = opened->last_physical_end;
    entry->queue->dispatched_end = opened->dispatched_end;
    return RMQ_OK;
}

rmq_status rmq_open_offset(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t next_offset)
{
    rmq_queue_entry *entry;

    RMQ_TRY(rmq_entry_for(store, topic, queue_id, &entry));
    entry->next_offset = next_offset;
    entry->has_offset = true;
    return RMQ_OK;
}

rmq_status rmq_open_index_file(rmq_store *store, int64_t name)
{
    return rmq_index_found(&store->index, name);
}

rmq_status rmq_open_done(rmq_store *store, int64_t dispatched_to, int64_t dispatched_ms, int64_t checkpointed_to,
                         int64_t now_ms)
{
    store->dispatched_to = dispatched_to;
    store->dispatched_ms = dispatched_ms;
    store->checkpointed_to = checkpointed_to;
    store->clock = (rmq_flush_clock){now_ms, now_ms, now_ms, now_ms};
    return rmq_look_at_pressure(store);
}
