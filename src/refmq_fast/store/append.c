/* Plans in two steps (measure, then encode into memory of the store) and performs in one. */
#include "append.h"

#include <assert.h>
#include <string.h>

#include "../core/batch.h"
#include "../core/scan.h"
#include "delay.h"
#include "mistakes.h"

#define RECORD_EXTRA_BYTES_MAX (64 * 1024) /* topic, properties and header; Java's number */

/* What a plan is made of. */
typedef struct {
    const rmq_message_to_store *sent;
    rmq_text topic;
    int64_t queue_id;
    int64_t sys_flag;
    int64_t store_ms;
    int64_t next_physical;
    int64_t next_queue_offset;
    bool is_queued;
} making;

static bool is_legal_topic(rmq_text topic)
{
    return topic.size <= RMQ_TOPIC_BYTES_MAX && rmq_is_storable_topic(topic) &&
           rmq_text_is_utf8(topic);
}

static bool fits_a_file(const rmq_store *store, int64_t size)
{
    return size <= store->config.message_bytes_max + RECORD_EXTRA_BYTES_MAX &&
           size + RMQ_BLANK_HEADER_BYTES <= store->log.files.file_bytes;
}

/* Where records of this size go together: to the end of the log, or to the start of the next file. */
static int64_t place_for(const rmq_store *store, int64_t size)
{
    return rmq_log_has_room(&store->log, size) ? store->log.files.wrote : rmq_files_limit(&store->log.files);
}

/* The store time of the next record. It never goes back, whatever the clock does. */
static int64_t store_time(const rmq_store *store, int64_t now_ms)
{
    const bool keeps_steps = store->config.keep_clock_steps || !RMQ_IS_RIGHT(RMQ_MISTAKE_TIME_GOES_BACK);

    return keeps_steps || now_ms > store->log.last_store_ms ? now_ms : store->log.last_store_ms;
}

static bool has_place_in_queue(int64_t sys_flag)
{
    const int64_t transaction = sys_flag & RMQ_SYS_FLAG_TRANSACTION;

    return transaction == RMQ_TRANSACTION_NONE || transaction == RMQ_TRANSACTION_COMMIT ||
           (transaction == RMQ_TRANSACTION_PREPARED && !RMQ_IS_RIGHT(RMQ_MISTAKE_PREPARED_QUEUED));
}

/* Begins the plan for records that take `size` bytes together. */
static rmq_status begin_plan(rmq_store *store, making *made, int64_t size, size_t count, int64_t now_ms,
                             rmq_append_plan *plan)
{
    const rmq_queue_entry *entry = rmq_find_entry(store, made->topic, made->queue_id);

    RMQ_TRY(rmq_reserve((void **)&store->records, &store->records_size, (size_t)size, 1));
    RMQ_TRY(rmq_reserve((void **)&store->places, &store->places_size, count, sizeof *store->places));
    made->is_queued = has_place_in_queue(made->sys_flag);
    made->store_ms = store_time(store, now_ms);
    made->next_physical = place_for(store, size);
    made->next_queue_offset = made->is_queued && entry != NULL && entry->has_offset ? entry->next_offset : 0;
    *plan = (rmq_append_plan){
        .physical_offset = made->next_physical,
        .data = {store->records, 0},
        .topic = made->topic,
        .queue_id = made->queue_id,
        .queue_offset = made->next_queue_offset,
        .count = 0,
        .store_timestamp_ms = made->store_ms,
        .places = store->places,
        .is_queued = made->is_queued,
    };
    return RMQ_OK;
}

