/* Pulling: 11 PULL_MESSAGE and 361 LITE_PULL_MESSAGE, with long polling. The twin of refmq/plane/pull.py.
 *
 * A pull is checked, run against the store, and answered, unless it found nothing new and may wait: then it is parked and
 * run again when it is woken. Handed over: every refusal, filters that are not by tags, and offsets outside their queue,
 * which leave a note behind.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../core/answer.h"
#include "../core/hash.h"
#include "../core/header_binary.h"
#include "../core/header_json.h"
#include "fields.h"
#include "mistakes.h"
#include "plane.h"

#define COUNT_MAX 1024 /* messages that one pull may ask for, as in refmq/plane/pull.py */
#define CODE_FOUND 0
#define CODE_NOT_FOUND 19
#define CODE_RETRY_IMMEDIATELY 20
#define SYS_FLAG_COMMIT 0x1
#define SYS_FLAG_SUSPEND 0x2
#define SYS_FLAG_SUBSCRIPTION 0x4
#define SUSPEND_MS_MAX (5 * 60000) /* how long a pull may wait at most, as in the reference */

typedef struct {
    rmq_text group;
    rmq_text topic;
    rmq_text subscription;
    rmq_text expression_type;
    int64_t queue_id;
    int64_t queue_offset;
    int64_t count_max;
    int64_t sys_flag;
    int64_t commit_offset;
    int64_t suspend_ms;
    int64_t version;
} pull_header;

/* A pull that may go ahead. */
typedef struct {
    const rmq_group *group;
    bool has_codes;
    size_t code_count;
    int32_t codes[RMQ_HELD_CODES_MAX];
} allowed;

/* --- reading ------------------------------------------------------------------------------------------------------- */

static rmq_status read_header(const rmq_command *command, pull_header *header)
{
    int64_t ignored = 0;

    memset(header, 0, sizeof *header);
    RMQ_TRY(rmq_text_field(command, RMQ_TEXT("consumerGroup"), &header->group));
    RMQ_TRY(rmq_text_field(command, RMQ_TEXT("topic"), &header->topic));
    RMQ_TRY(rmq_number_field(command, RMQ_TEXT("queueId"), INT32_MIN, INT32_MAX, &header->queue_id));
    RMQ_TRY(rmq_number_field(command, RMQ_TEXT("queueOffset"), INT64_MIN, INT64_MAX, &header->queue_offset));
    RMQ_TRY(rmq_number_field(command, RMQ_TEXT("maxMsgNums"), INT32_MIN, INT32_MAX, &header->count_max));
    RMQ_TRY(rmq_number_field(command, RMQ_TEXT("sysFlag"), INT32_MIN, INT32_MAX, &header->sys_flag));
    RMQ_TRY(rmq_optional_number(command, RMQ_TEXT("commitOffset"), INT64_MIN, INT64_MAX, &header->commit_offset));
    RMQ_TRY(rmq_optional_number(command, RMQ_TEXT("suspendTimeoutMillis"), INT64_MIN, INT64_MAX, &header->suspend_ms));
    RMQ_TRY(rmq_optional_number(command, RMQ_TEXT("subVersion"), INT64_MIN, INT64_MAX, &header->version));
    /* Not used here, but a wrong one is refused. */
    RMQ_TRY(rmq_optional_number(command, RMQ_TEXT("maxMsgBytes"), INT32_MIN, INT32_MAX, &ignored));
    RMQ_TRY(rmq_optional_number(command, RMQ_TEXT("requestSource"), INT32_MIN, INT32_MAX, &ignored));
    rmq_optional_text(command, RMQ_TEXT("subscription"), &header->subscription);
    rmq_optional_text(command, RMQ_TEXT("expressionType"), &header->expression_type);
    return RMQ_OK;
}

/* --- checks -------------------------------------------------------------------------------------------------------- */

/* Adds the code of one tag, without the white space around it; false if that is not for us. */
static bool add_tag(allowed *pull, rmq_text tag)
{
    while (tag.size > 0 && tag.at[0] == ' ') {
        tag = (rmq_text){tag.at + 1, tag.size - 1};
    }
    while (tag.size > 0 && tag.at[tag.size - 1] == ' ') {
        tag.size -= 1;
    }
    for (size_t i = 0; i < tag.size; i++) {
        if (tag.at[i] < ' ' || tag.at[i] > '~') {
            return false; /* other white space, or characters whose white space Python knows */
        }
    }
    if (tag.size == 0) {
        return true;
    }
    if (pull->code_count == RMQ_HELD_CODES_MAX) {
        return false;
    }
    pull->codes[pull->code_count++] = rmq_string_hash(0, tag.at, tag.size);
    pull->has_codes = true;
    return true;
}

