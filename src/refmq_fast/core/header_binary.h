/* The ROCKETMQ binary header (serialize type 1), laid out at the top of refmq/protocol/header_binary.py. */
#ifndef RMQ_CORE_HEADER_BINARY_H
#define RMQ_CORE_HEADER_BINARY_H

#include "command.h"
#include "status.h"

#define RMQ_HEADER_BINARY_FIXED_BYTES 21u

/* Reads the header of `length` bytes. RMQ_OK fills `command`, whose texts point into `header`; RMQ_NOT_MINE (damaged, or
 * more than RMQ_FIELDS_MAX fields) leaves it without meaning. Of a key that occurs twice the last value counts. */
rmq_status rmq_header_binary_decode(const uint8_t *header, size_t length, rmq_command *command);

/* How long the header of `command` is. */
size_t rmq_header_binary_bytes(const rmq_command *command);

/* Writes the header of `command` to `to`, which has room for rmq_header_binary_bytes(command) bytes, and sets `*end` to
 * where it ends. RMQ_NOT_MINE when a field does not fit, as the codes of POP do not. */
rmq_status rmq_header_binary_encode(const rmq_command *command, uint8_t *to, uint8_t **end);

#endif
