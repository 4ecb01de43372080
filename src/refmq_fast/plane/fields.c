/* See fields.h. */
#include "fields.h"

#include <assert.h>

#define DIGITS_MAX 18u /* they fit an int64_t whatever they are; longer numbers are rare */

int64_t rmq_digits(rmq_text text, size_t digits_max)
{
    int64_t number = 0;

    assert(digits_max <= DIGITS_MAX);
#ifdef RMQ_MISTAKE_DIGITS_MAX
    digits_max += 2; /* seeded for the fuzzer: numbers that do not fit are computed */
#endif
    if (text.size == 0 || text.size > digits_max) {
        return -1;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return -1;
        }
        number = number * 10 + (text.at[i] - '0');
    }
    return number;
}

static rmq_status read_number(rmq_text text, int64_t low, int64_t high, int64_t *value)
{
    const bool is_negative = text.size > 0 && text.at[0] == '-';
    const rmq_text digits = is_negative ? (rmq_text){text.at + 1, text.size - 1} : text;
    const int64_t size = rmq_digits(digits, DIGITS_MAX);
    const int64_t number = is_negative ? -size : size;

    if (size < 0 || number < low || number > high) {
        return RMQ_NOT_MINE;
    }
    *value = number;
    return RMQ_OK;
}

rmq_status rmq_text_field(const rmq_command *command, rmq_text key, rmq_text *value)
{
    const rmq_text *found = rmq_command_field(command, key);

    if (found == NULL) {
        return RMQ_NOT_MINE;
    }
    *value = *found;
    return RMQ_OK;
}

rmq_status rmq_number_field(const rmq_command *command, rmq_text key, int64_t low, int64_t high, int64_t *value)
{
    const rmq_text *found = rmq_command_field(command, key);

    return found == NULL ? RMQ_NOT_MINE : read_number(*found, low, high, value);
}

rmq_status rmq_optional_number(const rmq_command *command, rmq_text key, int64_t low, int64_t high, int64_t *value)
{
    const rmq_text *found = rmq_command_field(command, key);

    return found == NULL || found->size == 0 ? RMQ_OK : read_number(*found, low, high, value);
}

void rmq_optional_text(const rmq_command *command, rmq_text key, rmq_text *value)
{
    const rmq_text *found = rmq_command_field(command, key);

    if (found != NULL) {
        *value = *found;
    }
}

void rmq_optional_switch(const rmq_command *command, rmq_text key, bool *value)
{
    const rmq_text *found = rmq_command_field(command, key);

    if (found != NULL) {
        *value = rmq_text_is_in_any_case(*found, RMQ_TEXT("true"));
    }
}

bool rmq_text_is_in_any_case(rmq_text text, rmq_text wanted)
{
    if (text.size != wanted.size) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t byte = text.at[i];
        const uint8_t lower = byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;

        if (lower != wanted.at[i]) {
            return false;
        }
    }
    return true;
}
