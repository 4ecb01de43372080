/* core/digest.h on any rows.
 *
 * Checked besides crashes: every row is taken, whatever is in it, and those that take part are counted once.
 */
#include "same.h"

#include <string.h>

#include "core/digest.h"

#define NAMES 4
#define CELLS 256 /* more than an input has rows, and a third */

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
    free(rows);
    free(roles);
    free(hashes);
    free(cells);
    return 0;
}
