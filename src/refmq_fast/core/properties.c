/* Finds pieces of properties in their bytes; nothing is copied. */
#include "properties.h"

#include <assert.h>
#include <string.h>

#include "crc32.h"

#define NAME_VALUE_SEPARATOR 1
#define PROPERTY_SEPARATOR 2

bool rmq_next_property(rmq_text properties, size_t *at, rmq_text *name, rmq_text *value)
{
    while (*at < properties.size) {
        const uint8_t *piece = properties.at + *at;
        const uint8_t *end = memchr(piece, PROPERTY_SEPARATOR, properties.size - *at);
        const size_t size = end == NULL ? properties.size - *at : (size_t)(end - piece);
        const uint8_t *separator = size == 0 ? NULL : memchr(piece, NAME_VALUE_SEPARATOR, size);

        *at += size + 1;
        if (separator != NULL && separator != piece &&
#ifndef RMQ_MISTAKE_EMPTY_VALUE /* seeded for the fuzzer: a name without a value counts */
            separator != piece + size - 1 &&
#endif
            true) {
            *name = (rmq_text){piece, (size_t)(separator - piece)};
            *value = (rmq_text){separator + 1, size - name->size - 1};
            return true;
        }
    }
    return false;
}

void rmq_find_properties(rmq_text properties, rmq_known_properties *known)
{
    size_t at = 0;
    rmq_text name, value;

    memset(known, 0, sizeof *known);
    while (rmq_next_property(properties, &at, &name, &value)) {
        if (rmq_text_equals(name, RMQ_TEXT("TAGS"))) {
            known->tags = value;
        } else if (rmq_text_equals(name, RMQ_TEXT("KEYS"))) {
            known->keys = value;
        } else if (rmq_text_equals(name, RMQ_TEXT("UNIQ_KEY"))) {
            known->unique_key = value;
        } else if (rmq_text_equals(name, RMQ_TEXT("DELAY"))) {
            known->delay = value;
        }
    }
}

/* Unlike `rmq_find_properties` this takes the first one, and an empty value too, as the reference does for traces. */
rmq_text rmq_unique_key(rmq_text properties)
{
    static const char name[] = "UNIQ_KEY\x01";
    const size_t name_size = sizeof name - 1;
    size_t at = 0;

    while (at < properties.size) {
        const uint8_t *piece = properties.at + at;
        const size_t left = properties.size - at;
        const uint8_t *end = memchr(piece, PROPERTY_SEPARATOR, left);
        const size_t size = end == NULL ? left : (size_t)(end - piece);

        if (size >= name_size && memcmp(piece, name, name_size) == 0) {
            return (rmq_text){piece + name_size, size - name_size};
        }
        at += size + 1;
    }
    return (rmq_text){(const uint8_t *)"", 0};
}

int64_t rmq_fingerprint(rmq_text properties, uint32_t body_crc)
{
    const rmq_text key = rmq_unique_key(properties);
    const uint64_t upper = rmq_crc32(0, key.at, key.size);

    return (int64_t)(upper << 31 | (body_crc & 0x7fffffffu));
}

bool rmq_ends_with_zero(rmq_text properties)
{
    return properties.size > 0 && properties.at[properties.size - 1] == 0;
}

static bool needs_separator(rmq_text first, rmq_text second)
{
    return first.size > 0 && second.size > 0 && first.at[first.size - 1] != PROPERTY_SEPARATOR;
}

size_t rmq_concatenated_bytes(rmq_text first, rmq_text second)
{
    return first.size + second.size + (needs_separator(first, second) ? 1 : 0);
}

void rmq_concatenate_properties(rmq_text first, rmq_text second, uint8_t *to)
{
    if (first.size > 0) {
        memcpy(to, first.at, first.size);
        to += first.size;
    }
    if (needs_separator(first, second)) {
        *to = PROPERTY_SEPARATOR;
        to += 1;
    }
    if (second.size > 0) {
        memcpy(to, second.at, second.size);
    }
}
