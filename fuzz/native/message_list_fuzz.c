/* core/message_list.h on any bytes.
 *
 * Checked besides crashes: what the quick reader takes, the reader of records takes as well, with the same parts, and
 * what it makes of hosts and ids is what the store's functions make.
 */
#include "same.h"

#include <string.h>

#include "core/message_id.h"
#include "core/message_list.h"
#include "core/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const uint8_t *data, size_t size, const rmq_message *quick)
{
    uint8_t host[RMQ_HOST_TEXT_BYTES_MAX], id[RMQ_MESSAGE_ID_BYTES];
    char same_id[RMQ_MESSAGE_ID_CHARS_MAX];
    rmq_record_header header;
    rmq_record_parts parts;

    CHECK(rmq_decode_record(data, size, 0, 0, true, &header, &parts, NULL) == RMQ_OK);
    CHECK((int64_t)quick->size_bytes == header.size_bytes && quick->queue_offset == header.queue_offset);
    CHECK(quick->body.at == data + parts.body_at && quick->body.size == parts.body_end - parts.body_at);
    CHECK(quick->topic.at == data + parts.topic_at && quick->topic.size == parts.topic_end - parts.topic_at);
    CHECK(quick->properties.size == parts.end - parts.properties_at);
    CHECK(quick->queue_id == header.queue_id && quick->flag == header.flag && quick->sys_flag == header.sys_flag);
    CHECK(quick->reconsume_times == header.reconsume_times);
    CHECK(quick->prepared_transaction_offset == header.prepared_transaction_offset);
    rmq_message_offset_id(quick, id);
    CHECK(rmq_message_id(&header.store_host, header.physical_offset, same_id) == sizeof id);
    CHECK(memcmp(id, same_id, sizeof id) == 0);
    CHECK(rmq_message_host_text(quick->born_host, host) <= sizeof host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    size_t at = 0;
    rmq_message message;

    memcpy(copy, data, size);
    while (at < size && rmq_message_read(copy + at, size - at, &message) == RMQ_OK) {
        CHECK(message.size_bytes <= size - at);
        compare(copy + at, size - at, &message);
        at += message.size_bytes;
    }
    free(copy);
    return 0;
}
