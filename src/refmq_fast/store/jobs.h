/* What a caller of the store may wait for: flush, maintain, clean, stop, each as a job (store/job.h). The twin of the
 * awaited methods of refmq/store/store.py. */
#ifndef RMQ_STORE_JOBS_H
#define RMQ_STORE_JOBS_H

#include "clean.h"
#include "flush.h"

/* Does what is due by the clock: async flush, queue and index flush, checkpoint. */
typedef struct {
    int line;
    rmq_store *store;
    int64_t now_ms;
    int64_t pages;
    union {
        rmq_flush_log log;
        rmq_flush_queues queues;
        rmq_write_checkpoint checkpoint;
        rmq_follow_log_min follow;
    } part;
} rmq_maintain_rounds;

/* Everything that a caller may want to wait for. One struct, so that a driver can hold any of them. */
typedef struct {
    enum { RMQ_JOB_FLUSH, RMQ_JOB_MAINTAIN, RMQ_JOB_CLEAN, RMQ_JOB_CLEAN_QUEUES, RMQ_JOB_STOP } kind;
    int line;
    rmq_store *store;
    int64_t result; /* of a flush: how far the log is durable; of a clean: how many files of the log went */
    bool is_idle;   /* there was nothing to do, or another is under way */
    bool is_begun;
    union {
        rmq_flush_log flush;
        rmq_maintain_rounds maintain;
        rmq_expire_files clean;
        rmq_follow_log_min follow;
        rmq_write_checkpoint checkpoint;
        rmq_names_flush names;
    } part;
} rmq_job;

/* Makes the log durable as far as it is written now. */
void rmq_start_flush(rmq_job *job, rmq_store *store);

/* Does what is due by the clock. */
void rmq_start_maintain(rmq_job *job, rmq_store *store, int64_t now_ms);

/* Removes expired files, oldest first, and looks how full the disk is. `hour` is that of the day, or -1 if an operator
 * wants it now. */
void rmq_start_clean(rmq_job *job, rmq_store *store, int64_t now_ms, int hour);

/* Removes files of queues and index whose messages are all gone from the log. */
void rmq_start_clean_queues(rmq_job *job, rmq_store *store);

/* A clean stop: flushes everything and says so in the checkpoint. What cannot be dispatched leaves the abort file. The
 * store is still to be freed. */
void rmq_start_stop(rmq_job *job, rmq_store *store);

/* Goes on with any of them: see store/job.h. RMQ_FAILED: an earlier flush or write of the store has failed. */
rmq_status rmq_job_next(rmq_job *job, rmq_status performed, rmq_operation *operation);

#endif
