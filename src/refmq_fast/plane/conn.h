/* One connection of the plane: bytes in, frames out; answers in, bytes out. No sockets, no clock, no threads.
 *
 * The bounds are those of refmq/net/limits.py, and so is what happens at them:
 *
 *     the peer ...                               costs
 *     -----------------------------------------  -----------------------------------------------------------------
 *     sends bytes that are not a frame           its connection: rmq_conn_next says RMQ_DAMAGED, once and for all
 *     starts a frame and never finishes it       the bytes that came, until rmq_conn_due_ms
 *     sends requests faster than they are served requests_in_flight_max of them; then rmq_conn_wants_read says no
 *     does not read its answers                  write_high_bytes, then no requests; write_max_bytes, then its end
 *
 * A turn of the loop: rmq_conn_room, recv, rmq_conn_came; rmq_conn_next until it has no more or the turn is over; writes;
 * rmq_conn_unsent, send, rmq_conn_sent; rmq_conn_settle.
 *
 * Order. A request that is handed over may change what later ones of its connection may do (a heartbeat, an update of a
 * topic). Whoever hands one over calls rmq_conn_bar, and as long as rmq_conn_is_barred no frame behind it is served in C:
 * it is handed over too, in the order in which they came, or put back to wait. rmq_conn_unbar is called when the control
 * plane has begun it.
 */
#ifndef RMQ_PLANE_CONN_H
#define RMQ_PLANE_CONN_H

#include "../core/frame.h"
#include "buffer.h"

typedef struct {
    size_t frame_length_max; /* at least RMQ_FRAME_PREFIX_BYTES */
    size_t requests_in_flight_max;
    size_t request_bytes_in_flight_max;
    size_t write_high_bytes; /* above it no further request is served */
    size_t write_max_bytes;  /* the connection ends before it holds more */
    int64_t idle_timeout_ms;
    int64_t frame_timeout_ms;
} rmq_conn_limits;

/* The defaults of refmq/net/limits.py. */
rmq_conn_limits rmq_conn_default_limits(void);

#define RMQ_CONN_READ_BYTES 65536u    /* the most that one recv brings */
#define RMQ_CONN_OVERHEAD_BYTES 512u  /* what a request in flight takes besides its body, roughly */
#define RMQ_CONN_NEVER INT64_MAX

typedef struct {
    rmq_conn_limits limits;
    rmq_buffer in;
    rmq_buffer out;
    size_t room_bytes; /* so much the next recv may bring */
    size_t scratch_bytes;
    uint8_t *scratch; /* for the texts of the frame that was read last */
    size_t in_flight;
    size_t in_flight_bytes;
    size_t bars;
    int64_t active_at_ms;
    int64_t incomplete_since_ms; /* RMQ_CONN_NEVER while no frame is incomplete */
    bool damaged;
} rmq_conn;

/* One frame. `data` and the texts of `command` point into the connection, until rmq_conn_room or rmq_conn_settle. */
typedef struct {
    const uint8_t *data; /* the whole frame, for handing it over */
    rmq_frame frame;
    bool is_read;        /* whether `command` means something; otherwise the reference has to read the frame */
    rmq_command command;
} rmq_conn_frame;

void rmq_conn_init(rmq_conn *conn, const rmq_conn_limits *limits, int64_t now_ms);

void rmq_conn_free(rmq_conn *conn);

/* Where the next bytes of the peer go, RMQ_CONN_READ_BYTES at most: `*size` is at least 1. Called only when
 * rmq_conn_wants_read. RMQ_NO_MEMORY when there is none. */
rmq_status rmq_conn_room(rmq_conn *conn, uint8_t **at, size_t *size);

/* So many bytes came into the room. */
void rmq_conn_came(rmq_conn *conn, size_t size, int64_t now_ms);

/* The next frame. RMQ_MORE when none is complete, or when none may be served now (rmq_conn_may_serve). RMQ_DAMAGED when
 * the peer can no longer be understood: `next->data` is where, up to `next->frame.length` bytes, and what is wrong the
 * reference says. RMQ_NO_MEMORY when there is none; the frame is still there. */
rmq_status rmq_conn_next(rmq_conn *conn, rmq_conn_frame *next, int64_t now_ms);

/* The frame that rmq_conn_next gave last is still to be served: it will be the next one again. */
void rmq_conn_put_back(rmq_conn *conn, const rmq_conn_frame *frame);

/* Whether bytes are there of which rmq_conn_next might make frames when it may. */
size_t rmq_conn_buffered(const rmq_conn *conn);

/* A request with a body of so many bytes is being served, and no longer. */
void rmq_conn_begin(rmq_conn *conn, size_t body_bytes);
void rmq_conn_end(rmq_conn *conn, size_t body_bytes);

/* Whether one more request may be served, and whether more bytes of the peer are welcome. */
bool rmq_conn_may_serve(const rmq_conn *conn);
bool rmq_conn_wants_read(const rmq_conn *conn);

void rmq_conn_bar(rmq_conn *conn);
void rmq_conn_unbar(rmq_conn *conn);
bool rmq_conn_is_barred(const rmq_conn *conn);

/* Bytes for the peer. RMQ_NO_ROOM when it has left too much unread and has to go; RMQ_NO_MEMORY. */
rmq_status rmq_conn_write(rmq_conn *conn, const uint8_t *data, size_t size);

/* Room for an answer of at most `size` bytes, which is then written in place; rmq_conn_wrote says how many it had. */
rmq_status rmq_conn_answer_room(rmq_conn *conn, size_t size, uint8_t **at);
void rmq_conn_wrote(rmq_conn *conn, size_t size);

/* What waits to be sent, and that so much of it was. */
size_t rmq_conn_unsent(const rmq_conn *conn, const uint8_t **at);
void rmq_conn_sent(rmq_conn *conn, size_t size, int64_t now_ms);

/* The turn is over. */
void rmq_conn_settle(rmq_conn *conn);

/* When this connection has to end unless something happens before. */
int64_t rmq_conn_due_ms(const rmq_conn *conn);

/* What it holds: for the budget that all connections share. */
size_t rmq_conn_held_bytes(const rmq_conn *conn);

#endif
