/* Makes and frees a store, and knows its queues. */
#include "store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mistakes.h"

rmq_status rmq_reserve(void **memory, size_t *size, size_t count, size_t each)
{
    if (count > *size) {
        const size_t wanted = count > 2 * *size ? count : 2 * *size;
        void *grown = wanted > SIZE_MAX / each ? NULL : realloc(*memory, wanted * each);

        if (grown == NULL) {
            return RMQ_NO_MEMORY;
        }
        *memory = grown;
        *size = wanted;
    }
    return RMQ_OK;
}

rmq_status rmq_emit_event(rmq_store *store, const rmq_event *event)
{
    return store->emit == NULL ? RMQ_OK : store->emit(store->emit_context, event);
}

rmq_status rmq_store_new(const rmq_store_config *config, const rmq_disk *disk, rmq_emit emit, void *emit_context,
                         rmq_store **made)
{
    rmq_store *store = calloc(1, sizeof *store);
    rmq_status status;

    *made = NULL;
    if (store == NULL) {
        return RMQ_NO_MEMORY;
    }
    assert(config->delay_levels <= RMQ_DELAY_LEVELS_MAX);
    store->config = *config;
    store->disk = *disk;
    store->emit = emit;
    store->emit_context = emit_context;
    store->names.disk = &store->disk;
    store->names.table.seed = config->hash_seed;
    store->queues.seed = config->hash_seed;
    store->log.flush_page_bytes = config->flush_page_bytes;
    rmq_index_init(&store->index, &store->disk, &store->names, config->index_slots, config->index_entries,
                   (size_t)config->index_pages);
    status = rmq_files_init(&store->log.files, &store->disk, &store->names, RMQ_LOG_DIRECTORY, config->log_file_bytes,
                            true, config->piece_bytes, (size_t)config->log_tail_bytes);
    store->piece = malloc((size_t)config->piece_bytes);
    if (status != RMQ_OK || store->piece == NULL) {
        rmq_store_free(store);
        return RMQ_NO_MEMORY;
    }
    *made = store;
    return RMQ_OK;
}

void rmq_store_free(rmq_store *store)
{
    size_t at = 0;
    rmq_queue_entry *entry;

    if (store->log.files.directory != NULL) {
        rmq_files_free(&store->log.files);
    }
    while ((entry = rmq_table_next(&store->queues, &at)) != NULL) {
        if (entry->queue != NULL) {
            rmq_queue_free(entry->queue);
        }
        free(entry);
    }
    rmq_table_free(&store->queues);
    rmq_index_free(&store->index);
    rmq_names_free(&store->names);
    free(store->log.incomplete);
    free(store->piece);
    free(store->records);
    free(store->places);
    free(store->texts);
    free(store);
}

bool rmq_accepts_puts(const rmq_store *store)
{
    const bool has_failed = store->has_failed && RMQ_IS_RIGHT(RMQ_MISTAKE_ACCEPT_AFTER_FAIL);

    return !has_failed && !store->lacks_dispatch && !store->lacks_maintain && !store->is_full &&
           !store->config.is_slave;
}

int64_t rmq_dispatch_bound(const rmq_store *store)
{
    const bool is_sync = store->config.sync_flush && !store->config.dispatch_unflushed;

    return is_sync && RMQ_IS_RIGHT(RMQ_MISTAKE_SERVE_UNFLUSHED) ? store->log.files.flushed : store->log.files.wrote;
}

/* --- queues ------------------------------------------------------------------------------------------------------ */

rmq_queue_entry *rmq_find_entry(const rmq_store *store, rmq_text topic, int64_t queue_id)
{
    return rmq_table_find(&store->queues, topic, queue_id);
}

rmq_status rmq_entry_for(rmq_store *store, rmq_text topic, int64_t queue_id, rmq_queue_entry **entry)
{
    uint8_t *copy;

    *entry = rmq_find_entry(store, topic, queue_id);
    if (*entry != NULL) {
        return RMQ_OK;
    }
    *entry = calloc(1, sizeof **entry + topic.size);
    if (*entry == NULL) {
        return RMQ_NO_MEMORY;
    }
    copy = (uint8_t *)(*entry + 1);
    memcpy(copy, topic.at, topic.size);
    (*entry)->key.text = (rmq_text){copy, topic.size};
    (*entry)->key.number = queue_id;
    if (rmq_table_add(&store->queues, &(*entry)->key) != RMQ_OK) {
        free(*entry);
        return RMQ_NO_MEMORY;
    }
    return RMQ_OK;
}

void rmq_drop_entry(rmq_store *store, rmq_queue_entry *entry)
{
    if (entry->queue == NULL && !entry->has_offset && !entry->is_dirty && entry->holders == 0) {
        rmq_table_remove(&store->queues, &entry->key);
        free(entry);
    }
}

