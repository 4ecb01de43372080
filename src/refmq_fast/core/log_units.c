/* Nothing is copied and nothing allocated: a record is decoded where it stands. */
#include "log_units.h"

#include "hash.h"
#include "properties.h"
#include "record.h"

#define KEYS_OF_RECORD_MAX (RMQ_PROPERTIES_BYTES_MAX / 2 + 2)

static uint64_t fnv(rmq_text text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t at = 0; at < text.size; at++) {
        hash = (hash ^ text.at[at]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void add_key(rmq_log_units *found, int64_t position, rmq_text topic, rmq_text key)
{
    rmq_log_key *next = &found->keys[found->key_count++];

    next->physical_offset = position;
    next->hash = rmq_key_hash(topic.at, topic.size, key.at, key.size);
}

/* The keys of a record in the order in which they are indexed: the unique one, then those between spaces. */
static void add_keys(rmq_log_units *found, int64_t position, rmq_text topic, const rmq_known_properties *known)
{
    size_t start = 0;

    if (known->unique_key.at != NULL) {
        add_key(found, position, topic, known->unique_key);
    }
    for (size_t at = 0; known->keys.at != NULL && at <= known->keys.size; at++) {
        if (at == known->keys.size || known->keys.at[at] == ' ') {
            if (at > start) {
                add_key(found, position, topic, (rmq_text){known->keys.at + start, at - start});
            }
            start = at + 1;
        }
    }
}

size_t rmq_read_log_units(const uint8_t *data, size_t size, int64_t position, bool check_crc, rmq_log_units *found)
{
    size_t at = 0;

    while (found->unit_count < found->unit_max && found->key_max - found->key_count >= KEYS_OF_RECORD_MAX) {
        const int64_t base = position;
        rmq_record_header header;
        rmq_record_parts parts;
        rmq_known_properties known;
        rmq_text topic, properties;
        rmq_log_unit *unit;

        if (size - at < RMQ_RECORD_BYTES_MIN ||
            rmq_decode_record(data, size, at, base, check_crc, &header, &parts, NULL) != RMQ_OK) {
            break;
        }
#ifndef RMQ_MISTAKE_LOG_POSITION /* seeded for the fuzzer: a record that is of another place */
        if (header.physical_offset != position + (int64_t)at) {
            break;
        }
#endif
        topic = (rmq_text){data + parts.topic_at, parts.topic_end - parts.topic_at};
        properties = (rmq_text){data + parts.properties_at, parts.end - parts.properties_at};
        rmq_find_properties(properties, &known);
        unit = &found->units[found->unit_count++];
        *unit = (rmq_log_unit){
            .physical_offset = header.physical_offset,
            .queue_offset = header.queue_offset,
            .tags_code = known.tags.size > 0 ? rmq_string_hash(0, known.tags.at, known.tags.size) : 0,
            .store_ms = header.store_timestamp_ms,
            .message = rmq_fingerprint(properties, (uint32_t)header.body_crc),
            .topic = fnv(topic),
            .queue_id = (int32_t)header.queue_id,
            .size_bytes = (int32_t)header.size_bytes,
            .transaction = (uint32_t)(header.sys_flag & RMQ_SYS_FLAG_TRANSACTION),
        };
        if (unit->transaction != RMQ_TRANSACTION_ROLLBACK) {
            add_keys(found, unit->physical_offset, topic, &known);
        }
        at = parts.end;
    }
    return at;
}
