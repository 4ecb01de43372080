/* Reads a queue in pieces of units, and the records behind them into memory of the caller. */
#include "get.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mistakes.h"

#define UNITS_AT_ONCE 128
#define RMQ_FILTER_WORK_MAX 10000 /* as WORK_MAX in refmq/filter/work.py */
#define EXPECTED_AHEAD 4 /* as many as the processor fetches at a time */

/* --- records ----------------------------------------------------------------------------------------------------- */

/* Reads bytes of the log to the end of the records, without counting them yet. */
static rmq_status read_behind(rmq_store *store, int64_t position, int64_t size, rmq_records *records)
{
    RMQ_TRY(rmq_reserve((void **)&records->data, &records->size, records->used + (size_t)size, 1));
    return rmq_log_read(&store->log, position, records->data + records->used, (size_t)size);
}

static void keep(rmq_records *records, int64_t size)
{
    records->used += (size_t)size;
    records->count += 1;
}

rmq_status rmq_message_at(rmq_store *store, int64_t physical_offset, rmq_records *records)
{
    int64_t size, store_ms;

    RMQ_TRY(rmq_log_record_at(&store->log, physical_offset, &size, &store_ms));
    if (size > 0) {
        RMQ_TRY(read_behind(store, physical_offset, size, records));
        keep(records, size);
    }
    return RMQ_OK;
}

/* --- a queue ----------------------------------------------------------------------------------------------------- */

/* A read under way. */
typedef struct {
    rmq_store *store;
    rmq_queue *queue;
    const rmq_filter *filter;
    int64_t count_max;
    rmq_records *records;
    rmq_get_result *result;
    int64_t skip_below;    /* units of a file of the log that is gone */
    int64_t last_physical; /* of the unit that was looked at last */
    int64_t work;          /* of the expression so far */
    bool is_full;
} reading;

static bool is_far(const rmq_store *store, int64_t distance)
{
    const int64_t per_hundred = store->config.memory_bytes / 100;
    const int64_t rest = store->config.memory_bytes % 100;

    return distance > per_hundred * store->config.memory_ratio_percent + rest * store->config.memory_ratio_percent / 100;
}

/* Whether another message would be too much. The first one is always returned, whatever its size. */
static bool is_enough(const reading *read, int64_t size_bytes, int64_t distance)
{
    const rmq_store_config *config = &read->store->config;
    const bool is_on_disk = is_far(read->store, distance);
    const int64_t bytes_max = is_on_disk ? config->disk_transfer_bytes_max : config->memory_transfer_bytes_max;
    const int64_t count_max = is_on_disk ? config->disk_transfer_count_max : config->memory_transfer_count_max;

    return read->records->count >= read->count_max || size_bytes > bytes_max || read->records->count >= count_max;
}

static bool wants_code(const rmq_filter *filter, int64_t tags_code)
{
    const int32_t code = (int32_t)(uint32_t)((uint64_t)tags_code & 0xffffffffu);

    if (!filter->has_codes || tags_code <= (int64_t)INT32_MIN - 1) {
        return true; /* an address in an extension that we do not have: the consumer filters again */
    }
    for (size_t i = 0; i < filter->code_count; i++) {
        if (filter->codes[i] == code) {
            return true;
        }
    }
    return false;
}

/* The twin of refmq/filter/work.py. */
static int64_t work_of(int64_t terms, int64_t properties_bytes)
{
    return 16 + properties_bytes / 64 + terms * (1 + properties_bytes / 1024);
}

/* Whether the properties of the record behind the others let it through. */
static rmq_status wants_properties(reading *read, const rmq_unit *unit, bool *is_wanted)
{
    const rmq_records *records = read->records;
    rmq_record_header header;
    rmq_record_parts parts;

    *is_wanted = true;
    if (read->filter->matches == NULL) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_decode_record(records->data + records->used, (size_t)unit->size, 0, 0, false, &header, &parts,
                              &read->store->damage));
    read->work += work_of(read->filter->terms, (int64_t)(parts.end - parts.properties_at));
    return read->filter->matches(read->filter->context,
                                 (rmq_text){records->data + records->used + parts.properties_at,
                                            parts.end - parts.properties_at},
                                 is_wanted);
}

