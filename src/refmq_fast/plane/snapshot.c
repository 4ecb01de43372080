/* See snapshot.h. */
#include "snapshot.h"

#include "mistakes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_BYTES_MAX 1024u /* of a group and a topic together: both have at most 255 characters where they are legal */

/* Every value begins with its key, and the text of the key is behind the value in the same allocation. */
static void *new_value(size_t size, rmq_text text)
{
    uint8_t *value = calloc(1, size + text.size + 1);

    if (value != NULL) {
        rmq_key *key = (rmq_key *)(void *)value;

        memcpy(value + size, text.at, text.size);
        key->text = (rmq_text){value + size, text.size};
        key->number = 0;
    }
    return value;
}

static void drop(rmq_table *table, rmq_text text)
{
    rmq_key *value = rmq_table_find(table, text, 0);

    if (value != NULL) {
        rmq_table_remove(table, value);
        free(value);
    }
}

static rmq_status add(rmq_table *table, void *value)
{
    const rmq_status status = value == NULL ? RMQ_NO_MEMORY : rmq_table_add(table, value);

    if (status != RMQ_OK) {
        free(value);
    }
    return status;
}

static void free_values(rmq_table *table)
{
    size_t at = 0;
    void *value;

    while ((value = rmq_table_next(table, &at)) != NULL) {
        free(value);
    }
    rmq_table_free(table);
}

void rmq_snapshot_init(rmq_snapshot *snapshot, uint64_t seed)
{
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->topics.seed = snapshot->groups.seed = snapshot->subscriptions.seed = seed;
}

void rmq_snapshot_free(rmq_snapshot *snapshot)
{
    free_values(&snapshot->topics);
    free_values(&snapshot->groups);
    free_values(&snapshot->subscriptions);
}

/* --- topics and groups --------------------------------------------------------------------------------------------- */

rmq_topic *rmq_topic_of(const rmq_snapshot *snapshot, rmq_text name)
{
    return rmq_table_find(&snapshot->topics, name, 0);
}

rmq_group *rmq_group_of(const rmq_snapshot *snapshot, rmq_text name)
{
    return rmq_table_find(&snapshot->groups, name, 0);
}

rmq_status rmq_put_topic(rmq_snapshot *snapshot, rmq_text name, const rmq_topic *topic)
{
    rmq_topic *known = rmq_topic_of(snapshot, name);

    assert(topic->read_queues >= 0 && topic->write_queues >= 0);
    if (known == NULL) {
        known = new_value(sizeof *known, name);
        RMQ_TRY(add(&snapshot->topics, known));
    } else if (!RMQ_IS_RIGHT(RMQ_MISTAKE_OLD_TABLES)) {
        return RMQ_OK;
    }
    known->read_queues = topic->read_queues;
    known->write_queues = topic->write_queues;
    known->permission = topic->permission;
    known->may_send = topic->may_send;
    known->may_pull = topic->may_pull;
    known->has_multi_tags = topic->has_multi_tags;
    return RMQ_OK;
}

rmq_status rmq_put_group(rmq_snapshot *snapshot, rmq_text name, const rmq_group *group)
{
    rmq_group *known = rmq_group_of(snapshot, name);

    if (known == NULL) {
        known = new_value(sizeof *known, name);
        RMQ_TRY(add(&snapshot->groups, known));
    }
    known->may_consume = group->may_consume;
    known->may_broadcast = group->may_broadcast;
    known->broker_id = group->broker_id;
    known->broker_when_slow = group->broker_when_slow;
    return RMQ_OK;
}

void rmq_remove_topic(rmq_snapshot *snapshot, rmq_text name)
{
    drop(&snapshot->topics, name);
}

void rmq_remove_group(rmq_snapshot *snapshot, rmq_text name)
{
    drop(&snapshot->groups, name);
}

/* --- subscriptions ------------------------------------------------------------------------------------------------- */

/* The key of a subscription in `bytes`; false if it would be too long. */
static bool both_names(rmq_text group, rmq_text topic, uint8_t bytes[NAMES_BYTES_MAX], rmq_text *key)
{
    if (group.size > NAMES_BYTES_MAX / 2 || topic.size >= NAMES_BYTES_MAX / 2) {
        return false;
    }
    if (group.size > 0) {
        memcpy(bytes, group.at, group.size);
    }
    bytes[group.size] = 0;
    if (topic.size > 0) {
        memcpy(bytes + group.size + 1, topic.at, topic.size);
    }
    *key = (rmq_text){bytes, group.size + 1 + topic.size};
    return true;
}

rmq_subscription *rmq_subscription_of(const rmq_snapshot *snapshot, rmq_text group, rmq_text topic)
{
    uint8_t bytes[NAMES_BYTES_MAX];
    rmq_text key;

    return both_names(group, topic, bytes, &key) ? rmq_table_find(&snapshot->subscriptions, key, 0) : NULL;
}

static int compare_codes(const void *a, const void *b)
{
    const int32_t one = *(const int32_t *)a, other = *(const int32_t *)b;

    return (one > other) - (one < other);
}

rmq_status rmq_put_subscription(rmq_snapshot *snapshot, rmq_text group, rmq_text topic, const rmq_subscription *one,
                                const int32_t *codes)
{
    uint8_t bytes[NAMES_BYTES_MAX];
    rmq_text key;
    rmq_subscription *made;

    if (!both_names(group, topic, bytes, &key)) {
        return RMQ_OK; /* nobody finds it, and so it is handed over */
    }
    made = new_value(sizeof *made + one->code_count * sizeof *codes, key);
    if (made == NULL) {
        return RMQ_NO_MEMORY;
    }
    made->is_broadcasting = one->is_broadcasting;
    made->version = one->version;
    made->wants_all = one->wants_all;
    made->code_count = one->code_count;
    if (one->code_count > 0) {
        memcpy(made->codes, codes, one->code_count * sizeof *codes);
        qsort(made->codes, made->code_count, sizeof *codes, compare_codes);
    }
    drop(&snapshot->subscriptions, key);
    return add(&snapshot->subscriptions, made);
}

void rmq_remove_subscription(rmq_snapshot *snapshot, rmq_text group, rmq_text topic)
{
    uint8_t bytes[NAMES_BYTES_MAX];
    rmq_text key;

    if (both_names(group, topic, bytes, &key)) {
        drop(&snapshot->subscriptions, key);
    }
}
