/* One pass over rows, one look-up in an open table for each; nothing is allocated. */
#include "digest.h"

#include <assert.h>
#include <stdbool.h>

#include "bytes.h"

/* The end of splitmix64: scatters 64-bit numbers. */
static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

static uint64_t queue_of(uint64_t topic, uint32_t queue_id)
{
    const uint64_t number = (uint64_t)(int64_t)(int32_t)queue_id;

    return mix(topic + (number + 1) * UINT64_C(0x9E3779B97F4A7C15));
}

/* The cell of a key, taken for it if there is none; there is a free one. */
static rmq_digest_cell *find_cell(rmq_digest_cell *cells, size_t capacity, const rmq_digest_cell *key)
{
    const uint64_t hash = mix(key->queue ^ mix(key->group + (uint64_t)key->range * 32 + key->role));
    size_t at = (size_t)hash & (capacity - 1);

    while (cells[at].count != 0 && (cells[at].queue != key->queue || cells[at].range != key->range ||
                                    cells[at].role != key->role || cells[at].group != key->group)) {
        at = (at + 1) & (capacity - 1);
    }
    return &cells[at];
}

static void add_row(rmq_digest_cell *cell, const uint8_t *row, const uint64_t keys[4])
{
    const int64_t at_ns = (int64_t)rmq_load_le64(row + 8);
    const uint64_t a = rmq_load_le64(row + 16);
    const uint64_t b = rmq_load_le64(row + 24);
    const uint64_t c = rmq_load_le64(row + 32);
    const uint64_t d = rmq_load_le32(row + 40);

    if (cell->count == 0 || at_ns < cell->first_ns) {
        cell->first_ns = at_ns;
    }
    if (cell->count == 0 || at_ns > cell->last_ns) {
        cell->last_ns = at_ns;
    }
    cell->count += 1;
    cell->sum_b += mix(b ^ keys[0]);
    cell->sum_bc += mix(mix(b ^ keys[1]) + c);
    cell->sum_ab += mix(mix(b ^ keys[2]) + a);
    cell->sum_bd += mix(mix(b ^ keys[3]) + d);
}

/* Adds a row that takes part to its cell; nothing where it takes no part. There is a free cell. */
static void digest_row(const uint8_t *row, const rmq_digest_names *names, rmq_digest_cell *cells, size_t capacity,
                       size_t *used)
{
    const size_t action = (size_t)row[2] | (size_t)row[3] << 8;
    const size_t actor = rmq_load_le32(row + 44);
    const size_t subject = rmq_load_le32(row + 48);
    rmq_digest_cell key = {0};
    rmq_digest_cell *cell;
    uint8_t entry;

    if (action >= names->count || row[1] >= RMQ_DIGEST_OUTCOMES) {
        return;
    }
#ifndef RMQ_MISTAKE_DIGEST_STRING /* seeded for the fuzzer: strings that no table has */
    if (actor >= names->count || subject >= names->count) {
        return;
    }
#endif
    entry = names->roles[action * RMQ_DIGEST_OUTCOMES + row[1]];
    if ((entry & RMQ_DIGEST_ROLE) == 0) {
        return;
    }
    key.role = entry & RMQ_DIGEST_ROLE;
    if ((entry & RMQ_DIGEST_HAS_STATUS) != 0 && rmq_load_le32(row + 40) != 0) {
        key.role += 1;
    }
    key.queue = queue_of(names->topics[subject], rmq_load_le32(row + 52));
    key.group = (entry & RMQ_DIGEST_HAS_GROUP) != 0 ? names->groups[actor] : 0;
    key.range = (int64_t)rmq_load_le64(row + 24) >> RMQ_DIGEST_SHIFT;
    cell = find_cell(cells, capacity, &key);
    if (cell->count == 0) {
        *cell = key;
        *used += 1;
    }
    add_row(cell, row, names->keys);
}

size_t rmq_digest_rows(const uint8_t *rows, size_t count, const rmq_digest_names *names, rmq_digest_cell *cells,
                       size_t capacity, size_t *used)
{
    const size_t full = capacity - capacity / 4;
    size_t taken = 0;

    assert(capacity >= 8 && (capacity & (capacity - 1)) == 0);
    for (; taken < count && *used < full; taken++) {
        digest_row(rows + taken * RMQ_DIGEST_ROW_BYTES, names, cells, capacity, used);
    }
    return taken;
}

/* Remembers that a place was met; there is a free one. */
static void note_place(rmq_survey *survey, uint64_t subject, uint32_t queue_id)
{
    const uint64_t place = (subject << 32 | queue_id) + 1;
    size_t at = (size_t)mix(place) & (survey->place_capacity - 1);

    while (survey->places[at] != 0 && survey->places[at] != place) {
        at = (at + 1) & (survey->place_capacity - 1);
    }
    if (survey->places[at] == 0) {
        survey->places[at] = place;
        survey->places_used += 1;
    }
}

/* Whether a row is an event, and all that it names is known. */
static bool is_plain(const uint8_t *row, size_t names)
{
    return row[0] == RMQ_DIGEST_EVENT && row[1] < RMQ_DIGEST_OUTCOMES &&
           ((size_t)row[2] | (size_t)row[3] << 8) < names && rmq_load_le32(row + 44) < names &&
           rmq_load_le32(row + 48) < names;
}

size_t rmq_survey_rows(const uint8_t *rows, size_t count, const rmq_digest_names *names, rmq_survey *survey)
{
    const size_t cells_full = survey->cell_capacity - survey->cell_capacity / 4;
    const size_t places_full = survey->place_capacity - survey->place_capacity / 4;
    uint64_t last_place = UINT64_MAX;
    size_t taken = 0;

    assert(survey->cell_capacity >= 8 && (survey->cell_capacity & (survey->cell_capacity - 1)) == 0);
    assert(survey->place_capacity >= 8 && (survey->place_capacity & (survey->place_capacity - 1)) == 0);
    for (; taken < count && survey->cells_used < cells_full && survey->places_used < places_full; taken++) {
        const uint8_t *row = rows + taken * RMQ_DIGEST_ROW_BYTES;
        const size_t action = (size_t)row[2] | (size_t)row[3] << 8;
        const uint64_t place = rmq_load_le64(row + 48); /* subject and queue */
        const int64_t at_ns = (int64_t)rmq_load_le64(row + 8);

        if (!is_plain(row, names->count)) {
            break;
        }
        survey->counts[action * RMQ_DIGEST_OUTCOMES + row[1]] += 1;
        survey->actors[rmq_load_le32(row + 44)] = 1;
        survey->first_ns = at_ns < survey->first_ns ? at_ns : survey->first_ns;
        survey->last_ns = at_ns > survey->last_ns ? at_ns : survey->last_ns;
        if (place != last_place) {
            note_place(survey, rmq_load_le32(row + 48), rmq_load_le32(row + 52));
            last_place = place;
        }
        digest_row(row, names, survey->cells, survey->cell_capacity, &survey->cells_used);
    }
    return taken;
}