/* A message goes to a consumer. Reading changes nothing, so all there is to do is to trace it. */
static rmq_status serve_message(const reading *read, int64_t queue_offset, const rmq_unit *unit)
{
    const uint8_t *data = read->records->data + read->records->used;
    rmq_record_header header;
    rmq_record_parts parts;
    rmq_event event = {
        .action = RMQ_SERVE_MESSAGE,
        .subject = read->queue->topic,
        .queue_id = read->queue->queue_id,
        .a = unit->physical_offset,
        .b = queue_offset,
        .d = unit->size,
    };

    if (read->store->emit == NULL) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_decode_record(data, (size_t)unit->size, 0, unit->physical_offset, false, &header, &parts,
                              &read->store->damage));
    event.c = rmq_fingerprint((rmq_text){data + parts.properties_at, parts.end - parts.properties_at},
                              rmq_body_crc(data + parts.body_at, parts.body_end - parts.body_at));
    return rmq_emit_event(read->store, &event);
}

static rmq_status take_record(reading *read, int64_t queue_offset, const rmq_unit *unit)
{
    rmq_log *log = &read->store->log;
    bool is_there = rmq_log_has(log, unit->physical_offset, unit->size), is_wanted;

    if (is_there) {
        RMQ_TRY(read_behind(read->store, unit->physical_offset, unit->size, read->records));
        is_there = rmq_is_record_at(read->records->data + read->records->used, (size_t)unit->size, unit->physical_offset);
    }
    if (!is_there) {
        /* Its file is gone, and with it the other messages of that file. */
        if (read->records->count == 0) {
            read->result->status = RMQ_GET_MESSAGE_WAS_REMOVING;
        }
        if (unit->size != RMQ_BLANK_SIZE) {
            read->skip_below = rmq_log_next_file(log, unit->physical_offset);
        }
        return RMQ_OK;
    }
    RMQ_TRY(wants_properties(read, unit, &is_wanted));
    if (is_wanted) {
        RMQ_TRY(serve_message(read, queue_offset, unit));
        keep(read->records, unit->size);
        read->result->status = RMQ_GET_FOUND;
        read->skip_below = -1;
    }
    return RMQ_OK;
}

static rmq_status look_at(reading *read, int64_t queue_offset, const rmq_unit *unit)
{
    const int64_t distance = read->store->log.files.wrote - unit->physical_offset;

    read->last_physical = unit->physical_offset;
    if (read->work >= RMQ_FILTER_WORK_MAX) {
        read->is_full = true;
        return RMQ_OK;
    }
    if (unit->physical_offset < read->skip_below) {
        return RMQ_OK;
    }
    if (read->records->count > 0 && is_enough(read, (int64_t)read->records->used + unit->size, distance)) {
        read->is_full = true;
        return RMQ_OK;
    }
    return wants_code(read->filter, unit->tags_code) ? take_record(read, queue_offset, unit) : RMQ_OK;
}

/* Records of a queue lie apart from each other in the log; those that come next are fetched while one is copied. */
static void expect(const reading *read, const rmq_unit *unit)
{
    if (unit->size > 0 && unit->size < RMQ_BLANK_SIZE && wants_code(read->filter, unit->tags_code)) {
        rmq_files_expect(&read->store->log.files, unit->physical_offset, (size_t)unit->size);
    }
}

