/* See acks.h. */
#include "acks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

rmq_put *rmq_put_new(const rmq_append_plan *plan, rmq_text ids)
{
    const size_t places_bytes = plan->count * sizeof *plan->places;
    rmq_put *put = calloc(1, sizeof *put + places_bytes + plan->topic.size + ids.size);
    uint8_t *behind;

    assert(plan->count > 0 && plan->durable_at > plan->physical_offset);
    if (put == NULL) {
        return NULL;
    }
    put->places = (rmq_place *)(put + 1);
    memcpy(put->places, plan->places, places_bytes);
    behind = (uint8_t *)put->places + places_bytes;
    memcpy(behind, plan->topic.at, plan->topic.size);
    put->topic = (rmq_text){behind, plan->topic.size};
    behind += plan->topic.size;
    memcpy(behind, ids.at, ids.size);
    put->ids = (rmq_text){behind, ids.size};
    put->queue_id = plan->queue_id;
    put->queue_offset = plan->queue_offset;
    put->durable_at = plan->durable_at;
    put->count = plan->count;
    put->size_bytes = (int64_t)plan->data.size;
    return put;
}

void rmq_acks_add(rmq_acks *acks, rmq_put *put)
{
    assert(put->next == NULL);
    assert(acks->last == NULL || acks->last->durable_at < put->durable_at); /* the order of the log */
    if (acks->last != NULL) {
        acks->last->next = put;
    } else {
        acks->first = put;
    }
    acks->last = put;
    acks->count += 1;
}

rmq_put *rmq_acks_take(rmq_acks *acks)
{
    rmq_put *put = acks->first;

    assert(put != NULL && acks->count > 0);
    acks->first = put->next;
    if (acks->first == NULL) {
        acks->last = NULL;
    }
    acks->count -= 1;
    assert((acks->count == 0) == (acks->first == NULL));
    return put;
}

void rmq_acks_free(rmq_acks *acks)
{
    while (acks->first != NULL) {
        free(rmq_acks_take(acks));
    }
}
