/* Checks records as recovery does: what a crash or a lost page leaves must not count as one. */
#include "scan.h"

#include <assert.h>
#include <string.h>

#include "bytes.h"

bool rmq_is_storable_topic(rmq_text topic)
{
    return topic.size > 0 && !rmq_text_equals(topic, RMQ_TEXT(".")) && !rmq_text_equals(topic, RMQ_TEXT("..")) &&
           memchr(topic.at, '/', topic.size) == NULL && memchr(topic.at, 0, topic.size) == NULL;
}

static bool is_zero(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Whether some page holds nothing but zeros of data[start:stop]. With `whole_only` a page counts only if all of it lies
 * within. `in_file` is the position of data[0] in its file. */
static bool has_lost_page(const uint8_t *data, size_t start, size_t stop, int64_t in_file, int64_t page_bytes,
                          bool whole_only)
{
    size_t at = start;

    while (at < stop) {
        const int64_t into_page = (in_file + (int64_t)at) % page_bytes;
        const size_t left = stop - at;
        const size_t piece = page_bytes - into_page < (int64_t)left ? (size_t)(page_bytes - into_page) : left;

        if ((!whole_only || (int64_t)piece == page_bytes) && is_zero(data + at, piece)) {
            return true;
        }
        at += piece;
    }
    return false;
}

/* Zeros that nobody wrote. */
static rmq_status zeros(rmq_damage *damage, const char *field, int64_t position, const char *found)
{
    return rmq_damaged(damage, field, position, rmq_damage_text("bytes as they were written"),
                       rmq_damage_text("%s", found));
}

static rmq_status refuse_zeros(const uint8_t *data, size_t at, int64_t position, int64_t in_file,
                               const rmq_record_parts *parts, int64_t page_bytes, rmq_damage *damage)
{
    const size_t last_text_end = parts->end > parts->properties_at ? parts->end : parts->topic_end;
    const int64_t start = in_file - (int64_t)at;

    if (data[last_text_end - 1] == 0) {
        return zeros(damage, "properties", position, "zeros at the end");
    }
    if (page_bytes < RMQ_HEADER_BYTES_MAX && has_lost_page(data, at, parts->body_at, start, page_bytes, true)) {
        return zeros(damage, "header", position, "a lost page of zeros");
    }
    if ((start + (int64_t)parts->body_end) / page_bytes == (start + (int64_t)parts->end - 1) / page_bytes) {
        return RMQ_OK; /* within one page, texts that were lost would have been lost to the end */
    }
    if (has_lost_page(data, parts->topic_at, parts->topic_end, start, page_bytes, false) ||
        has_lost_page(data, parts->properties_at, parts->end, start, page_bytes, false)) {
        return zeros(damage, "properties", position, "a lost page of zeros");
    }
    return RMQ_OK;
}

rmq_status rmq_check_record(const uint8_t *data, size_t size, size_t at, int64_t position, int64_t in_file,
                            int64_t page_bytes, bool check_crc, rmq_record_header *header, rmq_damage *damage)
{
    const int64_t base = position - (int64_t)at;
    rmq_record_parts parts;
    rmq_text topic;

    assert(page_bytes > 0);
    RMQ_TRY(rmq_read_header(data, size, at, base, header, damage));
    RMQ_TRY(rmq_find_parts(data, size, at, header, base, &parts, damage));
    if (check_crc) {
        RMQ_TRY(rmq_check_body(data, at, header, &parts, base, damage));
    }
    RMQ_TRY(rmq_decode_topic(data, &parts, base, &topic, damage));
    if (header->physical_offset != position) {
        return rmq_damaged(damage, "physical offset", position + RMQ_PHYSICAL_OFFSET_AT, rmq_damage_number(position),
                           rmq_damage_number(header->physical_offset));
    }
    if ((header->sys_flag & RMQ_TRANSACTION_PREPARED) == 0) {
        if (header->queue_id < 0 || header->queue_offset < 0) {
            return rmq_damaged(damage, "queue", position + RMQ_QUEUE_ID_AT,
                               rmq_damage_text("a queue id and an offset in it"), rmq_damage_number(header->queue_id));
        }
        if (!rmq_is_storable_topic(topic)) {
            return rmq_damaged(damage, "topic", base + (int64_t)parts.topic_at, rmq_damage_text("the name of a queue"),
                               rmq_damage_bytes(topic.at, topic.size, false));
        }
    }
    return refuse_zeros(data, at, position, in_file, &parts, page_bytes, damage);
}

size_t rmq_scan_records(const uint8_t *data, size_t size, int64_t position, int64_t in_file, int64_t page_bytes,
                        bool check_crc, int64_t *records, int64_t *last_store_ms)
{
    size_t at = 0;

    while (
#ifndef RMQ_MISTAKE_SCAN_END /* seeded for the fuzzer: the rest is taken for long enough */
        size - at >= RMQ_RECORD_BYTES_MIN &&
#endif
        rmq_is_record_magic(rmq_load_be32u(data + at + 4))) {
        rmq_record_header header;

        if (rmq_check_record(data, size, at, position + (int64_t)at, in_file + (int64_t)at, page_bytes, check_crc,
                             &header, NULL) != RMQ_OK) {
            break;
        }
        at += (size_t)header.size_bytes;
        *records += 1;
        *last_store_ms = header.store_timestamp_ms;
    }
    return at;
}
