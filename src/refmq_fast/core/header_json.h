/* The JSON header (serialize type 0), laid out at the top of refmq/protocol/header_json.py.
 *
 * The reader takes the strict subset that Java, Go, C++ and Node clients send: an object of the known keys, each once,
 * without white space except behind it. Names and texts are strings, numbers are plain integers in 32 bits, and the
 * values of extFields are strings, integers, true or false. Whatever else is legal JSON, and all that is not, is
 * RMQ_NOT_MINE: the reference decides.
 */
#ifndef RMQ_CORE_HEADER_JSON_H
#define RMQ_CORE_HEADER_JSON_H

#include "command.h"
#include "status.h"

/* Reads the header of `length` bytes. RMQ_OK fills `command`; RMQ_NOT_MINE leaves it without meaning.
 *
 * `scratch` has at least `length` bytes and takes the strings that had escapes; the other texts of `command` point into
 * `header`. Both have to live as long as `command` is read. */
rmq_status rmq_header_json_decode(const uint8_t *header, size_t length, uint8_t *scratch, rmq_command *command);

/* More bytes than the header of `command` can take. Its texts together have at most RMQ_HEADER_LENGTH_MAX bytes. */
size_t rmq_header_json_bytes_max(const rmq_command *command);

/* Writes the header of `command` as Java writes it to `to`, which has room for rmq_header_json_bytes_max(command) bytes,
 * and returns where it ends. */
uint8_t *rmq_header_json_encode(const rmq_command *command, uint8_t *to);

#endif
