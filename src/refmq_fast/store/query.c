/* The rest of get.h: finding messages by key and by time. */
#include "get.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../core/hash.h"
#include "../core/utf8.h"

/* --- by key ------------------------------------------------------------------------------------------------------ */

/* Whether a piece of properties is a key, which is UTF-8: bytes of the piece that are not stand for replacements. */
static rmq_status is_text(rmq_text piece, rmq_text key, bool *is_equal)
{
    uint8_t *replaced;

    *is_equal = rmq_text_equals(piece, key);
    if (*is_equal || rmq_utf8_valid_to(piece.at, piece.size) == piece.size) {
        return RMQ_OK;
    }
    replaced = malloc(3 * piece.size);
    if (replaced == NULL) {
        return RMQ_NO_MEMORY;
    }
    *is_equal = rmq_text_equals((rmq_text){replaced, rmq_utf8_replace(piece.at, piece.size, replaced)}, key);
    free(replaced);
    return RMQ_OK;
}

/* Whether a message has a key: its unique one, or one of its keys. Nothing between two blanks is an empty key. */
static rmq_status has_key(rmq_text properties, rmq_text key, bool *is_one)
{
    rmq_known_properties known;
    size_t at = 0;

    rmq_find_properties(properties, &known);
    *is_one = false;
    if (known.keys.at == NULL) {
        known.keys = RMQ_TEXT("");
    }
    if (known.unique_key.at != NULL) {
        RMQ_TRY(is_text(known.unique_key, key, is_one));
    }
    while (!*is_one && at <= known.keys.size) {
        const size_t left = known.keys.size - at;
        const uint8_t *end = left == 0 ? NULL : memchr(known.keys.at + at, ' ', left);
        const size_t size = end == NULL ? left : (size_t)(end - (known.keys.at + at));

        RMQ_TRY(is_text((rmq_text){known.keys.at + at, size}, key, is_one));
        at += size + 1;
    }
    return RMQ_OK;
}

/* Where the messages are that a query has found: physical offsets, in the order in which they were found. */
typedef struct {
    int64_t *list;
    size_t size;
    size_t count;
} places;

static bool has_place(const places *found, int64_t physical_offset)
{
    for (size_t i = 0; i < found->count; i++) {
        if (found->list[i] == physical_offset) {
            return true;
        }
    }
    return false;
}

/* Checks one record that has the right hash. `records` is memory to read it into. */
static rmq_status check_candidate(rmq_store *store, rmq_text topic, rmq_text key, int64_t begin_ms, int64_t end_ms,
                                  int64_t physical_offset, rmq_records *records, places *found)
{
    rmq_record_header header;
    rmq_record_parts parts;
    bool is_one;

    records->used = 0;
    records->count = 0;
    RMQ_TRY(rmq_message_at(store, physical_offset, records));
    if (records->count == 0 || has_place(found, physical_offset)) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_decode_record(records->data, records->used, 0, physical_offset, false, &header, &parts, &store->damage));
    RMQ_TRY(has_key((rmq_text){records->data + parts.properties_at, parts.end - parts.properties_at}, key, &is_one));
    if (!is_one || header.store_timestamp_ms < begin_ms || header.store_timestamp_ms > end_ms ||
        !rmq_text_equals((rmq_text){records->data + parts.topic_at, parts.topic_end - parts.topic_at}, topic)) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_reserve((void **)&found->list, &found->size, found->count + 1, sizeof *found->list));
    found->list[found->count] = physical_offset;
    found->count += 1;
    return RMQ_OK;
}

static rmq_status find_all(rmq_store *store, rmq_text topic, rmq_text key, int64_t count_max, int64_t begin_ms,
                           int64_t end_ms, rmq_records *records, places *found)
{
    const int32_t hash = rmq_key_hash(topic.at, topic.size, key.at, key.size);

    for (size_t i = store->index.count; i > 0; i--) {
        rmq_index_file *file = store->index.files[i - 1];
        int32_t number = 0;

        while (rmq_index_file_covers(file, begin_ms, end_ms)) {
            int64_t physical_offset;

            RMQ_TRY(rmq_index_file_find(file, hash, begin_ms, end_ms, &number, &physical_offset));
            if (number == 0) {
                break;
            }
            if ((int64_t)found->count >= count_max) {
                return RMQ_OK;
            }
            RMQ_TRY(check_candidate(store, topic, key, begin_ms, end_ms, physical_offset, records, found));
        }
        if (rmq_index_file_count(file) > 0 && file->begin_ms < begin_ms) {
            break;
        }
    }
    return RMQ_OK;
}

