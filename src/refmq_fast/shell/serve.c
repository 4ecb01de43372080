/* See shell.h: frames of a connection, served by the plane or handed over; and what the plane wants done. The caller holds
 * the lock. */
#include "shell.h"

#include "mistakes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- letters up ---------------------------------------------------------------------------------------------------- */

/* A letter about a connection, with who it is. */
static rmq_letter *letter_about(rmq_letter_kind kind, rmq_peer *peer, size_t size)
{
    rmq_letter *letter = rmq_letter_new(kind, peer->key.number, size);

    if (letter != NULL) {
        letter->peer = peer->host;
        letter->on_vip_port = peer->on_vip_port;
        peer->is_told = true;
    }
    return letter;
}

/* The control plane gets a frame, or what should have been one. */
static rmq_status hand_over(rmq_shell *shell, rmq_peer *peer, const uint8_t *data, size_t size)
{
    rmq_letter *letter = letter_about(RMQ_UP_FRAME, peer, size);

    if (letter == NULL) {
        return RMQ_NO_MEMORY;
    }
    memcpy(letter->bytes, data, size);
    rmq_conn_bar(&peer->conn);
    rmq_post(&shell->up, letter);
    return RMQ_OK;
}

/* --- the port of the plane ----------------------------------------------------------------------------------------- */

static rmq_status port_answer(void *context, int64_t connection, int64_t number, rmq_text head, rmq_text body)
{
    rmq_shell *shell = context;
    rmq_peer *peer = rmq_peer_of(shell, connection);
    const bool was_blocked = peer != NULL && !rmq_conn_may_serve(&peer->conn);
    uint8_t *at;

    if (number > shell->answered) {
        shell->answered = number; /* the frame that is being served: it was never in flight */
    } else if (peer != NULL && RMQ_IS_RIGHT(RMQ_MISTAKE_IN_FLIGHT_LEAK)) {
        rmq_conn_end(&peer->conn, 0);
    }
    if (peer == NULL || (peer->is_closing && !shell->drains_now)) {
        return RMQ_OK; /* nobody wants to know any more; but a drain comes before the close that came with it */
    }
    if (rmq_conn_answer_room(&peer->conn, head.size + body.size, &at) != RMQ_OK) {
        rmq_end_peer(shell, peer); /* it has left too much unread, or there is no memory for it */
        return RMQ_OK;
    }
    memcpy(at, head.at, head.size);
    if (body.size > 0) {
        memcpy(at + head.size, body.at, body.size);
    }
    rmq_conn_wrote(&peer->conn, head.size + body.size);
    if (was_blocked && rmq_conn_may_serve(&peer->conn)) {
        rmq_mark_ready(shell, peer);
    }
    rmq_mark_dirty(shell, peer);
    return RMQ_OK;
}

static rmq_status port_hand_over(void *context, const rmq_held *pull)
{
    rmq_shell *shell = context;
    rmq_peer *peer = rmq_peer_of(shell, pull->connection);
    rmq_letter *letter;

    if (peer == NULL) {
        return RMQ_OK;
    }
    rmq_conn_end(&peer->conn, 0);
    letter = letter_about(RMQ_UP_PULL, peer, pull->header.size + pull->body.size);
    if (letter == NULL) {
        rmq_end_peer(shell, peer); /* it would wait for an answer that never comes */
        return RMQ_OK;
    }
    letter->serialize = pull->serialize;
    letter->split = pull->header.size;
    memcpy(letter->bytes, pull->header.at, pull->header.size);
    if (pull->body.size > 0) {
        memcpy(letter->bytes + pull->header.size, pull->body.at, pull->body.size);
    }
    rmq_post(&shell->up, letter);
    return RMQ_OK;
}

static rmq_status port_event(void *context, const char *action, rmq_text actor, rmq_text subject, int64_t queue_id,
                             int64_t a, int64_t b, int64_t c, int64_t d)
{
    rmq_note_plane_event(((rmq_shell *)context)->notes, action, actor, subject, queue_id, a, b, c, d);
    return RMQ_OK;
}

