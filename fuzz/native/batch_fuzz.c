/* core/batch.h on any bytes.
 *
 * Checked besides crashes: messages follow each other without a gap and lie within the input; damage leaves the place
 * where it is and is named at a byte of the input.
 */
#include "same.h"

#include <string.h>

#include "core/batch.h"

#define WITHOUT_TEXTS 22u /* bytes of a message that has neither a body nor properties */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    size_t at = 0;

    memcpy(copy, data, size);
    while (at < size) {
        const size_t before = at;
        rmq_batched message;
        rmq_damage damage;

        if (rmq_next_batched(copy, size, &at, &message, &damage) != RMQ_OK) {
            CHECK(at == before && damage.offset >= (int64_t)before && (size_t)damage.offset <= size);
            break;
        }
        CHECK(at == before + WITHOUT_TEXTS + message.body.size + message.properties.size && at <= size);
        CHECK(message.body.at == copy + before + WITHOUT_TEXTS - 2);
        CHECK(message.properties.at + message.properties.size == copy + at);
    }
    free(copy);
    return 0;
}
