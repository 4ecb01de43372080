/* The commit log: all messages of all topics, one record after the other. The twin of refmq/store/commit_log.py, without
 * the transient pool: what is written is readable. */
#ifndef RMQ_STORE_LOG_H
#define RMQ_STORE_LOG_H

#include "files.h"

#define RMQ_LOG_DIRECTORY "commitlog"

typedef struct {
    rmq_files files;
    uint8_t *incomplete; /* what a slave has received of a record that is not complete yet */
    size_t incomplete_bytes;
    size_t incomplete_size;   /* of the memory */
    int64_t last_store_ms;    /* the newest store time of all records */
    int64_t flushed_store_ms; /* the newest store time that is durable; goes to the checkpoint */
    int64_t flush_page_bytes;
} rmq_log;

/* A record that somebody else wrote has this store time: a dead process, or a master. */
void rmq_log_saw_store_time(rmq_log *log, int64_t store_ms);

/* The first position of the file after the one that holds `position`. */
static inline int64_t rmq_log_next_file(const rmq_log *log, int64_t position)
{
    return rmq_files_base_of(&log->files, position) + log->files.file_bytes;
}

bool rmq_log_has_room(const rmq_log *log, int64_t length);

/* Makes the next file and ends the last one with a blank record. RMQ_DISK_FULL: the log still ends before the blank, or
 * after it with the next file in place, and the next attempt resumes there. */
rmq_status rmq_log_roll_file(rmq_log *log);

/* Writes records that fit the last file. */
rmq_status rmq_log_append(rmq_log *log, const uint8_t *from, size_t length, int64_t store_ms);

/* Where a slave's next piece starts. */
static inline int64_t rmq_log_received_to(const rmq_log *log)
{
    return log->files.wrote + (int64_t)log->incomplete_bytes;
}

/* A slave's append: bytes of the master's log. `message` gets a sentence with RMQ_MISUSE. */
rmq_status rmq_log_append_raw(rmq_log *log, int64_t position, const uint8_t *from, size_t length, char *message,
                              size_t message_bytes);

/* How many bytes stand from `position` on, up to `end`, the end of the file or `length_max`. `end` is at most what is
 * readable. */
size_t rmq_log_bytes_from(const rmq_log *log, int64_t position, int64_t length_max, int64_t end);

/* Whether all of these bytes are there, in one file. */
bool rmq_log_has(const rmq_log *log, int64_t position, int64_t length);

rmq_status rmq_log_read(rmq_log *log, int64_t position, uint8_t *to, size_t length);

/* The size of the record that starts there, and its store time; 0 when none does. */
rmq_status rmq_log_record_at(rmq_log *log, int64_t position, int64_t *size_bytes, int64_t *store_ms);

/* The store time of a record that a unit names; -1 when it is not there. */
rmq_status rmq_log_store_time(rmq_log *log, int64_t position, int64_t size, int64_t *store_ms);

int64_t rmq_log_pages_to_flush(const rmq_log *log);

/* The job that makes durable what is readable now. */
typedef struct {
    int line;
    rmq_log *log;
    int64_t store_ms;
    rmq_files_flush files;
} rmq_log_flush;

void rmq_log_flush_begin(rmq_log_flush *job, rmq_log *log);
rmq_status rmq_log_flush_next(rmq_log_flush *job, rmq_status performed, rmq_operation *operation);

#endif
