/* FlushLog, FlushQueue, FlushIndex, WriteCheckpoint: what becomes durable when, as jobs (store/job.h). The twin of
 * refmq/store/flush.py. */
#ifndef RMQ_STORE_FLUSH_H
#define RMQ_STORE_FLUSH_H

#include "checkpoint.h"
#include "store.h"

/* Makes the log durable as far as it is readable now. */
typedef struct {
    int line;
    rmq_store *store;
    int64_t before;
    rmq_log_flush log;
} rmq_flush_log;

void rmq_flush_log_begin(rmq_flush_log *job, rmq_store *store);
rmq_status rmq_flush_log_next(rmq_flush_log *job, rmq_status performed, rmq_operation *operation);

/* Makes the queues durable that have at least so many full pages; all that are dirty for 0. */
typedef struct {
    int line;
    rmq_store *store;
    int64_t least_pages;
    rmq_queue_entry **sorted; /* freed at the end */
    size_t count;
    size_t at;
    rmq_queue *queue;
    rmq_files_flush files;
} rmq_flush_queues;

void rmq_flush_queues_begin(rmq_flush_queues *job, rmq_store *store, int64_t least_pages);
rmq_status rmq_flush_queues_next(rmq_flush_queues *job, rmq_status performed, rmq_operation *operation);

/* Flushes everything and records how far everything is durable: what was true before the flushes started. `is_written` is
 * false if a message is half indexed because the disk was full: then nothing is certain. */
typedef struct {
    int line;
    rmq_store *store;
    bool is_clean;
    bool is_written;
    rmq_checkpoint checkpoint;
    int64_t index_last;
    int64_t entries_to; /* every entry of the records before it is in what is flushed */
    union {
        rmq_flush_log log;
        rmq_flush_queues queues;
        rmq_index_flush index;
        rmq_names_flush_all names;
        rmq_checkpoint_write write;
    } part;
} rmq_write_checkpoint;

void rmq_write_checkpoint_begin(rmq_write_checkpoint *job, rmq_store *store, bool is_clean);
rmq_status rmq_write_checkpoint_next(rmq_write_checkpoint *job, rmq_status performed, rmq_operation *operation);

#endif
