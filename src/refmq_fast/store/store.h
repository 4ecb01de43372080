/* The C store: log, queues and index over one disk, and its state as a whole. What each call promises is what
 * refmq/store/api.py promises; the modules have the names of those in refmq/store.
 *
 * It is opened at the positions that a recovery found (store/open.h), and refuses what it does not have: extension files,
 * and with them bitmaps, and the transient pool. Time is always an argument, in milliseconds. A store belongs to one
 * thread at a time (store/job.h says what a flusher may do meanwhile). No call may be made after one that returned
 * RMQ_DIED, except rmq_store_free.
 *
 * The parts of a send, in their order: append.h plans and performs, flush.h makes durable, dispatch.h gives units and index
 * entries, get.h reads.
 */
#ifndef RMQ_STORE_STORE_H
#define RMQ_STORE_STORE_H

#include "../core/damage.h"
#include "../core/record.h"
#include "event.h"
#include "index.h"
#include "log.h"
#include "queue.h"

#define RMQ_MESSAGE_BYTES 192
#define RMQ_DELAY_LEVELS_MAX 64
#define RMQ_DELETE_HOURS_MAX 24
#define RMQ_SCHEDULE_TOPIC "SCHEDULE_TOPIC_XXXX"
#define RMQ_ABORT_FILE "abort"

/* Everything that can be configured: the fields of StoreConfig, without those of what the C store refuses. */
typedef struct {
    int64_t log_file_bytes;
    int64_t queue_file_bytes;
    bool index_enabled;
    int64_t index_slots;
    int64_t index_entries;
    int64_t piece_bytes;
    int64_t message_bytes_max;
    int64_t query_count_max;
    int64_t read_units_min;
    int64_t memory_transfer_bytes_max;
    int64_t memory_transfer_count_max;
    int64_t disk_transfer_bytes_max;
    int64_t disk_transfer_count_max;
    int64_t memory_bytes;
    int64_t memory_ratio_percent;
    bool sync_flush;
    int64_t flush_page_bytes;
    int64_t log_flush_interval_ms;
    int64_t log_flush_pages;
    int64_t log_flush_thorough_ms;
    int64_t queue_flush_interval_ms;
    int64_t queue_flush_pages;
    int64_t queue_flush_thorough_ms;
    uint32_t delete_hours; /* bit h: files expire in that hour of the day */
    int64_t file_reserved_ms;
    int64_t delete_files_max;
    int64_t disk_used_percent_max;
    int64_t disk_clean_forcibly_percent;
    int64_t disk_full_percent;
    bool clean_forcibly;
    int64_t delay_levels;
    int64_t delays_ms[RMQ_DELAY_LEVELS_MAX];
    bool is_slave;
    bool correct_offsets_on_slave;
    bool cut_damage;
    bool dispatch_unflushed;
    bool ignore_flush_failure;
    bool keep_clock_steps;
    int64_t log_tail_bytes; /* of records, in memory until rmq_write_appended; 0: every append is a write */
    int64_t tail_bytes;     /* of a queue, in memory before they are written; 0: every unit is a write */
    int64_t index_pages;    /* of an index file, in memory before they are written; 0: every field is a write */
    uint64_t hash_seed;     /* any number; better one that nobody can guess */
} rmq_store_config;

/* Java's PutMessageStatus, as PutStatus in refmq/store/values.py. */
typedef enum {
    RMQ_PUT_OK = 0,
    RMQ_PUT_SERVICE_NOT_AVAILABLE = 4,
    RMQ_PUT_CREATE_FILE_FAILED = 5,
    RMQ_PUT_MESSAGE_ILLEGAL = 6,
    RMQ_PUT_PROPERTIES_SIZE_EXCEEDED = 7
} rmq_put_status;

/* What is known of a queue: it may have an offset before it has a unit. Freed when there is nothing left to know. */
typedef struct {
    rmq_key key; /* topic and queue id */
    rmq_queue *queue;
    int64_t next_offset; /* of the next message; ahead of the queue while records wait for dispatch */
    bool has_offset;
    bool is_dirty; /* it has units that may not be durable */
    unsigned holders;
} rmq_queue_entry;