/* The filter that the request itself carries: `*`, or tags joined by `||`. */
static bool inline_filter(const pull_header *header, allowed *pull)
{
    const rmq_text text = header->subscription;
    size_t start = 0;

    if (header->expression_type.size > 0 && !rmq_text_equals(header->expression_type, RMQ_TEXT("TAG"))) {
        return false;
    }
    if (text.size == 0 || rmq_text_equals(text, RMQ_TEXT("*"))) {
        return true;
    }
    for (size_t at = 0; at <= text.size; at++) {
        const bool ends = at == text.size;

        if (ends || (at + 1 < text.size && text.at[at] == '|' && text.at[at + 1] == '|')) {
            if (!add_tag(pull, (rmq_text){text.at + start, at - start})) {
                return false;
            }
            at += 1;
            start = at + 1;
        }
    }
    return pull->has_codes; /* nothing but separators is refused, and nothing but blanks is rare */
}

/* The filter that the group's heartbeats registered. */
static bool registered_filter(const rmq_plane *plane, const pull_header *header, allowed *pull)
{
    const rmq_subscription *known = rmq_subscription_of(&plane->snapshot, header->group, header->topic);

    if (known == NULL || known->version < header->version || known->code_count > RMQ_HELD_CODES_MAX) {
        return false;
    }
    if (known->is_broadcasting && !pull->group->may_broadcast) {
        return false;
    }
    pull->has_codes = !known->wants_all; /* without a code nothing is wanted, whatever the expression says */
    if (known->code_count > 0) {
        memcpy(pull->codes, known->codes, known->code_count * sizeof *known->codes);
        pull->code_count = known->code_count;
    }
    return true;
}

/* Whether a pull may go ahead; the order does not matter, because a refusal is somebody else's. */
static bool check_pull(const rmq_plane *plane, const pull_header *header, allowed *pull)
{
    const rmq_topic *topic = rmq_topic_of(&plane->snapshot, header->topic);

    pull->group = rmq_group_of(&plane->snapshot, header->group);
    pull->has_codes = false;
    pull->code_count = 0;
    if ((plane->snapshot.config.permission & RMQ_PERM_READ) == 0 || pull->group == NULL || !pull->group->may_consume) {
        return false;
    }
    if (topic == NULL || !topic->may_pull || (topic->permission & RMQ_PERM_READ) == 0) {
        return false;
    }
    if (header->queue_id < 0 || header->queue_id >= topic->read_queues) {
        return false;
    }
    if ((header->sys_flag & SYS_FLAG_SUBSCRIPTION) != 0) {
        return inline_filter(header, pull);
    }
    return registered_filter(plane, header, pull);
}

/* --- running ------------------------------------------------------------------------------------------------------- */

static rmq_status read_queue(rmq_plane *plane, const pull_header *header, const allowed *pull, rmq_get_result *result)
{
    const rmq_filter filter = {
        .has_codes = pull->has_codes && RMQ_IS_RIGHT(RMQ_MISTAKE_TAGS_IGNORED),
        .codes = pull->codes,
        .code_count = pull->code_count,
    };
    const int64_t count_max = header->count_max < 0 ? 0 : header->count_max < COUNT_MAX ? header->count_max : COUNT_MAX;

    return rmq_get_message(plane->store, header->topic, header->queue_id, header->queue_offset, count_max, &filter,
                           &plane->records, result);
}

