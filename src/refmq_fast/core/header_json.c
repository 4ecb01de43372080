/* See header_json.h. The reader is one pass over the bytes; each function leaves `at` behind what it has read. */
#include "header_json.h"

#include <assert.h>
#include <string.h>

#include "decimal.h"
#include "json_text.h"

#define INTEGER_DIGITS_MAX 10 /* as in the reference: no 32-bit number has more */

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    uint8_t *scratch;
} scanner;

/* One bit for each key of the header, to notice a second one of the same name. */
enum {
    SEEN_CODE = 1,
    SEEN_EXT_FIELDS = 2,
    SEEN_FLAG = 4,
    SEEN_LANGUAGE = 8,
    SEEN_OPAQUE = 16,
    SEEN_REMARK = 32,
    SEEN_SERIALIZE = 64,
    SEEN_VERSION = 128,
};

static bool take(scanner *from, char wanted)
{
    if (from->at == from->end || *from->at != (uint8_t)wanted) {
        return false;
    }
    from->at += 1;
    return true;
}

static bool take_word(scanner *from, const char *word, size_t length)
{
    if ((size_t)(from->end - from->at) < length || memcmp(from->at, word, length) != 0) {
        return false;
    }
    from->at += length;
    return true;
}

static rmq_status read_text(scanner *from, rmq_text *text)
{
    if (from->at == from->end || *from->at != '"') {
        return RMQ_NOT_MINE;
    }
    return rmq_json_unquote(&from->at, from->end, &from->scratch, text);
}

/* The text of an integer as JSON has it: perhaps a minus, then zero alone or digits that do not begin with zero. What
 * follows is looked at by the caller, so a fraction or an exponent is refused there. */
static rmq_status read_digits(scanner *from, rmq_text *text)
{
    const uint8_t *begin = from->at;
    const uint8_t *first;

    (void)take(from, '-');
    first = from->at;
    while (from->at < from->end && *from->at >= '0' && *from->at <= '9') {
        from->at += 1;
    }
    if (from->at == first || (*first == '0' && from->at - first > 1)) {
        return RMQ_NOT_MINE;
    }
    *text = (rmq_text){begin, (size_t)(from->at - begin)};
    return RMQ_OK;
}

static rmq_status read_int32(scanner *from, int32_t *number)
{
    rmq_text text;
    int64_t value = 0;
    bool negative;

    if (read_digits(from, &text) != RMQ_OK) {
        return RMQ_NOT_MINE;
    }
    negative = text.at[0] == '-';
    if (text.size - (negative ? 1u : 0u) > INTEGER_DIGITS_MAX) {
        return RMQ_NOT_MINE;
    }
    for (size_t i = negative ? 1 : 0; i < text.size; i++) {
        value = value * 10 + (text.at[i] - '0');
    }
    value = negative ? -value : value;
    if (value < INT32_MIN || value > INT32_MAX) {
        return RMQ_NOT_MINE;
    }
    *number = (int32_t)value;
    return RMQ_OK;
}

static rmq_status read_language(scanner *from, uint8_t *language)
{
    rmq_text name;
    int32_t number;

    if (from->at < from->end && *from->at == '"') {
        if (read_text(from, &name) != RMQ_OK) {
            return RMQ_NOT_MINE;
        }
        *language = rmq_language_of(name);
        return RMQ_OK;
    }
    if (from->at < from->end && *from->at == '-') {
        return RMQ_NOT_MINE; /* minus zero is none */
    }
    if (read_int32(from, &number) != RMQ_OK || number > (int32_t)RMQ_LANGUAGE_NODE_JS) {
        return RMQ_NOT_MINE;
    }
    *language = (uint8_t)number;
    return RMQ_OK;
}

static rmq_status read_remark(scanner *from, rmq_command *command)
{
    if (take_word(from, "null", 4)) {
        return RMQ_OK;
    }
    command->has_remark = true;
    return read_text(from, &command->remark);
}

/* A value of extFields; numbers and booleans keep the text that was sent, because it is what was signed. */
static rmq_status read_value(scanner *from, rmq_text *value)
{
    if (from->at == from->end) {
        return RMQ_NOT_MINE;
    }
    switch (*from->at) {
    case '"':
        return read_text(from, value);
    case 't':
        *value = RMQ_TEXT("true");
        return take_word(from, "true", 4) ? RMQ_OK : RMQ_NOT_MINE;
    case 'f':
        *value = RMQ_TEXT("false");
        return take_word(from, "false", 5) ? RMQ_OK : RMQ_NOT_MINE;
    default:
        return read_digits(from, value);
    }
}

/* One bit of 64 for a key. Keys with different bits differ, so most keys need not be compared with those before. */
static uint64_t key_bit(rmq_text key)
{
    const unsigned mixed = key.size == 0 ? 0u : key.at[0] * 3u + key.at[key.size - 1] * 7u + (unsigned)key.size;

    return (uint64_t)1 << (mixed & 63u);
}

static rmq_status read_fields(scanner *from, rmq_command *command)
{
    uint64_t seen = 0;

    if (take_word(from, "null", 4)) {
        return RMQ_OK;
    }
    if (!take(from, '{')) {
        return RMQ_NOT_MINE;
    }
    command->has_fields = true;
    if (take(from, '}')) {
        return RMQ_OK;
    }
    do {
        rmq_field *field = &command->fields[command->field_count];
        uint64_t bit;

        if (command->field_count == RMQ_FIELDS_MAX || read_text(from, &field->key) != RMQ_OK || !take(from, ':') ||
            read_value(from, &field->value) != RMQ_OK) {
            return RMQ_NOT_MINE;
        }
        bit = key_bit(field->key);
        if ((seen & bit) != 0 && rmq_command_field(command, field->key) != NULL) {
            return RMQ_NOT_MINE; /* of two the last one counts, unless it is null, and so on: rare */
        }
        seen |= bit;
        command->field_count += 1;
    } while (take(from, ','));
    return take(from, '}') ? RMQ_OK : RMQ_NOT_MINE;
}

