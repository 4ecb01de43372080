/* What a call came to. Every function of refmq_fast that can fail returns one of these; bind/ alone turns it into a
 * Python exception. */
#ifndef RMQ_CORE_STATUS_H
#define RMQ_CORE_STATUS_H

typedef enum {
    RMQ_OK = 0,
    RMQ_PENDING,     /* a job waits for an operation (store/job.h) */
    RMQ_NO_MEMORY,   /* an allocation failed; nothing was changed */
    RMQ_DAMAGED,     /* bytes that somebody else wrote are wrong; an rmq_damage says where */
    RMQ_UNFIT,       /* a number or a length does not fit its field */
    RMQ_MISUSE,      /* the caller is wrong; the store has a sentence about it */
    RMQ_DISK_FULL,   /* no room; nothing was changed */
    RMQ_DISK_FAILED, /* an operation on the disk failed */
    RMQ_DIED,        /* what performs the operations died in one, and nothing may go on */
    RMQ_FAILED,      /* an earlier flush or write of this store failed */
    RMQ_MORE,        /* of what came over a connection, not all bytes are there yet */
    RMQ_NOT_MINE,    /* damaged, or legal and rare: the reference looks at it and finds the words */
    RMQ_NO_ROOM      /* the caller's buffer is too small */
} rmq_status;

/* Passes every other status than RMQ_OK on to the caller. */
#define RMQ_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const rmq_status status_ = (call);                                                                             \
        if (status_ != RMQ_OK) {                                                                                       \
            return status_;                                                                                            \
        }                                                                                                              \
    } while (0)

/* For a function that the path of an ordinary message does not enter: it stays a call, and leaves its caller small. */
#if defined(__GNUC__)
#define RMQ_RARE __attribute__((noinline, cold))
#else
#define RMQ_RARE
#endif

#endif
