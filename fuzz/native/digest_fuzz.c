/* core/digest.h on any rows.
 *
 * Checked besides crashes: every row is taken, whatever is in it, and those that take part are counted once. A survey
 * takes the rows up to the first one that is no plain event, counts each, and has a digest of just these.
 */
#include "same.h"

#include <string.h>

#include "core/digest.h"

#define NAMES 4
#define CELLS 256 /* more than an input has rows, and a third */

/* A survey of the rows, and what has to be true of it. */
static void survey(const uint8_t *rows, size_t count, const rmq_digest_names *names)
{
    uint64_t *counts = calloc(NAMES * RMQ_DIGEST_OUTCOMES, sizeof *counts);
    uint8_t *actors = calloc(NAMES, 1);
    uint64_t *places = calloc(CELLS, sizeof *places);
    rmq_digest_cell *cells = calloc(CELLS, sizeof *cells), *again = calloc(CELLS, sizeof *again);
    rmq_survey all = {.counts = counts,
                      .actors = actors,
                      .first_ns = INT64_MAX,
                      .last_ns = INT64_MIN,
                      .cells = cells,
                      .cell_capacity = CELLS,
                      .places = places,
                      .place_capacity = CELLS};
    const size_t taken = rmq_survey_rows(rows, count, names, &all);
    size_t used = 0;
    uint64_t counted = 0;

    for (size_t i = 0; i < NAMES * RMQ_DIGEST_OUTCOMES; i++) {
        counted += counts[i];
    }
    CHECK(taken <= count && counted == taken && (taken == 0 || all.first_ns <= all.last_ns));
    CHECK(rmq_digest_rows(rows, taken, names, again, CELLS, &used) == taken && used == all.cells_used);
    CHECK(memcmp(cells, again, CELLS * sizeof *cells) == 0);
    free(counts);
    free(actors);
    free(places);
    free(cells);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t count = size / RMQ_DIGEST_ROW_BYTES < CELLS / 2 ? size / RMQ_DIGEST_ROW_BYTES : CELLS / 2;
    uint8_t *rows = malloc(count * RMQ_DIGEST_ROW_BYTES + 1);
    uint8_t *roles = malloc(NAMES * RMQ_DIGEST_OUTCOMES);
    uint64_t *hashes = malloc(NAMES * sizeof *hashes);
    rmq_digest_cell *cells = calloc(CELLS, sizeof *cells);
    const rmq_digest_names names = {NAMES, roles, hashes, hashes, {1, 2, 3, 4}};
    size_t used = 0, in_use = 0;
    uint64_t counted = 0;

    memcpy(rows, data, count * RMQ_DIGEST_ROW_BYTES);
    for (size_t i = 0; i < NAMES * RMQ_DIGEST_OUTCOMES; i++) {
        roles[i] = (uint8_t)(i * 37);
    }
    for (size_t i = 0; i < NAMES; i++) {
        hashes[i] = i * 0x9E3779B97F4A7C15u;
    }
    CHECK(rmq_digest_rows(rows, count, &names, cells, CELLS, &used) == count);
    for (size_t i = 0; i < CELLS; i++) {
        in_use += cells[i].count != 0;
        counted += cells[i].count;
        CHECK(cells[i].count == 0 || (cells[i].first_ns <= cells[i].last_ns && cells[i].role != 0));
    }
    CHECK(in_use == used && counted <= count);
    survey(rows, count, &names);
    free(rows);
    free(roles);
    free(hashes);
    free(cells);
    return 0;
}
