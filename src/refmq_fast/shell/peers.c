/* See shell.h: the connections of the IO thread, from accept to close. Nothing here touches the plane. */
#define _GNU_SOURCE
#include "shell.h"

#include "mistakes.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_MS 100 /* without descriptors: until some may have come back */
#define TLS_HANDSHAKE_BYTE 0x16

/* --- lists --------------------------------------------------------------------------------------------------------- */

void rmq_mark_ready(rmq_shell *shell, rmq_peer *peer)
{
    if (!peer->is_ready && !peer->is_gone) {
        peer->is_ready = true;
        peer->next_ready = shell->ready;
        shell->ready = peer;
    }
}

void rmq_mark_dirty(rmq_shell *shell, rmq_peer *peer)
{
    if (!peer->is_dirty && !peer->is_gone) {
        peer->is_dirty = true;
        peer->next_dirty = shell->dirty;
        shell->dirty = peer;
    }
}

rmq_peer *rmq_peer_of(const rmq_shell *shell, int64_t number)
{
    return rmq_table_find(&shell->peers, (rmq_text){NULL, 0}, number);
}

/* --- the budget ---------------------------------------------------------------------------------------------------- */

static void account(rmq_shell *shell, rmq_peer *peer, size_t held)
{
    (void)atomic_fetch_add(&shell->held_bytes, (int_fast64_t)held - (int_fast64_t)peer->accounted);
    peer->accounted = held;
}

/* Ends the connections that hold the most, until the others have room. */
static void keep_budget(rmq_shell *shell)
{
    while (atomic_load(&shell->held_bytes) > shell->limits.memory_bytes_max) {
        rmq_peer *greediest = NULL, *peer;
        size_t at = 0;

        while ((peer = rmq_table_next(&shell->peers, &at)) != NULL) {
            if (greediest == NULL || peer->accounted > greediest->accounted) {
                greediest = peer;
            }
        }
        if (greediest == NULL) {
            return;
        }
        rmq_end_peer(shell, greediest);
    }
}

/* --- what epoll waits for ------------------------------------------------------------------------------------------ */

/* While frames wait for the control plane no more than a room's worth of others is read. */
static bool wants_read(const rmq_shell *shell, const rmq_peer *peer)
{
    return !shell->is_draining && !peer->is_closing && !peer->is_paused && rmq_conn_wants_read(&peer->conn) &&
           (!rmq_conn_is_barred(&peer->conn) || rmq_conn_buffered(&peer->conn) < RMQ_CONN_READ_BYTES);
}

static void update_interest(rmq_shell *shell, rmq_peer *peer)
{
    const uint8_t *unsent;
    const uint32_t wanted = (wants_read(shell, peer) ? (uint32_t)EPOLLIN : 0u) |
                            (rmq_conn_unsent(&peer->conn, &unsent) > 0 ? (uint32_t)EPOLLOUT : 0u);
    struct epoll_event event = {.events = wanted, .data.ptr = peer};

    if (wanted != peer->interest) {
        peer->interest = wanted;
        (void)epoll_ctl(shell->epoll, EPOLL_CTL_MOD, peer->fd, &event);
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

/* The peer is none of ours any more; its memory stays until the turn is over. */
static void forget(rmq_shell *shell, rmq_peer *peer)
{
    assert(!peer->is_gone);
    account(shell, peer, 0);
    rmq_table_remove(&shell->peers, &peer->key);
    (void)atomic_fetch_sub(&shell->connections, 1);
    peer->is_gone = true;
    peer->next_gone = shell->gone;
    shell->gone = peer;
}

void rmq_end_peer(rmq_shell *shell, rmq_peer *peer)
{
    if (peer->is_gone) {
        return;
    }
    (void)close(peer->fd); /* takes it out of epoll as well */
    peer->fd = -1;
    if (peer->is_told) {
        rmq_letter *letter = rmq_letter_new(RMQ_UP_CLOSED, peer->key.number, 0);

        if (letter != NULL) {
            rmq_post(&shell->up, letter);
        }
    }
    forget(shell, peer);
}

void rmq_close_peer(rmq_shell *shell, rmq_peer *peer)
{
    if (!peer->is_gone && !peer->is_closing) {
        peer->is_closing = true;
        peer->close_by_ms = shell->now.uptime_ms + shell->limits.linger_ms;
        rmq_mark_dirty(shell, peer);
    }
}

void rmq_free_gone(rmq_shell *shell)
{
    while (shell->gone != NULL) {
        rmq_peer *peer = shell->gone;

        assert(!peer->is_ready && !peer->is_dirty);
        shell->gone = peer->next_gone;
        rmq_conn_free(&peer->conn);
        free(peer);
    }
}

void rmq_end_late_peers(rmq_shell *shell)
{
    const int64_t now_ms = shell->now.uptime_ms;
    rmq_peer *late = NULL, *peer;
    size_t at = 0;

    /* The table must not change while it is gone through: those whose time is up are put on a list first. */
    while ((peer = rmq_table_next(&shell->peers, &at)) != NULL) {
        if (peer->is_closing ? now_ms >= peer->close_by_ms : now_ms >= rmq_conn_due_ms(&peer->conn)) {
            peer->next_gone = late;
            late = peer;
        }
    }
    while (late != NULL) {
        rmq_peer *next = late->next_gone;

        rmq_end_peer(shell, late);
        late = next;
    }
}

/* --- accept -------------------------------------------------------------------------------------------------------- */

void rmq_watch_listeners(rmq_shell *shell, bool is_wanted)
{
    for (size_t i = 0; i < shell->listener_count; i++) {
        rmq_listener *listener = &shell->listeners[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};

        if (listener->fd >= 0 && listener->is_waited_for != is_wanted) {
            (void)epoll_ctl(shell->epoll, is_wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener->fd, &event);
            listener->is_waited_for = is_wanted;
        }
    }
}

static rmq_host host_of(const struct sockaddr_storage *address)
{
    rmq_host host;

    memset(&host, 0, sizeof host);
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

        host.ip_bytes = 16;
        memcpy(host.ip, &six->sin6_addr, 16);
        host.port = ntohs(six->sin6_port);
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

        host.ip_bytes = 4;
        memcpy(host.ip, &four->sin_addr, 4);
        host.port = ntohs(four->sin_port);
    }
    return host;
}

/* A connection takes its place; false if there is no memory for it. */
static bool admit(rmq_shell *shell, int fd, const rmq_listener *listener, const struct sockaddr_storage *address)
{
    rmq_peer *peer = calloc(1, sizeof *peer);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    const int one = 1;

    if (peer == NULL) {
        return false;
    }
    peer->key.number = shell->last_connection + 1;
    peer->fd = fd;
    peer->host = host_of(address);
    peer->on_vip_port = listener->on_vip_port;
    peer->interest = EPOLLIN;
    peer->is_fresh = true;
    rmq_conn_init(&peer->conn, &shell->limits.conn, shell->now.uptime_ms);
    if (rmq_table_add(&shell->peers, &peer->key) != RMQ_OK) {
        free(peer);
        return false;
    }
    if (epoll_ctl(shell->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        rmq_table_remove(&shell->peers, &peer->key);
        free(peer);
        return false;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    shell->last_connection += 1;
    (void)atomic_fetch_add(&shell->connections, 1);
    return true;
}

void rmq_accept(rmq_shell *shell, rmq_listener *listener)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        const int fd = accept4(listener->fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        const bool is_full = atomic_load(&shell->connections) >= shell->limits.connections_max;

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                shell->accept_after_ms = shell->now.uptime_ms + ACCEPT_PAUSE_MS;
                rmq_watch_listeners(shell, false);
            }
            if (errno == ECONNABORTED || errno == EINTR) {
                continue;
            }
            return;
        }
        if ((is_full && RMQ_IS_RIGHT(RMQ_MISTAKE_NO_LIMIT)) || !admit(shell, fd, listener, &address)) {
            (void)atomic_fetch_add(&shell->refused, 1);
            (void)close(fd);
        }
    }
}

