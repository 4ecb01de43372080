/* JSON strings: read in the subset that clients write, written with exactly the escapes of fastjson.
 *
 * The table of escapes is at the top of refmq/protocol/json_text.py.
 */
#ifndef RMQ_CORE_JSON_TEXT_H
#define RMQ_CORE_JSON_TEXT_H

#include "command.h"
#include "status.h"

#define RMQ_QUOTED_BYTES_MAX(length) (6 * (length) + 2) /* every byte escaped, and the two quotation marks */

/* Reads the string that begins with the quotation mark at `*at` and moves `*at` behind it.
 *
 * A string without escapes is left where it is. Another is written to `*scratch`, which then moves behind it: a string
 * never becomes longer, so scratch memory as long as the input is enough for all strings of the input. Raw control
 * characters, unknown escapes, halves of surrogate pairs and bytes that are not UTF-8 are RMQ_NOT_MINE. */
rmq_status rmq_json_unquote(const uint8_t **at, const uint8_t *end, uint8_t **scratch, rmq_text *text);

/* Writes `text`, which is valid UTF-8, as a JSON string to `to`, which has room for RMQ_QUOTED_BYTES_MAX(text.size)
 * bytes, and returns where it ends. */
uint8_t *rmq_json_quote(rmq_text text, uint8_t *to);

#endif
