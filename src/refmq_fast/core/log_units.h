/* What each record of a log should have in a queue and in the index: read off the log in one pass, for whoever compares
 * them. `refmq.verify.spark.log_pieces` has the same in Python.
 */
#ifndef RMQ_CORE_LOG_UNITS_H
#define RMQ_CORE_LOG_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One record. `topic` is the FNV-1a hash of its bytes. */
typedef struct {
    int64_t physical_offset;
    int64_t queue_offset;
    int64_t tags_code;
    int64_t store_ms;
    int64_t message;
    uint64_t topic;
    int32_t queue_id;
    int32_t size_bytes;
    uint32_t transaction; /* the two bits of the sys flag */
    uint32_t reserved;
} rmq_log_unit;

/* One key of a record, as the index knows it. */
typedef struct {
    int64_t physical_offset;
    int64_t hash;
} rmq_log_key;

typedef struct {
    rmq_log_unit *units;
    size_t unit_count;
    size_t unit_max;
    rmq_log_key *keys;
    size_t key_count;
    size_t key_max;
} rmq_log_units;

/* Reads whole records that follow each other from `data[0]` on, which stands at `position` of the log, and appends to
 * `found`. Returns where it stopped: at what is no whole and sound record, or where `found` has no room for another. */
size_t rmq_read_log_units(const uint8_t *data, size_t size, int64_t position, bool check_crc, rmq_log_units *found);

#endif
