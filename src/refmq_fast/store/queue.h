/* A consume queue: for each message of one queue of one topic, where its record is. The twin of
 * refmq/store/consume_queue.py, whose head has the layout; without extension files. */
#ifndef RMQ_STORE_QUEUE_H
#define RMQ_STORE_QUEUE_H

#include "files.h"

#define RMQ_UNIT_BYTES 20
#define RMQ_BLANK_SIZE 0x7fffffff
#define RMQ_QUEUE_DIRECTORY "consumequeue"

typedef struct {
    int64_t physical_offset;
    int32_t size;
    int64_t tags_code;
} rmq_unit;

typedef struct rmq_queue {
    rmq_text topic; /* in memory of the queue's own */
    int64_t queue_id;
    rmq_files files;
    int64_t min_offset;        /* what is before can no longer be read */
    int64_t log_min;           /* the start of the log for which `min_offset` was last corrected */
    int64_t last_physical_end; /* where the record of the last unit ends; -1 without one */
    int64_t dispatched_end;    /* for readers: without the unit of a record whose dispatch is unfinished */
    unsigned holders;          /* jobs that still need it */
    bool is_gone;              /* no longer a queue of the store: freed when nobody holds it */
    struct rmq_queue *before;  /* in the order in which the store got its queues */
    struct rmq_queue *after;
} rmq_queue;

typedef struct {
    const rmq_disk *disk;
    rmq_names *names;
    int64_t file_bytes;
    int64_t piece_bytes;
    size_t tail_max;
} rmq_queue_setting;

/* A queue without files; RMQ_NO_MEMORY. */
rmq_status rmq_queue_new(const rmq_queue_setting *setting, rmq_text topic, int64_t queue_id, rmq_queue **queue);
void rmq_queue_free(rmq_queue *queue);

/* Its max offset. */
static inline int64_t rmq_queue_end(const rmq_queue *queue)
{
    return queue->files.wrote / RMQ_UNIT_BYTES;
}

/* The first unit for which there is a file. */
static inline int64_t rmq_queue_first(const rmq_queue *queue)
{
    return rmq_files_begin(&queue->files) / RMQ_UNIT_BYTES;
}

/* The unit in its place; `is_there` is false outside the queue. */
rmq_status rmq_queue_unit(rmq_queue *queue, int64_t queue_offset, rmq_unit *unit, bool *is_there);

/* How many units stand from `queue_offset` on in the same file, at most `count_max`. */
int64_t rmq_queue_units_from(const rmq_queue *queue, int64_t queue_offset, int64_t count_max);

/* Reads units that are there, all in one file. */
rmq_status rmq_queue_read(rmq_queue *queue, int64_t queue_offset, int64_t count, rmq_unit *units);

/* The first readable message if the log starts at `log_min`. It is searched for only when the log has lost a file. */
rmq_status rmq_queue_min_at(rmq_queue *queue, int64_t log_min, int64_t *min_offset);

/* Gives a record its unit; `is_new` is false when it had it already. */
rmq_status rmq_queue_put(rmq_queue *queue, int64_t queue_offset, const rmq_unit *unit, bool *is_new);

/* Removes the oldest file if all its records are gone: see remove_expired_file. */
rmq_status rmq_queue_remove_expired(rmq_queue *queue, int64_t log_min, int64_t checkpointed_to, bool *has_removed);

/* Removes all files of the queue. */
rmq_status rmq_queue_remove(rmq_queue *queue);

#endif
