/* One index file: from the hash of a key to the records that have the key. The layout is at the top of
 * refmq/store/index_file.py, of which this is the twin. */
#ifndef RMQ_STORE_INDEX_FILE_H
#define RMQ_STORE_INDEX_FILE_H

#include "pages.h"

#define RMQ_INDEX_HEADER_BYTES 40
#define RMQ_INDEX_SLOT_BYTES 4
#define RMQ_INDEX_ENTRY_BYTES 20
#define RMQ_INDEX_NAME_DIGITS 17

/* The header is kept in memory; rmq_index_file_write_header writes it, once for every message. */
typedef struct {
    int64_t name; /* as a number of 17 digits */
    rmq_pages pages; /* its file, and what of it is in memory */
    int64_t slots;
    int64_t entries;
    int64_t begin_ms;
    int64_t end_ms;
    int64_t begin_physical;
    int64_t end_physical;
    int32_t used_slots;
    int32_t next_entry;
    bool is_dirty;
    unsigned holders; /* jobs that still need it */
    bool is_gone;
} rmq_index_file;

typedef struct {
    int32_t key_hash;
    int64_t physical_offset;
    int32_t seconds;
    int32_t previous;
} rmq_index_entry;

static inline int64_t rmq_index_file_bytes(int64_t slots, int64_t entries)
{
    return RMQ_INDEX_HEADER_BYTES + RMQ_INDEX_SLOT_BYTES * slots + RMQ_INDEX_ENTRY_BYTES * entries;
}

static inline int64_t rmq_index_file_count(const rmq_index_file *file)
{
    return file->next_entry - 1;
}

static inline bool rmq_index_file_is_full(const rmq_index_file *file)
{
    return file->next_entry >= file->entries;
}

/* Reads the header of an open file. */
rmq_status rmq_index_file_load(rmq_index_file *file);

/* Adds one entry: first the entry, then the slot that leads to it. The header that counts it comes last. */
rmq_status rmq_index_file_put(rmq_index_file *file, int32_t key_hash, int64_t physical_offset, int64_t store_ms);

rmq_status rmq_index_file_write_header(rmq_index_file *file);

rmq_status rmq_index_file_entry(rmq_index_file *file, int32_t number, rmq_index_entry *entry);

/* Whether any entry may lie in the time span. */
bool rmq_index_file_covers(const rmq_index_file *file, int64_t begin_ms, int64_t end_ms);

/* The entries with a hash and a time, newest first: `*number` is 0 at the beginning and at the end, and between the calls
 * that of the entry. `*physical_offset` is that of its record. */
rmq_status rmq_index_file_find(rmq_index_file *file, int32_t key_hash, int64_t begin_ms, int64_t end_ms, int32_t *number,
                               int64_t *physical_offset);

#endif
