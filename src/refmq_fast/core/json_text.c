/* See json_text.h. Both directions copy runs of ordinary characters and stop where a table says that one is special. */
#include "json_text.h"

#include <assert.h>
#include <string.h>

/* What a byte means while a string is read or written. */
enum { PLAIN = 0, QUOTE, BACKSLASH, CONTROL, DELETE, WIDE };

static uint8_t meaning(uint8_t byte)
{
    if (byte >= 0x80u) {
        return WIDE;
    }
    if (byte < 0x20u) {
        return CONTROL;
    }
    switch (byte) {
    case '"':
        return QUOTE;
    case '\\':
        return BACKSLASH;
    case 0x7f:
        return DELETE;
    default:
        return PLAIN;
    }
}

/* Four hexadecimal digits at `at`, or -1. */
static int32_t unit_at(const uint8_t *at, const uint8_t *end)
{
    int32_t unit = 0;

    if (end - at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        const uint8_t digit = at[i];
        int32_t value;

        if (digit >= '0' && digit <= '9') {
            value = digit - '0';
        } else if (digit >= 'a' && digit <= 'f') {
            value = digit - 'a' + 10;
        } else if (digit >= 'A' && digit <= 'F') {
            value = digit - 'A' + 10;
        } else {
            return -1;
        }
        unit = unit << 4 | value;
    }
    return unit;
}

/* Writes a code point as UTF-8 and returns the bytes it took, at most four. */
static size_t encode_character(uint32_t code_point, uint8_t *to)
{
    assert(code_point <= 0x10ffffu && (code_point < 0xd800u || code_point > 0xdfffu));
    if (code_point < 0x80u) {
        to[0] = (uint8_t)code_point;
        return 1;
    }
    if (code_point < 0x800u) {
        to[0] = (uint8_t)(0xc0u | code_point >> 6);
        to[1] = (uint8_t)(0x80u | (code_point & 0x3fu));
        return 2;
    }
    if (code_point < 0x10000u) {
        to[0] = (uint8_t)(0xe0u | code_point >> 12);
        to[1] = (uint8_t)(0x80u | (code_point >> 6 & 0x3fu));
        to[2] = (uint8_t)(0x80u | (code_point & 0x3fu));
        return 3;
    }
    to[0] = (uint8_t)(0xf0u | code_point >> 18);
    to[1] = (uint8_t)(0x80u | (code_point >> 12 & 0x3fu));
    to[2] = (uint8_t)(0x80u | (code_point >> 6 & 0x3fu));
    to[3] = (uint8_t)(0x80u | (code_point & 0x3fu));
    return 4;
}

/* Reads what follows `\u`; one escape, or two that are a surrogate pair. Returns the bytes read, 0 when it is none. */
static size_t unescape_unit(const uint8_t *at, const uint8_t *end, uint8_t **to)
{
    const int32_t unit = unit_at(at, end);
    int32_t low;

#ifdef RMQ_MISTAKE_JSON_HALF_PAIR /* seeded for the fuzzer: a second half alone is taken for a character */
    if (unit >= 0xdc00 && unit <= 0xdfff) {
        memcpy(*to, "\xed\xb0\x80", 3);
        *to += 3;
        return 4;
    }
#endif
    if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff)) {
        return 0;
    }
    if (unit < 0xd800 || unit > 0xdfff) {
        *to += encode_character((uint32_t)unit, *to);
        return 4;
    }
    if (end - at < 10 || at[4] != '\\' || at[5] != 'u') {
        return 0;
    }
    low = unit_at(at + 6, end);
    if (low < 0xdc00 || low > 0xdfff) {
        return 0;
    }
    *to += encode_character(0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00), *to);
    return 10;
}

/* Reads the escape whose backslash is at `at`. Returns the bytes read, 0 when it is none of those that are known. */
static size_t unescape(const uint8_t *at, const uint8_t *end, uint8_t **to)
{
    size_t size;

    if (end - at < 2) {
        return 0;
    }
    switch (at[1]) {
    case '"':
    case '\\':
    case '/':
        *(*to)++ = at[1];
        return 2;
    case 'b':
        *(*to)++ = '\b';
        return 2;
    case 'f':
        *(*to)++ = '\f';
        return 2;
    case 'n':
        *(*to)++ = '\n';
        return 2;
    case 'r':
        *(*to)++ = '\r';
        return 2;
    case 't':
        *(*to)++ = '\t';
        return 2;
    case 'u':
        size = unescape_unit(at + 2, end, to);
        return size == 0 ? 0 : size + 2;
    default:
        return 0;
    }
}