rmq_queue *rmq_find_queue(const rmq_store *store, rmq_text topic, int64_t queue_id)
{
    const rmq_queue_entry *entry = rmq_find_entry(store, topic, queue_id);

    return entry != NULL ? entry->queue : NULL;
}

rmq_status rmq_add_queue(rmq_store *store, rmq_queue_entry *entry)
{
    const rmq_queue_setting setting = {
        .disk = &store->disk,
        .names = &store->names,
        .file_bytes = store->config.queue_file_bytes,
        .piece_bytes = store->config.piece_bytes,
        .tail_max = (size_t)store->config.tail_bytes,
    };
    rmq_queue *queue;

    assert(entry->queue == NULL);
    RMQ_TRY(rmq_queue_new(&setting, entry->key.text, entry->key.number, &queue));
    queue->before = store->last_queue;
    if (store->last_queue != NULL) {
        store->last_queue->after = queue;
    } else {
        store->first_queue = queue;
    }
    store->last_queue = queue;
    entry->queue = queue;
    return RMQ_OK;
}

void rmq_release_queue(rmq_queue *queue)
{
    assert(queue->holders > 0);
    queue->holders -= 1;
    if (queue->is_gone && queue->holders == 0) {
        rmq_queue_free(queue);
    }
}

int64_t rmq_queue_sum(const rmq_store *store)
{
    int64_t sum = 0;

    for (const rmq_queue *queue = store->first_queue; queue != NULL; queue = queue->after) {
        sum += queue->dispatched_end;
    }
    return sum;
}

static void unlink_queue(rmq_store *store, rmq_queue *queue)
{
    if (queue->before != NULL) {
        queue->before->after = queue->after;
    } else {
        store->first_queue = queue->after;
    }
    if (queue->after != NULL) {
        queue->after->before = queue->before;
    } else {
        store->last_queue = queue->before;
    }
    queue->before = queue->after = NULL;
}

/* Removes a queue with its files. */
static rmq_status forget_queue(rmq_store *store, rmq_queue_entry *entry)
{
    rmq_queue *queue = entry->queue;
    rmq_status status;

    unlink_queue(store, queue);
    entry->queue = NULL;
    queue->is_gone = true;
    queue->holders += 1;
    status = rmq_queue_remove(queue);
    rmq_release_queue(queue);
    RMQ_TRY(status);
    entry->is_dirty = false;
    return RMQ_OK;
}

static rmq_status remove_empty_topic(rmq_store *store, rmq_text topic)
{
    char *directory = malloc(sizeof RMQ_QUEUE_DIRECTORY + 1 + topic.size);
    bool is_directory = false, is_empty = false;
    rmq_status status;

    if (directory == NULL) {
        return RMQ_NO_MEMORY;
    }
    memcpy(directory, RMQ_QUEUE_DIRECTORY "/", sizeof RMQ_QUEUE_DIRECTORY);
    memcpy(directory + sizeof RMQ_QUEUE_DIRECTORY, topic.at, topic.size);
    directory[sizeof RMQ_QUEUE_DIRECTORY + topic.size] = '\0';
    status = store->disk.is_directory(store->disk.context, directory, &is_directory);
    if (status == RMQ_OK && is_directory) {
        status = store->disk.is_empty(store->disk.context, directory, &is_empty);
    }
    if (status == RMQ_OK && is_empty) {
        status = store->disk.remove(store->disk.context, directory);
        if (status == RMQ_OK) {
            status = rmq_names_changed(&store->names, RMQ_QUEUE_DIRECTORY);
        }
    }
    free(directory);
    return status;
}

/* Takes the offsets of a topic away, unless they are needed: records that wait for dispatch have theirs already, and the
 * topic continues after them. */
static void forget_offsets(rmq_store *store, rmq_text topic)
{
    const bool wait = store->dispatched_to < store->log.files.wrote;
    size_t at = 0;
    rmq_queue_entry *entry;

    while (!wait && (entry = rmq_table_next(&store->queues, &at)) != NULL) {
        if (rmq_text_equals(entry->key.text, topic) && RMQ_IS_RIGHT(RMQ_MISTAKE_KEEP_OFFSETS)) {
            entry->has_offset = false;
            if (entry->queue == NULL && !entry->is_dirty && entry->holders == 0) {
                rmq_drop_entry(store, entry);
                at = 0; /* the table has moved */
            }
        }
    }
}

rmq_status rmq_delete_topic(rmq_store *store, rmq_text topic, int64_t *count)
{
    rmq_queue *after;

    *count = 0;
    for (rmq_queue *queue = store->first_queue; queue != NULL; queue = after) {
        after = queue->after;
        if (rmq_text_equals(queue->topic, topic)) {
            RMQ_TRY(forget_queue(store, rmq_find_entry(store, queue->topic, queue->queue_id)));
            *count += 1;
        }
    }
    forget_offsets(store, topic);
    if (*count > 0) {
        RMQ_TRY(remove_empty_topic(store, topic));
    }
    store->wants_checkpoint = true;
    return RMQ_OK;
}
