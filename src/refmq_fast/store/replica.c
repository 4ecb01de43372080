/* Takes a master's log, and becomes a master. */
#include "replica.h"

#include "dispatch.h"

rmq_status rmq_append_log(rmq_store *store, int64_t physical_offset, const uint8_t *from, size_t length)
{
    if (store->has_failed) {
        return RMQ_FAILED;
    }
    return rmq_log_append_raw(&store->log, physical_offset, from, length, store->message, sizeof store->message);
}

rmq_status rmq_set_slave(rmq_store *store, bool is_slave)
{
    if (store->config.is_slave && !is_slave) {
        int64_t end;

        /* A slave that becomes the master continues after its last whole record: its master may have died in one. */
        store->log.incomplete_bytes = 0;
        RMQ_TRY(rmq_take_over_offsets(store, &end));
        if (end < store->log.files.wrote) {
            RMQ_TRY(rmq_files_truncate(&store->log.files, end));
        }
    }
    store->config.is_slave = is_slave;
    return RMQ_OK;
}
