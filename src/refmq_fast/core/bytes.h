/* Fixed-width integers in buffers. Bytes are read and written only through these, never by casting a pointer. */
#ifndef RMQ_CORE_BYTES_H
#define RMQ_CORE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* The little-endian 32-bit number in the four bytes at `from`. Compilers turn this into one load. */
static inline uint32_t rmq_load_le32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static inline uint64_t rmq_load_le64(const uint8_t *from)
{
    return (uint64_t)rmq_load_le32(from) | (uint64_t)rmq_load_le32(from + 4) << 32;
}

/* The number of zero bits below the lowest one that is set; there is one. */
static inline size_t rmq_first_bit(uint64_t word)
{
#if defined(__GNUC__)
    return (size_t)__builtin_ctzll(word);
#else
    size_t count = 0;

    for (; (word & 1) == 0; word >>= 1) {
        count += 1;
    }
    return count;
#endif
}

/* Writes a number, little-endian, to the two, four or eight bytes at `to`. Compilers turn each into one store. */
static inline void rmq_store_le16(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)(value & 0xffu);
    to[1] = (uint8_t)(value >> 8);
}

static inline void rmq_store_le32(uint8_t *to, uint32_t value)
{
    rmq_store_le16(to, (uint16_t)(value & 0xffffu));
    rmq_store_le16(to + 2, (uint16_t)(value >> 16));
}

static inline void rmq_store_le64(uint8_t *to, uint64_t value)
{
    rmq_store_le32(to, (uint32_t)(value & 0xffffffffu));
    rmq_store_le32(to + 4, (uint32_t)(value >> 32));
}

/* The signed big-endian number in the one, two, four or eight bytes at `from`: what RocketMQ's files and frames hold. */
static inline int32_t rmq_load_be16(const uint8_t *from)
{
    return (int16_t)((uint16_t)(from[0] << 8 | from[1]));
}

static inline uint32_t rmq_load_be32u(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | (uint32_t)from[3];
}

static inline int32_t rmq_load_be32(const uint8_t *from)
{
    return (int32_t)rmq_load_be32u(from);
}

static inline int64_t rmq_load_be64(const uint8_t *from)
{
    return (int64_t)((uint64_t)rmq_load_be32u(from) << 32 | rmq_load_be32u(from + 4));
}

/* Writes a number, big-endian, to the two, four or eight bytes at `to`. */
static inline void rmq_store_be16(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)(value & 0xffu);
}

static inline void rmq_store_be32(uint8_t *to, uint32_t value)
{
    rmq_store_be16(to, (uint16_t)(value >> 16));
    rmq_store_be16(to + 2, (uint16_t)(value & 0xffffu));
}

static inline void rmq_store_be64(uint8_t *to, uint64_t value)
{
    rmq_store_be32(to, (uint32_t)(value >> 32));
    rmq_store_be32(to + 4, (uint32_t)(value & 0xffffffffu));
}

#endif
