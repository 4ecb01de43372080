/* Holds plane/conn.c and plane/buffer.c directly: the bounds of a connection, one by one. What it makes of bytes in
 * pieces is the fuzzer's (fuzz/native/conn_fuzz.c). */
#include "plane/conn.h"

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

static const char HEADER[] = "{\"code\":10,\"opaque\":7}";

/* Writes a frame with a body of so many bytes, and returns its length. */
static size_t frame_into(uint8_t *to, size_t body)
{
    const size_t header = strlen(HEADER), length = 4 + header + body;

    to[0] = (uint8_t)(length >> 24);
    to[1] = (uint8_t)(length >> 16);
    to[2] = (uint8_t)(length >> 8);
    to[3] = (uint8_t)length;
    memset(to + 4, 0, 3);
    to[7] = (uint8_t)header;
    memcpy(to + 8, HEADER, header);
    memset(to + 8 + header, 'b', body);
    return 4 + length;
}

static rmq_conn_limits small_limits(void)
{
    rmq_conn_limits limits = rmq_conn_default_limits();

    limits.frame_length_max = 20000;
    limits.requests_in_flight_max = 2;
    limits.request_bytes_in_flight_max = 30000;
    limits.write_high_bytes = 100;
    limits.write_max_bytes = 1000;
    limits.idle_timeout_ms = 1000;
    limits.frame_timeout_ms = 300;
    return limits;
}

/* Gives bytes to a connection as a loop would. */
static void feed(rmq_conn *conn, const uint8_t *data, size_t size, int64_t now_ms)
{
    while (size > 0) {
        uint8_t *at;
        size_t room;

        if (rmq_conn_room(conn, &at, &room) != RMQ_OK) {
            printf("no room\n");
            exit(1);
        }
        room = room < size ? room : size;
        memcpy(at, data, room);
        rmq_conn_came(conn, room, now_ms);
        data += room;
        size -= room;
    }
}

static void test_frames_are_read_or_handed_over(void)
{
    const rmq_conn_limits limits = small_limits();
    uint8_t data[200];
    const size_t length = frame_into(data, 5);
    rmq_conn_frame next;
    rmq_conn conn;

    rmq_conn_init(&conn, &limits, 0);
    EXPECT(rmq_conn_next(&conn, &next, 0) == RMQ_MORE);
    feed(&conn, data, length, 1);
    data[8] = ' '; /* legal JSON no longer: the reference is to say so */
    feed(&conn, data, length, 2);
    EXPECT(rmq_conn_next(&conn, &next, 2) == RMQ_OK && next.is_read && next.command.opaque == 7);
    EXPECT(next.frame.length == length && memcmp(next.data + next.frame.body_at, "bbbbb", 5) == 0);
    EXPECT(rmq_conn_next(&conn, &next, 2) == RMQ_OK && !next.is_read && next.frame.length == length);
    EXPECT(memcmp(next.data, data, length) == 0);
    EXPECT(rmq_conn_next(&conn, &next, 2) == RMQ_MORE && rmq_conn_buffered(&conn) == 0);
    memset(data, 0xff, 8);
    feed(&conn, data, 8, 3);
    EXPECT(rmq_conn_next(&conn, &next, 3) == RMQ_DAMAGED && next.frame.length == 8 && next.data[0] == 0xff);
    EXPECT(rmq_conn_next(&conn, &next, 3) == RMQ_DAMAGED && !rmq_conn_wants_read(&conn));
    rmq_conn_free(&conn);
}

static void test_who_fills_the_room_gets_more_up_to_a_bound(void)
{
    const rmq_conn_limits limits = rmq_conn_default_limits();
    size_t room = 0, before;
    rmq_conn conn;
    uint8_t *at;

    rmq_conn_init(&conn, &limits, 0);
    for (int i = 0; i < 10; i++) {
        before = room;
        EXPECT(rmq_conn_room(&conn, &at, &room) == RMQ_OK && room >= before && room <= RMQ_CONN_READ_BYTES);
        memset(at, 0, room);
        rmq_conn_came(&conn, room, 0);
    }
    EXPECT(room == RMQ_CONN_READ_BYTES);
    EXPECT(rmq_conn_room(&conn, &at, &room) == RMQ_OK);
    rmq_conn_came(&conn, room - 1, 0);
    EXPECT(rmq_conn_room(&conn, &at, &room) == RMQ_OK && room < RMQ_CONN_READ_BYTES); /* and who does not, less again */
    rmq_conn_free(&conn);
}

static void test_requests_in_flight_are_bounded(void)
{
    const rmq_conn_limits limits = small_limits();
    uint8_t data[200];
    const size_t length = frame_into(data, 1);
    rmq_conn_frame next;
    rmq_conn conn;

    rmq_conn_init(&conn, &limits, 0);
    for (int i = 0; i < 3; i++) {
        feed(&conn, data, length, 0);
    }
    for (int i = 0; i < 2; i++) {
        EXPECT(rmq_conn_next(&conn, &next, 0) == RMQ_OK);
        rmq_conn_begin(&conn, 1);
    }
    EXPECT(!rmq_conn_may_serve(&conn) && !rmq_conn_wants_read(&conn));
    EXPECT(rmq_conn_next(&conn, &next, 0) == RMQ_MORE && rmq_conn_buffered(&conn) == length);
    EXPECT(rmq_conn_due_ms(&conn) == 1000); /* frames that wait for us are not the peer's fault */
    rmq_conn_end(&conn, 1);
    EXPECT(rmq_conn_next(&conn, &next, 0) == RMQ_OK);
    rmq_conn_end(&conn, 1);
    rmq_conn_begin(&conn, 20000);
    EXPECT(rmq_conn_may_serve(&conn));
    rmq_conn_end(&conn, 20000);
    rmq_conn_free(&conn);

    rmq_conn_init(&conn, &limits, 0);
    conn.limits.requests_in_flight_max = 100;
    rmq_conn_begin(&conn, 15000);
    EXPECT(rmq_conn_may_serve(&conn));
    rmq_conn_begin(&conn, 15000);
    EXPECT(!rmq_conn_may_serve(&conn)); /* their bytes are bounded as well */
    rmq_conn_free(&conn);
}