/* Encodes one record at the end of the plan. RMQ_UNFIT for a number that does not fit its field. */
static rmq_status add_record(rmq_store *store, making *made, int64_t flag, rmq_text body, rmq_text properties,
                             rmq_append_plan *plan)
{
    const rmq_message_to_store *sent = made->sent;
    const int64_t content = (int64_t)(body.size + made->topic.size + properties.size);
    const rmq_record_header header = {
        .size_bytes = rmq_record_bytes(made->sys_flag, content),
        .magic = RMQ_RECORD_MAGIC,
        .body_crc = rmq_body_crc(body.at, body.size),
        .queue_id = made->queue_id,
        .flag = flag,
        .queue_offset = made->next_queue_offset,
        .physical_offset = made->next_physical,
        .sys_flag = made->sys_flag,
        .born_timestamp_ms = sent->born_timestamp_ms,
        .born_host = sent->born_host,
        .store_timestamp_ms = made->store_ms,
        .store_host = sent->store_host,
        .reconsume_times = sent->reconsume_times,
        .prepared_transaction_offset = sent->prepared_transaction_offset,
        .body_bytes = (int64_t)body.size,
    };

    assert(plan->data.size + (size_t)header.size_bytes <= store->records_size);
    RMQ_TRY(rmq_encode_record(&header, body, made->topic, properties, store->records + plan->data.size));
    store->places[plan->count] = (rmq_place){
        .physical_offset = made->next_physical,
        .queue_offset = made->next_queue_offset,
        .fingerprint = rmq_fingerprint(properties, (uint32_t)header.body_crc),
        .size_bytes = header.size_bytes,
    };
    plan->count += 1;
    plan->data.size += (size_t)header.size_bytes;
    made->next_physical += header.size_bytes;
    made->next_queue_offset += 1;
    plan->durable_at = made->next_physical;
    return RMQ_OK;
}

/* The same properties, but not ending with a zero byte: a record that does looks torn. A separator at the end means
 * nothing. */
static rmq_status close_properties(rmq_store *store, rmq_text *properties)
{
    uint8_t *closed;

    if (!rmq_ends_with_zero(*properties)) {
        return RMQ_OK;
    }
    if (properties->at >= store->texts && properties->at < store->texts + store->texts_size) {
        closed = store->texts + (properties->at - store->texts); /* it is the last thing there, and there is room */
        assert(closed + properties->size < store->texts + store->texts_size);
    } else {
        RMQ_TRY(rmq_reserve((void **)&store->texts, &store->texts_size, properties->size + 1, 1));
        closed = store->texts;
        memcpy(closed, properties->at, properties->size);
    }
    closed[properties->size] = 2;
    *properties = (rmq_text){closed, properties->size + 1};
    return RMQ_OK;
}

/* A number that does not fit its field makes a message illegal; anything else is no refusal. */
static rmq_status refusal_of(rmq_status status, rmq_put_status *put)
{
    *put = status == RMQ_UNFIT ? RMQ_PUT_MESSAGE_ILLEGAL : RMQ_PUT_OK;
    return status == RMQ_UNFIT ? RMQ_OK : status;
}

rmq_status rmq_plan_message(rmq_store *store, const rmq_message_to_store *message, int64_t now_ms, rmq_append_plan *plan,
                            rmq_put_status *put)
{
    const int64_t transaction = message->sys_flag & RMQ_SYS_FLAG_TRANSACTION;
    making made = {.sent = message, .topic = message->topic, .queue_id = message->queue_id};
    rmq_text properties = message->properties;
    int64_t size;

    *put = RMQ_PUT_SERVICE_NOT_AVAILABLE;
    if (!rmq_accepts_puts(store)) {
        return RMQ_OK;
    }
    *put = RMQ_PUT_MESSAGE_ILLEGAL;
    if (!is_legal_topic(message->topic)) {
        return RMQ_OK;
    }
    if (message->delay_level > 0 && store->config.delay_levels > 0 &&
        (transaction == RMQ_TRANSACTION_NONE || transaction == RMQ_TRANSACTION_COMMIT)) {
        RMQ_TRY(rmq_redirect(store, message->delay_level, message->topic, message->queue_id, message->properties,
                             &made.queue_id, &properties));
        made.topic = RMQ_TEXT(RMQ_SCHEDULE_TOPIC);
    }
    RMQ_TRY(close_properties(store, &properties));
    if (properties.size > RMQ_PROPERTIES_BYTES_MAX) {
        *put = RMQ_PUT_PROPERTIES_SIZE_EXCEEDED;
        return RMQ_OK;
    }
    if ((int64_t)message->body.size > store->config.message_bytes_max || made.queue_id < 0) {
        return RMQ_OK;
    }
    made.sys_flag = rmq_host_flags(message->sys_flag, &message->born_host, &message->store_host);
    size = rmq_record_bytes(made.sys_flag, (int64_t)(message->body.size + made.topic.size + properties.size));
    if (!fits_a_file(store, size)) {
        return RMQ_OK;
    }
    RMQ_TRY(begin_plan(store, &made, size, 1, now_ms, plan));
    return refusal_of(add_record(store, &made, message->flag, message->body, properties, plan), put);
}

