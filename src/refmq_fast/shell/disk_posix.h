/* Real files below one directory, as the table of disk operations that the store calls. The twin of RealDisk in
 * refmq/net/files.py; what each operation promises is in refmq/model/disk.py.
 *
 * Threads. A disk belongs to the thread of its store, with one exception, `rmq_disk_perform`. What must become durable is
 * a piece of work with a descriptor of its own, which travels from the store's thread to a flusher and back:
 *
 *     rmq_job_next(...)                  hands out an operation                 the store's thread
 *     rmq_disk_start(disk, &operation, &work)      pins file and descriptor     the store's thread
 *     rmq_disk_perform(&work)                      one system call              any thread
 *     rmq_disk_finish(disk, &work)                 says how it ended            the store's thread
 *
 * `perform` touches `work` and nothing else, so there is no lock, and no word is shared but those of `work`, which whoever
 * carries it from one thread to the other has to publish. Meanwhile the file may be written, closed, renamed or removed.
 *
 * Descriptors. A store has far more files than a process may open (50,000 queues under a limit of 1,024), so they are kept
 * in a pool, the least recently used closed first. Linux reports a write-back error to the next descriptor that flushes the
 * file if none has seen it yet, so closing one between a write and its flush hides no error. When the process has no
 * descriptor left, the pool gives up its own; when that is not enough, an operation that needs one fails, but a flush does
 * not: it has not begun, and `rmq_disk_start` says RMQ_PENDING. A flush that began keeps its descriptor.
 *
 * Reading. Large files are read through windows (windows.h), everything else by pread. A window that cannot be read, because
 * somebody made the file shorter or the medium fails, is left for pread, which says what is wrong.
 */
#ifndef RMQ_SHELL_DISK_POSIX_H
#define RMQ_SHELL_DISK_POSIX_H

#include "../store/disk.h"

#define RMQ_DISK_PATH_MAX 4096  /* bytes of a path with the root and the zero: what Linux takes */
#define RMQ_DISK_REASON_MAX 200 /* bytes of the reason of an error */

typedef struct rmq_posix_disk rmq_posix_disk;

typedef struct {
    size_t open_files_max; /* descriptors in the pool */
    size_t works_max;      /* flushes that may be under way at a time, each with a descriptor that the pool keeps */
    int64_t mapped_bytes;  /* of all windows together; 0: there are none */
    int64_t mapped_file_bytes_min; /* smaller files are not mapped */
} rmq_posix_settings;

/* A quarter of the usual limit of 1,024 descriptors: sockets need the rest. A file of the log is read through windows and a
 * queue of usual size (6 MB) is not. */
#define RMQ_POSIX_SETTINGS                                                                                             \
    {                                                                                                                  \
        .open_files_max = 256, .works_max = 8, .mapped_bytes = 64 << 20, .mapped_file_bytes_min = 8 << 20              \
    }

/* Why the last operation that failed did so. */
typedef struct {
    rmq_status status;
    bool is_flush;         /* nobody knows what is on the medium, and every later flush of the file fails as well */
    int number;            /* errno, or 0 if the disk found the mistake itself */
    const char *operation; /* "write" */
    char path[RMQ_DISK_PATH_MAX]; /* relative to the root; "." is the root */
    char reason[RMQ_DISK_REASON_MAX];
    uint64_t count; /* how many operations have failed so far: tells a new error from one that was seen */
} rmq_disk_error;

/* A flush on its way. Its fields are the disk's; it must not be moved between start and finish. */
typedef struct {
    void *file;            /* of the operation; NULL for a directory */
    const char *directory; /* the operation's */
    int descriptor;        /* -1: nothing is left to flush */
    int number;            /* errno of the flush; 0: it went well */
    bool is_pending;       /* it has no descriptor yet */
} rmq_disk_work;

/* The files below `root`, which need not exist yet. RMQ_NO_MEMORY, or RMQ_UNFIT if the path is too long. */
rmq_status rmq_posix_disk_new(const char *root, const rmq_posix_settings *settings, rmq_posix_disk **disk);

/* Every file must have been closed and every work finished. */
void rmq_posix_disk_free(rmq_posix_disk *disk);

rmq_disk rmq_posix_disk_table(rmq_posix_disk *disk);

/* Closes every descriptor that no flush needs. Files open theirs again when they are used. */
void rmq_posix_disk_rest(rmq_posix_disk *disk);

/* How many descriptors the pool has open. */
size_t rmq_posix_disk_descriptors(const rmq_posix_disk *disk);

/* Size and path of an open file; the path is its present one, relative to the root. */
int64_t rmq_posix_file_size(rmq_file file);
const char *rmq_posix_file_path(rmq_file file);

/* RMQ_OK: `work` can be performed. RMQ_PENDING: no descriptor is free; the file is pinned all the same, and
 * `rmq_disk_start_again` tries again. Anything else: the flush has failed, and nothing is to be finished. What
 * `operation` points to must stay until the work is finished. */
rmq_status rmq_disk_start(rmq_posix_disk *disk, const rmq_operation *operation, rmq_disk_work *work);
rmq_status rmq_disk_start_again(rmq_posix_disk *disk, rmq_disk_work *work);

/* Flushes. May be called in any thread, once. */
void rmq_disk_perform(rmq_disk_work *work);

/* How it ended: what the job is told. A work that was started or is pending must be finished once; one that was not
 * performed counts as a flush that never happened, and nothing is remembered of it. */
rmq_status rmq_disk_finish(rmq_posix_disk *disk, rmq_disk_work *work);

/* Valid until the next call of the disk. */
const rmq_disk_error *rmq_posix_disk_error(const rmq_posix_disk *disk);

#endif
