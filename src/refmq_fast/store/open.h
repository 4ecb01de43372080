/* Opening a store at the positions that a recovery found. Between rmq_store_new and rmq_open_done, in this order: names,
 * log, queues, index. Anything may fail with RMQ_NO_MEMORY, the index also because of the disk; then free the store. */
#ifndef RMQ_STORE_OPEN_H
#define RMQ_STORE_OPEN_H

#include "store.h"

/* The names of a directory were changed and flushed by the recovery: the numbers of the latest changes, -1 for one that
 * was not flushed, `changed` 0 for one that was not changed. */
rmq_status rmq_open_name(rmq_store *store, const char *path, int64_t changed, int64_t flushed);

/* The log has these files, oldest first; it ends at `wrote` and is durable up to `flushed`, and in the file at
 * `zeroed_base` (-1: in none) bytes past the end were zeroed that no flush has covered. */
rmq_status rmq_open_log(rmq_store *store, const int64_t *bases, size_t count, int64_t wrote, int64_t flushed,
                        int64_t zeroed_base, int64_t last_store_ms, int64_t flushed_store_ms);

/* A queue of the store: its files, where it ends, and what else is known of it. */
typedef struct {
    rmq_text topic;
    int64_t queue_id;
    const int64_t *bases;
    size_t count;
    int64_t wrote;
    int64_t flushed;
    int64_t zeroed_base;
    int64_t min_offset;
    int64_t log_min;
    int64_t last_physical_end;
    int64_t dispatched_end;
    bool is_dirty;
} rmq_opened_queue;

rmq_status rmq_open_queue(rmq_store *store, const rmq_opened_queue *opened);

/* The queue offset that the next message of a queue gets. */
rmq_status rmq_open_offset(rmq_store *store, rmq_text topic, int64_t queue_id, int64_t next_offset);

/* An index file; oldest first. */
rmq_status rmq_open_index_file(rmq_store *store, int64_t name);

/* The store serves from now on. */
rmq_status rmq_open_done(rmq_store *store, int64_t dispatched_to, int64_t dispatched_ms, int64_t checkpointed_to,
                         int64_t now_ms);

#endif
