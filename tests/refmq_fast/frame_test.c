/* Holds core/frame.c and what is below it directly, without Python, in memory of exactly the right size, so that a
 * sanitizer sees every byte that is read or written too far. What the values are is compared in test_frame_codec.py. */
#include "core/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(claim)                                                                                                  \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            printf("line %d: not so: %s\n", __LINE__, #claim);                                                         \
            failures += 1;                                                                                             \
        }                                                                                                              \
    } while (0)

static const char HEADER[] = "{\"code\":310,\"extFields\":{\"a\":\"pg\",\"i\":\"KEYS\\u0001k\\u0002\",\"e\":-1},\"flag\":0,"
                             "\"language\":\"GO\",\"opaque\":5,\"remark\":\"\\ud83d\\ude00\",\"version\":317}\n";

/* A frame with this header and a body of three bytes, in memory of its own. */
static uint8_t *frame_of(const char *header, uint8_t serialize, size_t *length)
{
    const size_t size = strlen(header);
    uint8_t *data = malloc(8 + size + 3);

    if (data == NULL) {
        exit(1);
    }
    memset(data, 0, 8);
    data[3] = (uint8_t)(4 + size + 3);
    data[2] = (uint8_t)((4 + size + 3) >> 8);
    data[4] = serialize;
    data[7] = (uint8_t)size;
    data[6] = (uint8_t)(size >> 8);
    memcpy(data + 8, header, size);
    memcpy(data + 8 + size, "end", 3);
    *length = 8 + size + 3;
    return data;
}

static bool is(const rmq_text *text, const char *expected)
{
    return text != NULL && text->size == strlen(expected) && memcmp(text->at, expected, text->size) == 0;
}

static void test_reading(void)
{
    size_t length;
    uint8_t *data = frame_of(HEADER, RMQ_SERIALIZE_JSON, &length);
    uint8_t *scratch = malloc(strlen(HEADER));
    rmq_frame frame;
    rmq_command read;

    for (size_t less = 1; less <= length; less++) {
        uint8_t *piece = malloc(length - less + 1);

        memcpy(piece, data, length - less);
        EXPECT(rmq_frame_find(piece, length - less, RMQ_FRAME_LENGTH_MAX, &frame) == RMQ_MORE);
        free(piece);
    }
    EXPECT(rmq_frame_find(data, length, RMQ_FRAME_LENGTH_MAX, &frame) == RMQ_OK);
    EXPECT(frame.length == length && frame.body_at == length - 3 && frame.header_length == strlen(HEADER));
    EXPECT(rmq_frame_decode(data, &frame, scratch, &read) == RMQ_OK);
    EXPECT(read.code == 310 && read.opaque == 5 && read.version == 317 && read.language == 9 && read.field_count == 3);
    EXPECT(read.has_remark && is(&read.remark, "\xf0\x9f\x98\x80"));
    EXPECT(is(rmq_command_field(&read, RMQ_TEXT("i")), "KEYS\x01k\x02"));
    EXPECT(is(rmq_command_field(&read, RMQ_TEXT("e")), "-1"));
    EXPECT(rmq_command_field(&read, RMQ_TEXT("x")) == NULL);
    free(scratch);
    free(data);
}

/* Every header that ends too early, in memory that ends there as well. */
static void test_headers_that_end_early(void)
{
    for (size_t size = 0; size + 2 < strlen(HEADER); size++) { /* the line feed and the brace */
        char *cut = malloc(size + 1);
        uint8_t *scratch = malloc(size);
        size_t length;
        uint8_t *data;
        rmq_frame frame;
        rmq_command read;

        memcpy(cut, HEADER, size);
        cut[size] = '\0';
        data = frame_of(cut, RMQ_SERIALIZE_JSON, &length);
        EXPECT(rmq_frame_find(data, length, RMQ_FRAME_LENGTH_MAX, &frame) == RMQ_OK);
        EXPECT(rmq_frame_decode(data, &frame, scratch, &read) == RMQ_NOT_MINE);
        free(data);
        free(scratch);
        free(cut);
    }
}

static void test_forged_prefixes(void)
{
    static const uint8_t FORGED[][8] = {
        {0, 0, 0, 3, 0, 0, 0, 0},             /* shorter than its own header length */
        {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, /* negative */
        {0x01, 0, 0, 0xfd, 0, 0, 0, 0},       /* one more than the longest */
        {0, 0, 0, 4, 2, 0, 0, 0},             /* no such serialization */
        {0, 0, 0, 4, 0, 0, 0, 1},             /* a header that is longer than the frame */
        {0, 0xff, 0, 0, 0, 0x10, 0, 1},       /* a header that is longer than any */
    };
    rmq_frame frame;

    for (size_t i = 0; i < sizeof FORGED / sizeof FORGED[0]; i++) {
        EXPECT(rmq_frame_find(FORGED[i], 8, RMQ_FRAME_LENGTH_MAX, &frame) == RMQ_NOT_MINE);
    }
    /* The first three are known by their length alone. */
    for (size_t i = 0; i < 3; i++) {
        EXPECT(rmq_frame_find(FORGED[i], 4, RMQ_FRAME_LENGTH_MAX, &frame) == RMQ_NOT_MINE);
    }
    EXPECT(rmq_frame_find((const uint8_t[]){0, 0, 0, 4, 0, 0, 0, 0}, 8, RMQ_FRAME_LENGTH_MAX, &frame) == RMQ_OK);
    EXPECT(frame.length == 8 && frame.header_length == 0);
}

/* Heads are written into exactly the room that was asked for. */
static void test_writing(uint8_t serialize)
{
    rmq_command command = {.code = 1,
                           .language = RMQ_LANGUAGE_PYTHON,
                           .has_remark = true,
                           .remark = RMQ_TEXT("\x01\x02\x03\x04\x05\x06\x07"),
                           .serialize = serialize};
    size_t capacity, used = 0;
    uint8_t *head;

    for (size_t count = 0; count <= RMQ_FIELDS_MAX; count++) {
        command.field_count = count;
        command.has_fields = count > 0;
        if (count > 0) {
            command.fields[count - 1].key = RMQ_TEXT("\x1f\x7f");
            command.fields[count - 1].value = RMQ_TEXT("\xc2\x80\xe2\x80\xa8");
        }
        capacity = rmq_frame_head_bytes_max(&command);
        head = malloc(capacity);
        EXPECT(rmq_frame_encode_head(&command, 0, RMQ_FRAME_LENGTH_MAX, head, capacity, &used) == RMQ_OK);
        EXPECT(used <= capacity);
        EXPECT(rmq_frame_encode_head(&command, 0, RMQ_FRAME_LENGTH_MAX, head, capacity - 1, &used) == RMQ_NO_ROOM);
        free(head);
    }
    command.remark.size = RMQ_HEADER_LENGTH_MAX + 1; /* never read: it is too long */
    EXPECT(rmq_frame_head_bytes_max(&command) == 0);
    EXPECT(rmq_frame_encode_head(&command, 0, RMQ_FRAME_LENGTH_MAX, NULL, 0, &used) == RMQ_NOT_MINE);
}

int main(void)
{
    test_reading();
    test_headers_that_end_early();
    test_forged_prefixes();
    test_writing(RMQ_SERIALIZE_JSON);
    test_writing(RMQ_SERIALIZE_ROCKETMQ);
    printf("failures: %d\n", failures);
    return failures == 0 ? 0 : 1;
}