/* Reads the value of `key`; `seen` has the keys before it. */
static rmq_status read_member(scanner *from, rmq_text key, unsigned *seen, rmq_command *command)
{
    rmq_text ignored;
    unsigned bit;
    rmq_status status;

#define IS(name) (key.size == sizeof(name) - 1 && memcmp(key.at, name, sizeof(name) - 1) == 0)
    if (IS("code")) {
        bit = SEEN_CODE;
        status = read_int32(from, &command->code);
    } else if (IS("extFields")) {
        bit = SEEN_EXT_FIELDS;
        /* a second map must not be read behind the first one */
        status = (*seen & SEEN_EXT_FIELDS) != 0 ? RMQ_NOT_MINE : read_fields(from, command);
    } else if (IS("flag")) {
        bit = SEEN_FLAG;
        status = read_int32(from, &command->flag);
    } else if (IS("language")) {
        bit = SEEN_LANGUAGE;
        status = read_language(from, &command->language);
    } else if (IS("opaque")) {
        bit = SEEN_OPAQUE;
        status = read_int32(from, &command->opaque);
    } else if (IS("remark")) {
        bit = SEEN_REMARK;
        status = read_remark(from, command);
    } else if (IS("serializeTypeCurrentRPC")) {
        bit = SEEN_SERIALIZE;
        status = read_text(from, &ignored);
    } else if (IS("version")) {
        bit = SEEN_VERSION;
        status = read_int32(from, &command->version);
    } else {
        return RMQ_NOT_MINE;
    }
#undef IS
    if (status != RMQ_OK || (*seen & bit) != 0) {
        return RMQ_NOT_MINE;
    }
    *seen |= bit;
    return RMQ_OK;
}

static void clear(rmq_command *command, uint8_t serialize)
{
    command->code = 0;
    command->opaque = 0;
    command->flag = 0;
    command->version = 0;
    command->language = RMQ_LANGUAGE_JAVA;
    command->has_remark = false;
    command->has_fields = false;
    command->serialize = serialize;
    command->remark = (rmq_text){NULL, 0};
    command->field_count = 0; /* not the fields themselves: a kilobyte that nobody reads */
}

rmq_status rmq_header_json_decode(const uint8_t *header, size_t length, uint8_t *scratch, rmq_command *command)
{
    scanner from = {header, header + length, scratch};
    unsigned seen = 0;

    clear(command, RMQ_SERIALIZE_JSON);
    if (!take(&from, '{')) {
        return RMQ_NOT_MINE;
    }
    do {
        rmq_text key;

        if (read_text(&from, &key) != RMQ_OK || !take(&from, ':') ||
            read_member(&from, key, &seen, command) != RMQ_OK) {
            return RMQ_NOT_MINE;
        }
    } while (take(&from, ','));
    if (!take(&from, '}')) {
        return RMQ_NOT_MINE;
    }
    while (from.at < from.end && (*from.at == '\n' || *from.at == '\r' || *from.at == ' ' || *from.at == '\t')) {
        from.at += 1; /* C++ ends its header with a line feed */
    }
    assert((size_t)(from.scratch - scratch) <= length);
    return from.at == from.end ? RMQ_OK : RMQ_NOT_MINE;
}

/* All that a header has besides its texts, generously: five numbers, the names of the keys, a language. */
#define JSON_FIXED_BYTES_MAX 256u

size_t rmq_header_json_bytes_max(const rmq_command *command)
{
    size_t size = JSON_FIXED_BYTES_MAX + RMQ_QUOTED_BYTES_MAX(command->remark.size);

    assert(command->field_count <= RMQ_FIELDS_MAX);
    for (size_t i = 0; i < command->field_count; i++) {
        size += RMQ_QUOTED_BYTES_MAX(command->fields[i].key.size) + 1;
        size += RMQ_QUOTED_BYTES_MAX(command->fields[i].value.size) + 1;
    }
    return size;
}

#define WRITE(to, literal) (memcpy(to, literal, sizeof(literal) - 1), (to) + sizeof(literal) - 1)

uint8_t *rmq_header_json_encode(const rmq_command *command, uint8_t *to)
{
    const rmq_text language = rmq_language_name(command->language);

    to = WRITE(to, "{\"code\":");
    to = rmq_decimal_write(command->code, to);
    if (command->has_fields) {
        to = WRITE(to, ",\"extFields\":{");
        for (size_t i = 0; i < command->field_count; i++) {
            if (i > 0) {
                *to++ = ',';
            }
            to = rmq_json_quote(command->fields[i].key, to);
            *to++ = ':';
            to = rmq_json_quote(command->fields[i].value, to);
        }
        *to++ = '}';
    }
    to = WRITE(to, ",\"flag\":");
    to = rmq_decimal_write(command->flag, to);
    to = WRITE(to, ",\"language\":\"");
    memcpy(to, language.at, language.size);
    to += language.size;
    to = WRITE(to, "\",\"opaque\":");
    to = rmq_decimal_write(command->opaque, to);
    if (command->has_remark) {
        to = WRITE(to, ",\"remark\":");
        to = rmq_json_quote(command->remark, to);
    }
    to = WRITE(to, ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    to = rmq_decimal_write(command->version, to);
    *to++ = '}';
    return to;
}
