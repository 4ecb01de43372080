/* Properties in wire form: name U+0001 value U+0002 name U+0001 value ..., UTF-8.
 *
 * A piece without a name or without a value is dropped, and the last of several with one name counts, as in Java. The
 * separators are ASCII, so pieces may be found in the bytes; bytes that are not UTF-8 stand for their replacements
 * (core/utf8.h) wherever a value is used.
 */
#ifndef RMQ_CORE_PROPERTIES_H
#define RMQ_CORE_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

#define RMQ_PROPERTIES_BYTES_MAX 32767

/* What dispatching needs of a message. `at` is null for a property that is not there. */
typedef struct {
    rmq_text tags;
    rmq_text keys;
    rmq_text unique_key;
    rmq_text delay;
} rmq_known_properties;

/* The next piece from `*at` on with its name and value; false at the end. Pieces that are dropped are passed over. */
bool rmq_next_property(rmq_text properties, size_t *at, rmq_text *name, rmq_text *value);

/* The four properties that the store knows, read in one pass. */
void rmq_find_properties(rmq_text properties, rmq_known_properties *known);

/* The value of the first UNIQ_KEY, as it stands in the bytes; empty without one. What traces name a message by. */
rmq_text rmq_unique_key(rmq_text properties);

/* The number by which traces know a message, from the CRC of its body: see refmq/model/fingerprint.py. */
int64_t rmq_fingerprint(rmq_text properties, uint32_t body_crc);

/* Whether the properties end with a zero byte: a record that does looks torn, and gets a separator more. */
bool rmq_ends_with_zero(rmq_text properties);

/* How long two wire forms are as one, and the bytes of it at `to`: a separator between them may be missing at the end of
 * the first. */
size_t rmq_concatenated_bytes(rmq_text first, rmq_text second);
void rmq_concatenate_properties(rmq_text first, rmq_text second, uint8_t *to);

#endif
