/* See conn.h. */
#include "conn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

rmq_conn_limits rmq_conn_default_limits(void)
{
    return (rmq_conn_limits){
        .frame_length_max = RMQ_FRAME_LENGTH_MAX,
        .requests_in_flight_max = 4096,
        .request_bytes_in_flight_max = 2 * RMQ_FRAME_LENGTH_MAX,
        .write_high_bytes = 1 << 20,
        .write_max_bytes = 64 << 20,
        .idle_timeout_ms = 120000,
        .frame_timeout_ms = 120000,
    };
}

void rmq_conn_init(rmq_conn *conn, const rmq_conn_limits *limits, int64_t now_ms)
{
    assert(limits->frame_length_max >= RMQ_FRAME_PREFIX_BYTES && limits->frame_length_max <= (size_t)INT32_MAX);
    assert(limits->write_high_bytes <= limits->write_max_bytes);
    *conn = (rmq_conn){.limits = *limits,
                       .room_bytes = RMQ_BUFFER_FIRST_BYTES,
                       .active_at_ms = now_ms,
                       .incomplete_since_ms = RMQ_CONN_NEVER};
    /* One incomplete frame and what one recv brings besides it. */
    rmq_buffer_init(&conn->in, limits->frame_length_max + RMQ_CONN_READ_BYTES);
    rmq_buffer_init(&conn->out, limits->write_max_bytes);
}

void rmq_conn_free(rmq_conn *conn)
{
    rmq_buffer_free(&conn->in);
    rmq_buffer_free(&conn->out);
    free(conn->scratch);
    conn->scratch = NULL;
    conn->scratch_bytes = 0;
}

/* --- bytes of the peer --------------------------------------------------------------------------------------------- */

rmq_status rmq_conn_room(rmq_conn *conn, uint8_t **at, size_t *size)
{
    assert(rmq_conn_wants_read(conn));
    RMQ_TRY(rmq_buffer_room(&conn->in, conn->room_bytes, at));
    *size = conn->room_bytes;
    return RMQ_OK;
}

void rmq_conn_came(rmq_conn *conn, size_t size, int64_t now_ms)
{
    assert(size <= conn->room_bytes);
    conn->active_at_ms = now_ms;
    rmq_buffer_add(&conn->in, size);
    /* A peer that fills its room gets twice as much of it the next time, one that does not gets the first size again. */
    if (size < conn->room_bytes) {
        conn->room_bytes = RMQ_BUFFER_FIRST_BYTES;
    } else if (conn->room_bytes < RMQ_CONN_READ_BYTES) {
        conn->room_bytes *= 2;
    }
}

/* Scratch memory for a header, kept for the next one. */
static rmq_status need_scratch(rmq_conn *conn, size_t size)
{
    uint8_t *memory;

    if (size <= conn->scratch_bytes) {
        return RMQ_OK;
    }
    size = size < RMQ_BUFFER_FIRST_BYTES ? RMQ_BUFFER_FIRST_BYTES : size;
    memory = malloc(size);
    if (memory == NULL) {
        return RMQ_NO_MEMORY;
    }
    free(conn->scratch);
    conn->scratch = memory;
    conn->scratch_bytes = size;
    return RMQ_OK;
}

/* The rest of a frame is waited for, from when its first bytes were looked at. */
static rmq_status wait_for_more(rmq_conn *conn, int64_t now_ms)
{
    if (rmq_buffer_held(&conn->in) == 0) {
        conn->incomplete_since_ms = RMQ_CONN_NEVER;
    } else if (conn->incomplete_since_ms == RMQ_CONN_NEVER) {
        conn->incomplete_since_ms = now_ms;
    }
    return RMQ_MORE;
}

rmq_status rmq_conn_next(rmq_conn *conn, rmq_conn_frame *next, int64_t now_ms)
{
    rmq_status status = RMQ_NOT_MINE;

    next->data = rmq_buffer_first(&conn->in);
    next->is_read = false;
    if (!conn->damaged) {
        if (!rmq_conn_may_serve(conn)) {
            conn->incomplete_since_ms = RMQ_CONN_NEVER; /* frames that wait for us are not the peer's fault */
            return RMQ_MORE;
        }
        status = rmq_frame_find(next->data, rmq_buffer_held(&conn->in), conn->limits.frame_length_max, &next->frame);
    }
    if (status == RMQ_MORE) {
        return wait_for_more(conn, now_ms);
    }
    conn->incomplete_since_ms = RMQ_CONN_NEVER;
    if (status != RMQ_OK) {
        conn->damaged = true;
        next->frame.length = rmq_buffer_held(&conn->in);
        return RMQ_DAMAGED;
    }
    RMQ_TRY(need_scratch(conn, next->frame.header_length));
    next->is_read = rmq_frame_decode(next->data, &next->frame, conn->scratch, &next->command) == RMQ_OK;
    rmq_buffer_take(&conn->in, next->frame.length);
    return RMQ_OK;
}

