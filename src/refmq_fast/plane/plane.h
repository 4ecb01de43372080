/* The hot path of a broker: from an input to what is to be done. The twin of refmq/plane, file by file, with the same names.
 *
 * It makes no system call. Whoever drives it feeds it requests, positions and the time, and performs what it asks for
 * through `rmq_port`: a thread with sockets, or the simulated world. It reads and writes the store below it.
 *
 * C says yes or hands over; it never refuses. A request is served here only if every check passes on the snapshot. All
 * else is RMQ_NOT_MINE, with nothing changed, and the reference serves it: so every remark exists once.
 *
 * A plane belongs to one thread at a time, together with its store.
 */
#ifndef RMQ_PLANE_PLANE_H
#define RMQ_PLANE_PLANE_H

#include "../core/command.h"
#include "../store/append.h"
#include "../store/dispatch.h"
#include "../store/get.h"
#include "acks.h"
#include "hold.h"
#include "offsets.h"
#include "snapshot.h"

/* The time of an input: the wall's for what is written down, the uptime for how long something takes. */
typedef struct {
    int64_t wall_ms;
    int64_t uptime_ms;
} rmq_moment;

/* One request of a peer. It owns nothing. */
typedef struct {
    int64_t number; /* counted up by the driver */
    int64_t connection;
    rmq_host peer;
    const rmq_command *command; /* the header, decoded */
    rmq_text header;            /* and as it came */
    rmq_text body;
    int64_t waited_ms; /* between its last byte and its turn */
    uint32_t draw;     /* 31 random bits */
    bool on_vip_port;
} rmq_request;

/* What the plane wants done. Anything but RMQ_OK ends the step where it is, and nothing goes on after RMQ_DIED. */
typedef struct {
    void *context;
    /* The answer to a request that wants one: the head of the frame, and its body. */
    rmq_status (*answer)(void *context, int64_t connection, int64_t number, rmq_text head, rmq_text body);
    /* A parked pull that has to be looked at by the reference after all. */
    rmq_status (*hand_over)(void *context, const rmq_held *pull);
    /* A trace event: the fields of refmq.model.step.EventFields. NULL: nobody traces. */
    rmq_status (*event)(void *context, const char *action, rmq_text actor, rmq_text subject, int64_t queue_id, int64_t a,
                        int64_t b, int64_t c, int64_t d);
} rmq_port;

/* How often pulls of a group found something in a queue, since somebody last asked. */
typedef struct {
    rmq_key key; /* the topic, a zero byte, the group; and the queue */
    size_t topic_size;
    int64_t pulls;
    int64_t found;
    int64_t messages;
    int64_t found_bytes;
} rmq_pull_count;

typedef struct {
    rmq_store *store;
    rmq_port port;
    rmq_snapshot snapshot;
    rmq_offsets offsets;
    rmq_hold hold;
    rmq_acks acks;
    int64_t looked_ms; /* when the waiting pulls were last looked through, in uptime */
    bool wants_flush;  /* a put waits for a flush: the driver starts one, and sets this to false */
    bool wants_dispatch;
    rmq_table pull_counts; /* of rmq_pull_count */
    /* Memory that is used again and again. */
    rmq_records records;
    uint8_t *text;
    size_t text_size;
    uint8_t *head;
    size_t head_size;
} rmq_plane;

/* A plane over an open store. `seed` is a number that nobody can guess. RMQ_NO_MEMORY. */
rmq_status rmq_plane_new(rmq_store *store, const rmq_port *port, uint64_t seed, rmq_plane **plane);
void rmq_plane_free(rmq_plane *plane);

/* Whether a request with this code may be served here. */
bool rmq_is_hot(int32_t code);

/* The same for this plane: with access control on it serves nothing, so that the one check, in Python, sees every frame. */
bool rmq_may_serve(const rmq_plane *plane, int32_t code);

/* Serves a request: answers it, parks it, or lets it wait for a flush. RMQ_NOT_MINE: nothing has happened. */
rmq_status rmq_serve_frame(rmq_plane *plane, const rmq_request *request, rmq_moment now);

/* The log is flushed up to here: whoever waited for that is answered. */
rmq_status rmq_durable(rmq_plane *plane, int64_t flushed_to, rmq_moment now);

/* A flush failed, or the broker stops: nobody who still waits for one will see it. */
rmq_status rmq_flush_failed(rmq_plane *plane, rmq_moment now);

/* Gives the next records their queue units, and answers the pulls that wait for them. `others` is told of each record as
 * well, if it is not NULL. `went_on` says whether there may be more. */
rmq_status rmq_plane_dispatch(rmq_plane *plane, int64_t count_max, rmq_tell others, void *context, bool *went_on,
                              rmq_moment now);

/* What is due by the clock: puts that waited too long, pulls whose time is up. */
rmq_status rmq_tick(rmq_plane *plane, rmq_moment now);

/* The broker stops: pulls that wait are answered as they stand. */
rmq_status rmq_drain(rmq_plane *plane, rmq_moment now);

/* A connection is gone: its pulls wait no more. Its puts go on; what is in the log stays there. */
void rmq_closed(rmq_plane *plane, int64_t connection);

/* The pulls have been counted. */
void rmq_forget_pull_counts(rmq_plane *plane);

/* --- for the files of this folder ---------------------------------------------------------------------------------- */

/* send.c, pull.c, offset_requests.c: the servers of the hot requests. */
rmq_status rmq_serve_send(rmq_plane *plane, const rmq_request *request, rmq_moment now);
rmq_status rmq_serve_pull(rmq_plane *plane, const rmq_request *request, rmq_moment now);
rmq_status rmq_serve_update_offset(rmq_plane *plane, const rmq_request *request);
rmq_status rmq_serve_query_offset(rmq_plane *plane, const rmq_request *request);

/* pull.c: answers pulls that no longer wait, in the order of their requests. It takes the list over. */
rmq_status rmq_wake(rmq_plane *plane, rmq_held *first, rmq_moment now);

/* Commits for a request, with its event. */
rmq_status rmq_plane_commit(rmq_plane *plane, rmq_text topic, rmq_text group, int64_t queue_id, int64_t offset);

/* Whether a request of this kind would be refused because too many are under way or it has waited too long. */
bool rmq_is_busy(const rmq_plane *plane, int64_t under_way, int64_t under_way_max, int64_t waited_ms, int64_t wait_ms);

/* Hands an answer to the port, unless the request wants none. */
rmq_status rmq_reply(rmq_plane *plane, int64_t connection, int64_t number, bool is_oneway, size_t head_bytes,
                     rmq_text body);

/* Room for a head of so many bytes in `plane->head`, and for so much text in `plane->text`. */
rmq_status rmq_head_room(rmq_plane *plane, size_t bytes);
rmq_status rmq_text_room(rmq_plane *plane, size_t bytes);

#endif
