/* See buffer.h. */
#include "buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void check(const rmq_buffer *buffer)
{
    assert(buffer->start <= buffer->end && buffer->end <= buffer->capacity);
    assert(buffer->end - buffer->start <= buffer->bound && buffer->capacity <= buffer->bound);
    (void)buffer;
}

void rmq_buffer_init(rmq_buffer *buffer, size_t bound)
{
    assert(bound > 0);
    *buffer = (rmq_buffer){.bound = bound};
}

void rmq_buffer_free(rmq_buffer *buffer)
{
    free(buffer->memory);
    *buffer = (rmq_buffer){.bound = buffer->bound};
}

size_t rmq_buffer_held(const rmq_buffer *buffer)
{
    check(buffer);
    return buffer->end - buffer->start;
}

const uint8_t *rmq_buffer_first(const rmq_buffer *buffer)
{
    check(buffer);
    return buffer->memory == NULL ? NULL : buffer->memory + buffer->start;
}

/* At least twice what there was, so that a long frame in small pieces is moved a few times only. */
static size_t grown(const rmq_buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity == 0 ? RMQ_BUFFER_FIRST_BYTES : buffer->capacity;

    while (capacity < needed) {
        capacity = capacity > buffer->bound / 2 ? buffer->bound : capacity * 2;
    }
    return capacity < buffer->bound ? capacity : buffer->bound;
}

rmq_status rmq_buffer_room(rmq_buffer *buffer, size_t size, uint8_t **at)
{
    const size_t held = rmq_buffer_held(buffer);
    uint8_t *memory;
    size_t capacity;

    if (size > buffer->bound - held) {
        return RMQ_NO_ROOM;
    }
    if (held + size > buffer->capacity) {
        capacity = grown(buffer, held + size);
        memory = malloc(capacity);
        if (memory == NULL) {
            return RMQ_NO_MEMORY;
        }
        if (held > 0) {
#ifndef RMQ_MISTAKE_CONN_STALE_START
            memcpy(memory, buffer->memory + buffer->start, held);
#else /* seeded for the fuzzer: what has been taken already is moved along */
            memcpy(memory, buffer->memory, held);
#endif
        }
        free(buffer->memory);
        buffer->memory = memory;
        buffer->capacity = capacity;
        buffer->start = 0;
        buffer->end = held;
    } else if (size > buffer->capacity - buffer->end) {
        memmove(buffer->memory, buffer->memory + buffer->start, held);
        buffer->start = 0;
        buffer->end = held;
    }
    check(buffer);
    *at = buffer->memory + buffer->end;
    return RMQ_OK;
}

void rmq_buffer_add(rmq_buffer *buffer, size_t size)
{
    assert(size <= buffer->capacity - buffer->end);
    buffer->end += size;
    check(buffer);
}

rmq_status rmq_buffer_put(rmq_buffer *buffer, const uint8_t *data, size_t size)
{
    uint8_t *at;

    if (size > 0) {
        RMQ_TRY(rmq_buffer_room(buffer, size, &at));
        memcpy(at, data, size);
        rmq_buffer_add(buffer, size);
    }
    return RMQ_OK;
}

void rmq_buffer_take(rmq_buffer *buffer, size_t size)
{
    assert(size <= rmq_buffer_held(buffer));
    buffer->start += size;
}

void rmq_buffer_put_back(rmq_buffer *buffer, size_t size)
{
    assert(size <= buffer->start);
    buffer->start -= size;
    check(buffer);
}

void rmq_buffer_settle(rmq_buffer *buffer)
{
    check(buffer);
    if (buffer->start < buffer->end) {
        return;
    }
    buffer->start = buffer->end = 0;
    if (buffer->capacity > RMQ_BUFFER_KEPT_BYTES) {
        rmq_buffer_free(buffer);
    }
}
