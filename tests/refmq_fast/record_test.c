/* Holds core/record.c, batch.c and scan.c directly, so that a sanitizer sees every byte they touch.
 *
 * Every buffer is allocated with exactly its length. Records of every shape are written and read back; then each byte is
 * changed, and the record cut at each length, and whatever comes out, nothing outside is touched and what is accepted
 * lies inside.
 */
#include "core/batch.h"
#include "core/bytes.h"
#include "core/record.h"
#include "core/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 64
#define POSITION 4096

static int failures;

static void expect(int holds, const char *sentence)
{
    if (!holds) {
        printf("wrong: %s\n", sentence);
        failures += 1;
    }
}

static rmq_host host_of(uint8_t ip_bytes)
{
    rmq_host host = {.ip_bytes = ip_bytes, .port = 10911};

    memset(host.ip, 7, ip_bytes);
    return host;
}

static void look(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    rmq_record_header header;
    rmq_record_parts parts;
    rmq_damage damage;

    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, size);
    if (rmq_decode_record(copy, size, 0, 0, false, &header, &parts, &damage) == RMQ_OK) {
        expect(parts.end <= size && parts.properties_at <= parts.end, "parts lie inside the record");
    }
    (void)rmq_check_record(copy, size, 0, POSITION, 0, PAGE_BYTES, true, &header, &damage);
    free(copy);
}

static void try_record(uint8_t born, uint8_t store, size_t body_size, rmq_text topic, rmq_text properties)
{
    rmq_record_header header = {.magic = RMQ_RECORD_MAGIC, .physical_offset = POSITION, .queue_offset = 3}, again;
    rmq_record_parts parts;
    uint8_t *body = malloc(body_size == 0 ? 1 : body_size);
    uint8_t *data;
    size_t size;

    memset(body, 'b', body_size);
    header.born_host = host_of(born);
    header.store_host = host_of(store);
    header.sys_flag = rmq_host_flags(RMQ_SYS_FLAG_BORN_IPV6 | RMQ_SYS_FLAG_STORE_IPV6, &header.born_host, &header.store_host);
    header.body_bytes = (int64_t)body_size;
    header.body_crc = rmq_body_crc(body, body_size);
    header.size_bytes = rmq_record_bytes(header.sys_flag, (int64_t)(body_size + topic.size + properties.size));
    size = (size_t)header.size_bytes;
    data = malloc(size);
    expect(rmq_encode_record(&header, (rmq_text){body, body_size}, topic, properties, data) == RMQ_OK, "it is encoded");
    expect(rmq_decode_record(data, size, 0, 0, true, &again, &parts, NULL) == RMQ_OK, "it is decoded");
    expect(rmq_check_record(data, size, 0, POSITION, 0, PAGE_BYTES, true, &again, NULL) == RMQ_OK, "it is sound");
    expect(rmq_is_record_at(data, size, POSITION) && !rmq_is_record_at(data, size, POSITION + 1), "it is at its place");
    expect(again.size_bytes == header.size_bytes && again.born_host.ip_bytes == born, "its header comes back");
    expect(parts.body_end - parts.body_at == body_size && parts.topic_end - parts.topic_at == topic.size, "so do its parts");
    for (size_t length = 0; length < size; length++) {
        look(data, length);
    }
    for (size_t at = 0; at < size; at++) {
        const uint8_t before = data[at];
        for (unsigned value = 0; value < 256; value += at < 8 || at > size - 8 ? 1 : 51) {
            data[at] = (uint8_t)value;
            look(data, size);
        }
        data[at] = before;
    }
    header.queue_id = (int64_t)1 << 31;
    expect(rmq_encode_record(&header, (rmq_text){body, body_size}, topic, properties, data) == RMQ_UNFIT, "it is refused");
    free(data);
    free(body);
}

static void try_batch(void)
{
    uint8_t whole[] = {0, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 'a', 'b', 0, 1, 'p'};

    for (size_t at = 0; at < sizeof whole; at++) {
        for (unsigned value = 0; value < 256; value++) {
            const uint8_t before = whole[at];
            for (size_t length = 1; length <= sizeof whole; length++) {
                uint8_t *copy = malloc(length);
                size_t next = 0;
                rmq_batched message;

                whole[at] = (uint8_t)value;
                memcpy(copy, whole, length);
                if (rmq_next_batched(copy, length, &next, &message, NULL) == RMQ_OK) {
                    expect(next == length && message.body.size <= length, "a message is as long as it says");
                }
                free(copy);
            }
            whole[at] = before;
        }
    }
}

int main(void)
{
    static const uint8_t ips[] = {4, 16};

    for (size_t born = 0; born < 2; born++) {
        for (size_t store = 0; store < 2; store++) {
            try_record(ips[born], ips[store], 0, RMQ_TEXT("T"), RMQ_TEXT(""));
            try_record(ips[born], ips[store], 100, RMQ_TEXT("Topic"), RMQ_TEXT("TAGS\x01tag\x02KEYS\x01k"));
        }
    }
    try_batch();
    printf("failures: %d\n", failures);
    return failures == 0 ? 0 : 1;
}