static void test_unread_answers_are_bounded(void)
{
    const rmq_conn_limits limits = small_limits();
    uint8_t answer[600] = {0};
    const uint8_t *unsent;
    uint8_t *room;
    rmq_conn conn;

    rmq_conn_init(&conn, &limits, 0);
    EXPECT(rmq_conn_write(&conn, answer, 100) == RMQ_OK && rmq_conn_may_serve(&conn));
    EXPECT(rmq_conn_write(&conn, answer, 1) == RMQ_OK && !rmq_conn_may_serve(&conn) && !rmq_conn_wants_read(&conn));
    EXPECT(rmq_conn_write(&conn, answer, 600) == RMQ_OK);
    EXPECT(rmq_conn_answer_room(&conn, 300, &room) == RMQ_NO_ROOM && rmq_conn_write(&conn, answer, 300) == RMQ_NO_ROOM);
    EXPECT(rmq_conn_answer_room(&conn, 299, &room) == RMQ_OK);
    memset(room, 'x', 10);
    rmq_conn_wrote(&conn, 10);
    EXPECT(rmq_conn_unsent(&conn, &unsent) == 711 && unsent[701] == 'x');
    rmq_conn_sent(&conn, 700, 50);
    EXPECT(rmq_conn_may_serve(&conn) && rmq_conn_due_ms(&conn) == 1000); /* something is unsent: not active yet */
    rmq_conn_sent(&conn, 11, 60);
    EXPECT(rmq_conn_due_ms(&conn) == 1060);
    rmq_conn_free(&conn);
}

static void test_time_is_bounded(void)
{
    const rmq_conn_limits limits = small_limits();
    uint8_t data[200];
    const size_t length = frame_into(data, 1);
    rmq_conn_frame next;
    rmq_conn conn;

    rmq_conn_init(&conn, &limits, 10);
    EXPECT(rmq_conn_due_ms(&conn) == 1010);
    feed(&conn, data, 5, 20);
    EXPECT(rmq_conn_next(&conn, &next, 20) == RMQ_MORE && rmq_conn_due_ms(&conn) == 320);
    feed(&conn, data + 5, 5, 200); /* a byte now and then does not buy time */
    EXPECT(rmq_conn_next(&conn, &next, 200) == RMQ_MORE && rmq_conn_due_ms(&conn) == 320);
    feed(&conn, data + 10, length - 10, 300);
    feed(&conn, data, 5, 300); /* the next one has a time of its own */
    EXPECT(rmq_conn_next(&conn, &next, 300) == RMQ_OK);
    EXPECT(rmq_conn_next(&conn, &next, 300) == RMQ_MORE && rmq_conn_due_ms(&conn) == 600);
    rmq_conn_free(&conn);
}

/* A peer that announces the longest frame gets no more memory than what it sends; what it took is let go. */
static void test_memory_follows_what_came(void)
{
    const rmq_conn_limits limits = small_limits();
    static uint8_t data[20000];
    const size_t length = frame_into(data, 20000 - 8 - strlen(HEADER));
    rmq_conn_frame next;
    rmq_conn conn;

    EXPECT(length == 20000);
    rmq_conn_init(&conn, &limits, 0);
    EXPECT(rmq_conn_held_bytes(&conn) == 0);
    feed(&conn, data, 8, 0);
    EXPECT(rmq_conn_next(&conn, &next, 0) == RMQ_MORE && rmq_conn_held_bytes(&conn) <= 2 * RMQ_BUFFER_FIRST_BYTES);
    feed(&conn, data + 8, length - 9, 0);
    EXPECT(rmq_conn_next(&conn, &next, 0) == RMQ_MORE && rmq_conn_wants_read(&conn));
    feed(&conn, data + length - 1, 1, 0);
    EXPECT(rmq_conn_held_bytes(&conn) <= 20000 + RMQ_CONN_READ_BYTES);
    EXPECT(!rmq_conn_wants_read(&conn)); /* as much as the longest frame is there: it is served first */
    EXPECT(rmq_conn_next(&conn, &next, 0) == RMQ_OK && next.frame.length == length);
    rmq_conn_settle(&conn);
    EXPECT(rmq_conn_held_bytes(&conn) <= RMQ_BUFFER_KEPT_BYTES + RMQ_BUFFER_FIRST_BYTES);
    rmq_conn_free(&conn);
}

static void test_bars_are_counted(void)
{
    const rmq_conn_limits limits = small_limits();
    rmq_conn conn;

    rmq_conn_init(&conn, &limits, 0);
    EXPECT(!rmq_conn_is_barred(&conn));
    rmq_conn_bar(&conn);
    rmq_conn_bar(&conn);
    rmq_conn_unbar(&conn);
    EXPECT(rmq_conn_is_barred(&conn));
    rmq_conn_unbar(&conn);
    EXPECT(!rmq_conn_is_barred(&conn));
    rmq_conn_free(&conn);
}

int main(void)
{
    test_frames_are_read_or_handed_over();
    test_who_fills_the_room_gets_more_up_to_a_bound();
    test_requests_in_flight_are_bounded();
    test_unread_answers_are_bounded();
    test_time_is_bounded();
    test_memory_follows_what_came();
    test_bars_are_counted();
    printf("failures: %d\n", failures);
    return failures == 0 ? 0 : 1;
}