/* Looks at every message of a batch before anything is encoded: how many there are, and how long their records are.
 * RMQ_DAMAGED for bytes that are not messages, RMQ_UNFIT for properties that are too long together. */
static rmq_status measure_batch(const rmq_store *store, const making *made, size_t *count, int64_t *size)
{
    const rmq_message_to_store *batch = made->sent;
    bool is_too_long = false;
    size_t at = 0;

    (void)store;
    *count = 0;
    *size = 0;
    while (at < batch->body.size) {
        rmq_batched message;
        size_t properties;

        RMQ_TRY(rmq_next_batched(batch->body.at, batch->body.size, &at, &message, NULL));
        properties = rmq_concatenated_bytes(message.properties, batch->properties);
        properties += rmq_ends_with_zero(batch->properties.size > 0 ? batch->properties : message.properties) ? 1 : 0;
        is_too_long |= properties > RMQ_PROPERTIES_BYTES_MAX;
        *count += 1;
        *size += rmq_record_bytes(made->sys_flag, (int64_t)(message.body.size + made->topic.size + properties));
    }
    return is_too_long ? RMQ_UNFIT : RMQ_OK;
}

static rmq_status add_batched(rmq_store *store, making *made, const rmq_batched *message, rmq_append_plan *plan)
{
    const rmq_text more = made->sent->properties;
    const size_t size = rmq_concatenated_bytes(message->properties, more);
    rmq_text properties;

    RMQ_TRY(rmq_reserve((void **)&store->texts, &store->texts_size, size + 1, 1));
    rmq_concatenate_properties(message->properties, more, store->texts);
    properties = (rmq_text){store->texts, size};
    RMQ_TRY(close_properties(store, &properties));
    return add_record(store, made, message->flag, message->body, properties, plan);
}

rmq_status rmq_plan_batch(rmq_store *store, const rmq_message_to_store *batch, int64_t now_ms, rmq_append_plan *plan,
                          rmq_put_status *put)
{
    making made = {.sent = batch, .topic = batch->topic, .queue_id = batch->queue_id};
    size_t count, at = 0;
    int64_t size;
    rmq_status status;

    *put = RMQ_PUT_SERVICE_NOT_AVAILABLE;
    if (!rmq_accepts_puts(store)) {
        return RMQ_OK;
    }
    *put = RMQ_PUT_MESSAGE_ILLEGAL;
    if (!is_legal_topic(batch->topic) || batch->queue_id < 0 || batch->delay_level > 0 ||
        (int64_t)batch->body.size > store->config.message_bytes_max ||
        (batch->sys_flag & RMQ_SYS_FLAG_TRANSACTION) != RMQ_TRANSACTION_NONE) {
        return RMQ_OK;
    }
    made.sys_flag = rmq_host_flags(batch->sys_flag, &batch->born_host, &batch->store_host);
    status = measure_batch(store, &made, &count, &size);
    if (status == RMQ_UNFIT) {
        *put = RMQ_PUT_PROPERTIES_SIZE_EXCEEDED;
    }
    if (status != RMQ_OK || count == 0 || !fits_a_file(store, size)) {
        return RMQ_OK;
    }
    RMQ_TRY(begin_plan(store, &made, size, count, now_ms, plan));
    while (status == RMQ_OK && at < batch->body.size) {
        rmq_batched message;

        status = rmq_next_batched(batch->body.at, batch->body.size, &at, &message, NULL);
        assert(status == RMQ_OK);
        status = add_batched(store, &made, &message, plan);
    }
    return refusal_of(status, put);
}

