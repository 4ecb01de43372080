/* Walks UTF-8 character by character. */
#include "utf8.h"

#include <assert.h>
#include <string.h>

static int is_continuation(uint8_t byte)
{
    return (byte & 0xc0u) == 0x80u;
}

/* How many bytes a character has that starts with `first`, and which second bytes are legal; 0 for no first byte. */
static size_t form_of(uint8_t first, uint8_t *low, uint8_t *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf) {
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        *low = first == 0xe0 ? 0xa0 : 0x80;
#ifndef RMQ_MISTAKE_UTF8_HALF_PAIR /* seeded for the fuzzer: half of a surrogate pair is taken for a character */
        *high = first == 0xed ? 0x9f : 0xbf; /* what follows would be half of a surrogate pair */
#endif
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        *low = first == 0xf0 ? 0x90 : 0x80;
        *high = first == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

uint32_t rmq_utf8_next(const uint8_t *text, size_t size, size_t at, size_t *length, int *is_valid)
{
    const uint8_t first = text[at];
    uint8_t low, high;
    size_t whole, there = 1;
    uint32_t character;

    assert(at < size);
    *is_valid = 1;
    *length = 1;
    if (first < 0x80) {
        return first;
    }
    whole = form_of(first, &low, &high);
    if (whole != 0 && size - at > 1 && text[at + 1] >= low && text[at + 1] <= high) {
        there = 2;
        while (there < whole && there < size - at && is_continuation(text[at + there])) {
            there += 1;
        }
    }
    *length = there;
    if (whole == 0 || there < whole) {
        *is_valid = 0;
        return RMQ_REPLACEMENT;
    }
    character = first & (0x7fu >> whole);
    for (size_t i = 1; i < whole; i++) {
        character = character << 6 | (text[at + i] & 0x3fu);
    }
    return character;
}

size_t rmq_utf8_valid_to(const uint8_t *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t length;
        int is_valid;

        if (text[at] < 0x80) {
            at += 1;
            continue;
        }
        (void)rmq_utf8_next(text, size, at, &length, &is_valid);
        if (!is_valid) {
            return at;
        }
        at += length;
    }
    return size;
}

size_t rmq_utf8_replace(const uint8_t *text, size_t size, uint8_t *to)
{
    static const uint8_t replacement[RMQ_REPLACEMENT_BYTES] = {0xef, 0xbf, 0xbd};
    size_t at = 0, written = 0;

    while (at < size) {
        size_t length;
        int is_valid;

        (void)rmq_utf8_next(text, size, at, &length, &is_valid);
        if (to != NULL) {
            memcpy(to + written, is_valid ? text + at : replacement, is_valid ? length : RMQ_REPLACEMENT_BYTES);
        }
        written += is_valid ? length : RMQ_REPLACEMENT_BYTES;
        at += length;
    }
    return written;
}
