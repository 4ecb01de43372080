/* ServeMessage and its kin: reading a queue, looking up a record, finding messages by key and by time. The twins of
 * refmq/store/get.py and refmq/store/time_search.py. Nothing here changes what is stored. */
#ifndef RMQ_STORE_GET_H
#define RMQ_STORE_GET_H

#include "store.h"

/* Java's GetMessageStatus, as GetStatus in refmq/store/values.py. */
typedef enum {
    RMQ_GET_FOUND = 0,
    RMQ_GET_NO_MATCHED_MESSAGE = 1,
    RMQ_GET_MESSAGE_WAS_REMOVING = 2,
    RMQ_GET_OFFSET_FOUND_NULL = 3,
    RMQ_GET_OFFSET_OVERFLOW_BADLY = 4,
    RMQ_GET_OFFSET_OVERFLOW_ONE = 5,
    RMQ_GET_OFFSET_TOO_SMALL = 6,
    RMQ_GET_NO_MESSAGE_IN_QUEUE = 8
} rmq_get_status;

/* Which messages are wanted. What needs more than tag codes (an expression) asks `matches`, which gets the properties. */
typedef struct {
    bool has_codes; /* false: every tag is wanted */
    const int32_t *codes;
    size_t code_count;
    rmq_status (*matches)(void *context, rmq_text properties, bool *is_wanted); /* NULL: all are */
    int64_t terms; /* of what `matches` asks; see refmq/filter/work.py for what that costs */
    void *context;
} rmq_filter;

/* Records, one after the other as they are in the log: each says its size. The memory is the caller's to free, and may be
 * used again for another read. */
typedef struct {
    uint8_t *data;
    size_t size; /* of the memory */
    size_t used;
    int64_t count;
} rmq_records;

typedef struct {
    rmq_get_status status;
    int64_t next_offset;
    int64_t min_offset;
    int64_t max_offset;
    bool suggest_slave;
} rmq_get_result;

/* Messages of a queue from an offset on, and where to continue. `records` is emptied first. */
rmq_status rmq_get_message(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t count_max,
                           const rmq_filter *filter, rmq_records *records, rmq_get_result *result);

/* The first readable message, and one past the last one; 0 for an unknown queue. */
rmq_status rmq_min_offset(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t *min_offset);
int64_t rmq_max_offset(const rmq_store *store, rmq_text topic, int64_t queue_id);

/* Units without their records, at most `count_max` and all of one file. Blank ones are left out, so each says its offset. */
rmq_status rmq_units_from(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t count_max,
                          rmq_status (*take)(void *context, int64_t queue_offset, const rmq_unit *unit), void *context);

typedef enum { RMQ_BOUNDARY_LOWER, RMQ_BOUNDARY_UPPER, RMQ_BOUNDARY_NEAREST } rmq_boundary;

/* The message that was stored at a time, as `boundary` understands it; 0 for a queue without messages. */
rmq_status rmq_offset_by_time(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t timestamp_ms,
                              rmq_boundary boundary, int64_t *queue_offset);

/* When a message was stored; -1 if it cannot be read. */
rmq_status rmq_store_time(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t *store_ms);

/* Adds the record that starts there; nothing is added if none does. */
rmq_status rmq_message_at(rmq_store *store, int64_t physical_offset, rmq_records *records);

/* The newest messages with a key in a time span, oldest first. Every record is checked, because the index knows only
 * hashes. `records` is emptied first. RMQ_DAMAGED for a record that cannot be read. */
rmq_status rmq_query_by_key(rmq_store *store, rmq_text topic, rmq_text key, int64_t count_max, int64_t begin_ms,
                            int64_t end_ms, rmq_records *records);

#endif
