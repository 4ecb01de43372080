/* Reads the log in pieces and gives each record its unit and its entries. */
#include "dispatch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../core/bytes.h"
#include "../core/hash.h"
#include "../core/scan.h"
#include "delay.h"

/* What dispatching needs to know about a record. It points into the record's bytes. */
typedef struct {
    rmq_text topic;
    int64_t queue_id;
    int64_t queue_offset;
    int64_t physical_offset;
    int64_t size;
    int64_t transaction;
    int64_t store_ms;
    rmq_text properties;
    rmq_known_properties known;
    int64_t tags_code;
} record_to_dispatch;

typedef struct {
    rmq_tell tell; /* NULL: nobody is told */
    void *context;
    int64_t told;
} listener;

/* What a queue unit says about a message: in a delay queue when it is due, else the hash of its tags. */
static int64_t tags_code_of(const rmq_store *store, const record_to_dispatch *record)
{
    int64_t deliver_ms;

    if (record->known.delay.at != NULL && rmq_text_equals(record->topic, RMQ_TEXT(RMQ_SCHEDULE_TOPIC)) &&
        rmq_deliver_ms(&store->config, record->known.delay, record->store_ms, &deliver_ms)) {
        return deliver_ms;
    }
    return rmq_string_hash(0, record->known.tags.at, record->known.tags.size);
}

/* The record at `data[at]`, which is whole and stands at `position` of the log. */
static rmq_status read_record(rmq_store *store, const uint8_t *data, size_t size, size_t at, int64_t position,
                              record_to_dispatch *record)
{
    const int64_t base = position - (int64_t)at;
    rmq_record_header header;
    rmq_record_parts parts;

    RMQ_TRY(rmq_read_header(data, size, at, base, &header, &store->damage));
    if (header.physical_offset != position) {
        return rmq_damaged(&store->damage, "physical offset", position + RMQ_PHYSICAL_OFFSET_AT,
                           rmq_damage_number(position), rmq_damage_number(header.physical_offset));
    }
    RMQ_TRY(rmq_find_parts(data, size, at, &header, base, &parts, &store->damage));
    RMQ_TRY(rmq_decode_topic(data, &parts, base, &record->topic, &store->damage));
    record->queue_id = header.queue_id;
    record->queue_offset = header.queue_offset;
    record->physical_offset = position;
    record->size = header.size_bytes;
    record->transaction = header.sys_flag & RMQ_SYS_FLAG_TRANSACTION;
    record->store_ms = header.store_timestamp_ms;
    record->properties = (rmq_text){data + parts.properties_at, parts.end - parts.properties_at};
    rmq_find_properties(record->properties, &record->known);
    record->tags_code = tags_code_of(store, record);
    return RMQ_OK;
}

/* Nothing protects the queue offset in a record. One that claims a place so far past the end of its queue that the log
 * before it cannot hold that many messages is damaged: filling such a gap would fill the disk. */
static rmq_status check_possible_offset(rmq_store *store, const rmq_queue *queue, record_to_dispatch *record)
{
    int64_t possible;

    if (queue == NULL || queue->files.count == 0) {
        return RMQ_OK; /* a queue may start anywhere: nothing is filled but a part of its first file */
    }
    possible = rmq_queue_end(queue) + record->physical_offset / RMQ_RECORD_BYTES_MIN;
    if (record->queue_offset <= possible) {
        return RMQ_OK;
    }
    if (store->config.cut_damage) {
        record->queue_offset = rmq_queue_end(queue);
        return RMQ_OK;
    }
    return rmq_damaged(&store->damage, "queue offset", record->physical_offset + RMQ_QUEUE_OFFSET_AT,
                       rmq_damage_text("at most %lld", (long long)possible), rmq_damage_number(record->queue_offset));
}

static bool is_queued(const record_to_dispatch *record)
{
    return record->transaction == RMQ_TRANSACTION_NONE || record->transaction == RMQ_TRANSACTION_COMMIT;
}

static rmq_status put_unit(rmq_store *store, record_to_dispatch *record, rmq_queue **queue)
{
    const rmq_unit unit = {record->physical_offset, (int32_t)record->size, record->tags_code};
    rmq_queue_entry *entry = rmq_find_entry(store, record->topic, record->queue_id);
    bool is_new;

    RMQ_TRY(check_possible_offset(store, entry == NULL ? NULL : entry->queue, record));
    if (!rmq_is_storable_topic(record->topic) || record->queue_id < 0 || record->queue_offset < 0) {
        return rmq_damaged(&store->damage, "topic", record->physical_offset, rmq_damage_text("the name of a queue"),
                           rmq_damage_bytes(record->topic.at, record->topic.size, true));
    }
    if (entry == NULL) {
        RMQ_TRY(rmq_entry_for(store, record->topic, record->queue_id, &entry));
    }
    if (entry->queue == NULL) {
        RMQ_TRY(rmq_add_queue(store, entry));
    }
    *queue = entry->queue;
    RMQ_TRY(rmq_queue_put(entry->queue, record->queue_offset, &unit, &is_new));
    entry->is_dirty |= is_new;
    if (!entry->has_offset || entry->next_offset <= record->queue_offset) {
        entry->next_offset = record->queue_offset + 1; /* a slave, or a recovery */
        entry->has_offset = true;
    }
    return RMQ_OK;
}

