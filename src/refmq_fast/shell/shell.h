/* The shell of the C plane: sockets, threads and clocks around a pure plane and its store. It decides nothing that a
 * message depends on.
 *
 *     IO thread      reads frames, serves them, writes what the turn has appended, sends the answers (loop.c)
 *     flusher        performs one flush at a time (flusher.c)
 *     control plane  Python, which owns the tables, and serves what is handed over
 *
 * What they share: the plane and the store below it, under one lock (lock.h); two boxes of letters (mail.h); a slot for a
 * flush. Connections and their buffers are the IO thread's alone. spec/engine_threads is the model of all this.
 *
 * A turn of the IO thread, in this order:
 *
 *     1  wait                     for sockets, letters, the flusher and the clock
 *     2  receive                  from every socket that has something, without the lock
 *     3  take the lock
 *     4     serve                 the frames that came; answers gather in the connections
 *     5     write what was appended, in one write, and only then dispatch it: pulls wake up
 *     6     begin or continue a flush
 *     7  release it
 *     8  send                     the answers: nothing leaves before what it promises is written
 */
#ifndef RMQ_SHELL_SHELL_H
#define RMQ_SHELL_SHELL_H

#include <stdatomic.h>

#include "../plane/conn.h"
#include "../plane/plane.h"
#include "../store/jobs.h"
#include "flusher.h"
#include "lock.h"
#include "mail.h"
#include "notes.h"

#define RMQ_LISTENERS_MAX 4u
#define RMQ_FRAMES_PER_TURN 64u      /* of one connection, before the others have their turn */
#define RMQ_HANDED_PER_PEER_MAX 64u  /* frames of one connection that the control plane has not begun */
#define RMQ_HANDED_BYTES_MAX (64u << 20) /* of all connections; behind it frames wait in their connections */
#define RMQ_DISPATCH_PER_TURN 1024
#define RMQ_TOLD_MAX 4096u           /* arrivals that the control plane has not read */
#define RMQ_WATCHED_MAX 100000u

typedef struct {
    rmq_conn_limits conn;
    int64_t connections_max;
    int64_t memory_bytes_max; /* of all connections together; behind it the one that holds the most ends */
    int64_t linger_ms;        /* how long a connection may take to send what is left */
    enum { RMQ_TLS_NEVER, RMQ_TLS_MAYBE, RMQ_TLS_ALWAYS } tls;
} rmq_shell_limits;

/* One connection. */
typedef struct rmq_peer {
    rmq_key key; /* no text, and its number */
    int fd;
    rmq_host host;
    bool on_vip_port;
    rmq_conn conn;
    uint32_t interest; /* what epoll waits for */
    int64_t came_ms;   /* when bytes came last, in uptime */
    int64_t close_by_ms; /* while it closes: then it is cut */
    size_t accounted;  /* what the budget knows of it */
    bool is_fresh;     /* nothing has come yet: it may turn out to speak TLS */
    bool is_told;      /* the control plane has heard of it */
    bool is_paused;    /* by the control plane */
    bool is_closing;
    bool is_gone;
    bool is_ready;     /* on the list of those with something to serve */
    bool is_dirty;     /* on the list of those with something to send or to settle */
    struct rmq_peer *next_ready;
    struct rmq_peer *next_dirty;
    struct rmq_peer *next_gone;
} rmq_peer;

typedef struct {
    int fd;
    bool on_vip_port;
    bool is_waited_for; /* by epoll */
} rmq_listener;

/* A topic whose arrivals the control plane wants to hear of. */
typedef struct {
    rmq_key key;
} rmq_watched;

