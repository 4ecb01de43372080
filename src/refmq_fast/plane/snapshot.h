/* What the control plane has told the plane: all that a request of the hot path is checked against. The twin of
 * refmq/plane/snapshot.py.
 *
 * Python makes a new snapshot at every change and installs it; here the tables are changed in place, by the difference.
 * That comes to the same, because nobody looks in between: a plane belongs to one thread at a time.
 *
 * Only what can be served is kept. A topic that no client may send to, a subscription in SQL, a name that is not legal:
 * what is missing here is handed over, and the reference finds the words.
 */
#ifndef RMQ_PLANE_SNAPSHOT_H
#define RMQ_PLANE_SNAPSHOT_H

#include "../core/record.h"
#include "../store/table.h"

#define RMQ_PERM_WRITE 2
#define RMQ_PERM_READ 4
#define RMQ_PLANE_TEXT_MAX 255u /* of the cluster's name and of the region */

/* A text of the configuration, owned. */
typedef struct {
    uint8_t bytes[RMQ_PLANE_TEXT_MAX];
    uint8_t size;
} rmq_short_text;

/* The fields of BrokerConfig that the plane looks at, and the address that records carry. */
typedef struct {
    rmq_host store_host;
    rmq_short_text cluster;
    rmq_short_text region;
    bool trace_on;
    bool sync_flush;
    bool is_slave;
    bool waits_for_slaves;      /* an acknowledgement waits for more than the flush: the reference's */
    bool slave_read;
    bool long_polling;
    bool fast_failure;
    bool hands_over_all;        /* somebody else checks who may do what: nothing is served here */
    int64_t permission;
    int64_t accepts_sends_from_ms;
    int64_t short_polling_ms;
    int64_t flush_timeout_ms;
    int64_t sends_max;
    int64_t pulls_max;
    int64_t send_wait_ms; /* with fast_failure: who has waited so long for its turn is refused */
    int64_t pull_wait_ms;
} rmq_plane_config;

/* A topic. How often it was sent to is counted here, so that counting needs no second table. */
typedef struct {
    rmq_key key; /* its name */
    int64_t read_queues;
    int64_t write_queues;
    int64_t permission;
    bool may_send; /* by its name: legal, for clients, and not a retry topic */
    bool may_pull; /* likewise: not one whose filter belongs to another topic */
    bool has_multi_tags;
    int64_t sends;
    int64_t messages;
    int64_t sent_bytes;
    int64_t took_ms;
} rmq_topic;

/* A consumer group. */
typedef struct {
    rmq_key key; /* its name */
    bool may_consume;
    bool may_broadcast;
    int64_t broker_id;
    int64_t broker_when_slow;
} rmq_group;

/* What the heartbeats of a group say of a topic, if it is by tags. */
typedef struct {
    rmq_key key; /* the group, a zero byte, the topic */
    bool is_broadcasting;
    int64_t version;
    bool wants_all;
    size_t code_count;
    int32_t codes[]; /* sorted */
} rmq_subscription;

typedef struct {
    rmq_plane_config config;
    rmq_table topics;
    rmq_table groups;
    rmq_table subscriptions;
} rmq_snapshot;

/* An empty snapshot. `seed` is a number that nobody can guess, because names come from strangers. */
void rmq_snapshot_init(rmq_snapshot *snapshot, uint64_t seed);
void rmq_snapshot_free(rmq_snapshot *snapshot);

/* Adds or changes; the counters of a topic stay. The text of the key is copied. RMQ_NO_MEMORY: nothing was changed. */
rmq_status rmq_put_topic(rmq_snapshot *snapshot, rmq_text name, const rmq_topic *topic);
rmq_status rmq_put_group(rmq_snapshot *snapshot, rmq_text name, const rmq_group *group);
rmq_status rmq_put_subscription(rmq_snapshot *snapshot, rmq_text group, rmq_text topic, const rmq_subscription *one,
                                const int32_t *codes);

/* Each does nothing if there is none. */
void rmq_remove_topic(rmq_snapshot *snapshot, rmq_text name);
void rmq_remove_group(rmq_snapshot *snapshot, rmq_text name);
void rmq_remove_subscription(rmq_snapshot *snapshot, rmq_text group, rmq_text topic);

rmq_topic *rmq_topic_of(const rmq_snapshot *snapshot, rmq_text name);
rmq_group *rmq_group_of(const rmq_snapshot *snapshot, rmq_text name);

/* The subscription of a group to a topic, or NULL. Names too long for any legal one have none. */
rmq_subscription *rmq_subscription_of(const rmq_snapshot *snapshot, rmq_text group, rmq_text topic);

#endif
