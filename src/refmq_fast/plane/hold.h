/* Long polling: pulls that found nothing new and wait for a message. The twin of refmq/plane/hold.py.
 *
 * A pull is parked under its queue and under its connection, with a copy of its frame: a woken pull is checked and run
 * again from that.
 */
#ifndef RMQ_PLANE_HOLD_H
#define RMQ_PLANE_HOLD_H

#include "../core/record.h"
#include "../core/status.h"
#include "../store/table.h"

#define RMQ_HELD_MAX 100000             /* pulls that may wait at once, as HELD_MAX in hold.py */
#define RMQ_HELD_PER_QUEUE_MAX 4096    /* as HELD_PER_QUEUE_MAX in hold.py */
#define RMQ_HOLD_BYTES_MAX (128 << 20) /* as HELD_BYTES_MAX in hold.py */
#define RMQ_HELD_BYTES_MAX 4096u       /* of a frame that is parked here; a larger one is handed over */
#define RMQ_HELD_CODES_MAX 64u         /* tags of a pull that is parked here */

struct rmq_held_list;

/* One waiting pull. */
typedef struct rmq_held {
    struct rmq_held *next_here; /* under the same queue or connection */
    struct rmq_held *last_here;
    struct rmq_held *next_there;
    struct rmq_held *last_there;
    struct rmq_held *next; /* in a list of woken ones */
    struct rmq_held_list *here;
    struct rmq_held_list *there;
    int64_t number;
    int64_t connection;
    rmq_host peer;
    int64_t queue_offset; /* the first message that it has not seen */
    int64_t deadline_ms;  /* in uptime */
    bool has_codes;       /* false: it wants every tag */
    size_t code_count;
    int32_t codes[RMQ_HELD_CODES_MAX];
    uint8_t serialize;
    rmq_text header; /* as it came; behind the struct */
    rmq_text body;
} rmq_held;

/* The pulls under one queue or connection. */
typedef struct rmq_held_list {
    rmq_key key; /* topic and queue id; or nothing and the connection */
    rmq_held *first;
    int64_t count;
} rmq_held_list;

typedef struct {
    rmq_table by_queue;
    rmq_table by_connection;
    int64_t count;
    int64_t size_bytes;
} rmq_hold;

/* Whether one more pull may wait, with a frame of so many bytes. */
bool rmq_hold_has_room(const rmq_hold *hold, rmq_text topic, int64_t queue_id, size_t frame_bytes);

/* A pull with copies of its header and body; NULL without memory. */
rmq_held *rmq_held_new(rmq_text header, rmq_text body);

/* The pull waits from now on, and belongs to the hold. RMQ_NO_MEMORY: it does not. */
rmq_status rmq_park(rmq_hold *hold, rmq_held *pull, rmq_text topic, int64_t queue_id);

/* Takes pulls out of the hold and returns them as a list, in no order: those that wait for a message, those of a
 * connection, all; and those whose time is up or whose queue has moved past what they have seen. The caller owns them. */
rmq_held *rmq_take_arrived(rmq_hold *hold, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t tags_code);
rmq_held *rmq_take_connection(rmq_hold *hold, int64_t connection);
rmq_held *rmq_take_every(rmq_hold *hold);
rmq_held *rmq_take_due(rmq_hold *hold, int64_t uptime_ms,
                       int64_t (*end_of)(const void *context, rmq_text topic, int64_t queue_id), const void *context);

/* The list in the order of the requests. */
rmq_held *rmq_held_in_order(rmq_held *first);

void rmq_held_free(rmq_held *first);

void rmq_hold_free(rmq_hold *hold);

#endif
