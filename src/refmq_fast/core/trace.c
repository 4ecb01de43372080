/* The event record of a trace, see trace.h. */
#include "trace.h"

#include "bytes.h"

#define KIND_EVENT 0x01

void rmq_trace_pack_event(const rmq_trace_event *event, uint8_t *record)
{
    record[0] = KIND_EVENT;
    record[1] = event->outcome;
    rmq_store_le16(record + 2, event->action);
    rmq_store_le32(record + 4, event->sequence);
    rmq_store_le64(record + 8, (uint64_t)event->at_ns);
    rmq_store_le64(record + 16, (uint64_t)event->a);
    rmq_store_le64(record + 24, (uint64_t)event->b);
    rmq_store_le64(record + 32, (uint64_t)event->c);
    rmq_store_le32(record + 40, event->d);
    rmq_store_le32(record + 44, event->actor);
    rmq_store_le32(record + 48, event->subject);
    rmq_store_le32(record + 52, (uint32_t)event->queue_id);
    rmq_store_le64(record + 56, event->operation);
}
