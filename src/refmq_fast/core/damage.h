/* Where bytes are wrong and how: the four arguments of a DecodeError of the reference. */
#ifndef RMQ_CORE_DAMAGE_H
#define RMQ_CORE_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define RMQ_DAMAGE_TEXT_BYTES 160

/* What was expected, or what was found: a number, a text, or a text of somebody else's that is shown in quotes. */
typedef struct {
    enum { RMQ_VALUE_NUMBER, RMQ_VALUE_TEXT, RMQ_VALUE_QUOTED } kind;
    int64_t number;
    size_t size; /* of the text */
    char text[RMQ_DAMAGE_TEXT_BYTES];
} rmq_damage_value;

typedef struct {
    const char *field; /* a name of the layout's table, never freed */
    int64_t offset;    /* of the field's first byte */
    rmq_damage_value expected;
    rmq_damage_value found;
} rmq_damage;

/* A value for either side. Texts that are too long are cut. */
rmq_damage_value rmq_damage_number(int64_t number);
rmq_damage_value rmq_damage_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
rmq_damage_value rmq_damage_bytes(const uint8_t *text, size_t size, bool is_quoted);

/* Fills `damage`, which may be null, and returns RMQ_DAMAGED. `field` must outlive it. */
rmq_status rmq_damaged(rmq_damage *damage, const char *field, int64_t offset, rmq_damage_value expected,
                       rmq_damage_value found);

#endif
