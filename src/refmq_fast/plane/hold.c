/* See hold.h. */
#include "hold.h"

#include "mistakes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

rmq_held *rmq_held_new(rmq_text header, rmq_text body)
{
    rmq_held *pull = calloc(1, sizeof *pull + header.size + body.size);
    uint8_t *behind;

    if (pull == NULL) {
        return NULL;
    }
    behind = (uint8_t *)(pull + 1);
    memcpy(behind, header.at, header.size);
    pull->header = (rmq_text){behind, header.size};
    if (body.size > 0) {
        memcpy(behind + header.size, body.at, body.size);
    }
    pull->body = (rmq_text){behind + header.size, body.size};
    return pull;
}

/* The list with this key, made if it is new; NULL without memory. */
static rmq_held_list *list_for(rmq_table *table, rmq_text text, int64_t number)
{
    rmq_held_list *list = rmq_table_find(table, text, number);
    uint8_t *copy;

    if (list != NULL) {
        return list;
    }
    list = calloc(1, sizeof *list + text.size + 1);
    if (list == NULL) {
        return NULL;
    }
    copy = (uint8_t *)(list + 1);
    if (text.size > 0) {
        memcpy(copy, text.at, text.size);
    }
    list->key.text = (rmq_text){copy, text.size};
    list->key.number = number;
    if (rmq_table_add(table, &list->key) != RMQ_OK) {
        free(list);
        return NULL;
    }
    return list;
}

static void drop_empty(rmq_table *table, rmq_held_list *list)
{
    if (list != NULL && list->first == NULL) {
        rmq_table_remove(table, &list->key);
        free(list);
    }
}

static int64_t bytes_of(size_t frame_bytes)
{
    return (int64_t)(sizeof(rmq_held) + frame_bytes);
}

bool rmq_hold_has_room(const rmq_hold *hold, rmq_text topic, int64_t queue_id, size_t frame_bytes)
{
    const rmq_held_list *list = rmq_table_find(&hold->by_queue, topic, queue_id);

    return hold->count < RMQ_HELD_MAX && (list == NULL || list->count < RMQ_HELD_PER_QUEUE_MAX) &&
           hold->size_bytes + bytes_of(frame_bytes) <= RMQ_HOLD_BYTES_MAX;
}

rmq_status rmq_park(rmq_hold *hold, rmq_held *pull, rmq_text topic, int64_t queue_id)
{
    rmq_held_list *here, *there;

    assert(hold->count < RMQ_HELD_MAX && pull->here == NULL);
    here = list_for(&hold->by_queue, topic, queue_id);
    there = here == NULL ? NULL : list_for(&hold->by_connection, (rmq_text){NULL, 0}, pull->connection);
    if (there == NULL) {
        drop_empty(&hold->by_queue, here);
        return RMQ_NO_MEMORY;
    }
    pull->here = here;
    pull->next_here = here->first;
    if (here->first != NULL) {
        here->first->last_here = pull;
    }
    here->first = pull;
    pull->there = there;
    pull->next_there = there->first;
    if (there->first != NULL) {
        there->first->last_there = pull;
    }
    there->first = pull;
    here->count += 1;
    there->count += 1;
    hold->count += 1;
    hold->size_bytes += bytes_of(pull->header.size + pull->body.size);
    return RMQ_OK;
}

/* Takes a pull out, and both lists if they are empty then. */
static void unpark(rmq_hold *hold, rmq_held *pull)
{
    if (pull->last_here != NULL) {
        pull->last_here->next_here = pull->next_here;
    } else {
        pull->here->first = pull->next_here;
    }
    if (pull->next_here != NULL) {
        pull->next_here->last_here = pull->last_here;
    }
    if (pull->last_there != NULL) {
        pull->last_there->next_there = pull->next_there;
    } else {
        pull->there->first = pull->next_there;
    }
    if (pull->next_there != NULL) {
        pull->next_there->last_there = pull->last_there;
    }
    pull->here->count -= 1;
    pull->there->count -= 1;
    hold->size_bytes -= bytes_of(pull->header.size + pull->body.size);
    assert(hold->size_bytes >= 0);
    drop_empty(&hold->by_queue, pull->here);
    drop_empty(&hold->by_connection, pull->there);
    pull->here = pull->there = NULL;
    hold->count -= 1;
    assert(hold->count >= 0);
    assert((hold->count == 0) == (hold->by_queue.count == 0) && (hold->count == 0) == (hold->by_connection.count == 0));
}

