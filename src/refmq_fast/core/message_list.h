/* The messages of a pull response as a client reads them: records one after another, laid out at the top of
 * refmq/protocol/record.py.
 *
 * The reader takes the records that nearly all messages are: magic of 4.9, IPv4 hosts, a body that is not compressed and
 * has the checksum that it says. Whatever else is legal, and all that is not, is RMQ_NOT_MINE: the reference decides.
 */
#ifndef RMQ_CORE_MESSAGE_LIST_H
#define RMQ_CORE_MESSAGE_LIST_H

#include "status.h"
#include "text.h"

#define RMQ_HOST_TEXT_BYTES_MAX 27 /* "255.255.255.255:-2147483648" */
#define RMQ_MESSAGE_ID_BYTES 32

typedef struct {
    size_t size_bytes; /* of the whole record: where the next one begins */
    int32_t queue_id;
    int32_t flag;
    int64_t queue_offset;
    int64_t physical_offset;
    int32_t sys_flag;
    int64_t born_timestamp_ms;
    const uint8_t *born_host; /* four bytes of address, four of port */
    int64_t store_timestamp_ms;
    const uint8_t *store_host;
    int32_t reconsume_times;
    int64_t prepared_transaction_offset;
    rmq_text body;
    rmq_text topic;      /* UTF-8 */
    rmq_text properties; /* UTF-8, in wire form */
} rmq_message;

/* Reads the record that begins with `data`. Its texts and hosts point into `data`. */
rmq_status rmq_message_read(const uint8_t *data, size_t length, rmq_message *message);

/* Moves `*rest` behind the next property that has a name and a value. False when there is none. */
bool rmq_message_next_property(rmq_text *rest, rmq_text *name, rmq_text *value);

/* Writes `address:port` of the eight bytes at `host` to at most RMQ_HOST_TEXT_BYTES_MAX bytes, and returns the length. */
size_t rmq_message_host_text(const uint8_t *host, uint8_t *to);

/* Writes the id that the broker gave to a message: RMQ_MESSAGE_ID_BYTES hexadecimal digits in upper case. */
void rmq_message_offset_id(const rmq_message *message, uint8_t *to);

#endif
