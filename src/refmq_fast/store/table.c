/* Open addressing; what follows a removed value moves up, so there are no traces of it. */
#include "table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../core/bytes.h"

#define CAPACITY_MIN 16

static inline uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

static uint64_t hash_of(uint64_t seed, rmq_text text, int64_t number)
{
    uint64_t hash = seed ^ ((uint64_t)number * 0x9e3779b97f4a7c15u);

    size_t at = 0;

    for (; text.size - at >= 8; at += 8) {
        hash = mix(hash ^ rmq_load_le64(text.at + at));
    }
    for (; at < text.size; at++) {
        hash = (hash ^ text.at[at]) * 0x100000001b3u;
    }
    return mix(hash);
}

static bool is_key(const rmq_key *value, uint64_t hash, rmq_text text, int64_t number)
{
    return value->hash == hash && value->number == number && rmq_text_equals(value->text, text);
}

void *rmq_table_find(const rmq_table *table, rmq_text text, int64_t number)
{
    const uint64_t hash = hash_of(table->seed, text, number);

    if (table->capacity == 0) {
        return NULL;
    }
    for (size_t at = hash & (table->capacity - 1); table->slots[at] != NULL; at = (at + 1) & (table->capacity - 1)) {
        if (is_key(table->slots[at], hash, text, number)) {
            return table->slots[at];
        }
    }
    return NULL;
}

static void put(rmq_key **slots, size_t capacity, rmq_key *value)
{
    size_t at = value->hash & (capacity - 1);

    while (slots[at] != NULL) {
        at = (at + 1) & (capacity - 1);
    }
    slots[at] = value;
}

rmq_status rmq_table_add(rmq_table *table, rmq_key *value)
{
    value->hash = hash_of(table->seed, value->text, value->number);
    if (4 * (table->count + 1) > 3 * table->capacity) {
        const size_t capacity = table->capacity == 0 ? CAPACITY_MIN : 2 * table->capacity;
        rmq_key **slots = calloc(capacity, sizeof *slots);

        if (slots == NULL) {
            return RMQ_NO_MEMORY;
        }
        for (size_t i = 0; i < table->capacity; i++) {
            if (table->slots[i] != NULL) {
                put(slots, capacity, table->slots[i]);
            }
        }
        free(table->slots);
        table->slots = slots;
        table->capacity = capacity;
    }
    put(table->slots, table->capacity, value);
    table->count += 1;
    return RMQ_OK;
}

void rmq_table_remove(rmq_table *table, const rmq_key *value)
{
    const size_t mask = table->capacity - 1;
    size_t hole = value->hash & mask;

    while (table->slots[hole] != value) {
        assert(table->slots[hole] != NULL);
        hole = (hole + 1) & mask;
    }
    /* What follows moves up, unless it stands between its own place and the hole. */
    for (size_t at = (hole + 1) & mask; table->slots[at] != NULL; at = (at + 1) & mask) {
        const size_t home = table->slots[at]->hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole] = NULL;
    table->count -= 1;
}

void *rmq_table_next(const rmq_table *table, size_t *at)
{
    while (*at < table->capacity) {
        rmq_key *value = table->slots[*at];
        *at += 1;
        if (value != NULL) {
            return value;
        }
    }
    return NULL;
}

void rmq_table_free(rmq_table *table)
{
    free(table->slots);
    table->slots = NULL;
    table->capacity = table->count = 0;
}

int rmq_text_compare(rmq_text a, rmq_text b)
{
    const size_t shorter = a.size < b.size ? a.size : b.size;
    const int order = shorter == 0 ? 0 : memcmp(a.at, b.at, shorter);

    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}
