/* Holds core/trace.c directly, without Python, so that a sanitizer sees every byte it writes.
 *
 * The record is allocated with exactly its length, at every alignment. The expected bytes were written down by hand from
 * the table in refmq/trace/record.py: every byte of every field is different, or is that of a limit.
 */
#include "core/trace.h"

#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENTS 8

typedef struct {
    const char *name;
    rmq_trace_event event;
    uint8_t expected[RMQ_TRACE_RECORD_BYTES];
} example;

static const example EXAMPLES[] = {
    {"counting",
     {.outcome = 0x11,
      .action = 0x1312,
      .sequence = 0x17161514u,
      .at_ns = 0x1f1e1d1c1b1a1918,
      .a = 0x2726252423222120,
      .b = 0x2f2e2d2c2b2a2928,
      .c = 0x3736353433323130,
      .d = 0x3b3a3938u,
      .actor = 0x3f3e3d3cu,
      .subject = 0x43424140u,
      .queue_id = 0x47464544,
      .operation = 0x4f4e4d4c4b4a4948u},
     {0x01, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
      0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
      0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f,
      0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f}},
    {"limits",
     {.outcome = UINT8_MAX,
      .action = UINT16_MAX,
      .sequence = UINT32_MAX,
      .at_ns = INT64_MIN,
      .a = -1,
      .b = INT64_MAX,
      .c = INT64_MIN,
      .d = UINT32_MAX,
      .actor = UINT32_MAX,
      .subject = 0,
      .queue_id = -1,
      .operation = UINT64_MAX},
     {0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
      0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
};

static int check(const example *given, size_t alignment)
{
    uint8_t *memory = malloc(alignment + RMQ_TRACE_RECORD_BYTES);
    int failures = 0;

    if (memory == NULL) {
        return 1;
    }
    rmq_trace_pack_event(&given->event, memory + alignment);
    for (size_t i = 0; i < RMQ_TRACE_RECORD_BYTES; i++) {
        if (memory[alignment + i] != given->expected[i]) {
            printf("%s: byte %zu should be 0x%02x but is 0x%02x\n", given->name, i, given->expected[i],
                   memory[alignment + i]);
            failures = 1;
        }
    }
    free(memory);
    return failures;
}

int main(void)
{
    int failures = 0;

    for (size_t i = 0; i < sizeof EXAMPLES / sizeof EXAMPLES[0]; i++) {
        for (size_t alignment = 0; alignment < ALIGNMENTS; alignment++) {
            failures += check(&EXAMPLES[i], alignment);
        }
    }
    printf("failures: %d\n", failures);
    return failures == 0 ? 0 : 1;
}
