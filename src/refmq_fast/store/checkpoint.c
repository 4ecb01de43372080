/* Encodes the checkpoint, and replaces its file by rename. */
#include "checkpoint.h"

#include <string.h>

#include "../core/bytes.h"
#include "../core/crc32.h"

#define BLOCK_AT 64
#define MAGIC "refmqCP1"
#define CRC_AT 160

void rmq_encode_checkpoint(const rmq_checkpoint *checkpoint, uint8_t *to)
{
    const int64_t numbers[] = {
        checkpoint->log_ms,          checkpoint->queue_ms,        checkpoint->index_ms,         checkpoint->log_to,
        checkpoint->queues_to,       checkpoint->index_to,        checkpoint->queue_sum,        checkpoint->index_end.last,
        checkpoint->index_end.file,  checkpoint->index_end.count, checkpoint->is_clean ? 1 : 0,
    };

    memset(to, 0, RMQ_CHECKPOINT_BYTES);
    for (size_t i = 0; i < 3; i++) {
        rmq_store_be64(to + 8 * i, (uint64_t)numbers[i]);
    }
    memcpy(to + BLOCK_AT, MAGIC, 8);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        rmq_store_be64(to + BLOCK_AT + 8 + 8 * i, (uint64_t)numbers[i]);
    }
    rmq_store_be32(to + CRC_AT, rmq_crc32(0, to + BLOCK_AT, CRC_AT - BLOCK_AT));
}

void rmq_checkpoint_write_begin(rmq_checkpoint_write *job, rmq_names *names, const rmq_checkpoint *checkpoint)
{
    memset(job, 0, sizeof *job);
    job->names = names;
    job->checkpoint = *checkpoint;
}

static rmq_status make_file(rmq_checkpoint_write *job)
{
    const rmq_disk *disk = job->names->disk;
    uint8_t data[RMQ_CHECKPOINT_BYTES];
    bool is_there;
    rmq_status status;

    RMQ_TRY(disk->exists(disk->context, RMQ_CHECKPOINT_TEMPORARY, &is_there));
    if (is_there) {
        RMQ_TRY(disk->remove(disk->context, RMQ_CHECKPOINT_TEMPORARY));
    }
    RMQ_TRY(disk->create(disk->context, RMQ_CHECKPOINT_TEMPORARY, sizeof data, true, &job->file));
    rmq_encode_checkpoint(&job->checkpoint, data);
    status = disk->write(disk->context, job->file, 0, data, sizeof data);
    if (status != RMQ_OK) {
        disk->close(disk->context, job->file);
    }
    return status;
}

rmq_status rmq_checkpoint_write_next(rmq_checkpoint_write *job, rmq_status performed, rmq_operation *operation)
{
    const rmq_disk *disk = job->names->disk;
    rmq_status status;

    RMQ_JOB_BEGIN;
    RMQ_TRY(make_file(job));
    *operation = (rmq_operation){.kind = RMQ_FLUSH_FILE, .file = job->file, .end = RMQ_TO_THE_END};
    RMQ_PERFORM;
    disk->close(disk->context, job->file);
    RMQ_TRY(performed);
    RMQ_TRY(disk->rename(disk->context, RMQ_CHECKPOINT_TEMPORARY, RMQ_CHECKPOINT_FILE));
    RMQ_TRY(rmq_names_changed(job->names, ""));
    rmq_names_flush_begin(&job->flush, job->names, "");
    RMQ_AWAIT(rmq_names_flush_next, &job->flush);
    RMQ_TRY(status);
    RMQ_JOB_END;
}
