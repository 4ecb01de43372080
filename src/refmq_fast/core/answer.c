/* See answer.h. */
#include "answer.h"

#include <assert.h>

#include "decimal.h"
#include "frame.h"

#define NUMBERS_MAX 4u

/* An answer in the making: the command, and the digits of its numbers. */
typedef struct {
    rmq_command command;
    uint8_t digits[NUMBERS_MAX][RMQ_DECIMAL_BYTES_MAX];
    size_t numbers;
} answer;

static void begin(answer *made, rmq_asked asked, int32_t code)
{
    rmq_command *command = &made->command;

    command->code = code;
    command->opaque = asked.opaque;
    command->flag = RMQ_RESPONSE_FLAG;
    command->version = RMQ_VERSION;
    command->language = RMQ_LANGUAGE_PYTHON; /* both engines are refmq, and nobody is to tell them apart */
    command->has_remark = false;
    command->remark = (rmq_text){NULL, 0};
    command->has_fields = false;
    command->serialize = asked.serialize;
    command->field_count = 0;
    made->numbers = 0;
}

static void add_text(answer *made, rmq_text key, rmq_text value)
{
    rmq_command *command = &made->command;

    assert(command->field_count < RMQ_FIELDS_MAX);
    command->has_fields = true;
    command->fields[command->field_count].key = key;
    command->fields[command->field_count].value = value;
    command->field_count += 1;
}

static void add_number(answer *made, rmq_text key, int64_t value)
{
    uint8_t *digits;

    assert(made->numbers < NUMBERS_MAX);
    digits = made->digits[made->numbers++];
    add_text(made, key, (rmq_text){digits, (size_t)(rmq_decimal_write(value, digits) - digits)});
}

static rmq_status finish(const answer *made, size_t body_length, uint8_t *to, size_t capacity, size_t *used)
{
    return rmq_frame_encode_head(&made->command, body_length, RMQ_FRAME_LENGTH_MAX, to, capacity, used);
}

rmq_status rmq_answer_sent(rmq_asked asked, const rmq_sent *sent, uint8_t *to, size_t capacity, size_t *used)
{
    answer made;

    begin(&made, asked, sent->code);
    add_text(&made, RMQ_TEXT("msgId"), sent->message_id);
    add_number(&made, RMQ_TEXT("queueId"), sent->queue_id);
    add_number(&made, RMQ_TEXT("queueOffset"), sent->queue_offset);
    add_text(&made, RMQ_TEXT("MSG_REGION"), sent->region);
    add_text(&made, RMQ_TEXT("TRACE_ON"), sent->trace_on ? RMQ_TEXT("true") : RMQ_TEXT("false"));
    return finish(&made, 0, to, capacity, used);
}

rmq_status rmq_answer_pulled(rmq_asked asked, const rmq_pulled *pulled, size_t body_length, uint8_t *to,
                             size_t capacity, size_t *used)
{
    answer made;

    begin(&made, asked, pulled->code);
    made.command.has_remark = true;
    made.command.remark = pulled->remark;
    add_number(&made, RMQ_TEXT("suggestWhichBrokerId"), pulled->suggest_broker_id);
    add_number(&made, RMQ_TEXT("nextBeginOffset"), pulled->next_begin_offset);
    add_number(&made, RMQ_TEXT("minOffset"), pulled->min_offset);
    add_number(&made, RMQ_TEXT("maxOffset"), pulled->max_offset);
    return finish(&made, body_length, to, capacity, used);
}

rmq_status rmq_answer_offset(rmq_asked asked, int64_t offset, uint8_t *to, size_t capacity, size_t *used)
{
    answer made;

    begin(&made, asked, 0);
    add_number(&made, RMQ_TEXT("offset"), offset);
    return finish(&made, 0, to, capacity, used);
}

rmq_status rmq_answer_code(rmq_asked asked, int32_t code, uint8_t *to, size_t capacity, size_t *used)
{
    answer made;

    begin(&made, asked, code);
    return finish(&made, 0, to, capacity, used);
}
