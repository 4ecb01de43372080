/* DispatchMessage: the records of the log get their queue units and index entries, in log order. The twin of
 * refmq/store/dispatch.py. Dispatching is idempotent, so a recovery may start at any record. */
#ifndef RMQ_STORE_DISPATCH_H
#define RMQ_STORE_DISPATCH_H

#include "store.h"

/* A record that can now be read from its queue; for whoever waits for it. */
typedef struct {
    rmq_text topic;
    int64_t queue_id;
    int64_t queue_offset;
    int64_t physical_offset;
    int64_t size_bytes;
    int64_t tags_code;
    int64_t store_timestamp_ms;
    rmq_text properties;
} rmq_dispatched;

/* Is told of each; what it points to is gone afterwards. Anything but RMQ_OK ends the dispatching behind it. */
typedef rmq_status (*rmq_tell)(void *context, const rmq_dispatched *dispatched);

/* Gives the next records their units and entries, at most `count_max`, and tells of those that belong to a queue. A full
 * disk is no error: what has been done is told, and the rest is done later. */
rmq_status rmq_dispatch(rmq_store *store, int64_t count_max, rmq_tell tell, void *context);

/* The same up to `bound`, for a stop: RMQ_DISK_FULL is an error here, and nobody is told. */
rmq_status rmq_dispatch_up_to(rmq_store *store, int64_t bound, int64_t count_max);

/* Reads the records that are not dispatched yet, so that no queue offset is given twice. `end` is where the last whole
 * record ends. */
rmq_status rmq_take_over_offsets(rmq_store *store, int64_t *end);

#endif
