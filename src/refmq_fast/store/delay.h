/* Delay levels: the twin of refmq/store/delay.py. */
#ifndef RMQ_STORE_DELAY_H
#define RMQ_STORE_DELAY_H

#include "store.h"

/* When a message of the delay topic is due, by its DELAY property; false if that is not a level. */
bool rmq_deliver_ms(const rmq_store_config *config, rmq_text level, int64_t store_ms, int64_t *deliver_ms);

/* The delay queue that a message goes to, and its properties there, in memory of the store: its real topic and queue are
 * among them. */
rmq_status rmq_redirect(rmq_store *store, int64_t level, rmq_text topic, int64_t queue_id, rmq_text properties,
                        int64_t *delay_queue_id, rmq_text *redirected);

#endif
