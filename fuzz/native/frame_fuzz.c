/* core/frame.h on any bytes: what a peer sends on a connection.
 *
 * Checked besides crashes: a frame that was found is incomplete in every shorter piece of itself, its parts lie inside it,
 * and a command that was read is the same after it was written and read again.
 */
#include "same.h"

#include <stdlib.h>
#include <string.h>

#include "core/frame.h"

#define FRAME_LENGTH_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read_again(const rmq_command *read, size_t body_length)
{
    const size_t capacity = rmq_frame_head_bytes_max(read);
    uint8_t *head = malloc(capacity);
    uint8_t *scratch;
    rmq_frame frame;
    rmq_command again;
    size_t used = 0;

    CHECK(capacity > 0 && head != NULL);
    if (capacity > 1) {
        CHECK(rmq_frame_encode_head(read, body_length, RMQ_FRAME_LENGTH_MAX, head, capacity - 1, &used) == RMQ_NO_ROOM);
    }
    CHECK(rmq_frame_encode_head(read, body_length, RMQ_FRAME_LENGTH_MAX, head, capacity, &used) == RMQ_OK);
    CHECK(used <= capacity);
    /* The body is not there, so what was written is asked about as a frame without one. */
    if (body_length == 0) {
        CHECK(rmq_frame_find(head, used, RMQ_FRAME_LENGTH_MAX, &frame) == RMQ_OK && frame.length == used);
        scratch = malloc(frame.header_length);
        CHECK(rmq_frame_decode(head, &frame, scratch, &again) == RMQ_OK);
        CHECK(same_command(read, &again));
        free(scratch);
    }
    free(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rmq_frame frame, piece;
    rmq_command read;
    uint8_t *scratch;
    const rmq_status status = rmq_frame_find(data, size, FRAME_LENGTH_MAX, &frame);

    if (status != RMQ_OK) {
        CHECK(status == RMQ_MORE || status == RMQ_NOT_MINE);
        return 0;
    }
    CHECK(frame.length <= size && frame.length <= FRAME_LENGTH_MAX && frame.body_at <= frame.length);
    CHECK(frame.body_at == RMQ_FRAME_PREFIX_BYTES + frame.header_length);
    for (size_t less = 1; less <= frame.length; less += 1 + frame.length / 16) {
        CHECK(rmq_frame_find(data, frame.length - less, FRAME_LENGTH_MAX, &piece) == RMQ_MORE);
    }
    scratch = malloc(frame.header_length); /* exactly: a byte too many is seen */
    if (rmq_frame_decode(data, &frame, scratch, &read) == RMQ_OK) {
        write_and_read_again(&read, frame.length - frame.body_at);
    }
    free(scratch);
    return 0;
}
