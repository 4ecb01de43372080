/* AckPut: when a producer may be told that its message is safe, and who still waits to be told. The twin of
 * refmq/plane/ack.py. Puts wait in the order of the log, and acknowledgements leave in that order.
 */
#ifndef RMQ_PLANE_ACKS_H
#define RMQ_PLANE_ACKS_H

#include "../store/append.h"

/* Java's statuses of a put that is in the log, and the codes of their answers. */
#define RMQ_PUT_FLUSH_DISK_TIMEOUT 1
#define RMQ_CODE_SUCCESS 0
#define RMQ_CODE_FLUSH_DISK_TIMEOUT 10

/* A message or a batch on its way: where it is, and who is told how it ended. */
typedef struct rmq_put {
    struct rmq_put *next;
    int64_t connection;
    int64_t number;
    int32_t opaque;
    uint8_t serialize;
    bool is_oneway;
    int32_t answered_queue; /* the requested one, even when the message went to a delay queue */
    int64_t queue_id;
    int64_t queue_offset;
    int64_t durable_at;
    int64_t begun_ms; /* in uptime */
    int64_t size_bytes;
    rmq_text topic; /* all texts and places lie behind the struct */
    rmq_text ids;
    size_t count;
    rmq_place *places;
} rmq_put;

typedef struct {
    rmq_put *first;
    rmq_put *last;
    int64_t count;
} rmq_acks;

/* Whether everything has happened that this put waits for. */
static inline bool rmq_ack_put_enabled(int64_t durable_at, int64_t flushed_to)
{
    return durable_at <= flushed_to;
}

/* A put with copies of all that it needs; NULL without memory. */
rmq_put *rmq_put_new(const rmq_append_plan *plan, rmq_text ids);

void rmq_acks_add(rmq_acks *acks, rmq_put *put);

/* Takes the first put off; there must be one. The caller frees it. */
rmq_put *rmq_acks_take(rmq_acks *acks);

void rmq_acks_free(rmq_acks *acks);

#endif
