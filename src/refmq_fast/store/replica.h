/* The log as replication sees it, and the role of a store. */
#ifndef RMQ_STORE_REPLICA_H
#define RMQ_STORE_REPLICA_H

#include "store.h"

/* A slave appends what its master sent. RMQ_MISUSE, with a sentence in `message` of the store, unless it starts where the
 * log ends and stays in one file; RMQ_FAILED after a flush or write has failed. */
rmq_status rmq_append_log(rmq_store *store, int64_t physical_offset, const uint8_t *from, size_t length);

/* Makes the store a slave's, which refuses puts, or a master's. */
rmq_status rmq_set_slave(rmq_store *store, bool is_slave);

#endif
