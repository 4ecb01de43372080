/* core/log_units.h on any bytes.
 *
 * Checked besides crashes: records follow each other without a gap from the first byte on, each says its own position,
 * and keys belong to records that were read.
 */
#include "same.h"

#include <string.h>

#include "core/log_units.h"
#include "core/record.h"

#define KEYS_MAX (RMQ_PROPERTIES_BYTES_MAX + 4096)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *data, size_t size, bool check_crc)
{
    rmq_log_units found = {0};
    int64_t at = 0;
    size_t stopped;

    found.unit_max = size / RMQ_RECORD_BYTES_MIN + 1;
    found.key_max = KEYS_MAX;
    found.units = malloc(found.unit_max * sizeof *found.units);
    found.keys = malloc(found.key_max * sizeof *found.keys);
    stopped = rmq_read_log_units(data, size, 0, check_crc, &found);
    for (size_t i = 0; i < found.unit_count; i++) {
        CHECK(found.units[i].physical_offset == at && found.units[i].size_bytes >= RMQ_RECORD_BYTES_MIN);
        at += found.units[i].size_bytes;
    }
    CHECK((size_t)at == stopped && stopped <= size);
    for (size_t i = 0; i < found.key_count; i++) {
        CHECK(found.keys[i].physical_offset >= 0 && found.keys[i].physical_offset < at && found.keys[i].hash >= 0);
    }
    free(found.units);
    free(found.keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size); /* exactly: a byte too many is seen */

    memcpy(copy, data, size);
    read_all(copy, size, false);
    read_all(copy, size, true);
    free(copy);
    return 0;
}