typedef struct {
    int64_t log_ms;
    int64_t log_thorough_ms;
    int64_t queue_ms;
    int64_t queue_thorough_ms;
} rmq_flush_clock;

typedef struct {
    int64_t physical_offset;
    int64_t queue_offset;
    int64_t fingerprint;
    int64_t size_bytes;
} rmq_place;

typedef struct {
    rmq_store_config config;
    rmq_disk disk;
    rmq_emit emit; /* NULL: nobody traces */
    void *emit_context;
    rmq_names names;
    rmq_log log;
    rmq_index index;
    rmq_table queues;       /* of rmq_queue_entry */
    rmq_queue *first_queue; /* those that are queues of the store, in the order in which it got them */
    rmq_queue *last_queue;
    int64_t dispatched_to;
    int64_t dispatched_ms;
    int64_t checkpointed_to;
    rmq_flush_clock clock;
    /* The state as a whole. */
    bool has_failed;     /* a flush or a write has failed: nothing is certain any more */
    bool lacks_dispatch; /* dispatch found the disk full at its last attempt */
    bool lacks_maintain; /* so did maintain */
    bool is_full;        /* the disk was too full at the last cleaning */
    bool remove_any;
    bool remove_expired;
    bool is_maintaining;
    bool wants_checkpoint;
    /* What a call left for its caller. */
    rmq_damage damage;               /* with RMQ_DAMAGED */
    char message[RMQ_MESSAGE_BYTES]; /* with RMQ_MISUSE */
    /* Memory that is used again and again. */
    uint8_t *piece; /* piece_bytes of the log */
    uint8_t *records;
    size_t records_size;
    rmq_place *places;
    size_t places_size;
    uint8_t *texts; /* properties that had to be rewritten */
    size_t texts_size;
} rmq_store;

/* An empty store that is not open yet; RMQ_NO_MEMORY. `disk` is copied. */
rmq_status rmq_store_new(const rmq_store_config *config, const rmq_disk *disk, rmq_emit emit, void *emit_context,
                         rmq_store **store);

/* Closes the files and frees everything. No job may be under way. */
void rmq_store_free(rmq_store *store);

/* Whether a legal put would be stored now. */
bool rmq_accepts_puts(const rmq_store *store);

/* How far records may be dispatched: with sync flush a record gets its unit only when it is durable. */
int64_t rmq_dispatch_bound(const rmq_store *store);

/* --- queues ------------------------------------------------------------------------------------------------------ */

/* What is known of a queue, or NULL. */
rmq_queue_entry *rmq_find_entry(const rmq_store *store, rmq_text topic, int64_t queue_id);

/* The same, made if it is new. */
rmq_status rmq_entry_for(rmq_store *store, rmq_text topic, int64_t queue_id, rmq_queue_entry **entry);

/* Frees an entry that says nothing any more and that nobody holds. */
void rmq_drop_entry(rmq_store *store, rmq_queue_entry *entry);

/* The queue with its units, or NULL. */
rmq_queue *rmq_find_queue(const rmq_store *store, rmq_text topic, int64_t queue_id);

/* Makes the queue of an entry that has none. */
rmq_status rmq_add_queue(rmq_store *store, rmq_queue_entry *entry);

/* A job is done with a queue. */
void rmq_release_queue(rmq_queue *queue);

/* The sum of the ends of all queues, for the checkpoint. */
int64_t rmq_queue_sum(const rmq_store *store);

/* Removes the queues of a topic and counts them. Its records stay in the log. */
rmq_status rmq_delete_topic(rmq_store *store, rmq_text topic, int64_t *count);

/* --- helpers ----------------------------------------------------------------------------------------------------- */

rmq_status rmq_emit_event(rmq_store *store, const rmq_event *event);

/* Makes `*memory`, which has room for `*size` things of `each` bytes, large enough for `count`. */
rmq_status rmq_reserve(void **memory, size_t *size, size_t count, size_t each);

#endif
