/* See command.h. */
#include "command.h"

#include <assert.h>

static const rmq_text LANGUAGES[RMQ_LANGUAGES] = {
#define NAME(literal) {(const uint8_t *)(literal), sizeof(literal) - 1}
    NAME("JAVA"),  NAME("CPP"),  NAME("DOTNET"), NAME("PYTHON"), NAME("DELPHI"), NAME("ERLANG"), NAME("RUBY"),
    NAME("OTHER"), NAME("HTTP"), NAME("GO"),     NAME("PHP"),    NAME("OMS"),    NAME("RUST"),   NAME("NODE_JS"),
#undef NAME
};

const rmq_text *rmq_command_field(const rmq_command *command, rmq_text key)
{
    assert(command->field_count <= RMQ_FIELDS_MAX);
    for (size_t i = 0; i < command->field_count; i++) {
        if (rmq_text_equals(command->fields[i].key, key)) {
            return &command->fields[i].value;
        }
    }
    return NULL;
}

rmq_text rmq_language_name(uint8_t language)
{
    assert(language < RMQ_LANGUAGES);
    return LANGUAGES[language];
}

uint8_t rmq_language_of(rmq_text name)
{
    for (uint8_t language = 0; language < RMQ_LANGUAGES; language++) {
        if (rmq_text_equals(name, LANGUAGES[language])) {
            return language;
        }
    }
    return RMQ_LANGUAGE_OTHER;
}
