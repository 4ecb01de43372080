/* Sending: 10 SEND_MESSAGE, 310 SEND_MESSAGE_V2, 320 SEND_BATCH_MESSAGE. The twin of refmq/plane/send.py.
 *
 * A send is checked, planned into the log, appended, and answered at once or when its flush has ended. Handed over: every
 * refusal, half messages, retries and dead letters, and properties that say a name twice.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../core/answer.h"
#include "../core/message_id.h"
#include "fields.h"
#include "mistakes.h"
#include "plane.h"

#define SEND_MESSAGE 10
#define SYS_FLAG_MULTI_TAGS 0x2
#define RANDOM_QUEUE_BOUND 99999999u /* upstream draws below this; kept, so that the distribution is the same */
#define TOPIC_LENGTH_MAX 127u
#define PROPERTIES_MAX 32u    /* of a message; more are handed over */
#define IDS_BYTES_MAX (RMQ_HEADER_LENGTH_MAX / 2) /* of a batch */
#define LEVEL_DIGITS_MAX 10u  /* as in refmq/plane/property_rules.py */

/* The fields of a send that are looked at. */
typedef struct {
    rmq_text topic;
    rmq_text properties;
    int64_t queue_id;
    int64_t sys_flag;
    int64_t born_timestamp_ms;
    int64_t flag;
    int64_t reconsume_times;
    bool is_batch;
} send_header;

typedef struct {
    rmq_text name;
    rmq_text value;
} property;

/* What the properties of a message ask of the broker. */
typedef struct {
    property list[PROPERTIES_MAX];
    size_t count;
    bool waits;
    int64_t delay_level;
} properties;

/* --- reading ------------------------------------------------------------------------------------------------------- */

/* The name of a field: in full for code 10, one letter for the others. */
static rmq_text name(bool is_short, rmq_text letter, rmq_text full)
{
    return is_short ? letter : full;
}

static rmq_status read_header(const rmq_command *command, send_header *header)
{
    const bool is_short = command->code != SEND_MESSAGE;
    int64_t ignored = 0;
    bool unit_mode = false;

    memset(header, 0, sizeof *header);
    RMQ_TRY(rmq_text_field(command, name(is_short, RMQ_TEXT("b"), RMQ_TEXT("topic")), &header->topic));
    RMQ_TRY(rmq_number_field(command, name(is_short, RMQ_TEXT("e"), RMQ_TEXT("queueId")), INT32_MIN, INT32_MAX,
                             &header->queue_id));
    RMQ_TRY(rmq_number_field(command, name(is_short, RMQ_TEXT("f"), RMQ_TEXT("sysFlag")), INT32_MIN, INT32_MAX,
                             &header->sys_flag));
    RMQ_TRY(rmq_number_field(command, name(is_short, RMQ_TEXT("g"), RMQ_TEXT("bornTimestamp")), INT64_MIN, INT64_MAX,
                             &header->born_timestamp_ms));
    RMQ_TRY(rmq_number_field(command, name(is_short, RMQ_TEXT("h"), RMQ_TEXT("flag")), INT32_MIN, INT32_MAX,
                             &header->flag));
    RMQ_TRY(rmq_optional_number(command, name(is_short, RMQ_TEXT("j"), RMQ_TEXT("reconsumeTimes")), INT32_MIN,
                                INT32_MAX, &header->reconsume_times));
    /* Not used here, but a wrong one is refused. */
    RMQ_TRY(rmq_optional_number(command, name(is_short, RMQ_TEXT("d"), RMQ_TEXT("defaultTopicQueueNums")), INT32_MIN,
                                INT32_MAX, &ignored));
    RMQ_TRY(rmq_optional_number(command, name(is_short, RMQ_TEXT("l"), RMQ_TEXT("maxReconsumeTimes")), INT32_MIN,
                                INT32_MAX, &ignored));
    rmq_optional_switch(command, name(is_short, RMQ_TEXT("k"), RMQ_TEXT("unitMode")), &unit_mode);
    rmq_optional_switch(command, name(is_short, RMQ_TEXT("m"), RMQ_TEXT("batch")), &header->is_batch);
    rmq_optional_text(command, name(is_short, RMQ_TEXT("i"), RMQ_TEXT("properties")), &header->properties);
    return RMQ_OK;
}

static const rmq_text *value_of(const properties *found, rmq_text wanted)
{
    for (size_t i = 0; i < found->count; i++) {
        if (rmq_text_equals(found->list[i].name, wanted)) {
            return &found->list[i].value;
        }
    }
    return NULL;
}

