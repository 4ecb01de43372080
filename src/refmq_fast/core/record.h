/* A message as a record: the form it has in the commit log, and in the body of every pull response. The layout is in the
 * table at the top of refmq/protocol/record.py; the functions here have the names of those there.
 *
 * Nothing is copied: what a decoder finds points into the data it was given. Offsets in an rmq_damage, which may be null
 * everywhere, count from `base` plus the position in `data`.
 */
#ifndef RMQ_CORE_RECORD_H
#define RMQ_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "damage.h"
#include "properties.h"

#define RMQ_RECORD_MAGIC 0xDAA320A7u
#define RMQ_RECORD_MAGIC_V2 0xDAA320ABu /* the topic's length has two bytes (5.x) */
#define RMQ_BLANK_MAGIC 0xCBD43194u
#define RMQ_BLANK_HEADER_BYTES 8
#define RMQ_RECORD_BYTES_MIN 91
#define RMQ_HEADER_BYTES_MAX 112
#define RMQ_TOPIC_BYTES_MAX 127

#define RMQ_SYS_FLAG_TRANSACTION 0xc
#define RMQ_TRANSACTION_NONE 0x0
#define RMQ_TRANSACTION_PREPARED 0x4
#define RMQ_TRANSACTION_COMMIT 0x8
#define RMQ_TRANSACTION_ROLLBACK 0xc
#define RMQ_SYS_FLAG_BORN_IPV6 0x10
#define RMQ_SYS_FLAG_STORE_IPV6 0x20

#define RMQ_QUEUE_ID_AT 12
#define RMQ_QUEUE_OFFSET_AT 20
#define RMQ_PHYSICAL_OFFSET_AT 28

/* An address: 4 or 16 bytes of it, and a port. The port is a number that may not fit its field. */
typedef struct {
    uint8_t ip[16];
    uint8_t ip_bytes;
    int64_t port;
} rmq_host;

/* The fields before the body, in their order. Wider than the record's where a caller may say a number that does not fit. */
typedef struct {
    int64_t size_bytes;
    uint32_t magic;
    int64_t body_crc;
    int64_t queue_id;
    int64_t flag;
    int64_t queue_offset;
    int64_t physical_offset;
    int64_t sys_flag;
    int64_t born_timestamp_ms;
    rmq_host born_host;
    int64_t store_timestamp_ms;
    rmq_host store_host;
    int64_t reconsume_times;
    int64_t prepared_transaction_offset;
    int64_t body_bytes;
} rmq_record_header;

/* Where the three parts without a fixed length stand in a buffer. `end` is that of the properties, and of the record. */
typedef struct {
    size_t body_at;
    size_t body_end;
    size_t topic_at;
    size_t topic_end;
    size_t properties_at;
    size_t end;
} rmq_record_parts;

/* The checksum as records hold it: 31 bits. */
uint32_t rmq_body_crc(const uint8_t *body, size_t size);

/* `sys_flag` with the two IPv6 bits set from the addresses. */
int64_t rmq_host_flags(int64_t sys_flag, const rmq_host *born, const rmq_host *store);

/* How long a header is, and a whole record with so many bytes of body, topic and properties. `sys_flag` has the right
 * host bits. */
size_t rmq_header_bytes(int64_t sys_flag);
int64_t rmq_record_bytes(int64_t sys_flag, int64_t content_bytes);

/* Writes a record of `header->size_bytes` bytes to `to`. RMQ_UNFIT if a number or a length does not fit its field; what
 * is at `to` means nothing then. The header must agree with the parts. */
rmq_status rmq_encode_record(const rmq_record_header *header, rmq_text body, rmq_text topic, rmq_text properties,
                             uint8_t *to);

/* Writes the 8 bytes with which the blank record begins that fills the last `size_bytes` of a file. */
void rmq_encode_blank(int64_t size_bytes, uint8_t *to);

/* Whether a whole record of `size` bytes stands at `data` and says that it is at `position` of the log. Its parts may be
 * wrong: what a queue unit names was checked when it was dispatched. */
bool rmq_is_record_at(const uint8_t *data, size_t size, int64_t position);

bool rmq_is_record_magic(uint32_t magic);

/* The header of the record that starts at `data[start]`. The rest of the record need not be there. */
rmq_status rmq_read_header(const uint8_t *data, size_t size, size_t start, int64_t base, rmq_record_header *header,
                           rmq_damage *damage);

/* Where its parts are: every length is checked against the record, the record against the data. */
rmq_status rmq_find_parts(const uint8_t *data, size_t size, size_t start, const rmq_record_header *header, int64_t base,
                          rmq_record_parts *parts, rmq_damage *damage);

/* The topic of a record; RMQ_DAMAGED unless it is UTF-8. */
rmq_status rmq_decode_topic(const uint8_t *data, const rmq_record_parts *parts, int64_t base, rmq_text *topic,
                            rmq_damage *damage);

/* RMQ_DAMAGED unless the body has the checksum that the header says. */
rmq_status rmq_check_body(const uint8_t *data, size_t start, const rmq_record_header *header,
                          const rmq_record_parts *parts, int64_t base, rmq_damage *damage);

/* Everything above for a whole record. */
rmq_status rmq_decode_record(const uint8_t *data, size_t size, size_t start, int64_t base, bool check_crc,
                             rmq_record_header *header, rmq_record_parts *parts, rmq_damage *damage);

#endif
