/* What recovery checks of a record: see the head of refmq/store/scan.py, of which this is the inner loop. */
#ifndef RMQ_CORE_SCAN_H
#define RMQ_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* Whether a topic can be the name of a directory. */
bool rmq_is_storable_topic(rmq_text topic);

/* RMQ_DAMAGED unless the record at `data[at]`, which stands at `position` of the log and `in_file` bytes into its file, is
 * one as it was once written there. `page_bytes` is what a disk writes in one piece. */
rmq_status rmq_check_record(const uint8_t *data, size_t size, size_t at, int64_t position, int64_t in_file,
                            int64_t page_bytes, bool check_crc, rmq_record_header *header, rmq_damage *damage);

/* The records from `data[0]` on, which stands at `position`: as many whole and sound ones as follow each other. Returns
 * where they end in `data`; what is there is a blank record, the end of the log, the rest of a record that is longer than
 * `data`, or damage, for the caller to tell apart. `records` and `last_store_ms` are added to. */
size_t rmq_scan_records(const uint8_t *data, size_t size, int64_t position, int64_t in_file, int64_t page_bytes,
                        bool check_crc, int64_t *records, int64_t *last_store_ms);

#endif
