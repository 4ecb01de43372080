/* Bytes that come at one end and go at the other: what one direction of a connection holds.
 *
 * The memory grows with what is really there, never with what a peer announces, up to a bound that is given once. It is
 * let go when everything has gone and it had become large.
 */
#ifndef RMQ_PLANE_BUFFER_H
#define RMQ_PLANE_BUFFER_H

#include "../core/status.h"

#include <stddef.h>
#include <stdint.h>

#define RMQ_BUFFER_FIRST_BYTES 4096u /* nearly all requests and answers fit */
#define RMQ_BUFFER_KEPT_BYTES 65536u /* more than this is not kept by a connection that is idle */

typedef struct {
    uint8_t *memory; /* null as long as nothing has come */
    size_t capacity;
    size_t start; /* of what is held */
    size_t end;
    size_t bound; /* of what may be held */
} rmq_buffer;

/* An empty buffer for at most `bound` bytes, which is not 0. */
void rmq_buffer_init(rmq_buffer *buffer, size_t bound);

void rmq_buffer_free(rmq_buffer *buffer);

/* How many bytes are held, and the first of them. */
size_t rmq_buffer_held(const rmq_buffer *buffer);
const uint8_t *rmq_buffer_first(const rmq_buffer *buffer);

/* Sets `*at` to room for `size` more bytes, which rmq_buffer_add then makes part of what is held. What is held may move.
 * RMQ_NO_ROOM beyond the bound, RMQ_NO_MEMORY; then nothing has changed. */
rmq_status rmq_buffer_room(rmq_buffer *buffer, size_t size, uint8_t **at);

/* The first `size` bytes of the room that was asked for last are held now. */
void rmq_buffer_add(rmq_buffer *buffer, size_t size);

/* Both of the above for bytes that are there already. */
rmq_status rmq_buffer_put(rmq_buffer *buffer, const uint8_t *data, size_t size);

/* The first `size` of the bytes that are held go. They stay readable until something comes. */
void rmq_buffer_take(rmq_buffer *buffer, size_t size);

/* The first bytes that were taken last are held again. Nothing has come since. */
void rmq_buffer_put_back(rmq_buffer *buffer, size_t size);

/* Lets go of memory that nothing needs. Called when a turn is over: nothing that was read may be used afterwards. */
void rmq_buffer_settle(rmq_buffer *buffer);

#endif
