/* Mistakes that a build for tests can be made with, one at a time: -DRMQ_MISTAKE=n. Each must be found by a history
 * (conformance/mutants/native.py), and an ordinary build has none of them. */
#ifndef RMQ_STORE_MISTAKES_H
#define RMQ_STORE_MISTAKES_H

#define RMQ_MISTAKE_KEEP_OLD_UNITS 1     /* a record that gets a used queue offset does not replace the old unit */
#define RMQ_MISTAKE_EXPIRE_LIVE_UNITS 2  /* a queue file goes although its last message is in the log */
#define RMQ_MISTAKE_SERVE_UNFLUSHED 3    /* with sync flush, dispatch goes past the flushed position */
#define RMQ_MISTAKE_FLUSH_TOO_FAR 4      /* a flush counts what was written while it waited as durable */
#define RMQ_MISTAKE_NO_BLANK 5           /* a file of the log ends without a blank record */
#define RMQ_MISTAKE_TIME_GOES_BACK 6     /* store times follow a clock that is set back */
#define RMQ_MISTAKE_INDEX_ONE_KEY 7      /* only the first key of a message is indexed */
#define RMQ_MISTAKE_CHECKPOINT_EARLY 8   /* the checkpoint says what is true after its flushes, not before */
#define RMQ_MISTAKE_ACCEPT_AFTER_FAIL 9  /* puts are accepted after a flush has failed */
#define RMQ_MISTAKE_SKIP_WHEN_FULL 10    /* a read passes over the message at which it is full */
#define RMQ_MISTAKE_QUEUES_UNFLUSHED 11  /* the checkpoint is written without flushing the queues */
#define RMQ_MISTAKE_KEEP_OFFSETS 12      /* a deleted topic goes on with its old queue offsets */
#define RMQ_MISTAKE_PREPARED_QUEUED 13   /* a prepared message takes a queue offset */
#define RMQ_MISTAKE_LOSE_TAIL 14         /* a roll of a queue file forgets the tail in memory */
#define RMQ_MISTAKE_KEEP_PAGES 15        /* the index is flushed without what is in memory */

#ifndef RMQ_MISTAKE
#define RMQ_MISTAKE 0
#endif

/* Whether this build does the right thing at the place of a mistake; the compiler knows the answer. */
#define RMQ_IS_RIGHT(mistake) (RMQ_MISTAKE != (mistake))

#endif
