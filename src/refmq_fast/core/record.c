/* Writes and reads records field by field, in the order of the layout. */
#include "record.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "bytes.h"
#include "crc32.h"
#include "utf8.h"

/* Lengths of what stands between the hosts. */
#define BEFORE_BORN_HOST 48
#define PORT_BYTES 4
#define IPV4_BYTES 4
#define IPV6_BYTES 16
#define SYS_FLAG_AT 36
#define LENGTHS_BYTES 3 /* the two length fields after the body */

static size_t ip_bytes(int64_t sys_flag, int bit)
{
    return (sys_flag & bit) != 0 ? IPV6_BYTES : IPV4_BYTES;
}

uint32_t rmq_body_crc(const uint8_t *body, size_t size)
{
    return rmq_crc32(0, body, size) & 0x7fffffffu;
}

int64_t rmq_host_flags(int64_t sys_flag, const rmq_host *born, const rmq_host *store)
{
    sys_flag &= ~(int64_t)(RMQ_SYS_FLAG_BORN_IPV6 | RMQ_SYS_FLAG_STORE_IPV6);
    sys_flag |= born->ip_bytes == IPV6_BYTES ? RMQ_SYS_FLAG_BORN_IPV6 : 0;
    sys_flag |= store->ip_bytes == IPV6_BYTES ? RMQ_SYS_FLAG_STORE_IPV6 : 0;
    return sys_flag;
}

size_t rmq_header_bytes(int64_t sys_flag)
{
    return 80 + ip_bytes(sys_flag, RMQ_SYS_FLAG_BORN_IPV6) + ip_bytes(sys_flag, RMQ_SYS_FLAG_STORE_IPV6);
}

int64_t rmq_record_bytes(int64_t sys_flag, int64_t content_bytes)
{
    assert(content_bytes >= 0);
    return (int64_t)rmq_header_bytes(sys_flag) + LENGTHS_BYTES + content_bytes;
}

/* --- encode ------------------------------------------------------------------------------------------------------ */