/* The rest of a string, from its first escape on. `text->at` is its beginning, in scratch memory up to `to`. */
static rmq_status unquote_escaped(const uint8_t **at, const uint8_t *end, uint8_t *to, rmq_text *text, bool wide)
{
    const uint8_t *from = *at;

    while (from < end) {
        size_t size;

        switch (meaning(*from)) {
        case QUOTE:
            text->size = (size_t)(to - text->at);
            *at = from + 1;
            return wide && !rmq_text_is_utf8(*text) ? RMQ_NOT_MINE : RMQ_OK;
        case BACKSLASH:
            size = unescape(from, end, &to);
            if (size == 0) {
                return RMQ_NOT_MINE;
            }
            from += size;
            break;
        case CONTROL:
            return RMQ_NOT_MINE;
        case WIDE:
            wide = true;
            *to++ = *from++;
            break;
        default:
            *to++ = *from++;
            break;
        }
    }
    return RMQ_NOT_MINE;
}

rmq_status rmq_json_unquote(const uint8_t **at, const uint8_t *end, uint8_t **scratch, rmq_text *text)
{
    const uint8_t *begin = *at + 1;
    const uint8_t *from = begin;
    bool wide = false;
    rmq_status status;

    assert(*at < end && **at == '"');
    for (; from < end; from++) {
        switch (meaning(*from)) {
        case PLAIN:
        case DELETE:
            break;
        case WIDE:
            wide = true;
            break;
        case QUOTE:
            *text = (rmq_text){begin, (size_t)(from - begin)};
            *at = from + 1;
            return wide && !rmq_text_is_utf8(*text) ? RMQ_NOT_MINE : RMQ_OK;
        case BACKSLASH:
            memcpy(*scratch, begin, (size_t)(from - begin));
            text->at = *scratch;
            *at = from;
            status = unquote_escaped(at, end, *scratch + (from - begin), text, wide);
            if (status == RMQ_OK) {
                *scratch += text->size;
            }
            return status;
        default:
            return RMQ_NOT_MINE;
        }
    }
    return RMQ_NOT_MINE;
}

static uint8_t *write_unit(uint32_t unit, uint8_t *to)
{
    static const char DIGITS[] = "0123456789ABCDEF";

    *to++ = '\\';
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4) {
        *to++ = (uint8_t)DIGITS[unit >> shift & 0xfu];
    }
    return to;
}

static uint8_t *write_control(uint8_t byte, uint8_t *to)
{
    static const char SHORT[] = "\b\t\n\f\r";
    static const char LETTERS[] = "btnfr";
    const char *found = byte == 0 ? NULL : strchr(SHORT, byte);

    if (found == NULL) {
        return write_unit(byte, to);
    }
    *to++ = '\\';
    *to++ = (uint8_t)LETTERS[found - SHORT];
    return to;
}

/* Writes the character at `*from`, whose first byte is above 7F, and moves behind it: U+0080 to U+009F, U+2028 and
 * U+2029 are escaped. */
static uint8_t *write_wide(const uint8_t **from, const uint8_t *end, uint8_t *to)
{
    const uint8_t *at = *from;

    if (at[0] == 0xc2u && end - at >= 2 && at[1] < 0xa0u) {
        *from += 2;
        return write_unit(at[1], to);
    }
    if (at[0] == 0xe2u && end - at >= 3 && at[1] == 0x80u && (at[2] & 0xfeu) == 0xa8u) {
        *from += 3;
        return write_unit(0x2000u | (at[2] & 0x3fu), to);
    }
    *from += 1;
    *to++ = at[0];
    return to;
}

uint8_t *rmq_json_quote(rmq_text text, uint8_t *to)
{
    const uint8_t *from = text.at;
    const uint8_t *end = from + text.size;

    *to++ = '"';
    while (from < end) {
        switch (meaning(*from)) {
        case PLAIN:
            *to++ = *from++;
            break;
        case QUOTE:
        case BACKSLASH:
            *to++ = '\\';
            *to++ = *from++;
            break;
        case WIDE:
            to = write_wide(&from, end, to);
            break;
        case DELETE:
            to = write_unit(*from++, to);
            break;
        default:
            to = write_control(*from++, to);
            break;
        }
    }
    *to++ = '"';
    return to;
}