void rmq_conn_put_back(rmq_conn *conn, const rmq_conn_frame *frame)
{
    rmq_buffer_put_back(&conn->in, frame->frame.length);
}

size_t rmq_conn_buffered(const rmq_conn *conn)
{
    return rmq_buffer_held(&conn->in);
}

/* --- requests in flight -------------------------------------------------------------------------------------------- */

void rmq_conn_begin(rmq_conn *conn, size_t body_bytes)
{
    assert(body_bytes <= conn->limits.frame_length_max);
    conn->in_flight += 1;
    conn->in_flight_bytes += body_bytes + RMQ_CONN_OVERHEAD_BYTES;
}

void rmq_conn_end(rmq_conn *conn, size_t body_bytes)
{
    assert(conn->in_flight > 0 && conn->in_flight_bytes >= body_bytes + RMQ_CONN_OVERHEAD_BYTES);
    conn->in_flight -= 1;
    conn->in_flight_bytes -= body_bytes + RMQ_CONN_OVERHEAD_BYTES;
}

bool rmq_conn_may_serve(const rmq_conn *conn)
{
    return !conn->damaged && conn->in_flight < conn->limits.requests_in_flight_max &&
           conn->in_flight_bytes <= conn->limits.request_bytes_in_flight_max &&
           rmq_buffer_held(&conn->out) <= conn->limits.write_high_bytes;
}

bool rmq_conn_wants_read(const rmq_conn *conn)
{
    /* What is there already is served first: a frame that is complete waits in `in`, and an incomplete one is shorter
     * than the longest. */
    return rmq_conn_may_serve(conn) && rmq_buffer_held(&conn->in) < conn->limits.frame_length_max;
}

void rmq_conn_bar(rmq_conn *conn)
{
    conn->bars += 1;
}

void rmq_conn_unbar(rmq_conn *conn)
{
    assert(conn->bars > 0);
    conn->bars -= 1;
}

bool rmq_conn_is_barred(const rmq_conn *conn)
{
    return conn->bars > 0;
}

/* --- bytes for the peer -------------------------------------------------------------------------------------------- */

rmq_status rmq_conn_write(rmq_conn *conn, const uint8_t *data, size_t size)
{
    return rmq_buffer_put(&conn->out, data, size);
}

rmq_status rmq_conn_answer_room(rmq_conn *conn, size_t size, uint8_t **at)
{
    return rmq_buffer_room(&conn->out, size, at);
}

void rmq_conn_wrote(rmq_conn *conn, size_t size)
{
    rmq_buffer_add(&conn->out, size);
}

size_t rmq_conn_unsent(const rmq_conn *conn, const uint8_t **at)
{
    *at = rmq_buffer_first(&conn->out);
    return rmq_buffer_held(&conn->out);
}

void rmq_conn_sent(rmq_conn *conn, size_t size, int64_t now_ms)
{
    rmq_buffer_take(&conn->out, size);
    if (rmq_buffer_held(&conn->out) == 0) {
        conn->active_at_ms = now_ms;
    }
}

void rmq_conn_settle(rmq_conn *conn)
{
    rmq_buffer_settle(&conn->in);
    rmq_buffer_settle(&conn->out);
    if (conn->scratch_bytes > RMQ_BUFFER_KEPT_BYTES) {
        free(conn->scratch);
        conn->scratch = NULL;
        conn->scratch_bytes = 0;
    }
}

/* --- bounds -------------------------------------------------------------------------------------------------------- */

int64_t rmq_conn_due_ms(const rmq_conn *conn)
{
    const int64_t idle_ms = conn->active_at_ms + conn->limits.idle_timeout_ms;
    int64_t frame_ms;

    if (conn->incomplete_since_ms == RMQ_CONN_NEVER) {
        return idle_ms;
    }
    frame_ms = conn->incomplete_since_ms + conn->limits.frame_timeout_ms;
    return frame_ms < idle_ms ? frame_ms : idle_ms;
}

size_t rmq_conn_held_bytes(const rmq_conn *conn)
{
    return conn->in.capacity + conn->out.capacity + conn->scratch_bytes + conn->in_flight_bytes;
}
