/* The checkpoint: how far log, queues and index were durable when it was written. The layout is at the top of
 * refmq/store/checkpoint.py. */
#ifndef RMQ_STORE_CHECKPOINT_H
#define RMQ_STORE_CHECKPOINT_H

#include "index.h"
#include "job.h"
#include "names.h"

#define RMQ_CHECKPOINT_FILE "checkpoint"
#define RMQ_CHECKPOINT_TEMPORARY "checkpoint.tmp"
#define RMQ_CHECKPOINT_BYTES 4096

typedef struct {
    int64_t log_ms;
    int64_t queue_ms;
    int64_t index_ms;
    int64_t log_to;
    int64_t queues_to;
    int64_t index_to;
    int64_t queue_sum;
    rmq_index_end index_end;
    bool is_clean;
} rmq_checkpoint;

/* Writes the RMQ_CHECKPOINT_BYTES bytes of the file to `to`. */
void rmq_encode_checkpoint(const rmq_checkpoint *checkpoint, uint8_t *to);

/* The job that replaces the file; when it ends the new one is durable. */
typedef struct {
    int line;
    rmq_names *names;
    rmq_checkpoint checkpoint;
    rmq_file file;
    rmq_names_flush flush;
} rmq_checkpoint_write;

void rmq_checkpoint_write_begin(rmq_checkpoint_write *job, rmq_names *names, const rmq_checkpoint *checkpoint);
rmq_status rmq_checkpoint_write_next(rmq_checkpoint_write *job, rmq_status performed, rmq_operation *operation);

#endif
