/* core/record.h on any bytes.
 *
 * Checked besides crashes: the parts of a record that was read lie behind each other and fill it; damage is named at a
 * byte of the input; a record of the form that refmq writes is the same bytes when it is written again.
 */
#include "same.h"

#include <string.h>

#include "core/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const uint8_t *data, const rmq_record_header *header, const rmq_record_parts *parts)
{
    const rmq_text body = {data + parts->body_at, parts->body_end - parts->body_at};
    const rmq_text topic = {data + parts->topic_at, parts->topic_end - parts->topic_at};
    const rmq_text properties = {data + parts->properties_at, parts->end - parts->properties_at};
    uint8_t *written = malloc((size_t)header->size_bytes);

    CHECK(rmq_encode_record(header, body, topic, properties, written) == RMQ_OK);
    CHECK(memcmp(written, data, (size_t)header->size_bytes) == 0);
    free(written);
}

static void read_one(const uint8_t *data, size_t size, bool check_crc)
{
    rmq_record_header header;
    rmq_record_parts parts;
    rmq_damage damage;

    if (rmq_decode_record(data, size, 0, 0, check_crc, &header, &parts, &damage) != RMQ_OK) {
        CHECK(damage.offset >= 0 && (size_t)damage.offset <= size && damage.field != NULL);
        return;
    }
    CHECK(parts.body_at <= parts.body_end && parts.body_end < parts.topic_at && parts.topic_at <= parts.topic_end);
    CHECK(parts.topic_end + 2 == parts.properties_at && parts.properties_at <= parts.end);
    CHECK((int64_t)parts.end == header.size_bytes && parts.end <= size);
    CHECK(!check_crc || header.body_crc == rmq_body_crc(data + parts.body_at, parts.body_end - parts.body_at));
    if (header.magic == RMQ_RECORD_MAGIC) {
        write_again(data, &header, &parts);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size); /* exactly: a byte too many is seen */

    memcpy(copy, data, size);
    read_one(copy, size, false);
    read_one(copy, size, true);
    free(copy);
    return 0;
}
