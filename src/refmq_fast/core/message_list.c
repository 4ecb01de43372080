/* See message_list.h. Every length is compared with what is left of the record before anything behind it is read. */
#include "message_list.h"

#include <string.h>

#include "bytes.h"
#include "crc32.h"
#include "decimal.h"

#define MAGIC 0xdaa320a7u
#define COMPRESSED 0x1
#define IPV6_HOSTS 0x30
#define RECORD_BYTES_MIN 91u

/* Where the fields stand while both hosts are IPv4; the body begins at BODY_AT. */
enum {
    MAGIC_AT = 4,
    BODY_CRC_AT = 8,
    QUEUE_ID_AT = 12,
    FLAG_AT = 16,
    QUEUE_OFFSET_AT = 20,
    PHYSICAL_OFFSET_AT = 28,
    SYS_FLAG_AT = 36,
    BORN_TIMESTAMP_AT = 40,
    BORN_HOST_AT = 48,
    STORE_TIMESTAMP_AT = 56,
    STORE_HOST_AT = 64,
    RECONSUME_TIMES_AT = 72,
    PREPARED_OFFSET_AT = 76,
    BODY_LENGTH_AT = 84,
    BODY_AT = 88,
};

/* The three parts without a fixed length; they fill the record exactly. */
static rmq_status read_parts(const uint8_t *data, size_t size, rmq_message *message)
{
    const int64_t body_length = rmq_load_be32(data + BODY_LENGTH_AT);
    const uint8_t *at = data + BODY_AT;
    size_t left = size - BODY_AT;

    if (body_length < 0 || (uint64_t)body_length > left - 3) {
        return RMQ_NOT_MINE;
    }
    message->body = (rmq_text){at, (size_t)body_length};
    at += body_length;
    left -= (size_t)body_length;
    if (at[0] > INT8_MAX
#ifndef RMQ_MISTAKE_LIST_TOPIC /* seeded for the fuzzer: the length of a topic is believed */
        || at[0] > left - 3 /* the length byte and the two of the properties */
#endif
    ) {
        return RMQ_NOT_MINE;
    }
    message->topic = (rmq_text){at + 1, at[0]};
    left -= 1u + at[0];
    at += 1u + at[0];
    if (rmq_load_be16(at) < 0 || (size_t)rmq_load_be16(at) != left - 2) {
        return RMQ_NOT_MINE;
    }
    message->properties = (rmq_text){at + 2, left - 2};
    return RMQ_OK;
}

rmq_status rmq_message_read(const uint8_t *data, size_t length, rmq_message *message)
{
    int64_t size;

    if (length < RECORD_BYTES_MIN || rmq_load_be32u(data + MAGIC_AT) != MAGIC) {
        return RMQ_NOT_MINE;
    }
    size = rmq_load_be32(data);
    message->sys_flag = rmq_load_be32(data + SYS_FLAG_AT);
    if (size < (int64_t)RECORD_BYTES_MIN || (uint64_t)size > length ||
        (message->sys_flag & (COMPRESSED | IPV6_HOSTS)) != 0) {
        return RMQ_NOT_MINE;
    }
    message->size_bytes = (size_t)size;
    if (read_parts(data, message->size_bytes, message) != RMQ_OK) {
        return RMQ_NOT_MINE;
    }
    if ((int64_t)(rmq_crc32(0, message->body.at, message->body.size) & 0x7fffffffu) !=
        rmq_load_be32(data + BODY_CRC_AT)) {
        return RMQ_NOT_MINE;
    }
    if (!rmq_text_is_utf8(message->topic) || !rmq_text_is_utf8(message->properties)) {
        return RMQ_NOT_MINE;
    }
    message->queue_id = rmq_load_be32(data + QUEUE_ID_AT);
    message->flag = rmq_load_be32(data + FLAG_AT);
    message->queue_offset = rmq_load_be64(data + QUEUE_OFFSET_AT);
    message->physical_offset = rmq_load_be64(data + PHYSICAL_OFFSET_AT);
    message->born_timestamp_ms = rmq_load_be64(data + BORN_TIMESTAMP_AT);
    message->born_host = data + BORN_HOST_AT;
    message->store_timestamp_ms = rmq_load_be64(data + STORE_TIMESTAMP_AT);
    message->store_host = data + STORE_HOST_AT;
    message->reconsume_times = rmq_load_be32(data + RECONSUME_TIMES_AT);
    message->prepared_transaction_offset = rmq_load_be64(data + PREPARED_OFFSET_AT);
    return RMQ_OK;
}

bool rmq_message_next_property(rmq_text *rest, rmq_text *name, rmq_text *value)
{
    while (rest->size > 0) {
        const uint8_t *end = memchr(rest->at, 0x02, rest->size);
        const size_t size = end == NULL ? rest->size : (size_t)(end - rest->at);
        const uint8_t *separator = memchr(rest->at, 0x01, size);
        const size_t passed = end == NULL ? size : size + 1;
        const uint8_t *piece = rest->at;

        rest->at += passed;
        rest->size -= passed;
        if (separator != NULL && separator > piece && separator + 1 < piece + size) {
            *name = (rmq_text){piece, (size_t)(separator - piece)};
            *value = (rmq_text){separator + 1, (size_t)(piece + size - separator - 1)};
            return true;
        }
    }
    return false;
}

size_t rmq_message_host_text(const uint8_t *host, uint8_t *to)
{
    uint8_t *at = to;

    for (int i = 0; i < 4; i++) {
        at = rmq_decimal_write(host[i], at);
        *at++ = i < 3 ? '.' : ':';
    }
    return (size_t)(rmq_decimal_write(rmq_load_be32(host + 4), at) - to);
}

static uint8_t *write_hex(const uint8_t *from, size_t size, uint8_t *to)
{
    static const char DIGITS[] = "0123456789ABCDEF";

    for (size_t i = 0; i < size; i++) {
        *to++ = (uint8_t)DIGITS[from[i] >> 4];
        *to++ = (uint8_t)DIGITS[from[i] & 0xfu];
    }
    return to;
}

void rmq_message_offset_id(const rmq_message *message, uint8_t *to)
{
    uint8_t offset[8];

    rmq_store_be64(offset, (uint64_t)message->physical_offset);
    (void)write_hex(offset, sizeof offset, write_hex(message->store_host, 8, to));
}
