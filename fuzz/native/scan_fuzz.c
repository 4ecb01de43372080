/* core/scan.h on any bytes.
 *
 * The input stands at the position that its first record says, so that there can be one. Checked besides crashes: the scan
 * ends where records one by one end, counts as many, and takes nothing that the reader of records refuses.
 */
#include "same.h"

#include <string.h>

#include "core/bytes.h"
#include "core/scan.h"

#define PAGE_BYTES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void scan(const uint8_t *data, size_t size, int64_t position, bool check_crc)
{
    int64_t records = 0, last_ms = 0, count = 0;
    const size_t end =
        rmq_scan_records(data, size, position, position % 1024, PAGE_BYTES, check_crc, &records, &last_ms);
    size_t at = 0;

    CHECK(end <= size);
    while (at < end) {
        rmq_record_header header;
        rmq_record_parts parts;
        rmq_text topic;

        CHECK(rmq_decode_record(data, size, at, position, check_crc, &header, &parts, NULL) == RMQ_OK);
        CHECK(header.physical_offset == position + (int64_t)at);
        CHECK(rmq_decode_topic(data, &parts, position, &topic, NULL) == RMQ_OK);
        CHECK((header.sys_flag & RMQ_TRANSACTION_PREPARED) != 0 || rmq_is_storable_topic(topic));
        at = parts.end;
        count += 1;
    }
    CHECK(at == end && count == records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    int64_t position = 0;

    memcpy(copy, data, size);
    if (size >= RMQ_RECORD_BYTES_MIN) {
        position = rmq_load_be64(copy + RMQ_PHYSICAL_OFFSET_AT);
        position = position < 0 ? 0 : position % INT32_MAX;
        rmq_store_be64(copy + RMQ_PHYSICAL_OFFSET_AT, (uint64_t)position);
    }
    scan(copy, size, position, false);
    scan(copy, size, position, true);
    free(copy);
    return 0;
}
