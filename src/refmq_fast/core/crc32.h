/* CRC-32 as in zlib, gzip and java.util.zip.CRC32: reflected polynomial 0xEDB88320, register and result inverted.
 *
 * A message body carries this checksum on disk and on the wire. Neither function can fail, so neither returns a
 * status; both may be called from any thread with any bytes.
 */
#ifndef RMQ_CORE_CRC32_H
#define RMQ_CORE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `length` bytes at `data`, continued from `crc`, the checksum of what came before (0 at the start).
 * `data` may be null when `length` is 0. Chooses carry-less multiplication where the processor has it. */
uint32_t rmq_crc32(uint32_t crc, const uint8_t *data, size_t length);

/* The same value by tables alone, on every processor. */
uint32_t rmq_crc32_portable(uint32_t crc, const uint8_t *data, size_t length);

/* Whether `rmq_crc32` uses carry-less multiplication on this processor: 1 or 0. */
int rmq_crc32_is_accelerated(void);

#endif