static rmq_status collect(reading *read, int64_t queue_offset, int64_t units)
{
    const int64_t end = queue_offset + units;

    read->result->status = RMQ_GET_NO_MATCHED_MESSAGE;
    while (queue_offset < end && !read->is_full) {
        const int64_t count = end - queue_offset < UNITS_AT_ONCE ? end - queue_offset : UNITS_AT_ONCE;
        rmq_unit piece[UNITS_AT_ONCE];

        RMQ_TRY(rmq_queue_read(read->queue, queue_offset, count, piece));
        for (int64_t i = 0; i < count && i < EXPECTED_AHEAD; i++) {
            expect(read, &piece[i]);
        }
        for (int64_t i = 0; i < count && !read->is_full; i++) {
            if (i + EXPECTED_AHEAD < count) {
                expect(read, &piece[i + EXPECTED_AHEAD]);
            }
            RMQ_TRY(look_at(read, queue_offset, &piece[i]));
            queue_offset += read->is_full && RMQ_IS_RIGHT(RMQ_MISTAKE_SKIP_WHEN_FULL) ? 0 : 1;
        }
    }
    read->result->next_offset = queue_offset;
    read->result->suggest_slave = is_far(read->store, read->store->log.files.wrote - read->last_physical);
    return RMQ_OK;
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Nothing is read; where to continue, unless a slave has to keep the consumer's offset. */
static rmq_status nothing(const rmq_store *store, rmq_get_result *result, rmq_get_status status, int64_t queue_offset,
                          int64_t corrected)
{
    const bool keeps = store->config.is_slave && !store->config.correct_offsets_on_slave;

    result->status = status;
    result->next_offset = keeps ? queue_offset : corrected;
    return RMQ_OK;
}

rmq_status rmq_get_message(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t count_max,
                           const rmq_filter *filter, rmq_records *records, rmq_get_result *result)
{
    rmq_queue *queue = rmq_find_queue(store, topic, queue_id);
    reading read = {store, queue, filter, count_max, records, result, -1, 0, 0, false};
    int64_t units;

    memset(result, 0, sizeof *result);
    records->used = 0;
    records->count = 0;
    if (queue != NULL) {
        RMQ_TRY(rmq_queue_min_at(queue, rmq_files_begin(&store->log.files), &result->min_offset));
        result->max_offset = queue->dispatched_end;
    }
    if (queue == NULL || result->max_offset == 0) {
        return nothing(store, result, RMQ_GET_NO_MESSAGE_IN_QUEUE, queue_offset, 0);
    }
    if (queue_offset < result->min_offset) {
        return nothing(store, result, RMQ_GET_OFFSET_TOO_SMALL, queue_offset, result->min_offset);
    }
    if (queue_offset == result->max_offset) {
        return nothing(store, result, RMQ_GET_OFFSET_OVERFLOW_ONE, queue_offset, queue_offset);
    }
    if (queue_offset > result->max_offset) {
        return nothing(store, result, RMQ_GET_OFFSET_OVERFLOW_BADLY, queue_offset, result->max_offset);
    }
    units = count_max > store->config.read_units_min ? count_max : store->config.read_units_min;
    units = rmq_queue_units_from(queue, queue_offset, least(units, result->max_offset - queue_offset));
    if (units == 0) {
        const int64_t per_file = queue->files.file_bytes / RMQ_UNIT_BYTES;
        return nothing(store, result, RMQ_GET_OFFSET_FOUND_NULL, queue_offset,
                       queue_offset + per_file - queue_offset % per_file);
    }
    return collect(&read, queue_offset, units);
}

rmq_status rmq_min_offset(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t *min_offset)
{
    rmq_queue *queue = rmq_find_queue(store, topic, queue_id);

    *min_offset = 0;
    return queue == NULL ? RMQ_OK : rmq_queue_min_at(queue, rmq_files_begin(&store->log.files), min_offset);
}

int64_t rmq_max_offset(const rmq_store *store, rmq_text topic, int64_t queue_id)
{
    const rmq_queue *queue = rmq_find_queue(store, topic, queue_id);

    return queue == NULL ? 0 : queue->dispatched_end;
}

rmq_status rmq_units_from(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t count_max,
                          rmq_status (*take)(void *context, int64_t queue_offset, const rmq_unit *unit), void *context)
{
    rmq_queue *queue = rmq_find_queue(store, topic, queue_id);
    int64_t min_offset, end;

    if (queue == NULL) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_queue_min_at(queue, rmq_files_begin(&store->log.files), &min_offset));
    if (queue_offset < min_offset || queue_offset >= queue->dispatched_end) {
        return RMQ_OK;
    }
    end = queue_offset
          + rmq_queue_units_from(queue, queue_offset, least(count_max, queue->dispatched_end - queue_offset));
    for (; queue_offset < end; queue_offset++) {
        rmq_unit unit;

        RMQ_TRY(rmq_queue_read(queue, queue_offset, 1, &unit));
        if (unit.size != RMQ_BLANK_SIZE) {
            RMQ_TRY(take(context, queue_offset, &unit));
        }
    }
    return RMQ_OK;
}
