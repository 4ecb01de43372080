/* Holds core/crc32.c directly, without Python, so that a sanitizer sees every byte it reads.
 *
 * Each buffer is allocated with exactly the length that is checked: reading one byte too far is an error that
 * AddressSanitizer reports. The expected value is computed bit by bit from the definition.
 */
#include "core/crc32.h"

#include <stdio.h>
#include <stdlib.h>

#define LENGTH_MAX 700 /* several blocks of 64, with every remainder */

static uint32_t crc32_by_definition(uint32_t crc, const uint8_t *data, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 1u) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        }
    }
    return ~crc;
}

static int check(const char *name, size_t length, uint32_t expected, uint32_t found)
{
    if (expected != found) {
        printf("%s of %zu bytes should be 0x%08x but is 0x%08x\n", name, length, expected, found);
        return 1;
    }
    return 0;
}

int main(void)
{
    uint32_t noise = 1; /* xorshift: any bytes will do, as long as they are the same in every run */
    int failures = check("portable", 0, 7, rmq_crc32_portable(7, NULL, 0)) + check("crc32", 0, 7, rmq_crc32(7, NULL, 0));

    for (size_t length = 1; length <= LENGTH_MAX; length++) {
        uint8_t *data = malloc(length);
        uint32_t expected;
        if (data == NULL) {
            return 2;
        }
        for (size_t i = 0; i < length; i++) {
            noise ^= noise << 13;
            noise ^= noise >> 17;
            noise ^= noise << 5;
            data[i] = (uint8_t)(noise & 0xffu);
        }
        expected = crc32_by_definition(noise, data, length);
        failures += check("portable", length, expected, rmq_crc32_portable(noise, data, length));
        failures += check("crc32", length, expected, rmq_crc32(noise, data, length));
        free(data);
    }
    printf("accelerated: %d, failures: %d\n", rmq_crc32_is_accelerated(), failures);
    return failures == 0 ? 0 : 1;
}
