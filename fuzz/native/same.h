/* What the targets share: a check that ends the process, and whether two commands are the same. */
#ifndef RMQ_FUZZ_SAME_H
#define RMQ_FUZZ_SAME_H

#include <stdio.h>
#include <stdlib.h>

#include "core/command.h"

#define CHECK(claim)                                                                                                   \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim);                                        \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline bool same_command(const rmq_command *one, const rmq_command *other)
{
    if (one->code != other->code || one->opaque != other->opaque || one->flag != other->flag ||
        one->version != other->version || one->language != other->language || one->serialize != other->serialize ||
        one->has_remark != other->has_remark || one->field_count != other->field_count ||
        (one->has_remark && !rmq_text_equals(one->remark, other->remark))) {
        return false;
    }
    /* A binary header does not know an empty map from none. */
    if (one->has_fields != other->has_fields && one->serialize == RMQ_SERIALIZE_JSON) {
        return false;
    }
    for (size_t i = 0; i < one->field_count; i++) {
        if (!rmq_text_equals(one->fields[i].key, other->fields[i].key) ||
            !rmq_text_equals(one->fields[i].value, other->fields[i].value)) {
            return false;
        }
    }
    return true;
}

#endif
