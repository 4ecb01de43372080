/* Writes down where bytes are wrong. */
#include "damage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rmq_damage_value rmq_damage_number(int64_t number)
{
    rmq_damage_value value = {.kind = RMQ_VALUE_NUMBER, .number = number};
    return value;
}

rmq_damage_value rmq_damage_text(const char *format, ...)
{
    rmq_damage_value value = {.kind = RMQ_VALUE_TEXT};
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(value.text, sizeof value.text, format, arguments);
    va_end(arguments);
    value.size = strlen(value.text);
    return value;
}

rmq_damage_value rmq_damage_bytes(const uint8_t *text, size_t size, bool is_quoted)
{
    rmq_damage_value value = {.kind = is_quoted ? RMQ_VALUE_QUOTED : RMQ_VALUE_TEXT};

    value.size = size < sizeof value.text ? size : sizeof value.text;
    if (value.size > 0) {
        memcpy(value.text, text, value.size);
    }
    return value;
}

rmq_status rmq_damaged(rmq_damage *damage, const char *field, int64_t offset, rmq_damage_value expected,
                       rmq_damage_value found)
{
    if (damage != NULL) {
        damage->field = field;
        damage->offset = offset;
        damage->expected = expected;
        damage->found = found;
    }
    return RMQ_DAMAGED;
}
