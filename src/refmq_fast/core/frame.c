/* See frame.h. */
#include "frame.h"

#include <assert.h>

#include "bytes.h"
#include "header_binary.h"
#include "header_json.h"

#define LENGTH_BYTES 4u

rmq_status rmq_frame_find(const uint8_t *data, size_t length, size_t frame_length_max, rmq_frame *frame)
{
    int64_t said;
    size_t rest, header_max;

    assert(frame_length_max >= RMQ_FRAME_PREFIX_BYTES);
    if (length < LENGTH_BYTES) {
        return RMQ_MORE;
    }
    said = rmq_load_be32(data);
    if (said < (int64_t)(RMQ_FRAME_PREFIX_BYTES - LENGTH_BYTES) || said > (int64_t)(frame_length_max - LENGTH_BYTES)) {
        return RMQ_NOT_MINE;
    }
    if (length < RMQ_FRAME_PREFIX_BYTES) {
        return RMQ_MORE;
    }
    frame->serialize = data[LENGTH_BYTES];
    if (frame->serialize > RMQ_SERIALIZE_ROCKETMQ) {
        return RMQ_NOT_MINE;
    }
    frame->length = LENGTH_BYTES + (size_t)said;
    frame->header_length = rmq_load_be32u(data + LENGTH_BYTES) & 0xffffffu;
    rest = frame->length - RMQ_FRAME_PREFIX_BYTES;
    header_max = rest < RMQ_HEADER_LENGTH_MAX ? rest : RMQ_HEADER_LENGTH_MAX;
#ifdef RMQ_MISTAKE_FRAME_PREFIX
    header_max += RMQ_FRAME_PREFIX_BYTES; /* seeded for the fuzzer: the prefix is forgotten */
#endif
    if (frame->header_length > header_max) {
        return RMQ_NOT_MINE;
    }
    frame->body_at = RMQ_FRAME_PREFIX_BYTES + frame->header_length;
    return length < frame->length ? RMQ_MORE : RMQ_OK;
}

rmq_status rmq_frame_decode(const uint8_t *data, const rmq_frame *frame, uint8_t *scratch, rmq_command *command)
{
    const uint8_t *header = data + RMQ_FRAME_PREFIX_BYTES;

    if (frame->serialize == RMQ_SERIALIZE_JSON) {
        return rmq_header_json_decode(header, frame->header_length, scratch, command);
    }
    return rmq_header_binary_decode(header, frame->header_length, command);
}

/* Whether the texts of a command are short enough to be summed up, and to be written anywhere at all. */
static bool texts_fit(const rmq_command *command)
{
    size_t left = RMQ_HEADER_LENGTH_MAX;

    if (command->field_count > RMQ_FIELDS_MAX || command->remark.size > left) {
        return false;
    }
    left -= command->remark.size;
    for (size_t i = 0; i < command->field_count; i++) {
        if (command->fields[i].key.size > left) {
            return false;
        }
        left -= command->fields[i].key.size;
        if (command->fields[i].value.size > left) {
            return false;
        }
        left -= command->fields[i].value.size;
    }
    return true;
}

size_t rmq_frame_head_bytes_max(const rmq_command *command)
{
    if (!texts_fit(command)) {
        return 0;
    }
    return RMQ_FRAME_PREFIX_BYTES + (command->serialize == RMQ_SERIALIZE_JSON ? rmq_header_json_bytes_max(command)
                                                                               : rmq_header_binary_bytes(command));
}

rmq_status rmq_frame_encode_head(const rmq_command *command, size_t body_length, size_t frame_length_max, uint8_t *to,
                                 size_t capacity, size_t *used)
{
    const size_t needed = rmq_frame_head_bytes_max(command);
    uint8_t *header = to + RMQ_FRAME_PREFIX_BYTES;
    uint8_t *end = NULL;
    size_t header_length;

    assert(frame_length_max >= RMQ_FRAME_PREFIX_BYTES && frame_length_max <= (size_t)INT32_MAX);
    if (needed == 0) {
        return RMQ_NOT_MINE;
    }
    if (capacity < needed) {
        return RMQ_NO_ROOM;
    }
    if (command->serialize == RMQ_SERIALIZE_JSON) {
        end = rmq_header_json_encode(command, header);
    } else if (rmq_header_binary_encode(command, header, &end) != RMQ_OK) {
        return RMQ_NOT_MINE;
    }
    header_length = (size_t)(end - header);
    assert(RMQ_FRAME_PREFIX_BYTES + header_length <= needed);
    if (header_length > RMQ_HEADER_LENGTH_MAX || body_length > frame_length_max ||
        RMQ_FRAME_PREFIX_BYTES + header_length > frame_length_max - body_length) {
        return RMQ_NOT_MINE;
    }
    rmq_store_be32(to, (uint32_t)(RMQ_FRAME_PREFIX_BYTES - LENGTH_BYTES + header_length + body_length));
    rmq_store_be32(to + LENGTH_BYTES, (uint32_t)command->serialize << 24 | (uint32_t)header_length);
    *used = RMQ_FRAME_PREFIX_BYTES + header_length;
    return RMQ_OK;
}
