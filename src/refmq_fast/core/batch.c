/* Checks every length of a batched message before it points anywhere. */
#include "batch.h"

#include <assert.h>
#include <inttypes.h>

#include "bytes.h"

#define HEAD_BYTES 20   /* up to and with the length of the body */
#define MESSAGE_MIN (HEAD_BYTES + 2)
#define FLAG_AT 12
#define BODY_LENGTH_AT 16

rmq_status rmq_next_batched(const uint8_t *data, size_t size, size_t *at, rmq_batched *message, rmq_damage *damage)
{
    const size_t left = size - *at;
    const uint8_t *from = data + *at;
    const int64_t offset = (int64_t)*at;
    int64_t whole, body, room, properties;
    const uint8_t *lengths;

    assert(*at < size);
    if (left < MESSAGE_MIN) {
        return rmq_damaged(damage, "size", offset, rmq_damage_text("at least %d bytes", MESSAGE_MIN),
                           rmq_damage_text("%zu bytes left", left));
    }
    whole = rmq_load_be32(from);
    if (whole < MESSAGE_MIN || whole > (int64_t)left) {
        return rmq_damaged(damage, "size", offset, rmq_damage_text("%d .. %zu", MESSAGE_MIN, left),
                           rmq_damage_number(whole));
    }
    body = rmq_load_be32(from + BODY_LENGTH_AT);
    room = whole - MESSAGE_MIN;
#ifdef RMQ_MISTAKE_BATCH_BODY /* seeded for the fuzzer: a body may fill the message, where its other length has no room */
    room += 2;
#endif
    if (body < 0 || body > room) {
        return rmq_damaged(damage, "body length", offset + BODY_LENGTH_AT, rmq_damage_text("0 .. %" PRId64, room),
                           rmq_damage_number(body));
    }
    lengths = from + HEAD_BYTES + body;
    properties = rmq_load_be16(lengths);
    if (properties != room - body) {
        return rmq_damaged(damage, "properties length", offset + HEAD_BYTES + body, rmq_damage_number(room - body),
                           rmq_damage_number(properties));
    }
    message->flag = rmq_load_be32(from + FLAG_AT);
    message->body = (rmq_text){from + HEAD_BYTES, (size_t)body};
    message->properties = (rmq_text){lengths + 2, (size_t)properties};
    *at += (size_t)whole;
    return RMQ_OK;
}
