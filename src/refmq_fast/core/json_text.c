/* See json_text.h. Both directions pass over plain characters in pieces, and look at the others one by one. */
#include "json_text.h"

#include <assert.h>
#include <string.h>

#include "bytes.h"

/* What a byte means while a string is read or written. */
enum { PLAIN = 0, QUOTE, BACKSLASH, CONTROL, DELETE, WIDE };

/* Of the bytes below 80; the others are WIDE. */
static const uint8_t MEANINGS[128] = {
#define P PLAIN
#define Q QUOTE
#define B BACKSLASH
#define C CONTROL
#define D DELETE
    C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
    P, P, Q, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P,
    P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, B, P, P, P,
    P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, D,
#undef P
#undef Q
#undef B
#undef C
#undef D
};

static inline uint8_t meaning(uint8_t byte)
{
    return byte < sizeof MEANINGS ? MEANINGS[byte] : (uint8_t)WIDE;
}

/* --- runs of plain characters -------------------------------------------------------------------------------------- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* A bit in the highest place of each byte of `word` that is below `bound`, which is at most 80. Bytes above the first such
 * byte may have one as well, because subtraction borrows; the first is exact. */
static inline uint64_t below(uint64_t word, uint8_t bound)
{
    return (word - EACH(bound)) & ~word & EACH(0x80u);
}

/* A bit likewise for each byte that is neither PLAIN nor DELETE. */
static inline uint64_t special_of(uint64_t word)
{
    return below(word, 0x20u) | below(word ^ EACH('"'), 1) | below(word ^ EACH('\\'), 1) | (word & EACH(0x80u));
}

/* How many bytes of the piece at `from` come before the first one that is neither PLAIN nor DELETE. The sanitized builds try
 * the way without SSE2. */
#if defined(__SSE2__) && !defined(RMQ_WITHOUT_SSE2)
#include <emmintrin.h>

#define PIECE_BYTES 16

static inline size_t plain_of(const uint8_t *from)
{
    const __m128i piece = _mm_loadu_si128((const __m128i *)(const void *)from);
    __m128i special = _mm_cmplt_epi8(piece, _mm_set1_epi8(0x20)); /* of signed bytes: WIDE ones are below as well */

    special = _mm_or_si128(special, _mm_cmpeq_epi8(piece, _mm_set1_epi8('"')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(piece, _mm_set1_epi8('\\')));
    return rmq_first_bit((unsigned)_mm_movemask_epi8(special) | 1u << PIECE_BYTES);
}
#else
#define PIECE_BYTES 8

static inline size_t plain_of(const uint8_t *from)
{
    const uint64_t special = special_of(rmq_load_le64(from));

    return special == 0 ? PIECE_BYTES : rmq_first_bit(special) / 8;
}
#endif

/* Moves over plain characters; stops at another one, or less than a piece before the end. */
static inline const uint8_t *skip_plain(const uint8_t *from, const uint8_t *end)
{
    while (end - from >= PIECE_BYTES) {
        const size_t plain = plain_of(from);

        from += plain;
        if (plain < PIECE_BYTES) {
            break;
        }
    }
    return from;
}

/* Copies plain characters likewise. A piece may write as many bytes more as it has. */
static inline void copy_plain(const uint8_t **from, const uint8_t *end, uint8_t **to)
{
    while (end - *from >= PIECE_BYTES) {
        const size_t plain = plain_of(*from);

        memcpy(*to, *from, PIECE_BYTES);
        *to += plain;
        *from += plain;
        if (plain < PIECE_BYTES) {
            break;
        }
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
    int32_t unit, low;

    if (end - at >= 4 && memcmp(at, "000", 3) == 0 && at[3] >= '0' && at[3] <= '9') {
        *(*to)++ = (uint8_t)(at[3] - '0'); /* what separates properties: every message has some */
        return 4;
    }
    unit = unit_at(at, end);

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

        copy_plain(&from, end, &to); /* there is room: what is written is never longer than what was read */
        if (from == end) {
            break;
        }
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

/* A string that is not of plain characters only: `from` is at the first other one, or near the end. */
static RMQ_RARE rmq_status unquote_odd(const uint8_t **at, const uint8_t *from, const uint8_t *end, uint8_t **scratch,
                              rmq_text *text)
{
    const uint8_t *begin = *at + 1;
    bool wide = false;
    rmq_status status;

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

rmq_status rmq_json_unquote(const uint8_t **at, const uint8_t *end, uint8_t **scratch, rmq_text *text)
{
    const uint8_t *begin = *at + 1;
    const uint8_t *from;

    assert(*at < end && **at == '"');
    from = skip_plain(begin, end);
    if (from < end && *from == '"') {
        *text = (rmq_text){begin, (size_t)(from - begin)};
        *at = from + 1;
        return RMQ_OK;
    }
    return unquote_odd(at, from, end, scratch, text);
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

static RMQ_RARE uint8_t *quote_odd(rmq_text text, uint8_t *to)
{
    const uint8_t *from = text.at;
    const uint8_t *end = from + text.size;

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

/* Whether a word has a character that is written with an escape, or is not ASCII. */
static inline bool is_odd(uint64_t word)
{
    return (special_of(word) | below(word ^ EACH(0x7fu), 1)) != 0;
}

/* Copies a text of plain characters; false if it is none. Words overlap at its end, so that no byte is looked at alone. */
static inline bool copy_text(rmq_text text, uint8_t *to)
{
    uint64_t word;

    if (text.size >= 8) {
        for (size_t at = 0; at + 8 < text.size; at += 8) {
            word = rmq_load_le64(text.at + at);
            if (is_odd(word)) {
                return false;
            }
            rmq_store_le64(to + at, word);
        }
        word = rmq_load_le64(text.at + text.size - 8);
        rmq_store_le64(to + text.size - 8, word);
        return !is_odd(word);
    }
    if (text.size >= 4) {
        const uint32_t first = rmq_load_le32(text.at), last = rmq_load_le32(text.at + text.size - 4);

        rmq_store_le32(to, first);
        rmq_store_le32(to + text.size - 4, last);
        return !is_odd((uint64_t)last << 32 | first);
    }
    for (size_t at = 0; at < text.size; at++) {
        if (meaning(text.at[at]) != PLAIN) {
            return false;
        }
        to[at] = text.at[at];
    }
    return true;
}

uint8_t *rmq_json_quote(rmq_text text, uint8_t *to)
{
    *to++ = '"';
    if (!copy_text(text, to)) {
        return quote_odd(text, to);
    }
    to[text.size] = '"';
    return to + text.size + 1;
}
