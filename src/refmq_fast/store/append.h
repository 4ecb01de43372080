/* AppendMessage and RollFile: a message becomes a record at the end of the log. The twin of refmq/store/append.py.
 *
 * An append is planned first and performed afterwards. The plan checks everything, decides the places and encodes the
 * records; performing it decides nothing.
 */
#ifndef RMQ_STORE_APPEND_H
#define RMQ_STORE_APPEND_H

#include "store.h"

/* One message, or a batch: then `body` is the encoded messages, and `properties` are added to those of each. Numbers may
 * be such that do not fit a record; the plan refuses them. */
typedef struct {
    rmq_text topic;
    int64_t queue_id;
    rmq_text body;
    rmq_text properties;
    int64_t born_timestamp_ms;
    rmq_host born_host;
    rmq_host store_host;
    int64_t flag;
    int64_t sys_flag;
    int64_t reconsume_times;
    int64_t prepared_transaction_offset;
    int64_t delay_level;
} rmq_message_to_store;

/* What will be written where. Good for the state it was made from: perform it at once or forget it. */
typedef struct {
    int64_t physical_offset;
    rmq_text data;  /* all records, one after the other */
    rmq_text topic; /* where the messages are stored: the delay topic for a delayed message */
    int64_t queue_id;
    int64_t queue_offset;
    size_t count;
    int64_t durable_at; /* the log must be durable up to here before a put that waits for the disk is acknowledged */
    int64_t store_timestamp_ms;
    const rmq_place *places; /* one for each message */
    bool is_queued;
} rmq_append_plan;

/* How a message, or all messages of a batch, would be stored: RMQ_PUT_OK in `put` and a plan, or why they cannot be. Data
 * and places are in memory of the store, until the next plan. Writes nothing. */
rmq_status rmq_plan_message(rmq_store *store, const rmq_message_to_store *message, int64_t now_ms, rmq_append_plan *plan,
                            rmq_put_status *put);
rmq_status rmq_plan_batch(rmq_store *store, const rmq_message_to_store *batch, int64_t now_ms, rmq_append_plan *plan,
                          rmq_put_status *put);

/* Performs a plan that was made just now. RMQ_OK and RMQ_PUT_OK in `put`; with any other `put` nothing was appended.
 * `failed` is RMQ_DISK_FAILED or RMQ_DISK_FULL if the disk was the reason. */
rmq_status rmq_append(rmq_store *store, const rmq_append_plan *plan, rmq_put_status *put, rmq_status *failed);

/* Hands the records to the file that were appended since the last time, in one write: a turn's worth, with
 * `log_tail_bytes`. Nothing of them may be dispatched, served, replicated or acknowledged before. If that is impossible
 * the store has failed, because their places were promised; a log file has its blocks from the beginning, so a full disk
 * is no reason. */
rmq_status rmq_write_appended(rmq_store *store);

#endif
