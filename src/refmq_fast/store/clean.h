/* ExpireFile: old files go, oldest first; and what happens when the disk fills up. The twin of refmq/store/clean.py. */
#ifndef RMQ_STORE_CLEAN_H
#define RMQ_STORE_CLEAN_H

#include "store.h"

/* Looks how full the disk is: sets `is_full`, `remove_any` and `remove_expired` of the store. */
rmq_status rmq_look_at_pressure(rmq_store *store);

/* Queues and index forget what the log has lost. */
typedef struct {
    int line;
    rmq_store *store;
    int64_t log_min;
    rmq_queue **queues; /* freed at the end */
    size_t count;
    size_t at;
    rmq_names_flush names;
} rmq_follow_log_min;

void rmq_follow_log_min_begin(rmq_follow_log_min *job, rmq_store *store);
rmq_status rmq_follow_log_min_next(rmq_follow_log_min *job, rmq_status performed, rmq_operation *operation);

/* Removes what may go from log, queues and index. `hour` is that of the day, or -1: now. */
typedef struct {
    int line;
    rmq_store *store;
    int64_t now_ms;
    int hour;
    int64_t removed; /* files of the log */
    int64_t base;
    union {
        rmq_names_flush names;
        rmq_follow_log_min follow;
    } part;
} rmq_expire_files;

void rmq_expire_files_begin(rmq_expire_files *job, rmq_store *store, int64_t now_ms, int hour);
rmq_status rmq_expire_files_next(rmq_expire_files *job, rmq_status performed, rmq_operation *operation);

#endif
