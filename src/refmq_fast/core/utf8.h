/* UTF-8 as the reference reads it: strictly where a text must be one, else with U+FFFD for what is not UTF-8.
 *
 * Strictly means what Python and Java mean: no overlong form, no half of a surrogate pair, nothing above U+10FFFF. A
 * replacement stands for the longest piece that begins like a character (Unicode, table 3-7), so both languages put the
 * same number of them.
 */
#ifndef RMQ_CORE_UTF8_H
#define RMQ_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define RMQ_REPLACEMENT 0xfffdu
#define RMQ_REPLACEMENT_BYTES 3 /* of U+FFFD itself */

/* The character at `text[at]`, and in `length` how many bytes it takes. Bytes that are none give RMQ_REPLACEMENT, with
 * the length of the piece that one replacement stands for, and `is_valid` 0. `at` must be below `size`. */
uint32_t rmq_utf8_next(const uint8_t *text, size_t size, size_t at, size_t *length, int *is_valid);

/* Where the first byte stands that is not UTF-8; `size` if all of it is. */
size_t rmq_utf8_valid_to(const uint8_t *text, size_t size);

/* Copies a text with its replacements and returns the length of the copy, at most 3 * size. `to` may be null: then the
 * length alone is computed. */
size_t rmq_utf8_replace(const uint8_t *text, size_t size, uint8_t *to);

#endif