static bool wants(const rmq_held *pull, int64_t queue_offset, int64_t tags_code)
{
    const int32_t code = (int32_t)(uint32_t)((uint64_t)tags_code & 0xffffffffu);

    if (queue_offset < pull->queue_offset + (RMQ_IS_RIGHT(RMQ_MISTAKE_WAKE_OFF_BY_ONE) ? 0 : 1)) {
        return false;
    }
    for (size_t i = 0; i < pull->code_count; i++) {
        if (pull->codes[i] == code) {
            return true;
        }
    }
    return !pull->has_codes;
}

static rmq_held *add_to(rmq_held *first, rmq_held *pull)
{
    pull->next = first;
    return pull;
}

rmq_held *rmq_take_arrived(rmq_hold *hold, rmq_text topic, int64_t queue_id, int64_t queue_offset, int64_t tags_code)
{
    rmq_held_list *list = hold->count == 0 ? NULL : rmq_table_find(&hold->by_queue, topic, queue_id);
    rmq_held *taken = NULL;

    for (rmq_held *pull = list == NULL ? NULL : list->first, *next; pull != NULL; pull = next) {
        next = pull->next_here; /* the list itself goes with its last pull */
        if (wants(pull, queue_offset, tags_code)) {
            unpark(hold, pull);
            taken = add_to(taken, pull);
        }
    }
    return taken;
}

rmq_held *rmq_take_connection(rmq_hold *hold, int64_t connection)
{
    rmq_held_list *list = rmq_table_find(&hold->by_connection, (rmq_text){NULL, 0}, connection);
    rmq_held *taken = NULL;

    for (rmq_held *pull = list == NULL ? NULL : list->first, *next; pull != NULL; pull = next) {
        next = pull->next_there;
        unpark(hold, pull);
        taken = add_to(taken, pull);
    }
    return taken;
}

/* Every pull, as one list by `next`; all still wait. */
static rmq_held *every(const rmq_hold *hold)
{
    rmq_held *found = NULL;
    rmq_held_list *list;
    size_t at = 0;

    while ((list = rmq_table_next(&hold->by_queue, &at)) != NULL) {
        for (rmq_held *pull = list->first; pull != NULL; pull = pull->next_here) {
            found = add_to(found, pull);
        }
    }
    return found;
}

rmq_held *rmq_take_every(rmq_hold *hold)
{
    rmq_held *found = every(hold);

    for (rmq_held *pull = found; pull != NULL; pull = pull->next) {
        unpark(hold, pull);
    }
    assert(hold->count == 0);
    return found;
}

rmq_held *rmq_take_due(rmq_hold *hold, int64_t uptime_ms,
                       int64_t (*end_of)(const void *context, rmq_text topic, int64_t queue_id), const void *context)
{
    rmq_held *taken = NULL;

    for (rmq_held *pull = every(hold), *next; pull != NULL; pull = next) {
        const rmq_key *queue = &pull->here->key;

        next = pull->next;
        if (!RMQ_IS_RIGHT(RMQ_MISTAKE_NEVER_DUE)) {
            continue;
        }
        if (uptime_ms >= pull->deadline_ms || end_of(context, queue->text, queue->number) > pull->queue_offset) {
            unpark(hold, pull);
            taken = add_to(taken, pull);
        }
    }
    return taken;
}

/* A merge sort of a list: there may be a hundred thousand, and their order is nobody's promise. */
rmq_held *rmq_held_in_order(rmq_held *first)
{
    rmq_held *halves[2] = {NULL, NULL}, *sorted = NULL, **end = &sorted;
    size_t turn = 0;

    if (first == NULL || first->next == NULL) {
        return first;
    }
    while (first != NULL) {
        rmq_held *next = first->next;

        halves[turn] = add_to(halves[turn], first);
        turn = 1 - turn;
        first = next;
    }
    halves[0] = rmq_held_in_order(halves[0]);
    halves[1] = rmq_held_in_order(halves[1]);
    while (halves[0] != NULL && halves[1] != NULL) {
        const size_t lower = halves[0]->number < halves[1]->number ? 0 : 1;

        *end = halves[lower];
        end = &halves[lower]->next;
        halves[lower] = halves[lower]->next;
    }
    *end = halves[0] != NULL ? halves[0] : halves[1];
    return sorted;
}

void rmq_held_free(rmq_held *first)
{
    while (first != NULL) {
        rmq_held *next = first->next;

        free(first);
        first = next;
    }
}

void rmq_hold_free(rmq_hold *hold)
{
    rmq_held_free(rmq_take_every(hold));
    rmq_table_free(&hold->by_queue);
    rmq_table_free(&hold->by_connection);
}
