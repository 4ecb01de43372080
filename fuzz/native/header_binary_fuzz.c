/* core/header_binary.h on any bytes.
 *
 * Checked besides crashes: every text that was read is UTF-8 and not empty, keys differ, and a header that was read is
 * the same after it was written and read again, in the length that was announced.
 */
#include "same.h"

#include "core/header_binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rmq_command read, again;
    uint8_t *written, *end = NULL;

    if (rmq_header_binary_decode(data, size, &read) != RMQ_OK) {
        return 0;
    }
    CHECK(read.has_remark == (read.remark.size > 0) && rmq_text_is_utf8(read.remark));
    for (size_t i = 0; i < read.field_count; i++) {
        CHECK(read.fields[i].key.size > 0 && rmq_text_is_utf8(read.fields[i].key));
        CHECK(read.fields[i].value.size > 0 && rmq_text_is_utf8(read.fields[i].value));
        CHECK(rmq_command_field(&read, read.fields[i].key) == &read.fields[i].value);
    }
    written = malloc(rmq_header_binary_bytes(&read));
    CHECK(rmq_header_binary_encode(&read, written, &end) == RMQ_OK);
    CHECK((size_t)(end - written) == rmq_header_binary_bytes(&read));
    CHECK(rmq_header_binary_decode(written, (size_t)(end - written), &again) == RMQ_OK);
    CHECK(same_command(&read, &again));
    free(written);
    return 0;
}
