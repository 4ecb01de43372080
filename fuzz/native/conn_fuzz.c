/* plane/conn.h on the bytes of a peer, cut anywhere.
 *
 * The last byte of the input decides as well where it is cut. Checked besides crashes: the pieces give the same frames as the
 * whole does, and end in the same way; nothing is held above its bound; each frame is sent back and leaves in pieces, and
 * what has left is what was written, in its order.
 */
#include "same.h"

#include <string.h>

#include "plane/conn.h"

#define FRAME_LENGTH_MAX 2048u
#define INPUT_BYTES_MAX 16384u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything that a run of a connection says: the frames one after another, how each was read, and the end. */
typedef struct {
    uint8_t frames[INPUT_BYTES_MAX];
    size_t length;
    size_t count;
    size_t read;
    rmq_status end;
} story;

static uint32_t random_of(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Sends what waits, a piece of it or all, and puts it behind what was sent before. */
static void send_some(rmq_conn *conn, size_t most, uint8_t *sent, size_t *sent_length, int64_t now_ms)
{
    const uint8_t *at;
    size_t unsent = rmq_conn_unsent(conn, &at);

    unsent = unsent < most ? unsent : most;
    if (unsent > 0) {
        memcpy(sent + *sent_length, at, unsent);
        *sent_length += unsent;
        rmq_conn_sent(conn, unsent, now_ms);
    }
}

static rmq_status serve(rmq_conn *conn, story *told, int64_t now_ms)
{
    rmq_conn_frame next;
    rmq_status status;

    while ((status = rmq_conn_next(conn, &next, now_ms)) == RMQ_OK) {
        const size_t body = next.frame.length - next.frame.body_at;

        CHECK(next.frame.length <= FRAME_LENGTH_MAX);
        CHECK(told->length + next.frame.length <= sizeof told->frames);
        memcpy(told->frames + told->length, next.data, next.frame.length);
        told->length += next.frame.length;
        told->count += 1;
        told->read += next.is_read;
        rmq_conn_begin(conn, body);
        CHECK(rmq_conn_write(conn, next.data, next.frame.length) == RMQ_OK);
        rmq_conn_end(conn, body);
    }
    return status;
}

/* Runs a connection over the input, in pieces of at most `piece` bytes, whose lengths `random` decides. */
static void run(const uint8_t *data, size_t size, size_t piece, uint32_t random, story *told)
{
    static uint8_t sent[INPUT_BYTES_MAX];
    rmq_conn_limits limits = rmq_conn_default_limits();
    size_t at = 0, sent_length = 0;
    int64_t now_ms = 0;
    rmq_conn conn;

    limits.frame_length_max = FRAME_LENGTH_MAX;
    limits.write_high_bytes = limits.write_max_bytes = INPUT_BYTES_MAX;
    *told = (story){.end = RMQ_MORE};
    rmq_conn_init(&conn, &limits, now_ms);
    while (at < size && told->end == RMQ_MORE) {
        uint8_t *room;
        size_t capacity, now = 1 + random_of(&random) % piece;

        CHECK(rmq_conn_wants_read(&conn));
        CHECK(rmq_conn_room(&conn, &room, &capacity) == RMQ_OK && capacity > 0);
        now = now < capacity ? now : capacity;
        now = now < size - at ? now : size - at;
        memcpy(room, data + at, now);
        rmq_conn_came(&conn, now, ++now_ms);
        at += now;
        told->end = serve(&conn, told, now_ms);
        CHECK(rmq_conn_buffered(&conn) < FRAME_LENGTH_MAX + RMQ_CONN_READ_BYTES);
        CHECK(told->end != RMQ_MORE || rmq_conn_buffered(&conn) < FRAME_LENGTH_MAX);
        CHECK(rmq_conn_due_ms(&conn) <= now_ms + limits.idle_timeout_ms);
        send_some(&conn, random_of(&random) % (2 * piece), sent, &sent_length, now_ms);
        rmq_conn_settle(&conn);
    }
    send_some(&conn, INPUT_BYTES_MAX, sent, &sent_length, now_ms);
    CHECK(sent_length == told->length && memcmp(sent, told->frames, sent_length) == 0);
    if (told->end == RMQ_DAMAGED) {
        CHECK(!rmq_conn_may_serve(&conn) && serve(&conn, told, now_ms) == RMQ_DAMAGED);
    }
    rmq_conn_free(&conn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static story whole, cut;

    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    run(data, size, INPUT_BYTES_MAX, 1, &whole);
    for (size_t piece = 3; piece <= 300; piece *= 10) {
        run(data, size, piece, data[size - 1], &cut);
        CHECK(cut.count == whole.count && cut.read == whole.read && cut.end == whole.end);
        CHECK(cut.length == whole.length && memcmp(cut.frames, whole.frames, whole.length) == 0);
    }
    return 0;
}
