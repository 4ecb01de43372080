/* See text.h. */
#include "text.h"

#include <assert.h>

#define HIGH_BITS 0x8080808080808080u

static bool follows(uint8_t byte)
{
    return (byte & 0xc0u) == 0x80u;
}

/* How long the character at `at` is, of which `left` bytes are there; 0 when it is none. */
static size_t character(const uint8_t *at, size_t left)
{
    const uint8_t first = at[0];

    if (first < 0x80u) {
        return 1;
    }
    if (first < 0xc2u || first > 0xf4u) { /* 80..BF follow, C0 and C1 would be longer than needed */
        return 0;
    }
    if (first < 0xe0u) {
        return left >= 2 && follows(at[1]) ? 2 : 0;
    }
    if (first < 0xf0u) {
        if (left < 3 || !follows(at[1]) || !follows(at[2])) {
            return 0;
        }
        if ((first == 0xe0u && at[1] < 0xa0u) || (first == 0xedu && at[1] >= 0xa0u)) {
            return 0; /* too long a form; half of a pair */
        }
        return 3;
    }
    if (left < 4 || !follows(at[1]) || !follows(at[2]) || !follows(at[3])) {
        return 0;
    }
    if ((first == 0xf0u && at[1] < 0x90u) || (first == 0xf4u && at[1] >= 0x90u)) {
        return 0; /* too long a form; above U+10FFFF */
    }
    return 4;
}

bool rmq_text_is_utf8(rmq_text text)
{
    size_t at = 0;

    while (at < text.size) {
        uint64_t eight;
        size_t size;

        if (text.size - at >= sizeof eight) { /* most texts are ASCII: eight bytes at a time */
            memcpy(&eight, text.at + at, sizeof eight);
            if ((eight & HIGH_BITS) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        size = character(text.at + at, text.size - at);
        if (size == 0) {
            return false;
        }
        at += size;
    }
    assert(at == text.size);
    return true;
}
