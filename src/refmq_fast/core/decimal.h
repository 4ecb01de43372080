/* Integers as decimal text, the form that every number of an ext field has on the wire. */
#ifndef RMQ_CORE_DECIMAL_H
#define RMQ_CORE_DECIMAL_H

#include <stdint.h>

#define RMQ_DECIMAL_BYTES_MAX 20 /* of an int64_t, its sign included */

/* Writes `value` to at most RMQ_DECIMAL_BYTES_MAX bytes at `to`, and returns where it ends. */
uint8_t *rmq_decimal_write(int64_t value, uint8_t *to);

#endif
