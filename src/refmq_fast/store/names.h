/* Knows which directories have nothing left to flush: a file is durable when all names on its path are. The twin of
 * DirectoryNames in refmq/store/file_sequence.py. */
#ifndef RMQ_STORE_NAMES_H
#define RMQ_STORE_NAMES_H

#include "job.h"
#include "table.h"

/* One directory. It stays until the names are freed. */
typedef struct {
    rmq_key key;      /* its path, with a zero behind it */
    int64_t changed;  /* number of the latest change in it by us; 0: none */
    int64_t flushed;  /* number of the latest change that is durable; -1: it was never flushed */
    bool was_changed; /* by us: `rmq_names_flush_all` looks at no others */
} rmq_name;

typedef struct {
    const rmq_disk *disk;
    rmq_table table;
    int64_t changes;
} rmq_names;

/* The directory with this path; RMQ_NO_MEMORY. */
rmq_status rmq_name_of(rmq_names *names, const char *path, size_t size, rmq_name **name);

/* A name in `directory` was added or removed. */
rmq_status rmq_names_changed(rmq_names *names, const char *directory);

/* `directory` is new, and so may be those above it: all their names have to be flushed. */
rmq_status rmq_names_made(rmq_names *names, const char *directory);

void rmq_names_free(rmq_names *names);

/* The job that makes the names in a directory durable, and those of all directories above it. `directory` must stay. */
typedef struct {
    int line;
    rmq_names *names;
    const char *directory;
    size_t end; /* of the path that is looked at */
    rmq_name *name;
    int64_t change;
} rmq_names_flush;

void rmq_names_flush_begin(rmq_names_flush *job, rmq_names *names, const char *directory);
rmq_status rmq_names_flush_next(rmq_names_flush *job, rmq_status performed, rmq_operation *operation);

/* The job that makes every change so far durable, including removals, which nobody else waits for. */
typedef struct {
    int line;
    rmq_names *names;
    rmq_name **sorted; /* freed at the end */
    size_t count;
    size_t at;
    rmq_names_flush flush;
} rmq_names_flush_all;

void rmq_names_flush_all_begin(rmq_names_flush_all *job, rmq_names *names);
rmq_status rmq_names_flush_all_next(rmq_names_flush_all *job, rmq_status performed, rmq_operation *operation);

#endif
