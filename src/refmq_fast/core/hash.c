/* Computes Java's hash without making the UTF-16 text that it is defined over. */
#include "hash.h"

#include "utf8.h"

static uint32_t add_unit(uint32_t hash, uint32_t unit)
{
    return 31u * hash + unit;
}

int32_t rmq_string_hash(int32_t start, const uint8_t *text, size_t size)
{
    uint32_t hash = (uint32_t)start;
    size_t at = 0;

    while (at < size) {
        size_t length;
        int is_valid;
        uint32_t character;

        if (text[at] < 0x80) {
            hash = add_unit(hash, text[at]);
            at += 1;
            continue;
        }
        character = rmq_utf8_next(text, size, at, &length, &is_valid);
        if (character >= 0x10000u) {
            hash = add_unit(hash, 0xd800u + ((character - 0x10000u) >> 10));
            hash = add_unit(hash, 0xdc00u + (character & 0x3ffu));
        } else {
            hash = add_unit(hash, character);
        }
        at += length;
    }
    return (int32_t)hash;
}

int32_t rmq_key_hash(const uint8_t *topic, size_t topic_size, const uint8_t *key, size_t key_size)
{
    int32_t hash = rmq_string_hash(0, topic, topic_size);

    hash = rmq_string_hash(hash, (const uint8_t *)"#", 1);
    hash = rmq_string_hash(hash, key, key_size);
    if (hash == INT32_MIN) {
        return 0;
    }
    return hash < 0 ? -hash : hash;
}
