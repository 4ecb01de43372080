/* Java's String.hashCode, by which tags and index keys are compared. */
#ifndef RMQ_CORE_HASH_H
#define RMQ_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash of a text, over its UTF-16 units, continued from `start` (0 at the beginning): hashing two texts one after
 * the other gives the hash of both together. Bytes that are not UTF-8 count as their replacements. */
int32_t rmq_string_hash(int32_t start, const uint8_t *text, size_t size);

/* The hash of "topic#key" as an index stores it: Java's `abs`, with 0 for the number that has no positive twin. */
int32_t rmq_key_hash(const uint8_t *topic, size_t topic_size, const uint8_t *key, size_t key_size);

#endif
