/* The messages inside the body of a batch send. The layout is in refmq/protocol/record.py, at BatchedMessage. */
#ifndef RMQ_CORE_BATCH_H
#define RMQ_CORE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "damage.h"
#include "properties.h"

typedef struct {
    int32_t flag;
    rmq_text body;
    rmq_text properties;
} rmq_batched;

/* The message at `data[*at]`, and `*at` moves behind it; it points into `data`. There must be bytes at `*at`. RMQ_DAMAGED,
 * with nothing moved, unless a whole message is there. Offsets in `damage`, which may be null, count from `data`. */
rmq_status rmq_next_batched(const uint8_t *data, size_t size, size_t *at, rmq_batched *message, rmq_damage *damage);

#endif
