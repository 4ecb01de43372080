/* See header_binary.h. Every length is compared with what is left before anything behind it is read. */
#include "header_binary.h"

#include <assert.h>
#include <string.h>

#include "bytes.h"

#define REMARK_LENGTH_AT 13u
#define KEY_LENGTH_BYTES 2u
#define LENGTH_BYTES 4u

/* Reads a text whose length was read before; 0 bytes of it stand for null. */
static rmq_status read_text(const uint8_t **at, const uint8_t *end, int64_t length, rmq_text *text)
{
#ifndef RMQ_MISTAKE_BINARY_LENGTH /* seeded for the fuzzer: a length is believed */
    if (length < 0 || length > end - *at) {
        return RMQ_NOT_MINE;
    }
#else
    (void)end;
#endif
    *text = (rmq_text){*at, (size_t)length};
    *at += length;
    return rmq_text_is_utf8(*text) ? RMQ_OK : RMQ_NOT_MINE;
}

static rmq_status read_entry(const uint8_t **at, const uint8_t *end, rmq_field *entry)
{
    int64_t length;

    if (end - *at < (ptrdiff_t)KEY_LENGTH_BYTES) {
        return RMQ_NOT_MINE;
    }
    length = rmq_load_be16(*at);
    *at += KEY_LENGTH_BYTES;
    if (read_text(at, end, length, &entry->key) != RMQ_OK || end - *at < (ptrdiff_t)LENGTH_BYTES) {
        return RMQ_NOT_MINE;
    }
    length = rmq_load_be32(*at);
    *at += LENGTH_BYTES;
    return read_text(at, end, length, &entry->value);
}

static rmq_status put(rmq_command *command, const rmq_field *entry)
{
    for (size_t i = 0; i < command->field_count; i++) {
        if (rmq_text_equals(command->fields[i].key, entry->key)) {
            command->fields[i].value = entry->value;
            return RMQ_OK;
        }
    }
    if (command->field_count == RMQ_FIELDS_MAX) {
        return RMQ_NOT_MINE;
    }
    command->fields[command->field_count++] = *entry;
    return RMQ_OK;
}

rmq_status rmq_header_binary_decode(const uint8_t *header, size_t length, rmq_command *command)
{
    const uint8_t *end = header + length;
    const uint8_t *at = header + REMARK_LENGTH_AT + LENGTH_BYTES;
    int64_t map_length;

    if (length < RMQ_HEADER_BINARY_FIXED_BYTES) {
        return RMQ_NOT_MINE;
    }
    command->code = rmq_load_be16(header);
    command->language = header[2] < RMQ_LANGUAGES ? header[2] : (uint8_t)RMQ_LANGUAGE_OTHER;
    command->version = rmq_load_be16(header + 3);
    command->opaque = rmq_load_be32(header + 5);
    command->flag = rmq_load_be32(header + 9);
    command->serialize = RMQ_SERIALIZE_ROCKETMQ;
    command->field_count = 0;
    if (read_text(&at, end, rmq_load_be32(header + REMARK_LENGTH_AT), &command->remark) != RMQ_OK ||
        end - at < (ptrdiff_t)LENGTH_BYTES) {
        return RMQ_NOT_MINE;
    }
    command->has_remark = command->remark.size > 0;
    map_length = rmq_load_be32(at);
    at += LENGTH_BYTES;
    if (map_length != end - at) {
        return RMQ_NOT_MINE;
    }
    command->has_fields = map_length > 0;
    while (at < end) {
        rmq_field entry;

        if (read_entry(&at, end, &entry) != RMQ_OK) {
            return RMQ_NOT_MINE;
        }
        if (entry.key.size > 0 && entry.value.size > 0 && put(command, &entry) != RMQ_OK) {
            return RMQ_NOT_MINE;
        }
    }
    assert(at == end);
    return RMQ_OK;
}

static size_t map_bytes(const rmq_command *command)
{
    size_t size = 0;

    assert(command->field_count <= RMQ_FIELDS_MAX);
    for (size_t i = 0; i < command->field_count; i++) {
        size += KEY_LENGTH_BYTES + command->fields[i].key.size + LENGTH_BYTES + command->fields[i].value.size;
    }
    return size;
}

size_t rmq_header_binary_bytes(const rmq_command *command)
{
    return RMQ_HEADER_BINARY_FIXED_BYTES + command->remark.size + map_bytes(command);
}

static uint8_t *write_text(rmq_text text, uint8_t *to)
{
    if (text.size > 0) {
        memcpy(to, text.at, text.size);
    }
    return to + text.size;
}

rmq_status rmq_header_binary_encode(const rmq_command *command, uint8_t *to, uint8_t **end)
{
    const size_t size = map_bytes(command);

    if (command->code != (int16_t)command->code || command->version != (int16_t)command->version ||
        command->remark.size > INT32_MAX || size > INT32_MAX) {
        return RMQ_NOT_MINE;
    }
    rmq_store_be16(to, (uint16_t)command->code);
    to[2] = command->language;
    rmq_store_be16(to + 3, (uint16_t)command->version);
    rmq_store_be32(to + 5, (uint32_t)command->opaque);
    rmq_store_be32(to + 9, (uint32_t)command->flag);
    rmq_store_be32(to + REMARK_LENGTH_AT, (uint32_t)command->remark.size);
    to = write_text(command->remark, to + REMARK_LENGTH_AT + LENGTH_BYTES);
    rmq_store_be32(to, (uint32_t)size);
    to += LENGTH_BYTES;
    for (size_t i = 0; i < command->field_count; i++) {
        const rmq_field *field = &command->fields[i];

        if (field->key.size > INT16_MAX) {
            return RMQ_NOT_MINE;
        }
        rmq_store_be16(to, (uint16_t)field->key.size);
        to = write_text(field->key, to + KEY_LENGTH_BYTES);
        rmq_store_be32(to, (uint32_t)field->value.size);
        to = write_text(field->value, to + LENGTH_BYTES);
    }
    *end = to;
    return RMQ_OK;
}
