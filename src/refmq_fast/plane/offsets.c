/* See offsets.h. */
#include "offsets.h"

#include "mistakes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t bytes[RMQ_OFFSET_NAMES_MAX];
    rmq_text text;
} names;

static bool join(rmq_text topic, rmq_text group, names *joined)
{
    if (topic.size >= RMQ_OFFSET_NAMES_MAX / 2 || group.size >= RMQ_OFFSET_NAMES_MAX / 2) {
        return false;
    }
    if (topic.size > 0) {
        memcpy(joined->bytes, topic.at, topic.size);
    }
    joined->bytes[topic.size] = 0;
    if (group.size > 0) {
        memcpy(joined->bytes + topic.size + 1, group.at, group.size);
    }
    joined->text = (rmq_text){joined->bytes, topic.size + 1 + group.size};
    return true;
}

static rmq_offset *add(rmq_offsets *offsets, rmq_text text, size_t topic_size, int64_t number)
{
    rmq_offset *made = calloc(1, sizeof *made + text.size);
    uint8_t *copy;

    if (made == NULL) {
        return NULL;
    }
    copy = (uint8_t *)(made + 1);
    memcpy(copy, text.at, text.size);
    made->key.text = (rmq_text){copy, text.size};
    made->key.number = number;
    made->topic_size = topic_size;
    if (rmq_table_add(&offsets->table, &made->key) != RMQ_OK) {
        free(made);
        return NULL;
    }
    return made;
}

void rmq_offsets_free(rmq_offsets *offsets)
{
    rmq_forget_offsets(offsets);
    rmq_table_free(&offsets->table);
}

void rmq_forget_offsets(rmq_offsets *offsets)
{
    const uint64_t seed = offsets->table.seed;
    size_t at = 0;
    rmq_offset *one;

    while ((one = rmq_table_next(&offsets->table, &at)) != NULL) {
        free(one);
    }
    rmq_table_free(&offsets->table);
    memset(offsets, 0, sizeof *offsets);
    offsets->table.seed = seed;
}

const rmq_offset *rmq_offset_of(const rmq_offsets *offsets, rmq_text topic, rmq_text group, int64_t queue_id)
{
    names joined;

    return join(topic, group, &joined) ? rmq_table_find(&offsets->table, joined.text, queue_id) : NULL;
}

static void mark_changed(rmq_offsets *offsets, rmq_offset *one)
{
    if (one->has_changed) {
        return;
    }
    one->has_changed = true;
    one->next = NULL;
    if (offsets->last_changed != NULL) {
        offsets->last_changed->next = one;
    } else {
        offsets->first_changed = one;
    }
    offsets->last_changed = one;
}

rmq_status rmq_commit_offset(rmq_offsets *offsets, rmq_text topic, rmq_text group, int64_t queue_id, int64_t offset,
                             bool from_above, int64_t *before)
{
    names joined;
    rmq_offset *one;

    queue_id = RMQ_IS_RIGHT(RMQ_MISTAKE_ONE_QUEUE) ? queue_id : 0;
    if (!join(topic, group, &joined)) {
        return RMQ_NOT_MINE;
    }
    one = rmq_table_find(&offsets->table, joined.text, queue_id);
    if (one == NULL && !from_above && offsets->table.count >= RMQ_OFFSETS_MAX) {
        return RMQ_NOT_MINE;
    }
    *before = one != NULL ? one->offset : -1;
    if (one == NULL && (one = add(offsets, joined.text, topic.size, queue_id)) == NULL) {
        return RMQ_NO_MEMORY;
    }
    one->offset = offset;
    if (!from_above && RMQ_IS_RIGHT(RMQ_MISTAKE_COMMIT_UNTOLD)) {
        mark_changed(offsets, one);
    }
    assert(rmq_offset_of(offsets, topic, group, queue_id) == one);
    return RMQ_OK;
}

const rmq_offset *rmq_next_changed(rmq_offsets *offsets)
{
    rmq_offset *one = offsets->first_changed;

    if (one != NULL) {
        offsets->first_changed = one->next;
        if (offsets->first_changed == NULL) {
            offsets->last_changed = NULL;
        }
        one->has_changed = false;
        one->next = NULL;
    }
    return one;
}