/* The code and the remark of an answer; false for what leaves a note behind. */
static bool code_of(const pull_header *header, const rmq_get_result *result, int32_t *code, rmq_text *remark)
{
    switch (result->status) {
    case RMQ_GET_FOUND:
        *code = CODE_FOUND;
        *remark = RMQ_TEXT("FOUND");
        return true;
    case RMQ_GET_NO_MATCHED_MESSAGE:
        *code = CODE_RETRY_IMMEDIATELY;
        *remark = RMQ_TEXT("NO_MATCHED_MESSAGE");
        return true;
    case RMQ_GET_MESSAGE_WAS_REMOVING:
        *code = CODE_RETRY_IMMEDIATELY;
        *remark = RMQ_TEXT("MESSAGE_WAS_REMOVING");
        return true;
    case RMQ_GET_OFFSET_FOUND_NULL:
        *code = CODE_NOT_FOUND;
        *remark = RMQ_TEXT("OFFSET_FOUND_NULL");
        return true;
    case RMQ_GET_OFFSET_OVERFLOW_ONE:
        *code = CODE_NOT_FOUND;
        *remark = RMQ_TEXT("OFFSET_OVERFLOW_ONE");
        return true;
    case RMQ_GET_NO_MESSAGE_IN_QUEUE:
        *code = CODE_NOT_FOUND;
        *remark = RMQ_TEXT("NO_MESSAGE_IN_QUEUE");
        return header->queue_offset == 0;
    case RMQ_GET_OFFSET_OVERFLOW_BADLY:
    case RMQ_GET_OFFSET_TOO_SMALL:
        break;
    }
    return false;
}

/* The tally of a group in a queue; NULL when the names are too long or there is no memory: then nobody counts. */
static rmq_pull_count *count_for(rmq_plane *plane, const pull_header *header)
{
    uint8_t bytes[RMQ_OFFSET_NAMES_MAX];
    const size_t size = header->topic.size + 1 + header->group.size;
    rmq_pull_count *count;

    if (size > sizeof bytes) {
        return NULL;
    }
    memcpy(bytes, header->topic.at, header->topic.size);
    bytes[header->topic.size] = 0;
    if (header->group.size > 0) {
        memcpy(bytes + header->topic.size + 1, header->group.at, header->group.size);
    }
    count = rmq_table_find(&plane->pull_counts, (rmq_text){bytes, size}, header->queue_id);
    if (count != NULL) {
        return count;
    }
    count = calloc(1, sizeof *count + size);
    if (count == NULL) {
        return NULL;
    }
    memcpy(count + 1, bytes, size);
    count->key.text = (rmq_text){(uint8_t *)(count + 1), size};
    count->key.number = header->queue_id;
    count->topic_size = header->topic.size;
    if (rmq_table_add(&plane->pull_counts, &count->key) != RMQ_OK) {
        free(count);
        return NULL;
    }
    return count;
}

static void count_pull(rmq_plane *plane, const pull_header *header)
{
    rmq_pull_count *count = count_for(plane, header);

    if (count == NULL) {
        return;
    }
    count->pulls += 1;
    if (plane->records.count > 0) {
        count->found += 1;
        count->messages += plane->records.count;
        count->found_bytes += (int64_t)plane->records.used;
    }
}

/* Answers with what was found; `plane->records` has it. */
static rmq_status answer(rmq_plane *plane, const rmq_request *request, const pull_header *header, const allowed *pull,
                         const rmq_get_result *result, int32_t code, rmq_text remark)
{
    const rmq_asked asked = {request->command->opaque, request->command->serialize};
    const bool is_oneway = (request->command->flag & RMQ_ONEWAY_FLAG) != 0;
    rmq_pulled pulled = {code, remark, 0, result->next_offset, result->min_offset, result->max_offset};
    size_t used;

    assert((plane->records.count > 0) == (code == CODE_FOUND));
    if (plane->snapshot.config.slave_read) {
        pulled.suggest_broker_id = result->suggest_slave ? pull->group->broker_when_slow : pull->group->broker_id;
    }
    count_pull(plane, header);
    RMQ_TRY(rmq_head_room(plane, RMQ_ANSWER_BYTES_MAX));
    RMQ_TRY(rmq_answer_pulled(asked, &pulled, plane->records.used, plane->head, plane->head_size, &used));
    return rmq_reply(plane, request->connection, request->number, is_oneway, used,
                     (rmq_text){plane->records.data, plane->records.used});
}

static int64_t suspend_ms(const rmq_plane *plane, const pull_header *header)
{
    int64_t ms = plane->snapshot.config.long_polling ? header->suspend_ms : plane->snapshot.config.short_polling_ms;

    if (plane->snapshot.config.long_polling && ms > SUSPEND_MS_MAX) {
        ms = SUSPEND_MS_MAX;
    }
    return ms > 0 ? ms : 0;
}

