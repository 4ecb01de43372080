/* CRC-32, see crc32.h.
 *
 * The portable way reads eight bytes at a time and looks up each of them in a table of its own ("slicing by 8").
 *
 * The accelerated way treats the data as a polynomial over GF(2) and replaces its first 128 bits H, which stand
 * before D further bits, by something shorter that has the same remainder modulo the CRC polynomial P. H is cut
 * into halves of 64 bits, H = A * x^64 + B, so that
 *
 *     H * x^D  =  A * x^(D + 64) + B * x^D  ==  A * (x^(D + 64) mod P) + B * (x^D mod P)      (mod P)
 *
 * and each product of a 64-bit half with a 32-bit constant fits into the 128 bits that follow. Four such streams of
 * 16 bytes run side by side, because one multiplication takes several cycles. What is left at the end is 16 bytes
 * with the same remainder as everything before, and the tables finish them.
 *
 * CRC-32 is bit-reflected: the first bit of the data is the highest power of x. A carry-less product of reflected
 * numbers comes out one bit too low, and the 32-bit constants sit in 64-bit lanes; both are absorbed by the powers
 * that the constants stand for: D + 32 and D - 32 instead of D + 64 and D, each reflected and shifted up by one.
 */
#include "crc32.h"

#include "bytes.h"
#include "crc32_table.h"

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
#define RMQ_CRC32_FOLDING 1
#include <immintrin.h>
#else
#define RMQ_CRC32_FOLDING 0
#endif

/* Takes the register before, returns the register after; the inversions are left to the caller. */
static uint32_t update_by_tables(uint32_t reg, const uint8_t *data, size_t length)
{
    while (length >= 8) {
        const uint32_t low = rmq_load_le32(data) ^ reg;
        const uint32_t high = rmq_load_le32(data + 4);
        reg = RMQ_CRC32_TABLE[7][low & 0xffu] ^ RMQ_CRC32_TABLE[6][low >> 8 & 0xffu] ^
              RMQ_CRC32_TABLE[5][low >> 16 & 0xffu] ^ RMQ_CRC32_TABLE[4][low >> 24] ^
              RMQ_CRC32_TABLE[3][high & 0xffu] ^ RMQ_CRC32_TABLE[2][high >> 8 & 0xffu] ^
              RMQ_CRC32_TABLE[1][high >> 16 & 0xffu] ^ RMQ_CRC32_TABLE[0][high >> 24];
        data += 8;
        length -= 8;
    }
    while (length > 0) {
        reg = reg >> 8 ^ RMQ_CRC32_TABLE[0][(reg ^ *data) & 0xffu];
        data += 1;
        length -= 1;
    }
    return reg;
}

#if RMQ_CRC32_FOLDING

#define FOLD_BLOCK 64 /* four streams of 16 bytes */

#define WITH_CARRYLESS __attribute__((target("pclmul,sse2")))

/* Reflected and shifted up by one: x^(512 + 32), x^(512 - 32), x^(128 + 32), x^(128 - 32), each mod P. */
static const uint64_t FOLD_512[2] = {0x154442bd4u, 0x1c6e41596u};
static const uint64_t FOLD_128[2] = {0x1751997d0u, 0x0ccaa009eu};

static inline __m128i WITH_CARRYLESS load_128(const void *from)
{
    return _mm_loadu_si128((const __m128i *)from);
}

/* `next` with `held`, which stands in front of it by the distance that `constants` are made for, folded in. */
static inline __m128i WITH_CARRYLESS fold(__m128i held, __m128i next, __m128i constants)
{
    const __m128i early = _mm_clmulepi64_si128(held, constants, 0x00);
    const __m128i late = _mm_clmulepi64_si128(held, constants, 0x11);
    return _mm_xor_si128(_mm_xor_si128(early, late), next);
}

/* As update_by_tables; `length` must be at least FOLD_BLOCK. */
static uint32_t WITH_CARRYLESS update_by_folding(uint32_t reg, const uint8_t *data, size_t length)
{
    const __m128i far = load_128(FOLD_512);
    const __m128i near = load_128(FOLD_128);
    __m128i a = _mm_xor_si128(load_128(data), _mm_cvtsi32_si128((int)reg));
    __m128i b = load_128(data + 16);
    __m128i c = load_128(data + 32);
    __m128i d = load_128(data + 48);
    uint8_t rest[16];

    data += FOLD_BLOCK;
    length -= FOLD_BLOCK;
    while (length >= FOLD_BLOCK) {
        a = fold(a, load_128(data), far);
        b = fold(b, load_128(data + 16), far);
        c = fold(c, load_128(data + 32), far);
        d = fold(d, load_128(data + 48), far);
        data += FOLD_BLOCK;
        length -= FOLD_BLOCK;
    }
    b = fold(a, b, near);
    c = fold(b, c, near);
    d = fold(c, d, near);
    while (length >= 16) {
        d = fold(d, load_128(data), near);
        data += 16;
        length -= 16;
    }
    _mm_storeu_si128((__m128i *)(void *)rest, d);
    reg = update_by_tables(0, rest, sizeof rest);
    return update_by_tables(reg, data, length);
}

int rmq_crc32_is_accelerated(void)
{
    return __builtin_cpu_supports("pclmul") != 0;
}

#else

int rmq_crc32_is_accelerated(void)
{
    return 0;
}

#endif

uint32_t rmq_crc32_portable(uint32_t crc, const uint8_t *data, size_t length)
{
    return ~update_by_tables(~crc, data, length);
}

uint32_t rmq_crc32(uint32_t crc, const uint8_t *data, size_t length)
{
#if RMQ_CRC32_FOLDING
    if (length >= FOLD_BLOCK && rmq_crc32_is_accelerated()) {
        return ~update_by_folding(~crc, data, length);
    }
#endif
    return rmq_crc32_portable(crc, data, length);
}