static int by_offset(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

    return (first > second) - (first < second);
}

rmq_status rmq_query_by_key(rmq_store *store, rmq_text topic, rmq_text key, int64_t count_max, int64_t begin_ms,
                            int64_t end_ms, rmq_records *records)
{
    const int64_t most = count_max < store->config.query_count_max ? count_max : store->config.query_count_max;
    places found = {NULL, 0, 0};
    rmq_status status = find_all(store, topic, key, most, begin_ms, end_ms, records, &found);

    records->used = 0;
    records->count = 0;
    if (found.count > 0) {
        qsort(found.list, found.count, sizeof *found.list, by_offset);
    }
    for (size_t i = 0; i < found.count && status == RMQ_OK; i++) {
        status = rmq_message_at(store, found.list[i], records);
    }
    free(found.list);
    return status;
}

/* --- by time ----------------------------------------------------------------------------------------------------- */

static rmq_status unit_store_time(rmq_store *store, rmq_queue *queue, int64_t queue_offset, int64_t *store_ms)
{
    rmq_unit unit;
    bool is_there;

    *store_ms = -1;
    RMQ_TRY(rmq_queue_unit(queue, queue_offset, &unit, &is_there));
    is_there = is_there && queue_offset < queue->dispatched_end;
    return is_there ? rmq_log_store_time(&store->log, unit.physical_offset, unit.size, store_ms) : RMQ_OK;
}

static rmq_status first_at_or_after(rmq_store *store, rmq_queue *queue, int64_t timestamp_ms, int64_t *found)
{
    int64_t low = queue->min_offset, high = queue->dispatched_end;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        int64_t store_ms;

        /* A message that can no longer be read (-1) counts as older than any time. */
        RMQ_TRY(unit_store_time(store, queue, middle, &store_ms));
        if (store_ms >= timestamp_ms) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *found = low;
    return RMQ_OK;
}

/* The nearer of two neighbours, the earlier one if both are equally near; past the end, the last one. */
static rmq_status nearest(rmq_store *store, rmq_queue *queue, int64_t timestamp_ms, int64_t low, int64_t *found)
{
    const int64_t last = queue->dispatched_end - 1;
    int64_t after, before;

    if (low > last) {
        *found = last > queue->min_offset ? last : queue->min_offset;
        return RMQ_OK;
    }
    *found = low;
    if (low == queue->min_offset) {
        return RMQ_OK;
    }
    RMQ_TRY(unit_store_time(store, queue, low, &after));
    RMQ_TRY(unit_store_time(store, queue, low - 1, &before));
    if (after != timestamp_ms && before >= 0 && timestamp_ms - before <= after - timestamp_ms) {
        *found = low - 1;
    }
    return RMQ_OK;
}

rmq_status rmq_offset_by_time(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t timestamp_ms,
                              rmq_boundary boundary, int64_t *queue_offset)
{
    rmq_queue *queue = rmq_find_queue(store, topic, queue_id);
    int64_t ignored, low;

    *queue_offset = 0;
    if (queue == NULL || queue->dispatched_end == 0) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_queue_min_at(queue, rmq_files_begin(&store->log.files), &ignored));
    RMQ_TRY(first_at_or_after(store, queue, timestamp_ms, &low));
    if (boundary == RMQ_BOUNDARY_LOWER) {
        *queue_offset = low;
        return RMQ_OK;
    }
    if (boundary == RMQ_BOUNDARY_NEAREST) {
        return nearest(store, queue, timestamp_ms, low, queue_offset);
    }
    if (timestamp_ms < INT64_MAX) {
        RMQ_TRY(first_at_or_after(store, queue, timestamp_ms + 1, &low));
    } else {
        low = queue->dispatched_end;
    }
    *queue_offset = low - 1 > queue->min_offset ? low - 1 : queue->min_offset;
    return RMQ_OK;
}

rmq_status rmq_store_time(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t *store_ms)
{
    rmq_queue *queue = rmq_find_queue(store, topic, queue_id);

    *store_ms = -1;
    return queue == NULL ? RMQ_OK : unit_store_time(store, queue, queue_offset, store_ms);
}