static rmq_status read_properties(const send_header *header, properties *found)
{
    const int64_t transaction = header->sys_flag & RMQ_SYS_FLAG_TRANSACTION;
    const rmq_text *value;
    size_t at = 0;
    rmq_text known, its_value;

    found->count = 0;
    while (rmq_next_property(header->properties, &at, &known, &its_value)) {
        if (found->count == PROPERTIES_MAX || value_of(found, known) != NULL) {
            return RMQ_NOT_MINE;
        }
        found->list[found->count] = (property){known, its_value};
        found->count += 1;
    }
    value = value_of(found, RMQ_TEXT("TRAN_MSG"));
    if (value != NULL && rmq_text_is_in_any_case(*value, RMQ_TEXT("true"))) {
        return RMQ_NOT_MINE; /* a half message */
    }
    value = value_of(found, RMQ_TEXT("WAIT"));
    found->waits = value == NULL || !rmq_text_is_in_any_case(*value, RMQ_TEXT("false"));
    value = value_of(found, RMQ_TEXT("DELAY"));
    found->delay_level = 0;
    if (value != NULL && (transaction == RMQ_TRANSACTION_NONE || transaction == RMQ_TRANSACTION_COMMIT)) {
        const int64_t level = rmq_digits(*value, LEVEL_DIGITS_MAX);

        found->delay_level = level > 0 && RMQ_IS_RIGHT(RMQ_MISTAKE_DELAY_IGNORED) ? level : 0;
    }
    return RMQ_OK;
}

/* --- checks -------------------------------------------------------------------------------------------------------- */

/* Whether a send may go ahead; the order does not matter, because a refusal is somebody else's. */
static bool check_send(const rmq_plane *plane, const rmq_request *request, const send_header *header,
                       const rmq_topic *topic, int64_t now_ms)
{
    const rmq_plane_config *config = &plane->snapshot.config;

    if (now_ms < config->accepts_sends_from_ms || (config->permission & RMQ_PERM_WRITE) == 0) {
        return false;
    }
    if (config->waits_for_slaves || topic == NULL || !topic->may_send || header->topic.size > TOPIC_LENGTH_MAX) {
        return false;
    }
    if (header->queue_id >= topic->write_queues && header->queue_id >= topic->read_queues) {
        return false;
    }
    if (header->queue_id < 0 && topic->write_queues == 0) {
        return false;
    }
    return !rmq_is_busy(plane, plane->acks.count, config->sends_max, request->waited_ms, config->send_wait_ms);
}

/* --- messages ------------------------------------------------------------------------------------------------------ */

static uint8_t *add_property(uint8_t *to, const uint8_t *start, rmq_text known, rmq_text value)
{
    if (to != start) {
        *to++ = 2;
    }
    memcpy(to, known.at, known.size);
    to += known.size;
    *to++ = 1;
    if (value.size > 0) {
        memcpy(to, value.at, value.size);
    }
    return to + value.size;
}

/* The properties as they are stored: with the cluster's name, and without WAIT, which is for the broker. A delayed message
 * and a batch keep it. */
static rmq_status stored_properties(rmq_plane *plane, const send_header *header, const properties *found,
                                    rmq_text *stored)
{
    const rmq_text cluster = {plane->snapshot.config.cluster.bytes, plane->snapshot.config.cluster.size};
    const rmq_text cluster_key = RMQ_TEXT("CLUSTER");
    const bool keeps_wait = header->is_batch || found->delay_level > 0 || !RMQ_IS_RIGHT(RMQ_MISTAKE_KEEP_WAIT);
    bool has_cluster = false;
    uint8_t *to;

    RMQ_TRY(rmq_text_room(plane, header->properties.size + cluster_key.size + cluster.size + 3));
    to = plane->text;
    for (size_t i = 0; i < found->count; i++) {
        const property *one = &found->list[i];

        if (i + 1 == found->count && !RMQ_IS_RIGHT(RMQ_MISTAKE_PROPERTY_LOST)) {
            continue;
        }
        if (rmq_text_equals(one->name, cluster_key)) {
            to = add_property(to, plane->text, cluster_key, cluster);
            has_cluster = true;
        } else if (keeps_wait || !rmq_text_equals(one->name, RMQ_TEXT("WAIT"))) {
            to = add_property(to, plane->text, one->name, one->value);
        }
    }
    if (!has_cluster) {
        to = add_property(to, plane->text, cluster_key, cluster);
    }
    *stored = (rmq_text){plane->text, (size_t)(to - plane->text)};
    assert(stored->size <= plane->text_size);
    return RMQ_OK;
}

/* The ids of all messages, separated by commas, in `plane->text`. */
static rmq_status ids_of(rmq_plane *plane, const rmq_append_plan *plan, rmq_text *ids)
{
    size_t size = 0;

    RMQ_TRY(rmq_text_room(plane, plan->count * (RMQ_MESSAGE_ID_CHARS_MAX + 1)));
    for (size_t i = 0; i < plan->count; i++) {
        if (i > 0) {
            plane->text[size++] = ',';
        }
        size += rmq_message_id(&plane->snapshot.config.store_host, plan->places[i].physical_offset,
                               (char *)plane->text + size);
    }
    *ids = (rmq_text){plane->text, size};
    return RMQ_OK;
}

