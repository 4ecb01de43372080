/* Frames: how commands follow each other on a connection, laid out at the top of refmq/protocol/frame.py. */
#ifndef RMQ_CORE_FRAME_H
#define RMQ_CORE_FRAME_H

#include "command.h"
#include "status.h"

#define RMQ_FRAME_PREFIX_BYTES 8u /* length, serialize type, header length */

/* Where the parts of a frame stand in the bytes that were given. */
typedef struct {
    size_t length;        /* of the whole frame, its length field included; where the next one begins */
    size_t header_length; /* the header begins at RMQ_FRAME_PREFIX_BYTES */
    size_t body_at;
    uint8_t serialize;
} rmq_frame;

/* Looks at the frame that begins with `data`. `frame_length_max` is at least RMQ_FRAME_PREFIX_BYTES.
 *
 * RMQ_OK: it is complete, and `frame` says where its parts are. RMQ_MORE: what is there is right so far. RMQ_NOT_MINE: a
 * length or the serialize type is none, which is known as soon as its bytes are there. */
rmq_status rmq_frame_find(const uint8_t *data, size_t length, size_t frame_length_max, rmq_frame *frame);

/* Reads the header of a frame that was found in `data`. `scratch` has at least `frame->header_length` bytes. */
rmq_status rmq_frame_decode(const uint8_t *data, const rmq_frame *frame, uint8_t *scratch, rmq_command *command);

/* So many bytes are enough for rmq_frame_encode_head; 0 when the texts of `command` are too long for any header. */
size_t rmq_frame_head_bytes_max(const rmq_command *command);

/* Writes all of a frame that stands before its body, and sets `*used`.
 *
 * RMQ_NO_ROOM when `capacity` is less than rmq_frame_head_bytes_max(command). RMQ_NOT_MINE when the command has no frame
 * of at most `frame_length_max` bytes, or none in its serialization. */
rmq_status rmq_frame_encode_head(const rmq_command *command, size_t body_length, size_t frame_length_max, uint8_t *to,
                                 size_t capacity, size_t *used);

#endif
