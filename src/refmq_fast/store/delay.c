/* Reads delay levels, and rewrites the properties of delayed messages. */
#include "delay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/utf8.h"

#define UNKNOWN_LEVEL_MS 1000
#define LEVEL_CHARS_MAX 10
#define NUMBER_CHARS_MAX 24
#define LARGEST_GROWTH 3 /* of a text whose every byte is replaced */

bool rmq_deliver_ms(const rmq_store_config *config, rmq_text text, int64_t store_ms, int64_t *deliver_ms)
{
    int64_t level = 0;

    if (text.size == 0 || text.size > LEVEL_CHARS_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return false;
        }
        level = 10 * level + (text.at[i] - '0');
    }
    if (level > config->delay_levels) {
        level = config->delay_levels;
    }
    if (level < 1) {
        return false;
    }
    *deliver_ms = (int64_t)((uint64_t)store_ms + (uint64_t)config->delays_ms[level - 1]);
    return true;
}

/* --- redirect ---------------------------------------------------------------------------------------------------- */

typedef struct {
    rmq_text name;
    rmq_text value;
} property;

/* Properties by name, in the order of their first appearance: what a dictionary is in the reference. */
typedef struct {
    property *list;
    size_t count;
    size_t *places; /* hash of a name -> 1 + its number in the list; 0: none */
    size_t mask;
} dictionary;

static rmq_status dictionary_init(dictionary *table, size_t count_max)
{
    size_t capacity = 16;

    while (capacity < 2 * count_max) {
        capacity *= 2;
    }
    table->count = 0;
    table->mask = capacity - 1;
    table->list = malloc(count_max * sizeof *table->list);
    table->places = calloc(capacity, sizeof *table->places);
    return table->list == NULL || table->places == NULL ? RMQ_NO_MEMORY : RMQ_OK;
}

static void dictionary_set(dictionary *table, uint64_t seed, rmq_text name, rmq_text value)
{
    uint64_t hash = seed;
    size_t at;

    for (size_t i = 0; i < name.size; i++) {
        hash = (hash ^ name.at[i]) * 0x100000001b3u;
    }
    hash ^= hash >> 29;
    for (at = hash & table->mask; table->places[at] != 0; at = (at + 1) & table->mask) {
        property *there = &table->list[table->places[at] - 1];
        if (rmq_text_equals(there->name, name)) {
            there->value = value;
            return;
        }
    }
    table->list[table->count] = (property){name, value};
    table->count += 1;
    table->places[at] = table->count;
}

static size_t write_properties(const dictionary *table, uint8_t *to)
{
    size_t size = 0;

    for (size_t i = 0; i < table->count; i++) {
        if (i > 0) {
            to[size++] = 2;
        }
        memcpy(to + size, table->list[i].name.at, table->list[i].name.size);
        size += table->list[i].name.size;
        to[size++] = 1;
        memcpy(to + size, table->list[i].value.at, table->list[i].value.size);
        size += table->list[i].value.size;
    }
    return size;
}

static rmq_text number_text(int64_t number, char *to)
{
    const int size = snprintf(to, NUMBER_CHARS_MAX, "%" PRId64, number);

    return (rmq_text){(const uint8_t *)to, (size_t)size};
}

rmq_status rmq_redirect(rmq_store *store, int64_t level, rmq_text topic, int64_t queue_id, rmq_text properties,
                        int64_t *delay_queue_id, rmq_text *redirected)
{
    const int64_t used = level < store->config.delay_levels ? level : store->config.delay_levels;
    const size_t read_bytes = LARGEST_GROWTH * properties.size;
    /* First the properties as they are read, and behind them as they are written: with three more, each with its names
     * and separators. */
    const size_t size_max = 2 * read_bytes + topic.size + 2 * NUMBER_CHARS_MAX + 64;
    char level_chars[NUMBER_CHARS_MAX], queue_chars[NUMBER_CHARS_MAX];
    dictionary table;
    rmq_text read, name, value;
    size_t at = 0;
    rmq_status status;

    assert(level > 0 && store->config.delay_levels > 0);
    RMQ_TRY(rmq_reserve((void **)&store->texts, &store->texts_size, size_max, 1));
    read = (rmq_text){store->texts, rmq_utf8_replace(properties.at, properties.size, store->texts)};
    status = dictionary_init(&table, read.size / 4 + 4);
    if (status == RMQ_OK) {
        while (rmq_next_property(read, &at, &name, &value)) {
            dictionary_set(&table, store->config.hash_seed, name, value);
        }
        dictionary_set(&table, store->config.hash_seed, RMQ_TEXT("DELAY"), number_text(used, level_chars));
        dictionary_set(&table, store->config.hash_seed, RMQ_TEXT("REAL_TOPIC"), topic);
        dictionary_set(&table, store->config.hash_seed, RMQ_TEXT("REAL_QID"), number_text(queue_id, queue_chars));
        *redirected = (rmq_text){store->texts + read.size, write_properties(&table, store->texts + read.size)};
        *delay_queue_id = used - 1;
    }
    free(table.list);
    free(table.places);
    return status;
}
