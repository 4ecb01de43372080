/* The event record of a trace: 64 bytes, little-endian, laid out in the table at the top of refmq/trace/record.py.
 *
 * Strings are numbers here: whoever packs an event has entered them into the table of the file before. The function
 * cannot fail, so it returns no status; it may be called from any thread.
 */
#ifndef RMQ_CORE_TRACE_H
#define RMQ_CORE_TRACE_H

#include <stdint.h>

#define RMQ_TRACE_RECORD_BYTES 64

/* The fields of an event in the order of the record; `kind` is always that of an event. */
typedef struct {
    uint8_t outcome;
    uint16_t action;
    uint32_t sequence;
    int64_t at_ns;
    int64_t a;
    int64_t b;
    int64_t c;
    uint32_t d;
    uint32_t actor;
    uint32_t subject;
    int32_t queue_id;
    uint64_t operation;
} rmq_trace_event;

/* Writes the record of `event` to the RMQ_TRACE_RECORD_BYTES bytes at `record`, which may be unaligned. */
void rmq_trace_pack_event(const rmq_trace_event *event, uint8_t *record);

#endif