/* --- the step ------------------------------------------------------------------------------------------------------ */

/* Answers without acknowledging anything: the producer did not want to wait. */
static rmq_status answer_at_once(rmq_plane *plane, const rmq_put *put)
{
    rmq_topic *topic = rmq_topic_of(&plane->snapshot, put->topic);
    const rmq_plane_config *config = &plane->snapshot.config;
    const rmq_sent sent = {RMQ_CODE_SUCCESS, put->ids, put->answered_queue, put->queue_offset,
                           {config->region.bytes, config->region.size}, config->trace_on};
    size_t used;

    if (topic != NULL) {
        topic->sends += 1;
        topic->messages += (int64_t)put->count;
        topic->sent_bytes += put->size_bytes;
    }
    RMQ_TRY(rmq_head_room(plane, RMQ_LONG_ANSWER_BYTES_MAX(put->ids.size)));
    RMQ_TRY(rmq_answer_sent((rmq_asked){put->opaque, put->serialize}, &sent, plane->head, plane->head_size, &used));
    return rmq_reply(plane, put->connection, put->number, put->is_oneway, used, (rmq_text){NULL, 0});
}

/* The put is in the log: it is acknowledged as soon as this mode allows it. */
static rmq_status appended(rmq_plane *plane, rmq_put *put, bool waits, rmq_moment now)
{
    rmq_status status = RMQ_OK;

    if (!plane->snapshot.config.sync_flush || !RMQ_IS_RIGHT(RMQ_MISTAKE_ACK_BEFORE_FLUSH)) {
        plane->wants_dispatch = true;
        rmq_acks_add(&plane->acks, put);
        return rmq_durable(plane, put->durable_at, now);
    }
    plane->wants_flush = true;
    if (waits) {
        rmq_acks_add(&plane->acks, put);
        return RMQ_OK;
    }
    status = answer_at_once(plane, put);
    free(put);
    return status;
}

rmq_status rmq_serve_send(rmq_plane *plane, const rmq_request *request, rmq_moment now)
{
    send_header header;
    properties found;
    rmq_topic *topic;
    rmq_text stored, ids;
    rmq_append_plan plan;
    rmq_put_status answer;
    rmq_status failed;
    rmq_put *put;

    RMQ_TRY(read_header(request->command, &header));
    topic = rmq_topic_of(&plane->snapshot, header.topic);
    if (!check_send(plane, request, &header, topic, now.wall_ms)) {
        return RMQ_NOT_MINE;
    }
    RMQ_TRY(read_properties(&header, &found));
    RMQ_TRY(stored_properties(plane, &header, &found, &stored));
    {
        const rmq_message_to_store message = {
            .topic = header.topic,
            .queue_id = header.queue_id >= 0
                            ? header.queue_id
                            : (int64_t)(request->draw % RANDOM_QUEUE_BOUND) % topic->write_queues,
            .body = request->body,
            .properties = stored,
            .born_timestamp_ms = header.born_timestamp_ms,
            .born_host = request->peer,
            .store_host = plane->snapshot.config.store_host,
            .flag = header.is_batch ? 0 : header.flag,
            .sys_flag = header.sys_flag | (topic->has_multi_tags ? SYS_FLAG_MULTI_TAGS : 0),
            .reconsume_times = header.reconsume_times,
            .delay_level = found.delay_level,
        };

        RMQ_TRY(header.is_batch ? rmq_plan_batch(plane->store, &message, now.wall_ms, &plan, &answer)
                                : rmq_plan_message(plane->store, &message, now.wall_ms, &plan, &answer));
    }
    if (answer != RMQ_PUT_OK) {
        return RMQ_NOT_MINE;
    }
    RMQ_TRY(ids_of(plane, &plan, &ids));
    if (ids.size > IDS_BYTES_MAX) {
        return RMQ_NOT_MINE; /* before anything is stored: no header has room for so many */
    }
    put = rmq_put_new(&plan, ids);
    if (put == NULL) {
        return RMQ_NO_MEMORY;
    }
    put->connection = request->connection;
    put->number = request->number;
    put->opaque = request->command->opaque;
    put->serialize = request->command->serialize;
    put->is_oneway = (request->command->flag & RMQ_ONEWAY_FLAG) != 0;
    put->answered_queue = (int32_t)(header.queue_id >= 0 ? header.queue_id : plan.queue_id);
    put->begun_ms = now.uptime_ms;
    {
        const rmq_status status = rmq_append(plane->store, &plan, &answer, &failed);

        if (status != RMQ_OK || answer != RMQ_PUT_OK) {
            free(put);
            return status != RMQ_OK ? status : RMQ_NOT_MINE;
        }
    }
    return appended(plane, put, found.waits, now);
}
