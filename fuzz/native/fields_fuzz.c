/* plane/fields.h on any bytes, as the value of an ext field.
 *
 * Checked besides crashes: a number that was read is the one that the C library reads, within the bounds that were asked
 * for; whatever it reads in plain decimal, with at most eighteen digits, is read.
 */
#include "same.h"

#include <string.h>

#include "plane/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_plain(const char *text)
{
    const size_t digits = strspn(text + (text[0] == '-'), "0123456789");

    return digits > 0 && digits <= 18 && text[digits + (text[0] == '-')] == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* for the C library, which wants a zero behind it */
    uint8_t *exactly = malloc(size);
    const rmq_command command = {
        .has_fields = true, .field_count = 1, .fields = {{.key = RMQ_TEXT("k"), .value = {exactly, size}}}};
    int64_t value = 77;
    const int64_t high = size % 2 == 0 ? INT32_MAX : INT64_MAX, low = size % 3 == 0 ? 0 : -high;
    bool is_on = false;

    memcpy(text, data, size);
    text[size] = 0;
    memcpy(exactly, data, size);
    if (rmq_number_field(&command, RMQ_TEXT("k"), low, high, &value) == RMQ_OK) {
        CHECK(strlen(text) == size && is_plain(text) && value == strtoll(text, NULL, 10));
        CHECK(value >= low && value <= high);
    } else {
        CHECK(value == 77);
        CHECK(strlen(text) != size || !is_plain(text) || strtoll(text, NULL, 10) < low || strtoll(text, NULL, 10) > high);
    }
    CHECK(rmq_number_field(&command, RMQ_TEXT("other"), low, high, &value) == RMQ_NOT_MINE);
    rmq_optional_switch(&command, RMQ_TEXT("k"), &is_on);
    CHECK(!is_on || size == 4);
    free(exactly);
    free(text);
    return 0;
}