rmq_port rmq_shell_port(rmq_shell *shell)
{
    return (rmq_port){shell, port_answer, port_hand_over, shell->notes == NULL ? NULL : port_event};
}

/* --- frames -------------------------------------------------------------------------------------------------------- */

/* Thirty-one bits that nobody needs to be able to guess: xorshift. */
static uint32_t draw(rmq_shell *shell)
{
    shell->draw ^= shell->draw << 13;
    shell->draw ^= shell->draw >> 7;
    shell->draw ^= shell->draw << 17;
    return (uint32_t)(shell->draw >> 33);
}

/* A request that the plane may serve: RMQ_OK when it did. */
static rmq_status serve_hot(rmq_shell *shell, rmq_peer *peer, const rmq_conn_frame *frame)
{
    const int64_t waited_ms = shell->now.uptime_ms - peer->came_ms;
    const int64_t number = shell->last_frame + 1;
    const rmq_request request = {
        .number = number,
        .connection = peer->key.number,
        .peer = peer->host,
        .command = &frame->command,
        .header = {frame->data + RMQ_FRAME_PREFIX_BYTES, frame->frame.header_length},
        .body = {frame->data + frame->frame.body_at, frame->frame.length - frame->frame.body_at},
        .waited_ms = waited_ms > 0 ? waited_ms : 0,
        .draw = draw(shell),
        .on_vip_port = peer->on_vip_port && RMQ_IS_RIGHT(RMQ_MISTAKE_PORTS_ALIKE),
    };
    rmq_status status;

    shell->answered = shell->last_frame;
    status = rmq_serve_frame(shell->plane, &request, shell->now);
    shell->last_frame = number;
    if (status == RMQ_OK && shell->answered != number && (frame->command.flag & RMQ_ONEWAY_FLAG) == 0 &&
        !peer->is_gone) {
        rmq_conn_begin(&peer->conn, 0); /* it waits for a message or a flush */
    }
    shell->answered = number;
    return status;
}

/* Serves one frame. False: it has to wait, and so do those behind it. */
static bool serve_frame(rmq_shell *shell, rmq_peer *peer, const rmq_conn_frame *frame)
{
    const bool is_response = frame->is_read && (frame->command.flag & RMQ_RESPONSE_FLAG) != 0;

    if (frame->is_read && !is_response && rmq_may_serve(shell->plane, frame->command.code)) {
        rmq_status status;

        if (rmq_conn_is_barred(&peer->conn) && RMQ_IS_RIGHT(RMQ_MISTAKE_BARS_IGNORED)) {
            return false; /* what was handed over before it may change what it may do */
        }
        status = serve_hot(shell, peer, frame);
        if (status == RMQ_OK) {
            return true;
        }
        /* The reference finds the words for every other outcome. A store that has failed takes no message there either. */
        if (status == RMQ_NO_MEMORY || status == RMQ_DIED || shell->store->has_failed) {
            rmq_shell_fail(shell);
        }
    }
    if (peer->conn.bars >= RMQ_HANDED_PER_PEER_MAX) {
        return false;
    }
    if (rmq_mailbox_bytes(&shell->up) > RMQ_HANDED_BYTES_MAX) {
        shell->is_stalled = true;
        rmq_mark_ready(shell, peer);
        return false;
    }
    if (hand_over(shell, peer, frame->data, frame->frame.length) != RMQ_OK) {
        rmq_end_peer(shell, peer);
    }
    return true;
}

