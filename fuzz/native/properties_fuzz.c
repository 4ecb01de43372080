/* core/properties.h on any bytes.
 *
 * Checked besides crashes: the two readers of properties (this one, and that of message lists) find the same; what the
 * store looks for is the last of its name; two forms that are put together have the properties of both.
 */
#include "same.h"

#include <string.h>

#include "core/message_list.h"
#include "core/properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_of(rmq_text properties)
{
    size_t at = 0, count = 0;
    rmq_text name, value;

    while (rmq_next_property(properties, &at, &name, &value)) {
        CHECK(name.size > 0 && value.size > 0);
        count += 1;
    }
    return count;
}

static void compare_readers(rmq_text properties)
{
    rmq_text rest = properties, name, value, other_name, other_value, tags = {NULL, 0};
    rmq_known_properties known;
    size_t at = 0;

    while (rmq_next_property(properties, &at, &name, &value)) {
        CHECK(rmq_message_next_property(&rest, &other_name, &other_value));
        CHECK(name.at == other_name.at && name.size == other_name.size);
        CHECK(value.at == other_value.at && value.size == other_value.size);
        tags = rmq_text_equals(name, RMQ_TEXT("TAGS")) ? value : tags;
    }
    CHECK(!rmq_message_next_property(&rest, &other_name, &other_value));
    rmq_find_properties(properties, &known);
    CHECK(known.tags.at == tags.at && known.tags.size == tags.size);
    CHECK(rmq_fingerprint(properties, UINT32_MAX) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    const rmq_text whole = {copy, size};
    const rmq_text first = {copy, size / 2}, second = {copy + size / 2, size - size / 2};
    uint8_t *joined;
    size_t together;

    memcpy(copy, data, size);
    together = rmq_concatenated_bytes(first, second);
    CHECK(together == size || together == size + 1);
    joined = malloc(together);
    rmq_concatenate_properties(first, second, joined);
    CHECK(count_of((rmq_text){joined, together}) == count_of(first) + count_of(second));
    compare_readers(whole);
    free(joined);
    free(copy);
    return 0;
}
