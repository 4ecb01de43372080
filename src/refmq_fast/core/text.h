/* A piece of somebody else's bytes, most of them UTF-8. It owns nothing and has no zero byte at its end. */
#ifndef RMQ_CORE_TEXT_H
#define RMQ_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at; /* may be null when `size` is 0 */
    size_t size;
} rmq_text;

/* A text that is written down in the source. */
#define RMQ_TEXT(literal) ((rmq_text){(const uint8_t *)(literal), sizeof(literal) - 1})

static inline bool rmq_text_equals(rmq_text a, rmq_text b)
{
    /* Most texts that differ do so in their size or their first byte, and most names in headers are one byte long. */
    if (a.size != b.size || a.size == 0) {
        return a.size == b.size;
    }
    return a.at[0] == b.at[0] && (a.size == 1 || memcmp(a.at, b.at, a.size) == 0);
}

/* Whether a text is UTF-8 as Python's strict decoder takes it: shortest forms only, no half of a surrogate pair, nothing
 * above U+10FFFF. */
bool rmq_text_is_utf8(rmq_text text);

#endif
