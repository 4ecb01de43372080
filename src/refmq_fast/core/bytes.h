/* Fixed-width integers in buffers. Bytes are read and written only through these, never by casting a pointer. */
#ifndef RMQ_CORE_BYTES_H
#define RMQ_CORE_BYTES_H

#include <stdint.h>

/* The little-endian 32-bit number in the four bytes at `from`. Compilers turn this into one load. */
static inline uint32_t rmq_load_le32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

#endif