static bool fits_32(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

static bool fits(const rmq_record_header *header, rmq_text topic, rmq_text properties)
{
    return topic.size <= RMQ_TOPIC_BYTES_MAX && properties.size <= RMQ_PROPERTIES_BYTES_MAX &&
           fits_32(header->size_bytes) && fits_32(header->queue_id) && fits_32(header->flag) &&
           fits_32(header->sys_flag) && fits_32(header->born_host.port) && fits_32(header->store_host.port) &&
           fits_32(header->reconsume_times);
}

static void put_32(uint8_t *to, int64_t value)
{
    rmq_store_be32(to, (uint32_t)(int32_t)value);
}

static void put_64(uint8_t *to, int64_t value)
{
    rmq_store_be64(to, (uint64_t)value);
}

static uint8_t *put_host(uint8_t *to, const rmq_host *host)
{
    memcpy(to, host->ip, host->ip_bytes);
    put_32(to + host->ip_bytes, host->port);
    return to + host->ip_bytes + PORT_BYTES;
}

static uint8_t *put_text(uint8_t *to, rmq_text text)
{
    if (text.size > 0) {
        memcpy(to, text.at, text.size);
    }
    return to + text.size;
}

rmq_status rmq_encode_record(const rmq_record_header *header, rmq_text body, rmq_text topic, rmq_text properties,
                             uint8_t *to)
{
    const int64_t content = (int64_t)(body.size + topic.size + properties.size);
    uint8_t *at = to;

    if (!fits(header, topic, properties)) {
        return RMQ_UNFIT;
    }
    assert(header->magic == RMQ_RECORD_MAGIC);
    assert(header->body_bytes == (int64_t)body.size);
    assert(header->size_bytes == rmq_record_bytes(header->sys_flag, content));
    assert(header->sys_flag == rmq_host_flags(header->sys_flag, &header->born_host, &header->store_host));
    put_32(at, header->size_bytes);
    rmq_store_be32(at + 4, header->magic);
    put_32(at + 8, header->body_crc);
    put_32(at + RMQ_QUEUE_ID_AT, header->queue_id);
    put_32(at + 16, header->flag);
    put_64(at + RMQ_QUEUE_OFFSET_AT, header->queue_offset);
    put_64(at + RMQ_PHYSICAL_OFFSET_AT, header->physical_offset);
    put_32(at + SYS_FLAG_AT, header->sys_flag);
    put_64(at + 40, header->born_timestamp_ms);
    at = put_host(at + BEFORE_BORN_HOST, &header->born_host);
    put_64(at, header->store_timestamp_ms);
    at = put_host(at + 8, &header->store_host);
    put_32(at, header->reconsume_times);
    put_64(at + 4, header->prepared_transaction_offset);
    put_32(at + 12, header->body_bytes);
    at = put_text(at + 16, body);
    *at = (uint8_t)topic.size;
    at = put_text(at + 1, topic);
    rmq_store_be16(at, (uint16_t)properties.size);
    at = put_text(at + 2, properties);
    assert(at == to + header->size_bytes);
    return RMQ_OK;
}

void rmq_encode_blank(int64_t size_bytes, uint8_t *to)
{
    assert(size_bytes >= RMQ_BLANK_HEADER_BYTES && size_bytes <= INT32_MAX);
    put_32(to, size_bytes);
    rmq_store_be32(to + 4, RMQ_BLANK_MAGIC);
}

/* --- decode ------------------------------------------------------------------------------------------------------ */

bool rmq_is_record_magic(uint32_t magic)
{
    return magic == RMQ_RECORD_MAGIC || magic == RMQ_RECORD_MAGIC_V2;
}

bool rmq_is_record_at(const uint8_t *data, size_t size, int64_t position)
{
    return size >= RMQ_RECORD_BYTES_MIN && rmq_load_be32(data) == (int64_t)size &&
           rmq_is_record_magic(rmq_load_be32u(data + 4)) && rmq_load_be64(data + RMQ_PHYSICAL_OFFSET_AT) == position;
}

static const uint8_t *take_host(const uint8_t *from, size_t bytes, rmq_host *host)
{
    memset(host, 0, sizeof *host);
    memcpy(host->ip, from, bytes);
    host->ip_bytes = (uint8_t)bytes;
    host->port = rmq_load_be32(from + bytes);
    return from + bytes + PORT_BYTES;
}

rmq_status rmq_read_header(const uint8_t *data, size_t size, size_t start, int64_t base, rmq_record_header *header,
                           rmq_damage *damage)
{
    const uint8_t *from = data + start;
    const size_t left = size - start;
    const int64_t offset = base + (int64_t)start;
    size_t header_bytes;

    assert(start <= size);
    if (left < RMQ_RECORD_BYTES_MIN) {
        return rmq_damaged(damage, "total size", offset, rmq_damage_text("at least %d bytes", RMQ_RECORD_BYTES_MIN),
                           rmq_damage_text("%zu bytes left", left));
    }
    header->size_bytes = rmq_load_be32(from);
    header->magic = rmq_load_be32u(from + 4);
    if (!rmq_is_record_magic(header->magic)) {
        return rmq_damaged(damage, "magic", offset + 4, rmq_damage_text("0x%08x", RMQ_RECORD_MAGIC),
                           rmq_damage_text("0x%08x", header->magic));
    }
    header->sys_flag = rmq_load_be32(from + SYS_FLAG_AT);
    header_bytes = rmq_header_bytes(header->sys_flag);
    if (header->size_bytes < (int64_t)header_bytes + LENGTHS_BYTES) {
        return rmq_damaged(damage, "total size", offset, rmq_damage_text("at least %zu", header_bytes + LENGTHS_BYTES),
                           rmq_damage_number(header->size_bytes));
    }
    if (left < header_bytes) {
        return rmq_damaged(damage, "total size", offset, rmq_damage_text("a header of %zu bytes", header_bytes),
                           rmq_damage_text("%zu bytes left", left));
    }
    header->body_crc = rmq_load_be32(from + 8);
    header->queue_id = rmq_load_be32(from + RMQ_QUEUE_ID_AT);
    header->flag = rmq_load_be32(from + 16);
    header->queue_offset = rmq_load_be64(from + RMQ_QUEUE_OFFSET_AT);
    header->physical_offset = rmq_load_be64(from + RMQ_PHYSICAL_OFFSET_AT);
    header->born_timestamp_ms = rmq_load_be64(from + 40);
    from = take_host(from + BEFORE_BORN_HOST, ip_bytes(header->sys_flag, RMQ_SYS_FLAG_BORN_IPV6), &header->born_host);
    header->store_timestamp_ms = rmq_load_be64(from);
    from = take_host(from + 8, ip_bytes(header->sys_flag, RMQ_SYS_FLAG_STORE_IPV6), &header->store_host);
    header->reconsume_times = rmq_load_be32(from);
    header->prepared_transaction_offset = rmq_load_be64(from + 4);
    header->body_bytes = rmq_load_be32(from + 12);
    return RMQ_OK;
}

rmq_status rmq_find_parts(const uint8_t *data, size_t size, size_t start, const rmq_record_header *header, int64_t base,
                          rmq_record_parts *parts, rmq_damage *damage)
{
    const size_t topic_length_bytes = header->magic == RMQ_RECORD_MAGIC ? 1 : 2;
    const size_t body_at = start + rmq_header_bytes(header->sys_flag);
    size_t end, topic_length_at;
    int64_t room, topic_bytes, properties_bytes;

    if (header->size_bytes > (int64_t)(size - start)) {
        return rmq_damaged(damage, "total size", base + (int64_t)start,
                           rmq_damage_text("%d .. %zu", RMQ_RECORD_BYTES_MIN, size - start),
                           rmq_damage_number(header->size_bytes));
    }
    end = start + (size_t)header->size_bytes;
    room = (int64_t)end - (int64_t)body_at - (int64_t)topic_length_bytes - 2;
    if (header->body_bytes < 0 || header->body_bytes > room) {
        return rmq_damaged(damage, "body length", base + (int64_t)body_at - 4, rmq_damage_text("0 .. %" PRId64, room),
                           rmq_damage_number(header->body_bytes));
    }
    topic_length_at = body_at + (size_t)header->body_bytes;
    room -= header->body_bytes;
    topic_bytes = topic_length_bytes == 1 ? (int8_t)data[topic_length_at] : rmq_load_be16(data + topic_length_at);
#ifndef RMQ_MISTAKE_RECORD_TOPIC /* seeded for the fuzzer: the length of a topic is believed */
    if (topic_bytes < 0 || topic_bytes > room) {
        return rmq_damaged(damage, "topic length", base + (int64_t)topic_length_at,
                           rmq_damage_text("0 .. %" PRId64, room), rmq_damage_number(topic_bytes));
    }
#endif
    room -= topic_bytes;
    parts->body_at = body_at;
    parts->body_end = topic_length_at;
    parts->topic_at = topic_length_at + topic_length_bytes;
    parts->topic_end = parts->topic_at + (size_t)topic_bytes;
    parts->properties_at = parts->topic_end + 2;
    parts->end = end;
    properties_bytes = rmq_load_be16(data + parts->topic_end);
    if (properties_bytes != room) {
        return rmq_damaged(damage, "properties length", base + (int64_t)parts->topic_end, rmq_damage_number(room),
                           rmq_damage_number(properties_bytes));
    }
    assert(parts->properties_at + (size_t)properties_bytes == end && end <= size);
    return RMQ_OK;
}

rmq_status rmq_decode_topic(const uint8_t *data, const rmq_record_parts *parts, int64_t base, rmq_text *topic,
                            rmq_damage *damage)
{
    size_t valid_to;

    *topic = (rmq_text){data + parts->topic_at, parts->topic_end - parts->topic_at};
    valid_to = rmq_utf8_valid_to(topic->at, topic->size);
    if (valid_to < topic->size) {
        return rmq_damaged(damage, "topic", base + (int64_t)(parts->topic_at + valid_to), rmq_damage_text("UTF-8"),
                           rmq_damage_text("byte 0x%02x", topic->at[valid_to]));
    }
    return RMQ_OK;
}

rmq_status rmq_check_body(const uint8_t *data, size_t start, const rmq_record_header *header,
                          const rmq_record_parts *parts, int64_t base, rmq_damage *damage)
{
    const uint32_t found = rmq_body_crc(data + parts->body_at, parts->body_end - parts->body_at);

    if ((int64_t)found != header->body_crc) {
        /* Python writes a negative number with its sign. */
        const int64_t stored = header->body_crc;
        return rmq_damaged(damage, "body crc", base + (int64_t)start + 8, rmq_damage_text("0x%08" PRIx32, found),
                           stored < 0 ? rmq_damage_text("-0x%07" PRIx64, (uint64_t)-stored)
                                      : rmq_damage_text("0x%08" PRIx64, (uint64_t)stored));
    }
    return RMQ_OK;
}

rmq_status rmq_decode_record(const uint8_t *data, size_t size, size_t start, int64_t base, bool check_crc,
                             rmq_record_header *header, rmq_record_parts *parts, rmq_damage *damage)
{
    rmq_text topic;

    RMQ_TRY(rmq_read_header(data, size, start, base, header, damage));
    RMQ_TRY(rmq_find_parts(data, size, start, header, base, parts, damage));
    if (check_crc) {
        RMQ_TRY(rmq_check_body(data, start, header, parts, base, damage));
    }
    return rmq_decode_topic(data, parts, base, &topic, damage);
}