/* The pull waits from now on. */
static rmq_status park(rmq_plane *plane, const rmq_request *request, const pull_header *header, const allowed *pull,
                       rmq_moment now)
{
    rmq_held *held = rmq_held_new(request->header, request->body);
    rmq_status status;

    if (held == NULL) {
        return RMQ_NO_MEMORY;
    }
    held->number = request->number;
    held->connection = request->connection;
    held->peer = request->peer;
    held->queue_offset = header->queue_offset;
    held->deadline_ms = now.uptime_ms + suspend_ms(plane, header);
    held->has_codes = pull->has_codes;
    held->code_count = pull->code_count;
    memcpy(held->codes, pull->codes, pull->code_count * sizeof *pull->codes);
    held->serialize = request->command->serialize;
    status = rmq_park(&plane->hold, held, header->topic, header->queue_id);
    if (status != RMQ_OK) {
        rmq_held_free(held);
    }
    return status;
}

rmq_status rmq_serve_pull(rmq_plane *plane, const rmq_request *request, rmq_moment now)
{
    const rmq_plane_config *config = &plane->snapshot.config;
    pull_header header;
    allowed pull;
    rmq_get_result result;
    rmq_text remark;
    int32_t code;
    bool may_wait;

    RMQ_TRY(read_header(request->command, &header));
    if (rmq_is_busy(plane, 0, config->pulls_max, request->waited_ms, config->pull_wait_ms) ||
        !check_pull(plane, &header, &pull)) {
        return RMQ_NOT_MINE;
    }
    may_wait = (header.sys_flag & SYS_FLAG_SUSPEND) != 0;
    if ((request->command->flag & RMQ_ONEWAY_FLAG) != 0) {
        return RMQ_NOT_MINE; /* nobody pulls without wanting to know what there was */
    }
    if (may_wait && request->header.size + request->body.size > RMQ_HELD_BYTES_MAX) {
        return RMQ_NOT_MINE;
    }
    RMQ_TRY(read_queue(plane, &header, &pull, &result));
    if (!code_of(&header, &result, &code, &remark)) {
        return RMQ_NOT_MINE;
    }
    if ((header.sys_flag & SYS_FLAG_COMMIT) != 0 && !config->is_slave) {
        RMQ_TRY(rmq_plane_commit(plane, header.topic, header.group, header.queue_id, header.commit_offset));
    }
    if (may_wait && code == CODE_NOT_FOUND &&
        rmq_hold_has_room(&plane->hold, header.topic, header.queue_id, request->header.size + request->body.size)) {
        count_pull(plane, &header);
        return park(plane, request, &header, &pull, now);
    }
    return answer(plane, request, &header, &pull, &result, code, remark);
}

/* --- waking -------------------------------------------------------------------------------------------------------- */

/* Runs a pull again and answers it, or hands it over. */
static rmq_status run_again(rmq_plane *plane, const rmq_held *held)
{
    rmq_command command;
    rmq_request request = {.number = held->number, .connection = held->connection, .peer = held->peer,
                           .command = &command, .header = held->header, .body = held->body};
    pull_header header;
    allowed pull;
    rmq_get_result result;
    rmq_text remark;
    int32_t code;
    rmq_status status;

    RMQ_TRY(rmq_text_room(plane, held->header.size + 1));
    status = held->serialize == RMQ_SERIALIZE_JSON
                 ? rmq_header_json_decode(held->header.at, held->header.size, plane->text, &command)
                 : rmq_header_binary_decode(held->header.at, held->header.size, &command);
    assert(status == RMQ_OK); /* it was read before */
    status = status != RMQ_OK ? status : read_header(&command, &header);
    assert(status == RMQ_OK);
    if (status != RMQ_OK || !check_pull(plane, &header, &pull)) {
        return plane->port.hand_over(plane->port.context, held);
    }
    status = read_queue(plane, &header, &pull, &result);
    if (status == RMQ_DAMAGED || (status == RMQ_OK && !code_of(&header, &result, &code, &remark))) {
        return plane->port.hand_over(plane->port.context, held); /* one damaged record is no reason for the others */
    }
    RMQ_TRY(status);
    return answer(plane, &request, &header, &pull, &result, code, remark);
}

rmq_status rmq_wake(rmq_plane *plane, rmq_held *first, rmq_moment now)
{
    rmq_status status = RMQ_OK;

    (void)now;
    for (rmq_held *held = first; held != NULL && status == RMQ_OK; held = held->next) {
        status = run_again(plane, held);
    }
    rmq_held_free(first);
    return status;
}
