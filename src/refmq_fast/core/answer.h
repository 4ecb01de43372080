/* The answers of the hot requests, byte for byte as the reference writes them (refmq/plane/answers.py, pull.py and
 * offset_requests.py): the numbers go in, everything that stands before the body comes out. */
#ifndef RMQ_CORE_ANSWER_H
#define RMQ_CORE_ANSWER_H

#include "command.h"
#include "status.h"

/* What an answer repeats of its request. */
typedef struct {
    int32_t opaque;
    uint8_t serialize;
} rmq_asked;

/* Where a message was stored. */
typedef struct {
    int32_t code; /* 0, or 10, 11, 12: stored, and less secured than was asked for */
    rmq_text message_id;
    int32_t queue_id;
    int64_t queue_offset;
    rmq_text region;
    bool trace_on;
} rmq_sent;

/* What a pull found. `remark` is the name of the store's status, as upstream's enumeration has it. */
typedef struct {
    int32_t code;
    rmq_text remark;
    int64_t suggest_broker_id;
    int64_t next_begin_offset;
    int64_t min_offset;
    int64_t max_offset;
} rmq_pulled;

/* Room that is enough for every answer whose texts have at most 512 bytes together, and for one with more. */
#define RMQ_ANSWER_BYTES_MAX 4096u
#define RMQ_LONG_ANSWER_BYTES_MAX(more) (RMQ_ANSWER_BYTES_MAX + 6 * (more)) /* every byte of it may be escaped */

/* Each writes the head of a frame to `to` and sets `*used`; the statuses are those of rmq_frame_encode_head. */
rmq_status rmq_answer_sent(rmq_asked asked, const rmq_sent *sent, uint8_t *to, size_t capacity, size_t *used);

rmq_status rmq_answer_pulled(rmq_asked asked, const rmq_pulled *pulled, size_t body_length, uint8_t *to,
                             size_t capacity, size_t *used);

/* The answer to an offset query that found one. */
rmq_status rmq_answer_offset(rmq_asked asked, int64_t offset, uint8_t *to, size_t capacity, size_t *used);

/* A code alone, without ext fields: an offset was stored. */
rmq_status rmq_answer_code(rmq_asked asked, int32_t code, uint8_t *to, size_t capacity, size_t *used);

#endif
