/* See decimal.h. */
#include "decimal.h"

#include <string.h>

uint8_t *rmq_decimal_write(int64_t value, uint8_t *to)
{
    uint8_t digits[RMQ_DECIMAL_BYTES_MAX];
    uint8_t *first = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value; /* the smallest number has no positive twin */
    size_t count;

    do {
        *--first = (uint8_t)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) {
        *to++ = '-';
    }
    count = (size_t)(digits + sizeof digits - first);
    memcpy(to, first, count);
    return to + count;
}