void rmq_serve_peer(rmq_shell *shell, rmq_peer *peer)
{
    for (unsigned i = 0; i < RMQ_FRAMES_PER_TURN; i++) {
        rmq_conn_frame frame;
        rmq_status status;

        if (peer->is_gone || peer->is_closing || peer->is_paused || shell->is_draining) {
            return;
        }
        status = rmq_conn_next(&peer->conn, &frame, shell->now.uptime_ms);
        if (status == RMQ_MORE) {
            return;
        }
        if (status == RMQ_DAMAGED) {
            /* The control plane says what is wrong, and closes. Nothing is read any more. */
            if (hand_over(shell, peer, frame.data, frame.frame.length) != RMQ_OK) {
                rmq_end_peer(shell, peer);
            }
            peer->is_paused = true;
            return;
        }
        if (status != RMQ_OK) {
            rmq_end_peer(shell, peer);
            return;
        }
        if (!serve_frame(shell, peer, &frame)) {
            rmq_conn_put_back(&peer->conn, &frame);
            return;
        }
    }
    rmq_mark_ready(shell, peer);
}

/* --- arrivals ------------------------------------------------------------------------------------------------------ */

/* There were too many to tell: once, until the control plane has read that. */
static rmq_status tell_missed(rmq_shell *shell)
{
    rmq_letter *letter;

    if (atomic_load(&shell->has_missed)) {
        return RMQ_OK;
    }
    letter = rmq_letter_new(RMQ_UP_MISSED, 0, 0);
    if (letter != NULL) {
        atomic_store(&shell->has_missed, true);
        rmq_post(&shell->up, letter);
    }
    return RMQ_OK;
}

rmq_status rmq_tell_arrived(void *context, const rmq_dispatched *message)
{
    rmq_shell *shell = context;
    rmq_letter *letter;

    if (!RMQ_IS_RIGHT(RMQ_MISTAKE_ARRIVALS_UNTOLD) || shell->watched.count == 0 || rmq_table_find(&shell->watched, message->topic, 0) == NULL) {
        return RMQ_OK;
    }
    letter = atomic_load(&shell->told) < RMQ_TOLD_MAX
                 ? rmq_letter_new(RMQ_UP_ARRIVED, 0, message->topic.size + message->properties.size)
                 : NULL;
    if (letter == NULL) {
        return tell_missed(shell);
    }
    (void)atomic_fetch_add(&shell->told, 1);
    letter->split = message->topic.size;
    letter->arrival = (rmq_arrival){message->queue_id,   message->queue_offset, message->physical_offset,
                                    message->size_bytes, message->tags_code,    message->store_timestamp_ms};
    memcpy(letter->bytes, message->topic.at, message->topic.size);
    if (message->properties.size > 0) {
        memcpy(letter->bytes + message->topic.size, message->properties.at, message->properties.size);
    }
    rmq_post(&shell->up, letter);
    return RMQ_OK;
}

void rmq_shell_heard(rmq_shell *shell, const rmq_letter *letter)
{
    if (letter->kind == RMQ_UP_ARRIVED) {
        (void)atomic_fetch_sub(&shell->told, 1);
    } else if (letter->kind == RMQ_UP_MISSED) {
        (void)atomic_store(&shell->has_missed, false);
    }
}

rmq_status rmq_shell_watch(rmq_shell *shell, rmq_text topic)
{
    rmq_watched *watched;

    if (rmq_table_find(&shell->watched, topic, 0) != NULL) {
        return RMQ_OK;
    }
    if (shell->watched.count >= RMQ_WATCHED_MAX) {
        return RMQ_NO_ROOM;
    }
    watched = calloc(1, sizeof *watched + topic.size);
    if (watched == NULL) {
        return RMQ_NO_MEMORY;
    }
    memcpy(watched + 1, topic.at, topic.size);
    watched->key.text = (rmq_text){(const uint8_t *)(watched + 1), topic.size};
    if (rmq_table_add(&shell->watched, &watched->key) != RMQ_OK) {
        free(watched);
        return RMQ_NO_MEMORY;
    }
    return RMQ_OK;
}

void rmq_shell_unwatch(rmq_shell *shell, rmq_text topic)
{
    rmq_watched *watched = rmq_table_find(&shell->watched, topic, 0);

    if (watched != NULL) {
        rmq_table_remove(&shell->watched, &watched->key);
        free(watched);
    }
}
