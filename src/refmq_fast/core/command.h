/* A remoting command whose texts lie in somebody else's memory; the twin of refmq/protocol/command.py.
 *
 * Whoever decodes a header fills one of these; whoever encodes one reads it. It owns nothing: a text points into the
 * header that was decoded or into the scratch memory that was given with it, and lives as long as they do. Every text is
 * UTF-8 in the strict sense of text.h.
 */
#ifndef RMQ_CORE_COMMAND_H
#define RMQ_CORE_COMMAND_H

#include "text.h"

#define RMQ_FRAME_LENGTH_MAX 16777216u /* with the length field, as in protocol/frame.py */
#define RMQ_HEADER_LENGTH_MAX 1048576u /* as in protocol/frame.py */
#define RMQ_FIELDS_MAX 32u             /* a signed send of a 5.x client in a namespace has about twenty */

#define RMQ_RESPONSE_FLAG 1
#define RMQ_ONEWAY_FLAG 2

#define RMQ_SERIALIZE_JSON 0u
#define RMQ_SERIALIZE_ROCKETMQ 1u

#define RMQ_LANGUAGE_JAVA 0u
#define RMQ_LANGUAGE_PYTHON 3u
#define RMQ_LANGUAGE_OTHER 7u
#define RMQ_LANGUAGE_NODE_JS 13u
#define RMQ_LANGUAGES 14u

#define RMQ_VERSION 409 /* V4_9_8: what refmq calls itself in protocol/versions.py */

typedef struct {
    rmq_text key;
    rmq_text value;
} rmq_field;

typedef struct {
    int32_t code;
    int32_t opaque;
    int32_t flag;
    int32_t version;
    uint8_t language;  /* below RMQ_LANGUAGES */
    bool has_remark;   /* an empty remark is not the same as none */
    bool has_fields;   /* no ext fields are not the same as an empty map */
    uint8_t serialize; /* RMQ_SERIALIZE_JSON or RMQ_SERIALIZE_ROCKETMQ */
    rmq_text remark;
    size_t field_count; /* at most RMQ_FIELDS_MAX */
    rmq_field fields[RMQ_FIELDS_MAX];
} rmq_command;

/* The value of an ext field, or null when there is none of this name. */
const rmq_text *rmq_command_field(const rmq_command *command, rmq_text key);

/* The name of a language in JSON headers. `language` is below RMQ_LANGUAGES. */
rmq_text rmq_language_name(uint8_t language);

/* The language of a name; RMQ_LANGUAGE_OTHER for a name that nobody knows. */
uint8_t rmq_language_of(rmq_text name);

#endif