static rmq_status trace_dispatch(rmq_store *store, const record_to_dispatch *record)
{
    const rmq_event event = {
        .action = RMQ_DISPATCH_MESSAGE,
        .subject = record->topic,
        .queue_id = record->queue_id,
        .a = record->physical_offset,
        .b = record->queue_offset,
        .c = record->tags_code,
        .d = record->size,
    };

    return rmq_emit_event(store, &event);
}

/* Gives one record its unit and entries. `told` is whether it belongs to a queue. */
static rmq_status dispatch_message(rmq_store *store, record_to_dispatch *record, bool *belongs)
{
    rmq_queue *queue = NULL;
    rmq_text key;
    size_t at = 0;

    assert(record->physical_offset + record->size <= store->log.files.wrote);
    *belongs = is_queued(record);
    if (*belongs) {
        RMQ_TRY(put_unit(store, record, &queue));
    }
    if (store->config.index_enabled && record->transaction != RMQ_TRANSACTION_ROLLBACK &&
        rmq_next_key(&record->known, &at, &key)) {
        RMQ_TRY(rmq_index_put(&store->index, record->topic, &record->known, record->physical_offset, record->store_ms));
    }
    if (record->store_ms > store->dispatched_ms) {
        store->dispatched_ms = record->store_ms;
    }
    if (queue == NULL) {
        return RMQ_OK;
    }
    queue->dispatched_end = rmq_queue_end(queue);
    return trace_dispatch(store, record);
}

static rmq_status tell(listener *who, const record_to_dispatch *record)
{
    const rmq_dispatched dispatched = {
        .topic = record->topic,
        .queue_id = record->queue_id,
        .queue_offset = record->queue_offset,
        .physical_offset = record->physical_offset,
        .size_bytes = record->size,
        .tags_code = record->tags_code,
        .store_timestamp_ms = record->store_ms,
        .properties = record->properties,
    };

    who->told += 1;
    return who->tell == NULL ? RMQ_OK : who->tell(who->context, &dispatched);
}

/* Dispatches the record at `data[at]`, and `dispatched_to` moves behind it. */
static rmq_status dispatch_one(rmq_store *store, const uint8_t *data, size_t size, size_t at, int64_t position,
                               listener *who)
{
    record_to_dispatch record;
    bool belongs;

    RMQ_TRY(read_record(store, data, size, at, position, &record));
    RMQ_TRY(dispatch_message(store, &record, &belongs));
    rmq_log_saw_store_time(&store->log, record.store_ms);
    store->dispatched_to = position + record.size;
    return belongs ? tell(who, &record) : RMQ_OK;
}

/* Dispatches the next record if it is too large for one piece; `is_done` is false if it is not, or not whole yet. */
static rmq_status dispatch_large(rmq_store *store, int64_t bound, listener *who, bool *is_done)
{
    const int64_t position = store->dispatched_to;
    uint8_t head[RMQ_BLANK_HEADER_BYTES], *data;
    int64_t size;
    rmq_status status;

    *is_done = false;
    if (rmq_log_bytes_from(&store->log, position, sizeof head, bound) < sizeof head) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_log_read(&store->log, position, head, sizeof head));
    size = rmq_load_be32(head);
    if (size <= store->config.piece_bytes ||
        rmq_log_bytes_from(&store->log, position, size, bound) < (size_t)size) {
        return RMQ_OK;
    }
    data = malloc((size_t)size);
    if (data == NULL) {
        return RMQ_NO_MEMORY;
    }
    status = rmq_log_read(&store->log, position, data, (size_t)size);
    if (status == RMQ_OK) {
        status = dispatch_one(store, data, (size_t)size, 0, position, who);
    }
    free(data);
    *is_done = status == RMQ_OK;
    return status;
}

