/* The index over all its files: from a key to the messages that have it. The twin of refmq/store/index.py. */
#ifndef RMQ_STORE_INDEX_H
#define RMQ_STORE_INDEX_H

#include "files.h"
#include "index_file.h"

#define RMQ_INDEX_DIRECTORY "index"

/* Where the newest entry is: the record of it, its file's name as a number, and its place in that file. */
typedef struct {
    int64_t last; /* -1: there is none */
    int64_t file;
    int64_t count;
} rmq_index_end;

typedef struct {
    const rmq_disk *disk;
    rmq_names *names;
    int64_t slots;
    int64_t entries;
    size_t pages_max;       /* of a file in memory; 0: none */
    rmq_index_file **files; /* oldest first */
    size_t count;
    size_t capacity;
    bool is_half_done; /* a message whose keys are not all in yet, because the disk was full ... */
    int64_t half_physical; /* ... its physical offset */
    size_t half_keys;      /* ... and how many of its keys are in */
} rmq_index;

void rmq_index_init(rmq_index *index, const rmq_disk *disk, rmq_names *names, int64_t slots, int64_t entries,
                    size_t pages_max);
void rmq_index_free(rmq_index *index);

/* Adds a file that is there already, after those that were added. */
rmq_status rmq_index_found(rmq_index *index, int64_t name);

/* The keys under which a message is found: its unique key first, then each of its keys. `*at` is 0 at the beginning. */
bool rmq_next_key(const rmq_known_properties *known, size_t *at, rmq_text *key);

/* Indexes one message. RMQ_DISK_FULL: calling again with the same message resumes where it stopped. */
rmq_status rmq_index_put(rmq_index *index, rmq_text topic, const rmq_known_properties *known, int64_t physical_offset,
                         int64_t store_ms);

rmq_index_end rmq_index_end_of(const rmq_index *index);
int64_t rmq_index_last_ms(const rmq_index *index);

/* Removes the oldest files whose records are all gone; never the file in which the index ended at the last checkpoint,
 * nor a later one. */
rmq_status rmq_index_remove_expired(rmq_index *index, int64_t log_min, int64_t checkpointed_to, bool *has_removed);

/* The job that makes every entry durable that is there now. */
typedef struct {
    int line;
    rmq_index *index;
    rmq_index_file **files; /* freed at the end */
    size_t count;
    size_t at;
    rmq_names_flush names;
} rmq_index_flush;

void rmq_index_flush_begin(rmq_index_flush *job, rmq_index *index);
rmq_status rmq_index_flush_next(rmq_index_flush *job, rmq_status performed, rmq_operation *operation);

#endif
