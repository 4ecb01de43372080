/* Digests of a trace: sums over the events of one place range, by which many sides are compared at once.
 *
 * A row of a trace that takes part has a role (appended, dispatched, consumed, ...). All rows with the same queue, role,
 * `b >> RMQ_DIGEST_SHIFT` and, where the role is one of a group's, group are one cell: their number, four sums of hashes
 * modulo 2^64, and the smallest and the largest time. `refmq.verify.spark.digest` says what the sums mean and has the
 * same arithmetic in numpy.
 */
#ifndef RMQ_CORE_DIGEST_H
#define RMQ_CORE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define RMQ_DIGEST_SHIFT 10
#define RMQ_DIGEST_OUTCOMES 6
#define RMQ_DIGEST_ROW_BYTES 64
#define RMQ_DIGEST_EVENT 0x01 /* the first byte of a row that is an event */

/* What a role table holds for a string and an outcome: a role below 0x20, 0 for none, and flags. */
#define RMQ_DIGEST_ROLE 0x1f
#define RMQ_DIGEST_HAS_STATUS 0x40 /* a `d` other than 0 makes it the next role */
#define RMQ_DIGEST_HAS_GROUP 0x80  /* cells are told apart by the group of the actor */

typedef struct {
    uint64_t queue;
    uint64_t group; /* 0 for a role without groups */
    int64_t range;
    uint64_t role;
    uint64_t count; /* 0: a cell that is not used */
    uint64_t sum_b;
    uint64_t sum_bc;
    uint64_t sum_ab;
    uint64_t sum_bd;
    int64_t first_ns;
    int64_t last_ns;
} rmq_digest_cell;

/* What the strings of a file stand for, by their numbers. */
typedef struct {
    size_t count;
    const uint8_t *roles;   /* RMQ_DIGEST_OUTCOMES of each */
    const uint64_t *topics; /* as a subject: topic and broker */
    const uint64_t *groups; /* as an actor */
    uint64_t keys[4];       /* of the four sums */
} rmq_digest_names;

/* Adds `count` rows of RMQ_DIGEST_ROW_BYTES to `cells`, a table of `capacity` cells, a power of two from 8 on, all zero
 * in the beginning, of which `*used` are in use. Returns how many rows were taken: fewer than `count` when the table is
 * three quarters full; whoever calls empties it and goes on. Rows with a string or an outcome that is not in `names`
 * take no part. */
size_t rmq_digest_rows(const uint8_t *rows, size_t count, const rmq_digest_names *names, rmq_digest_cell *cells,
                       size_t capacity, size_t *used);

/* What a quick look at a trace says, in one pass over rows while they are in the cache: the digest and a census. */
typedef struct {
    uint64_t *counts; /* events by the string of their action, RMQ_DIGEST_OUTCOMES of each */
    uint8_t *actors;  /* 1 for a string that was an actor */
    int64_t first_ns; /* the smallest time; INT64_MAX in the beginning */
    int64_t last_ns;  /* the largest; INT64_MIN in the beginning */
    rmq_digest_cell *cells;
    size_t cell_capacity; /* a power of two from 8 on */
    size_t cells_used;
    uint64_t *places; /* subjects and queues that were met: (subject << 32 | queue) + 1, or 0 */
    size_t place_capacity;
    size_t places_used;
} rmq_survey;

/* Adds `count` rows to a survey. Returns how many were taken: fewer when one of its tables is three quarters full, or
 * before a row that is no event, or whose outcome or strings are not in `names`. */
size_t rmq_survey_rows(const uint8_t *rows, size_t count, const rmq_digest_names *names, rmq_survey *survey);

#endif