/* --- perform ----------------------------------------------------------------------------------------------------- */

/* Ends the last file with a blank record and starts the next one. */
static rmq_status roll_file(rmq_store *store)
{
    const int64_t before = store->log.files.wrote;
    const bool is_first = store->log.files.count == 0;
    const rmq_event event = {.action = RMQ_ROLL_FILE, .queue_id = -1, .a = before};
    rmq_event rolled = event;

    RMQ_TRY(rmq_log_roll_file(&store->log));
    rolled.b = store->log.files.wrote;
    return is_first ? RMQ_OK : rmq_emit_event(store, &rolled);
}

static rmq_status trace_append(rmq_store *store, const rmq_append_plan *plan)
{
    if (store->emit == NULL) {
        return RMQ_OK;
    }
    for (size_t i = 0; i < plan->count; i++) {
        const rmq_place *place = &plan->places[i];
        const rmq_event event = {
            .action = RMQ_APPEND_MESSAGE,
            .subject = plan->topic,
            .queue_id = plan->queue_id,
            .a = place->physical_offset,
            .b = place->queue_offset,
            .c = place->fingerprint,
            .d = place->size_bytes,
        };
        RMQ_TRY(rmq_emit_event(store, &event));
    }
    return RMQ_OK;
}

rmq_status rmq_append(rmq_store *store, const rmq_append_plan *plan, rmq_put_status *put, rmq_status *failed)
{
    const int64_t size = (int64_t)plan->data.size;
    rmq_queue_entry *entry = NULL;
    rmq_status status;

    *put = RMQ_PUT_SERVICE_NOT_AVAILABLE;
    *failed = RMQ_OK;
    if (!rmq_accepts_puts(store)) {
        return RMQ_OK;
    }
    if (plan->is_queued) {
        RMQ_TRY(rmq_entry_for(store, plan->topic, plan->queue_id, &entry));
        assert(plan->queue_offset == (entry->has_offset ? entry->next_offset : 0));
    }
    assert(plan->physical_offset == place_for(store, size) && size == plan->durable_at - plan->physical_offset);
    if (!rmq_log_has_room(&store->log, size)) {
        status = roll_file(store);
        if (status == RMQ_DISK_FULL || status == RMQ_DISK_FAILED) {
            *put = RMQ_PUT_CREATE_FILE_FAILED;
            *failed = status;
            return RMQ_OK;
        }
        RMQ_TRY(status);
    }
    status = rmq_log_append(&store->log, plan->data.at, plan->data.size, plan->store_timestamp_ms);
    if (status == RMQ_DISK_FULL || status == RMQ_DISK_FAILED) {
        store->has_failed |= status == RMQ_DISK_FAILED; /* a full disk may have room again */
        *failed = status;
        return RMQ_OK;
    }
    RMQ_TRY(status);
    if (entry != NULL) {
        entry->next_offset = plan->queue_offset + (int64_t)plan->count;
        entry->has_offset = true;
    }
    *put = RMQ_PUT_OK;
    return trace_append(store, plan);
}

rmq_status rmq_write_appended(rmq_store *store)
{
    const rmq_status status = rmq_files_write_tail(&store->log.files);

    store->has_failed |= status == RMQ_DISK_FULL || status == RMQ_DISK_FAILED;
    return status;
}
