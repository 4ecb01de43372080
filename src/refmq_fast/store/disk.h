/* The disk as the store sees it: a table of operations that somebody else performs. The store makes no system call.
 *
 * What does not wait for the medium is called at once, through `rmq_disk`. What does (a flush) is an operation that a job
 * hands out and whoever drives the job performs; see job.h. The meaning of each is that of refmq/model/disk.py: paths
 * are relative to the disk's root and use `/`, a written byte can be read at once and survives the process, and only a
 * flush makes it survive a power loss.
 *
 * Every function returns RMQ_OK, RMQ_DISK_FULL (nothing was changed), RMQ_DISK_FAILED, RMQ_NO_MEMORY or RMQ_DIED.
 */
#ifndef RMQ_STORE_DISK_H
#define RMQ_STORE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../core/status.h"

/* An open file, as the disk knows it. `close` gives it back; if an operation on it is under way, the disk closes it when
 * that has ended. */
typedef void *rmq_file;

typedef struct {
    void *context; /* first argument of all that follow */
    rmq_status (*exists)(void *context, const char *path, bool *is_there);
    rmq_status (*is_directory)(void *context, const char *path, bool *is_one);
    rmq_status (*is_empty)(void *context, const char *directory, bool *is_empty); /* no names in it */
    rmq_status (*modified_ms)(void *context, const char *path, int64_t *modified_ms);
    rmq_status (*usage)(void *context, const char *path, int64_t *total_bytes, int64_t *free_bytes);
    rmq_status (*open)(void *context, const char *path, rmq_file *file);
    rmq_status (*create)(void *context, const char *path, int64_t size_bytes, bool reserve, rmq_file *file);
    rmq_status (*make_directory)(void *context, const char *path);
    rmq_status (*remove)(void *context, const char *path);
    rmq_status (*rename)(void *context, const char *source, const char *target);
    rmq_status (*read)(void *context, rmq_file file, int64_t position, uint8_t *to, size_t length);
    /* These bytes will be read soon. NULL where it makes nothing faster. */
    void (*expect)(void *context, rmq_file file, int64_t position, size_t length);
    rmq_status (*write)(void *context, rmq_file file, int64_t position, const uint8_t *from, size_t length);
    /* A position behind which the file is all zeros, at most its size. */
    rmq_status (*data_end)(void *context, rmq_file file, int64_t *end);
    void (*close)(void *context, rmq_file file);
} rmq_disk;

#define RMQ_TO_THE_END (-1)

/* What a job wants to be performed. Everything it points to stays until the job is told how it ended. */
typedef struct {
    enum { RMQ_FLUSH_FILE, RMQ_FLUSH_DIRECTORY } kind;
    rmq_file file;
    int64_t start; /* of the bytes that must become durable */
    int64_t end;   /* or RMQ_TO_THE_END */
    const char *directory;
} rmq_operation;

#endif
