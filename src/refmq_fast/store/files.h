/* Files of one size that together form one long run of bytes: the log, and each queue. The twin of FileSequence in
 * refmq/store/file_sequence.py, and the head of that file explains it.
 *
 *     begin <= flushed <= wrote
 *
 * A run may have a tail: bytes that were appended and are still in memory, so that twenty bytes at a time need no write of
 * their own. They are written when the tail is full, when the run is flushed or rolled, and before anything else changes
 * the file. Reading sees them. A process that dies loses them; that is right only for what recovery builds again (it
 * believes a queue up to the checkpoint, and everything before a checkpoint was flushed).
 */
#ifndef RMQ_STORE_FILES_H
#define RMQ_STORE_FILES_H

#include "job.h"
#include "names.h"

#define RMQ_NAME_DIGITS 20
#define RMQ_CREATING "creating.tmp" /* a file that is being made, in the root of the store */

typedef struct {
    int64_t base;
    rmq_file file; /* NULL until it is needed */
} rmq_sequence_file;

typedef struct {
    const rmq_disk *disk;
    rmq_names *names;
    char *directory;
    int64_t file_bytes;
    bool reserve;
    int64_t piece_bytes;
    rmq_sequence_file *list; /* oldest first */
    size_t count;
    size_t capacity;
    rmq_sequence_file prepared; /* made and not yet used; `file` NULL: there is none */
    int64_t wrote;
    int64_t flushed;
    uint64_t cuts;       /* how often the data was cut: a flush that was under way must not move `flushed` */
    int64_t zeroed_base; /* the file in which bytes past the end were zeroed: its next flush covers them. -1: none */
    uint8_t *tail;
    size_t tail_bytes; /* in memory: they end at `wrote` */
    size_t tail_max;   /* 0: there is no tail, and every append is a write */
    size_t tail_size;  /* of the memory */
    int64_t kept_from; /* what was written of the tail last still stands in its memory, until more is appended */
    size_t kept_bytes;
} rmq_files;

/* An empty run. The directory is copied. */
rmq_status rmq_files_init(rmq_files *files, const rmq_disk *disk, rmq_names *names, const char *directory,
                          int64_t file_bytes, bool reserve, int64_t piece_bytes, size_t tail_max);

/* Closes the files and frees what `rmq_files_init` and the others allocated. */
void rmq_files_free(rmq_files *files);

/* Adds a file that is there already, after those that were added. */
rmq_status rmq_files_found(rmq_files *files, int64_t base);

static inline int64_t rmq_files_begin(const rmq_files *files)
{
    return files->count > 0 ? files->list[0].base : 0;
}

/* The end of the last file. */
static inline int64_t rmq_files_limit(const rmq_files *files)
{
    return files->count > 0 ? files->list[files->count - 1].base + files->file_bytes : 0;
}

static inline int64_t rmq_files_room(const rmq_files *files)
{
    return rmq_files_limit(files) - files->wrote;
}

static inline int64_t rmq_files_base_of(const rmq_files *files, int64_t position)
{
    return position - position % files->file_bytes;
}

bool rmq_files_holds(const rmq_files *files, int64_t position);

/* Writes the path of the file with this base to `path`, which has room for rmq_files_path_bytes. */
size_t rmq_files_path_bytes(const rmq_files *files);
void rmq_files_path(const rmq_files *files, int64_t base, char *path);

/* Bytes inside one file. */
rmq_status rmq_files_read(rmq_files *files, int64_t position, uint8_t *to, size_t length);

/* The same bytes will be read soon: whoever has them may fetch them meanwhile. */
void rmq_files_expect(rmq_files *files, int64_t position, size_t length);

/* Writes at the end of the data; it must fit the last file. RMQ_DISK_FULL: nothing was changed. */
rmq_status rmq_files_append(rmq_files *files, const uint8_t *from, size_t length);

/* Hands the tail to the file. */
rmq_status rmq_files_write_tail(rmq_files *files);

/* Makes the next file, or the first one at any base, without using it yet: a later `rmq_files_add` cannot fail. */
rmq_status rmq_files_prepare(rmq_files *files, int64_t base);

/* The same, and moves the end of the data there. */
rmq_status rmq_files_add(rmq_files *files, int64_t base);

/* Ends the data at `position`: later files go, newest first, and the rest of its own file becomes zero. */
rmq_status rmq_files_truncate(rmq_files *files, int64_t position);

/* Removes the first or the last file. */
rmq_status rmq_files_remove(rmq_files *files, size_t index);

/* Removes every file and the directory. A later append may start afresh. */
rmq_status rmq_files_remove_all(rmq_files *files);

void rmq_files_close(rmq_files *files);

/* Makes a file of zeros that is never seen with another size. */
rmq_status rmq_create_file(const rmq_disk *disk, rmq_names *names, const char *directory, const char *path,
                           int64_t size_bytes, bool reserve, rmq_file *file);

/* The job that makes everything up to `target` durable, file by file in order: first the bytes, then the names. Bytes
 * that are written while it waits are not covered. The run must not be freed before its end, but it may lose its files. */
typedef struct {
    int line;
    rmq_files *files;
    int64_t target;
    uint64_t cuts;
    int64_t end;
    bool has_zeroed;
    rmq_names_flush names;
} rmq_files_flush;

void rmq_files_flush_begin(rmq_files_flush *job, rmq_files *files, int64_t target);
rmq_status rmq_files_flush_next(rmq_files_flush *job, rmq_status performed, rmq_operation *operation);

#endif
