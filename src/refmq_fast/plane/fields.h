/* Ext fields as the numbers and switches that a request means, as refmq/protocol/headers/codec.py reads them.
 *
 * Whatever is rare or wrong is RMQ_NOT_MINE: a missing field that must be there, an empty number, one with a plus sign or
 * outside its bits. The reference reads it again, and refuses it in words.
 */
#ifndef RMQ_PLANE_FIELDS_H
#define RMQ_PLANE_FIELDS_H

#include "../core/command.h"
#include "../core/status.h"

/* A field that must be there. */
rmq_status rmq_text_field(const rmq_command *command, rmq_text key, rmq_text *value);
rmq_status rmq_number_field(const rmq_command *command, rmq_text key, int64_t low, int64_t high, int64_t *value);

/* A field that may be absent: then `*value` stays as it is. */
rmq_status rmq_optional_number(const rmq_command *command, rmq_text key, int64_t low, int64_t high, int64_t *value);
void rmq_optional_text(const rmq_command *command, rmq_text key, rmq_text *value);
void rmq_optional_switch(const rmq_command *command, rmq_text key, bool *value);

/* Whether a text is `wanted`, which is in lower case, in any case of ASCII. */
bool rmq_text_is_in_any_case(rmq_text text, rmq_text wanted);

/* A text of one to `digits_max` ASCII digits as a number; -1 for any other. At most 18 digits. */
int64_t rmq_digits(rmq_text text, size_t digits_max);

#endif
