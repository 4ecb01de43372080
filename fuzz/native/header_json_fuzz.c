/* core/header_json.h on any bytes.
 *
 * Checked besides crashes: every text that was read is UTF-8, keys differ, and a header that was read is the same after
 * it was written and read again; written twice it is the same bytes.
 */
#include "same.h"

#include <string.h>

#include "core/header_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_texts(const rmq_command *read)
{
    CHECK(rmq_text_is_utf8(read->remark));
    for (size_t i = 0; i < read->field_count; i++) {
        CHECK(rmq_text_is_utf8(read->fields[i].key) && rmq_text_is_utf8(read->fields[i].value));
        CHECK(rmq_command_field(read, read->fields[i].key) == &read->fields[i].value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *scratch = malloc(size); /* exactly: a byte too many is seen */
    uint8_t *written, *more_scratch, *twice;
    rmq_command read, again;
    size_t length;

    if (rmq_header_json_decode(data, size, scratch, &read) == RMQ_OK) {
        check_texts(&read);
        written = malloc(rmq_header_json_bytes_max(&read));
        length = (size_t)(rmq_header_json_encode(&read, written) - written);
        CHECK(length <= rmq_header_json_bytes_max(&read));
        more_scratch = malloc(length);
        CHECK(rmq_header_json_decode(written, length, more_scratch, &again) == RMQ_OK);
        CHECK(same_command(&read, &again));
        twice = malloc(rmq_header_json_bytes_max(&again));
        CHECK((size_t)(rmq_header_json_encode(&again, twice) - twice) == length);
        CHECK(memcmp(written, twice, length) == 0);
        free(twice);
        free(more_scratch);
        free(written);
    }
    free(scratch);
    return 0;
}
