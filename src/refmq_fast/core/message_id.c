/* Turns places of messages into ids and back. */
#include "message_id.h"

#include <assert.h>
#include <string.h>

#include "bytes.h"

#define ID_BYTES_MAX (RMQ_MESSAGE_ID_CHARS_MAX / 2)
#define PORT_BYTES 4
#define AFTER_IP (PORT_BYTES + 8)

size_t rmq_message_id(const rmq_host *store_host, int64_t physical_offset, char *to)
{
    static const char digits[] = "0123456789ABCDEF";
    uint8_t id[ID_BYTES_MAX];
    const size_t size = (size_t)store_host->ip_bytes + AFTER_IP;

    assert(size <= sizeof id);
    memcpy(id, store_host->ip, store_host->ip_bytes);
    rmq_store_be32(id + store_host->ip_bytes, (uint32_t)(int32_t)store_host->port);
    rmq_store_be64(id + store_host->ip_bytes + PORT_BYTES, (uint64_t)physical_offset);
    for (size_t i = 0; i < size; i++) {
        to[2 * i] = digits[id[i] >> 4];
        to[2 * i + 1] = digits[id[i] & 0xfu];
    }
    return 2 * size;
}

static int digit_of(char character)
{
    if (character >= '0' && character <= '9') {
        return character - '0';
    }
    if (character >= 'A' && character <= 'F') {
        return character - 'A' + 10;
    }
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

bool rmq_parse_message_id(const char *text, size_t size, rmq_host *store_host, int64_t *physical_offset)
{
    uint8_t id[ID_BYTES_MAX];
    size_t ip_bytes;

    if (size != 32 && size != RMQ_MESSAGE_ID_CHARS_MAX) {
        return false;
    }
    for (size_t i = 0; i < size / 2; i++) {
        const int upper = digit_of(text[2 * i]), lower = digit_of(text[2 * i + 1]);
        if (upper < 0 || lower < 0) {
            return false;
        }
        id[i] = (uint8_t)(upper << 4 | lower);
    }
    ip_bytes = size / 2 - AFTER_IP;
    memset(store_host, 0, sizeof *store_host);
    memcpy(store_host->ip, id, ip_bytes);
    store_host->ip_bytes = (uint8_t)ip_bytes;
    store_host->port = rmq_load_be32(id + ip_bytes);
    *physical_offset = rmq_load_be64(id + ip_bytes + PORT_BYTES);
    return true;
}
