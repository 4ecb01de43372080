/* A table from a text and a number to a value, for names of directories and for queues. Values are not owned, and begin
 * with their key. Looking up and adding cost the same however many there are. */
#ifndef RMQ_STORE_TABLE_H
#define RMQ_STORE_TABLE_H

#include "../core/properties.h"
#include "../core/status.h"

typedef struct {
    rmq_text text; /* owned by the value */
    int64_t number;
    uint64_t hash;
} rmq_key;

typedef struct {
    rmq_key **slots;
    size_t capacity; /* 0 or a power of two */
    size_t count;
    uint64_t seed; /* so that nobody can choose names that collide */
} rmq_table;

/* The value with this key, or NULL. */
void *rmq_table_find(const rmq_table *table, rmq_text text, int64_t number);

/* Adds a value whose text and number are set and not in the table yet. RMQ_NO_MEMORY: nothing was changed. */
rmq_status rmq_table_add(rmq_table *table, rmq_key *value);

/* Takes out a value that is in the table. */
void rmq_table_remove(rmq_table *table, const rmq_key *value);

/* The next value at or after slot `*at`, which moves behind it; NULL at the end. The table must not change meanwhile. */
void *rmq_table_next(const rmq_table *table, size_t *at);

void rmq_table_free(rmq_table *table);

/* The order of texts in Python: by characters, which for UTF-8 is by bytes. Below, at or above 0. */
int rmq_text_compare(rmq_text a, rmq_text b);

#endif
