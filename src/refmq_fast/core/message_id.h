/* The id that a broker gives a message: its store host and its physical offset, in upper-case hex. */
#ifndef RMQ_CORE_MESSAGE_ID_H
#define RMQ_CORE_MESSAGE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define RMQ_MESSAGE_ID_CHARS_MAX 56 /* 32 with an IPv4 host */

/* Writes the id to `to`, which has room for RMQ_MESSAGE_ID_CHARS_MAX characters, and returns how many it has. */
size_t rmq_message_id(const rmq_host *store_host, int64_t physical_offset, char *to);

/* Where a message is, by its id; false, and nothing is changed, for what is no id. */
bool rmq_parse_message_id(const char *text, size_t size, rmq_host *store_host, int64_t *physical_offset);

#endif
