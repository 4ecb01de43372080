/* core/text.h, utf8.h, hash.h and message_id.h on any bytes.
 *
 * Checked besides crashes: two ways to say whether a text is UTF-8 agree; with its replacements it is UTF-8 and has the
 * same hash, also when that is computed in two pieces; an id that was read is the same when it is written again.
 */
#include "same.h"

#include <string.h>
#include <strings.h>

#include "core/hash.h"
#include "core/message_id.h"
#include "core/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_text(const uint8_t *text, size_t size)
{
    const size_t valid_to = rmq_utf8_valid_to(text, size);
    const size_t length = rmq_utf8_replace(text, size, NULL);
    uint8_t *replaced = malloc(length);

    CHECK(rmq_text_is_utf8((rmq_text){text, size}) == (valid_to == size));
    CHECK(length <= 3 * size && rmq_utf8_replace(text, size, replaced) == length);
    CHECK(rmq_utf8_valid_to(replaced, length) == length);
    CHECK(memcmp(replaced, text, valid_to) == 0 && (valid_to == size) == (length == size && valid_to == length));
    CHECK(rmq_string_hash(0, text, size) == rmq_string_hash(0, replaced, length));
    CHECK(rmq_string_hash(rmq_string_hash(0, text, valid_to), text + valid_to, size - valid_to) ==
          rmq_string_hash(0, text, size));
    CHECK(rmq_key_hash(text, size, text, size) >= 0);
    free(replaced);
}

static void read_id(const uint8_t *text, size_t size)
{
    char again[RMQ_MESSAGE_ID_CHARS_MAX];
    int64_t physical_offset;
    rmq_host host;

    if (rmq_parse_message_id((const char *)text, size, &host, &physical_offset)) {
        CHECK(rmq_message_id(&host, physical_offset, again) == size);
        CHECK(strncasecmp(again, (const char *)text, size) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);

    memcpy(copy, data, size);
    read_text(copy, size);
    read_id(copy, size);
    free(copy);
    return 0;
}
