/* See shell.h: the IO thread and its turns. */
#define _GNU_SOURCE
#include "shell.h"

#include "mistakes.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_PER_TURN 128
#define REST_MS 1000 /* without anything to do: as often connections are looked through for those whose time is up */
#define TICK_MS 100
#define STALL_MS 5 /* while the control plane has as many frames as it may have */
#define DISPATCH_STEP 64

/* --- the clock ----------------------------------------------------------------------------------------------------- */

static int64_t milliseconds(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static rmq_moment look_at_clock(void)
{
    return (rmq_moment){milliseconds(CLOCK_REALTIME), milliseconds(CLOCK_MONOTONIC)};
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

static rmq_status open_parts(rmq_shell *shell)
{
    RMQ_TRY(rmq_mailbox_open(&shell->up));
    if (rmq_mailbox_open(&shell->down) != RMQ_OK) {
        rmq_mailbox_close(&shell->up);
        return RMQ_NO_MEMORY;
    }
    shell->ended_bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    shell->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (shell->ended_bell >= 0 && shell->epoll >= 0) {
        struct epoll_event down = {.events = EPOLLIN, .data.ptr = &shell->down};
        struct epoll_event ended = {.events = EPOLLIN, .data.ptr = &shell->ended_bell};

        if (epoll_ctl(shell->epoll, EPOLL_CTL_ADD, shell->down.bell, &down) == 0 &&
            epoll_ctl(shell->epoll, EPOLL_CTL_ADD, shell->ended_bell, &ended) == 0) {
            return RMQ_OK;
        }
    }
    if (shell->ended_bell >= 0) {
        (void)close(shell->ended_bell);
    }
    if (shell->epoll >= 0) {
        (void)close(shell->epoll);
    }
    rmq_mailbox_close(&shell->down);
    rmq_mailbox_close(&shell->up);
    return RMQ_NO_MEMORY;
}

rmq_status rmq_shell_new(rmq_store *store, rmq_plane *plane, rmq_posix_disk *disk, rmq_lock *lock, rmq_notes *notes,
                         const rmq_shell_limits *limits, uint64_t seed, rmq_shell **shell)
{
    rmq_shell *made = calloc(1, sizeof *made);

    if (made == NULL) {
        return RMQ_NO_MEMORY;
    }
    made->limits = *limits;
    made->store = store;
    made->plane = plane;
    made->disk = disk;
    made->lock = lock;
    made->notes = notes;
    made->draw = seed | 1;
    made->peers.seed = made->watched.seed = seed;
    if (open_parts(made) != RMQ_OK) {
        free(made);
        return RMQ_NO_MEMORY;
    }
    plane->port = rmq_shell_port(made);
    *shell = made;
    return RMQ_OK;
}

/* Takes the descriptor out of a letter. */
static void listen_on(rmq_shell *shell, rmq_letter *letter)
{
    if (shell->is_draining || shell->listener_count == RMQ_LISTENERS_MAX) {
        return; /* it is closed with the letter: nobody binds more than two addresses for each of two ports */
    }
    shell->listeners[shell->listener_count] =
        (rmq_listener){.fd = (int)letter->number, .on_vip_port = letter->on_vip_port};
    shell->listener_count += 1;
    letter->number = -1;
    rmq_watch_listeners(shell, true);
}

static void close_listeners(rmq_shell *shell)
{
    for (size_t i = 0; i < shell->listener_count; i++) {
        if (shell->listeners[i].fd >= 0) {
            (void)close(shell->listeners[i].fd);
            shell->listeners[i].fd = -1;
        }
    }
}

static void close_all(rmq_shell *shell, void (*end)(rmq_shell *shell, rmq_peer *peer))
{
    rmq_peer *all = NULL, *peer;
    size_t at = 0;

    while ((peer = rmq_table_next(&shell->peers, &at)) != NULL) {
        peer->next_gone = all;
        all = peer;
    }
    while (all != NULL) {
        rmq_peer *next = all->next_gone;

        end(shell, all);
        all = next;
    }
}

void rmq_shell_free(rmq_shell *shell)
{
    size_t at = 0;
    void *watched;

    assert(!shell->is_running);
    close_listeners(shell);
    while ((watched = rmq_table_next(&shell->watched, &at)) != NULL) {
        free(watched);
    }
    rmq_table_free(&shell->watched);
    assert(shell->peers.count == 0);
    rmq_table_free(&shell->peers);
    (void)close(shell->epoll);
    (void)close(shell->ended_bell);
    rmq_mailbox_close(&shell->down);
    rmq_mailbox_close(&shell->up);
    free(shell);
}

/* --- failure ------------------------------------------------------------------------------------------------------- */

static void post_number(rmq_shell *shell, rmq_letter_kind kind, int64_t number)
{
    rmq_letter *letter = rmq_letter_new(kind, 0, 0);

    if (letter != NULL) {
        letter->number = number;
        rmq_post(&shell->up, letter);
    }
}

/* Nobody who still waits for a flush will see it. The control plane ends the process. */
void rmq_shell_fail(rmq_shell *shell)
{
    if (!shell->has_failed) {
        shell->has_failed = true;
        (void)rmq_flush_failed(shell->plane, shell->now);
        post_number(shell, RMQ_UP_FAILED, 0);
    }
}

/* --- letters from the control plane -------------------------------------------------------------------------------- */

static void write_to(rmq_shell *shell, rmq_peer *peer, const rmq_letter *letter)
{
    if (peer->is_closing) {
        return;
    }
    if (rmq_conn_write(&peer->conn, letter->bytes, letter->size) != RMQ_OK) {
        rmq_end_peer(shell, peer);
        return;
    }
    rmq_mark_dirty(shell, peer);
}

static void begun(rmq_shell *shell, rmq_peer *peer, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        rmq_conn_unbar(&peer->conn);
    }
    rmq_mark_ready(shell, peer);
    rmq_mark_dirty(shell, peer); /* more may be read now */
}

static void read_peer_letter(rmq_shell *shell, rmq_peer *peer, const rmq_letter *letter)
{
    switch (letter->kind) {
    case RMQ_DOWN_WRITE:
        write_to(shell, peer, letter);
        break;
    case RMQ_DOWN_BEGUN:
        begun(shell, peer, letter->number);
        break;
    case RMQ_DOWN_PAUSE:
        peer->is_paused = true;
        rmq_mark_dirty(shell, peer);
        break;
    case RMQ_DOWN_RESUME:
        peer->is_paused = false;
        rmq_mark_ready(shell, peer);
        rmq_mark_dirty(shell, peer);
        break;
    case RMQ_DOWN_CLOSE:
        rmq_close_peer(shell, peer);
        break;
    case RMQ_DOWN_ABORT:
        rmq_end_peer(shell, peer);
        break;
    default:
        assert(false);
    }
}

static void read_letter(rmq_shell *shell, rmq_letter *letter)
{
    rmq_peer *peer;

    switch (letter->kind) {
    case RMQ_DOWN_WORK:
        shell->plane->wants_dispatch = true;
        return;
    case RMQ_DOWN_FLUSH:
        shell->wants_flush = true;
        return;
    case RMQ_DOWN_LISTEN:
        listen_on(shell, letter);
        return;
    case RMQ_DOWN_DRAIN:
        shell->drains_now = !shell->is_draining;
        shell->is_draining = true;
        close_listeners(shell);
        return;
    case RMQ_DOWN_CLOSE_ALL:
        shell->is_closing_all = true;
        return;
    case RMQ_DOWN_ABORT_ALL:
        close_all(shell, rmq_end_peer);
        return;
    default:
        peer = rmq_peer_of(shell, letter->connection);
        if (peer != NULL) {
            read_peer_letter(shell, peer, letter);
        }
    }
}

static void read_letters(rmq_shell *shell)
{
    rmq_letter *letter = rmq_collect(&shell->down);

    while (letter != NULL) {
        rmq_letter *next = letter->next;

        read_letter(shell, letter);
        rmq_letter_free(letter);
        letter = next;
    }
}

/* --- flushing ------------------------------------------------------------------------------------------------------ */

/* Takes the job on until it waits for the medium or is over. */
static void step_flush(rmq_shell *shell, rmq_status performed)
{
    rmq_status status = rmq_job_next(&shell->flush, performed, &shell->operation);

    while (status == RMQ_PENDING) {
        performed = rmq_disk_start(shell->disk, &shell->operation, &shell->work);
        if (performed == RMQ_OK) {
            rmq_flusher_ask(&shell->flusher, &shell->work);
            return;
        }
        if (performed == RMQ_PENDING) {
            shell->is_flush_late = true;
            return;
        }
        status = rmq_job_next(&shell->flush, performed, &shell->operation);
    }
    shell->is_flushing = false;
    if (status != RMQ_OK || rmq_durable(shell->plane, shell->flush.result, shell->now) != RMQ_OK) {
        rmq_shell_fail(shell);
        return;
    }
    if (shell->tells_flush && RMQ_IS_RIGHT(RMQ_MISTAKE_FLUSH_UNTOLD)) {
        shell->tells_flush = false;
        post_number(shell, RMQ_UP_DURABLE, shell->flush.result);
    }
}

/* A flush that found no descriptor tries again: nothing of it has happened yet. */
static void try_late_flush(rmq_shell *shell)
{
    const rmq_status status = rmq_disk_start_again(shell->disk, &shell->work);

    if (status == RMQ_PENDING) {
        return;
    }
    shell->is_flush_late = false;
    if (status == RMQ_OK) {
        rmq_flusher_ask(&shell->flusher, &shell->work);
    } else {
        step_flush(shell, status);
    }
}

/* One flush at a time; it covers what is written when it begins. */
static void flush(rmq_shell *shell)
{
    if (shell->is_flush_late) {
        try_late_flush(shell);
    } else if (shell->is_flushing && rmq_flusher_heard(&shell->flusher)) {
        step_flush(shell, rmq_disk_finish(shell->disk, &shell->work));
    }
    while (!shell->is_flushing && (shell->plane->wants_flush || shell->wants_flush) && !shell->has_failed) {
        shell->tells_flush = shell->wants_flush;
        shell->plane->wants_flush = shell->wants_flush = false;
        shell->is_flushing = true;
        rmq_start_flush(&shell->flush, shell->store);
        step_flush(shell, RMQ_OK);
    }
}

/* --- a turn -------------------------------------------------------------------------------------------------------- */

static int time_to_rest(const rmq_shell *shell)
{
    if (shell->is_stalled) {
        return STALL_MS;
    }
    if (shell->ready != NULL || shell->dirty != NULL || shell->has_more) {
        return 0;
    }
    return shell->waits || shell->is_flush_late || shell->accept_after_ms > 0 || shell->is_draining ? TICK_MS : REST_MS;
}

/* Everything that has something: it is received here, and served under the lock. */
static void receive_all(rmq_shell *shell, const struct epoll_event *events, int count)
{
    bool has_letters = false;

    for (int i = 0; i < count; i++) {
        void *from = events[i].data.ptr;

        if (from == &shell->down) {
            has_letters = true;
        } else if (from == &shell->ended_bell) {
            uint64_t rings;

            (void)!read(shell->ended_bell, &rings, sizeof rings);
        } else if (from >= (void *)shell->listeners && from < (void *)(shell->listeners + RMQ_LISTENERS_MAX)) {
            rmq_accept(shell, from);
        } else {
            rmq_peer *peer = from;

            if ((events[i].events & (EPOLLHUP | EPOLLERR)) != 0 && (peer->interest & EPOLLIN) == 0) {
                rmq_end_peer(shell, peer); /* nobody will read what it said last */
                continue;
            }
            if ((events[i].events & EPOLLOUT) != 0) {
                rmq_mark_dirty(shell, peer);
            }
            rmq_receive(shell, peer);
        }
    }
    if (has_letters) {
        read_letters(shell);
    }
}

static void serve_ready(rmq_shell *shell)
{
    rmq_peer *peer = shell->ready;

    shell->ready = NULL;
    while (peer != NULL) {
        rmq_peer *next = peer->next_ready;

        peer->is_ready = false;
        rmq_serve_peer(shell, peer);
        peer = next;
    }
}

static void dispatch(rmq_shell *shell)
{
    bool went_on = true;

    for (int64_t count = 0; went_on && count < RMQ_DISPATCH_PER_TURN; count += DISPATCH_STEP) {
        if (rmq_plane_dispatch(shell->plane, DISPATCH_STEP, rmq_tell_arrived, shell, &went_on, shell->now) != RMQ_OK) {
            rmq_shell_fail(shell);
            return;
        }
    }
    shell->plane->wants_dispatch = false;
    shell->has_more |= went_on;
}

/* Under the lock: see the steps at the top of shell.h. */
static void serve_turn(rmq_shell *shell)
{
    const bool ticks = shell->now.uptime_ms - shell->ticked_ms >= TICK_MS;

    serve_ready(shell);
    if ((RMQ_IS_RIGHT(RMQ_MISTAKE_LATE_WRITE) || ticks) && rmq_write_appended(shell->store) != RMQ_OK) {
        /* The places of these records were promised, in answers that have not left yet. They never will. */
        close_all(shell, rmq_end_peer);
        rmq_shell_fail(shell);
        return;
    }
    if (ticks) {
        shell->ticked_ms = shell->now.uptime_ms;
        if (rmq_tick(shell->plane, shell->now) != RMQ_OK) {
            rmq_shell_fail(shell);
        }
    }
    if (shell->drains_now) {
        if (RMQ_IS_RIGHT(RMQ_MISTAKE_NO_DRAIN)) {
            (void)rmq_drain(shell->plane, shell->now);
        }
        shell->drains_now = false;
    }
    flush(shell);
    if ((shell->plane->wants_dispatch || ticks) && !shell->has_failed) {
        dispatch(shell);
    }
    shell->waits = shell->plane->acks.count > 0 || shell->plane->hold.count > 0;
    shell->owes_acks = shell->plane->acks.count > 0;
}

static void send_dirty(rmq_shell *shell)
{
    rmq_peer *peer = shell->dirty;

    shell->dirty = NULL;
    while (peer != NULL) {
        rmq_peer *next = peer->next_dirty;

        peer->is_dirty = false;
        rmq_send_unsent(shell, peer);
        peer = next;
    }
}

/* What the clock says about connections. */
static void look_through(rmq_shell *shell)
{
    if (shell->accept_after_ms > 0 && shell->now.uptime_ms >= shell->accept_after_ms) {
        shell->accept_after_ms = 0;
        rmq_watch_listeners(shell, true);
    }
    if (shell->now.uptime_ms - shell->looked_ms >= REST_MS || shell->is_closing_all) {
        shell->looked_ms = shell->now.uptime_ms;
        if (RMQ_IS_RIGHT(RMQ_MISTAKE_IDLE_FOREVER)) {
            rmq_end_late_peers(shell);
        }
    }
    if (shell->is_closing_all && !shell->owes_acks) {
        close_all(shell, rmq_close_peer);
        send_dirty(shell);
        if (shell->peers.count == 0 && !shell->has_told_empty) {
            shell->has_told_empty = true;
            post_number(shell, RMQ_UP_EMPTY, 0);
        }
    }
}

/* Whoever is gone is on no list any more, and may be freed. */
static void free_gone(rmq_shell *shell)
{
    rmq_peer **at;

    if (shell->gone == NULL) {
        return;
    }
    for (at = &shell->ready; *at != NULL;) {
        rmq_peer *peer = *at;

        if (peer->is_gone) {
            *at = peer->next_ready;
            peer->is_ready = false;
        } else {
            at = &peer->next_ready;
        }
    }
    for (at = &shell->dirty; *at != NULL;) {
        rmq_peer *peer = *at;

        if (peer->is_gone) {
            *at = peer->next_dirty;
            peer->is_dirty = false;
        } else {
            at = &peer->next_dirty;
        }
    }
    rmq_lock_take(shell->lock);
    for (const rmq_peer *peer = shell->gone; peer != NULL; peer = peer->next_gone) {
        rmq_closed(shell->plane, peer->key.number);
    }
    rmq_lock_release(shell->lock);
    rmq_free_gone(shell);
}

static void turn(rmq_shell *shell)
{
    struct epoll_event events[EVENTS_PER_TURN];
    const int count = epoll_wait(shell->epoll, events, EVENTS_PER_TURN, time_to_rest(shell));

    shell->has_more = shell->is_stalled = false;
    shell->now = look_at_clock();
    receive_all(shell, events, count);
    rmq_lock_take(shell->lock);
    serve_turn(shell);
    rmq_lock_release(shell->lock);
    send_dirty(shell);
    look_through(shell);
    free_gone(shell);
}

/* --- the thread ---------------------------------------------------------------------------------------------------- */

/* A flush that is under way is taken to its end, because the job belongs to the store. */
static void end_turns(rmq_shell *shell)
{
    shell->now = look_at_clock();
    while (shell->is_flushing) {
        if (!shell->is_flush_late) {
            rmq_flusher_wait(&shell->flusher);
        }
        shell->is_flush_late = false;
        rmq_lock_take(shell->lock);
        step_flush(shell, rmq_disk_finish(shell->disk, &shell->work)); /* one that never began did not happen */
        rmq_lock_release(shell->lock);
    }
    rmq_lock_take(shell->lock);
    (void)rmq_write_appended(shell->store);
    (void)rmq_flush_failed(shell->plane, shell->now);
    rmq_lock_release(shell->lock);
    send_dirty(shell);
    close_all(shell, rmq_end_peer);
    free_gone(shell);
}

static void *run(void *given)
{
    rmq_shell *shell = given;

    while (!atomic_load(&shell->is_over)) {
        turn(shell);
    }
    end_turns(shell);
    return NULL;
}

rmq_status rmq_shell_start(rmq_shell *shell)
{
    sigset_t all, before;
    rmq_status status;

    assert(!shell->is_running);
    shell->now = look_at_clock();
    shell->looked_ms = shell->ticked_ms = shell->now.uptime_ms;
    /* Signals are the main thread's. Threads inherit what is blocked. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    status = rmq_flusher_start(&shell->flusher, shell->ended_bell);
    if (status == RMQ_OK && pthread_create(&shell->thread, NULL, run, shell) != 0) {
        rmq_flusher_stop(&shell->flusher);
        status = RMQ_NO_MEMORY;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    shell->is_running = status == RMQ_OK;
    return status;
}

void rmq_shell_stop(rmq_shell *shell)
{
    if (!shell->is_running) {
        return;
    }
    atomic_store(&shell->is_over, true);
    rmq_ring(shell->down.bell);
    (void)pthread_join(shell->thread, NULL);
    rmq_flusher_stop(&shell->flusher);
    shell->is_running = false;
}
