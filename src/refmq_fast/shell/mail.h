/* Letters between the IO thread and the control plane: two boxes, each with one writer, one reader and a bell, an eventfd
 * that a loop can wait for. What is in a box stays in its order.
 */
#ifndef RMQ_SHELL_MAIL_H
#define RMQ_SHELL_MAIL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "../core/record.h"
#include "../core/status.h"

typedef enum {
    /* Up, to the control plane. */
    RMQ_UP_FRAME,    /* a frame that is not for C, or bytes that are none */
    RMQ_UP_SOCKET,   /* a connection that may speak TLS; `number` is the descriptor, which goes with the letter */
    RMQ_UP_PULL,     /* a parked pull that C cannot serve any more: its header, of `split` bytes, and its body */
    RMQ_UP_CLOSED,   /* a connection of which the control plane has heard is gone */
    RMQ_UP_EMPTY,    /* after RMQ_DOWN_CLOSE_ALL: no connection is left */
    RMQ_UP_ARRIVED,  /* a record of a watched topic: the topic, of `split` bytes, and the properties */
    RMQ_UP_MISSED,   /* there were too many of those: anything may have arrived */
    RMQ_UP_DURABLE,  /* the flush that was asked for has ended: the log is durable up to `number` */
    RMQ_UP_FAILED,   /* the engine cannot go on */
    /* Down, to the IO thread. */
    RMQ_DOWN_WRITE,  /* bytes for a peer */
    RMQ_DOWN_BEGUN,  /* the control plane has begun `number` frames of a connection */
    RMQ_DOWN_PAUSE,  /* no more frames of this connection */
    RMQ_DOWN_RESUME,
    RMQ_DOWN_CLOSE,  /* when everything has been sent */
    RMQ_DOWN_ABORT,  /* now */
    RMQ_DOWN_WORK,   /* the control plane has put something into the log */
    RMQ_DOWN_FLUSH,  /* and waits until it is durable */
    RMQ_DOWN_LISTEN, /* one more listening socket: `number` is the descriptor, which goes with the letter */
    RMQ_DOWN_DRAIN,  /* the broker stops: no more connections and frames, and no pull waits on */
    RMQ_DOWN_CLOSE_ALL,
    RMQ_DOWN_ABORT_ALL
} rmq_letter_kind;

typedef struct {
    int64_t queue_id;
    int64_t queue_offset;
    int64_t physical_offset;
    int64_t size_bytes;
    int64_t tags_code;
    int64_t store_timestamp_ms;
} rmq_arrival;

typedef struct rmq_letter {
    struct rmq_letter *next;
    rmq_letter_kind kind;
    int64_t connection;
    int64_t number;
    rmq_host peer;
    uint8_t serialize;
    bool on_vip_port;
    rmq_arrival arrival;
    size_t split;
    size_t size; /* of the bytes */
    uint8_t bytes[];
} rmq_letter;

typedef struct {
    pthread_mutex_t mutex;
    rmq_letter *first;
    rmq_letter *last;
    size_t held_bytes;
    int bell;
} rmq_mailbox;

/* RMQ_NO_MEMORY, also when there are no descriptors left. */
rmq_status rmq_mailbox_open(rmq_mailbox *box);

/* Frees what nobody has read. */
void rmq_mailbox_close(rmq_mailbox *box);

/* A letter with room for so many bytes; NULL without memory. */
rmq_letter *rmq_letter_new(rmq_letter_kind kind, int64_t connection, size_t size);
void rmq_letter_free(rmq_letter *letter);

/* Gives a letter away. The bell rings behind it, if it does not ring already. */
void rmq_post(rmq_mailbox *box, rmq_letter *letter);

/* Everything that is there, oldest first. The bell is silenced before, so that a letter that comes in between rings it
 * again: no letter waits in silence. */
rmq_letter *rmq_collect(rmq_mailbox *box);

/* What the letters hold that are in the box. */
size_t rmq_mailbox_bytes(rmq_mailbox *box);

/* Rings without a letter. */
void rmq_ring(int bell);

#endif