/* Dispatches the records in the next piece of the log. */
static rmq_status dispatch_piece(rmq_store *store, int64_t bound, int64_t count_max, int64_t *count, listener *who)
{
    const int64_t position = store->dispatched_to;
    const size_t size = rmq_log_bytes_from(&store->log, position, store->config.piece_bytes, bound);
    const uint8_t *data = store->piece;
    size_t at = 0;

    if (size > 0) {
        RMQ_TRY(rmq_log_read(&store->log, position, store->piece, size));
    }
    while (*count < count_max && at + RMQ_BLANK_HEADER_BYTES <= size) {
        const int64_t record_bytes = rmq_load_be32(data + at);

        if (rmq_load_be32u(data + at + 4) == RMQ_BLANK_MAGIC) {
            store->dispatched_to = rmq_log_next_file(&store->log, position);
            break;
        }
        if (record_bytes < RMQ_RECORD_BYTES_MIN) {
            return rmq_damaged(&store->damage, "total size", position + (int64_t)at,
                               rmq_damage_text("at least %d", RMQ_RECORD_BYTES_MIN), rmq_damage_number(record_bytes));
        }
        if (record_bytes > (int64_t)(size - at)) {
            break;
        }
        RMQ_TRY(dispatch_one(store, data, size, at, position + (int64_t)at, who));
        at += (size_t)record_bytes;
        *count += 1;
    }
    return RMQ_OK;
}

static rmq_status dispatch_into(rmq_store *store, int64_t bound, int64_t count_max, listener *who)
{
    int64_t count = 0;

    assert(bound <= store->log.files.wrote);
    if (store->dispatched_to < rmq_files_begin(&store->log.files)) {
        store->dispatched_to = rmq_files_begin(&store->log.files);
    }
    while (count < count_max && store->dispatched_to < bound) {
        const int64_t position = store->dispatched_to;

        RMQ_TRY(dispatch_piece(store, bound, count_max, &count, who));
        if (store->dispatched_to == position) { /* a record larger than one read, or one that is not whole */
            bool is_done;

            RMQ_TRY(dispatch_large(store, bound, who, &is_done));
            if (!is_done) {
                break;
            }
            count += 1;
        }
    }
    return RMQ_OK;
}

rmq_status rmq_dispatch(rmq_store *store, int64_t count_max, rmq_tell teller, void *context)
{
    const int64_t bound = rmq_dispatch_bound(store);
    listener who = {teller, context, 0};
    int64_t before = -1;
    rmq_status status = RMQ_OK;

    while (status == RMQ_OK && who.told == 0 && before != store->dispatched_to) {
        before = store->dispatched_to;
        status = dispatch_into(store, bound, count_max, &who);
    }
    if (status == RMQ_OK || status == RMQ_DISK_FULL) {
        store->lacks_dispatch = status == RMQ_DISK_FULL;
        return RMQ_OK;
    }
    return status;
}

rmq_status rmq_dispatch_up_to(rmq_store *store, int64_t bound, int64_t count_max)
{
    listener nobody = {NULL, NULL, 0};

    return dispatch_into(store, bound, count_max, &nobody);
}

/* --- a slave becomes the master ---------------------------------------------------------------------------------- */

static rmq_status take_over_one(rmq_store *store, int64_t position, int64_t size)
{
    uint8_t *data = malloc((size_t)size);
    record_to_dispatch record;
    rmq_queue_entry *entry;
    rmq_status status = data == NULL ? RMQ_NO_MEMORY : rmq_log_read(&store->log, position, data, (size_t)size);

    if (status == RMQ_OK) {
        status = read_record(store, data, (size_t)size, 0, position, &record);
    }
    if (status == RMQ_OK && is_queued(&record)) {
        status = rmq_entry_for(store, record.topic, record.queue_id, &entry);
        if (status == RMQ_OK && (!entry->has_offset || entry->next_offset < record.queue_offset + 1)) {
            entry->next_offset = record.queue_offset + 1;
            entry->has_offset = true;
        }
    }
    if (status == RMQ_OK) {
        rmq_log_saw_store_time(&store->log, record.store_ms);
    }
    free(data);
    return status;
}

rmq_status rmq_take_over_offsets(rmq_store *store, int64_t *end)
{
    rmq_log *log = &store->log;
    const int64_t begin = rmq_files_begin(&log->files);
    int64_t position = store->dispatched_to > begin ? store->dispatched_to : begin;

    while (position < log->files.wrote) {
        uint8_t head[RMQ_BLANK_HEADER_BYTES];
        int64_t size, store_ms;

        if (rmq_log_bytes_from(log, position, sizeof head, log->files.wrote) == sizeof head) {
            RMQ_TRY(rmq_log_read(log, position, head, sizeof head));
            if (rmq_load_be32u(head + 4) == RMQ_BLANK_MAGIC) {
                position = rmq_log_next_file(log, position);
                continue;
            }
        }
        RMQ_TRY(rmq_log_record_at(log, position, &size, &store_ms));
        if (size == 0) {
            break;
        }
        RMQ_TRY(take_over_one(store, position, size));
        position += size;
    }
    *end = position;
    return RMQ_OK;
}