/* --- bytes --------------------------------------------------------------------------------------------------------- */

/* Whether the first byte says that the control plane has to serve this connection; then it has gone there. */
static bool gave_away(rmq_shell *shell, rmq_peer *peer)
{
    struct epoll_event nothing = {0};
    rmq_letter *letter;
    uint8_t first;
    ssize_t size;

    if (shell->limits.tls == RMQ_TLS_NEVER) {
        peer->is_fresh = false;
        return false;
    }
    size = recv(peer->fd, &first, 1, MSG_PEEK);
    if (size != 1) {
        return false; /* what that means the next recv will say */
    }
    peer->is_fresh = false;
    if (first != TLS_HANDSHAKE_BYTE && shell->limits.tls != RMQ_TLS_ALWAYS) {
        return false;
    }
    letter = rmq_letter_new(RMQ_UP_SOCKET, peer->key.number, 0);
    if (letter == NULL) {
        rmq_end_peer(shell, peer);
        return true;
    }
    (void)epoll_ctl(shell->epoll, EPOLL_CTL_DEL, peer->fd, &nothing);
    letter->number = peer->fd;
    letter->peer = peer->host;
    letter->on_vip_port = peer->on_vip_port;
    peer->fd = -1;
    rmq_post(&shell->up, letter);
    forget(shell, peer);
    return true;
}

void rmq_receive(rmq_shell *shell, rmq_peer *peer)
{
    uint8_t *at;
    size_t room;
    ssize_t size;

    if (peer->is_gone || !wants_read(shell, peer)) {
        return;
    }
    if (peer->is_fresh && gave_away(shell, peer)) {
        return;
    }
    if (rmq_conn_room(&peer->conn, &at, &room) != RMQ_OK) {
        rmq_end_peer(shell, peer);
        return;
    }
    size = recv(peer->fd, at, room, 0);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    if (size <= 0) {
        rmq_end_peer(shell, peer);
        return;
    }
    rmq_conn_came(&peer->conn, (size_t)size, shell->now.uptime_ms);
    peer->came_ms = shell->now.uptime_ms;
    account(shell, peer, rmq_conn_held_bytes(&peer->conn));
    rmq_mark_ready(shell, peer);
    rmq_mark_dirty(shell, peer);
    keep_budget(shell);
}

void rmq_send_unsent(rmq_shell *shell, rmq_peer *peer)
{
    const bool was_blocked = !rmq_conn_may_serve(&peer->conn);
    const uint8_t *unsent;
    size_t size;

    if (peer->is_gone) {
        return;
    }
    while ((size = rmq_conn_unsent(&peer->conn, &unsent)) > 0) {
        const ssize_t sent = send(peer->fd, unsent, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            break;
        }
        if (sent < 0) {
            rmq_end_peer(shell, peer);
            return;
        }
        rmq_conn_sent(&peer->conn, (size_t)sent, shell->now.uptime_ms);
    }
    if (peer->is_closing && size == 0) {
        rmq_end_peer(shell, peer);
        return;
    }
    if (was_blocked && rmq_conn_may_serve(&peer->conn)) {
        rmq_mark_ready(shell, peer); /* frames have waited until it reads its answers */
    }
    rmq_conn_settle(&peer->conn);
    account(shell, peer, rmq_conn_held_bytes(&peer->conn));
    update_interest(shell, peer);
    keep_budget(shell);
}