typedef struct {
    rmq_shell_limits limits;
    rmq_store *store;
    rmq_plane *plane;
    rmq_posix_disk *disk;
    rmq_lock *lock;
    rmq_notes *notes; /* NULL: nobody traces */
    rmq_mailbox up;
    rmq_mailbox down;
    rmq_flusher flusher;
    pthread_t thread;
    bool is_running;
    atomic_bool is_over;

    /* Under the lock. */
    rmq_table watched; /* of rmq_watched */
    atomic_size_t told; /* arrivals that are in the box */
    atomic_bool has_missed;

    /* Read by everybody, for those who look. */
    atomic_int_fast64_t connections;
    atomic_int_fast64_t refused;
    atomic_int_fast64_t held_bytes;

    /* The IO thread's. */
    int epoll;
    int ended_bell; /* the flusher's */
    rmq_listener listeners[RMQ_LISTENERS_MAX];
    size_t listener_count;
    rmq_table peers; /* of rmq_peer */
    rmq_peer *ready;
    rmq_peer *dirty;
    rmq_peer *gone;
    int64_t last_connection;
    int64_t last_frame;
    uint64_t draw; /* the state of a random number generator */
    rmq_moment now;
    int64_t looked_ms;       /* when the connections were last looked through for those whose time is up */
    int64_t ticked_ms;
    int64_t accept_after_ms; /* while there are no descriptors */
    int64_t answered;        /* the number of the frame that was answered last */
    bool has_more;           /* something was left for the next turn */
    bool is_stalled;         /* a frame waits for the control plane to read its letters */
    bool waits;              /* somebody waits for a flush or a message: the clock matters */
    bool owes_acks;          /* somebody waits for a flush */
    bool wants_flush;        /* the control plane waits for one */
    bool is_flushing;
    bool tells_flush;        /* the flush under way is one that the control plane waits for */
    bool is_flush_late;      /* it waits for a descriptor */
    rmq_job flush;
    rmq_operation operation; /* what it wants performed */
    rmq_disk_work work;
    bool is_draining;
    bool drains_now;         /* it has just begun */
    bool is_closing_all;
    bool has_told_empty;
    bool has_failed;
} rmq_shell;

/* A shell around an open plane and its store. `plane->port` is set to it; `disk` is the store's. RMQ_NO_MEMORY. */
rmq_status rmq_shell_new(rmq_store *store, rmq_plane *plane, rmq_posix_disk *disk, rmq_lock *lock, rmq_notes *notes,
                         const rmq_shell_limits *limits, uint64_t seed, rmq_shell **shell);

rmq_status rmq_shell_start(rmq_shell *shell);

/* Ends the threads: takes a flush that is under way to its end, tells who still waits that it came too late, and cuts
 * what is still connected. */
void rmq_shell_stop(rmq_shell *shell);

void rmq_shell_free(rmq_shell *shell);

/* The control plane wants to hear of records of this topic, or no longer. The caller holds the lock. */
rmq_status rmq_shell_watch(rmq_shell *shell, rmq_text topic);
void rmq_shell_unwatch(rmq_shell *shell, rmq_text topic);

/* The control plane has read an arrival. */
void rmq_shell_heard(rmq_shell *shell, const rmq_letter *letter);

/* --- for the files of this folder ---------------------------------------------------------------------------------- */

/* peers.c: connections. */
void rmq_accept(rmq_shell *shell, rmq_listener *listener);
void rmq_receive(rmq_shell *shell, rmq_peer *peer);
void rmq_send_unsent(rmq_shell *shell, rmq_peer *peer);
void rmq_end_peer(rmq_shell *shell, rmq_peer *peer);
void rmq_close_peer(rmq_shell *shell, rmq_peer *peer);
void rmq_mark_ready(rmq_shell *shell, rmq_peer *peer);
void rmq_mark_dirty(rmq_shell *shell, rmq_peer *peer);
rmq_peer *rmq_peer_of(const rmq_shell *shell, int64_t number);
void rmq_end_late_peers(rmq_shell *shell);
void rmq_free_gone(rmq_shell *shell);
void rmq_watch_listeners(rmq_shell *shell, bool is_wanted);

/* serve.c: frames. */
void rmq_serve_peer(rmq_shell *shell, rmq_peer *peer);
rmq_port rmq_shell_port(rmq_shell *shell);
rmq_status rmq_tell_arrived(void *shell, const rmq_dispatched *message);

/* loop.c. */
void rmq_shell_fail(rmq_shell *shell);

#endif
