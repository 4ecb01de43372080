/* Holds core/answer.c directly, without Python. The frames were written down from the reference: tests/refmq_fast/
 * test_answer.py writes each of them again and compares it with the literal here. */
#include "core/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/frame.h"

static const char SENT[] = /* sent */
    "{\"code\":0,\"extFields\":{\"msgId\":\"7F00000100002A9F00000000000000F0\",\"queueId\":\"3\",\"queueOffset\":"
    "\"9223372036854775807\",\"MSG_REGION\":\"DefaultRegion\",\"TRACE_ON\":\"true\"},\"flag\":1,\"language\":\"PYTHON\","
    "\"opaque\":-2147483648,\"serializeTypeCurrentRPC\":\"JSON\",\"version\":409}";
static const char PULLED[] = /* pulled */
    "{\"code\":19,\"extFields\":{\"suggestWhichBrokerId\":\"0\",\"nextBeginOffset\":\"5\",\"minOffset\":\"-1\","
    "\"maxOffset\":\"-9223372036854775808\"},\"flag\":1,\"language\":\"PYTHON\",\"opaque\":7,\"remark\":"
    "\"OFFSET_OVERFLOW_ONE\",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":409}";
static const char OFFSET[] = /* offset */
    "{\"code\":0,\"extFields\":{\"offset\":\"12\"},\"flag\":1,\"language\":\"PYTHON\",\"opaque\":8,"
    "\"serializeTypeCurrentRPC\":\"JSON\",\"version\":409}";
static const char CODE[] = /* code */
    "{\"code\":0,\"flag\":1,\"language\":\"PYTHON\",\"opaque\":9,\"serializeTypeCurrentRPC\":\"JSON\",\"version\":409}";

static int failures;

/* The head is `header` behind its prefix, announced with `body_length` bytes behind it. */
static void check(const char *name, rmq_status status, const uint8_t *head, const size_t *end, const char *header,
                  size_t body_length)
{
    const size_t length = strlen(header), used = *end;
    const size_t said = used < 8 ? 0 : (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];

    if (status != RMQ_OK || used != 8 + length || memcmp(head + 8, header, length) != 0 ||
        said != 4 + length + body_length || head[4] != 0 || (size_t)(head[6] << 8 | head[7]) != length) {
        printf("%s: status %d, %zu bytes: %.*s\n", name, (int)status, used, (int)used, (const char *)head + 8);
        failures += 1;
    }
}

static void check_status(const char *name, rmq_status status, rmq_status expected)
{
    if (status != expected) {
        printf("%s: status %d, not %d\n", name, (int)status, (int)expected);
        failures += 1;
    }
}

int main(void)
{
    const rmq_sent sent = {.code = 0,
                           .message_id = RMQ_TEXT("7F00000100002A9F00000000000000F0"),
                           .queue_id = 3,
                           .queue_offset = INT64_MAX,
                           .region = RMQ_TEXT("DefaultRegion"),
                           .trace_on = true};
    const rmq_pulled pulled = {.code = 19,
                               .remark = RMQ_TEXT("OFFSET_OVERFLOW_ONE"),
                               .suggest_broker_id = 0,
                               .next_begin_offset = 5,
                               .min_offset = -1,
                               .max_offset = INT64_MIN};
    uint8_t *head = malloc(RMQ_ANSWER_BYTES_MAX);
    size_t used = 0;

    if (head == NULL) {
        return 1;
    }
    check("sent", rmq_answer_sent((rmq_asked){INT32_MIN, 0}, &sent, head, RMQ_ANSWER_BYTES_MAX, &used), head, &used, SENT,
          0);
    check("pulled", rmq_answer_pulled((rmq_asked){7, 0}, &pulled, 70000, head, RMQ_ANSWER_BYTES_MAX, &used), head, &used,
          PULLED, 70000);
    check("offset", rmq_answer_offset((rmq_asked){8, 0}, 12, head, RMQ_ANSWER_BYTES_MAX, &used), head, &used, OFFSET, 0);
    check("code", rmq_answer_code((rmq_asked){9, 0}, 0, head, RMQ_ANSWER_BYTES_MAX, &used), head, &used, CODE, 0);

    check_status("no room", rmq_answer_code((rmq_asked){9, 0}, 0, head, 16, &used), RMQ_NO_ROOM);
    check_status("too long a frame",
                 rmq_answer_pulled((rmq_asked){7, 0}, &pulled, RMQ_FRAME_LENGTH_MAX, head, RMQ_ANSWER_BYTES_MAX, &used),
                 RMQ_NOT_MINE);
    check_status("a code that is too large for a binary header",
                 rmq_answer_code((rmq_asked){9, 1}, 1 << 15, head, RMQ_ANSWER_BYTES_MAX, &used), RMQ_NOT_MINE);
    free(head);
    printf("failures: %d\n", failures);
    return failures == 0 ? 0 : 1;
}
