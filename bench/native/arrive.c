/* How long a message is under way, from its producer to a consumer that waits for it.
 *
 *     arrive HOST PORT QUEUES SECONDS RATE < frames
 *
 * Standard input holds QUEUES sends, one for each queue, and then QUEUES long pulls of the same queues. A send's body begins
 * with MARK, behind which the time is written before it leaves. A pull has OFFSET where its offset goes. Sends leave on one
 * connection at RATE a second, pulls on another, one of each queue under way all the time. Prints: messages, seconds, and
 * the times from the moment at which a message should have left until it was there, in microseconds, p50 p99 p999 max.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MARK "refmq-at"
#define MARK_BYTES 8u
#define OFFSET "\"@@\""
#define QUEUES_MAX 64
#define IN_BYTES (32u << 20)
#define TIMES_MAX (1u << 24)

typedef struct {
    uint8_t *at;
    size_t size;
} frame;

static frame frames[2 * QUEUES_MAX];
static uint8_t in[IN_BYTES];
static size_t in_end;
static uint32_t times[TIMES_MAX];
static size_t count;

static void die(const char *what)
{
    fprintf(stderr, "arrive: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_be32(uint8_t *at, size_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void read_all(uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = read(0, to + at, size - at);

        if (got <= 0) {
            die("the frames end too early");
        }
        at += (size_t)got;
    }
}

static void read_frames(size_t queues)
{
    for (size_t i = 0; i < 2 * queues; i++) {
        uint8_t prefix[4];

        read_all(prefix, 4);
        frames[i].size = 4 + be32(prefix);
        frames[i].at = malloc(frames[i].size);
        memcpy(frames[i].at, prefix, 4);
        read_all(frames[i].at + 4, frames[i].size - 4);
    }
}

static int open_wire(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || fd < 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        die("connect");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void send_all(int fd, const uint8_t *at, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent <= 0) {
            die("send");
        }
        at += sent;
        size -= (size_t)sent;
    }
}

static void send_message(int fd, const frame *message, int64_t due)
{
    uint8_t *mark = memmem(message->at, message->size, MARK, MARK_BYTES);

    if (mark == NULL) {
        errno = 0;
        die("a send without a mark");
    }
    memcpy(mark + MARK_BYTES, &due, sizeof due);
    send_all(fd, message->at, message->size);
}

static void send_pull(int fd, const frame *pull, int64_t offset)
{
    static uint8_t made[65536];
    const uint8_t *hole = memmem(pull->at, pull->size, OFFSET, strlen(OFFSET));
    const size_t before = (size_t)(hole - pull->at), after = pull->size - before - strlen(OFFSET);
    size_t size;

    if (hole == NULL || pull->size > sizeof made - 32) {
        errno = 0;
        die("a pull without an offset");
    }
    memcpy(made, pull->at, before);
    size = before + (size_t)sprintf((char *)made + before, "\"%lld\"", (long long)offset);
    memcpy(made + size, hole + strlen(OFFSET), after);
    size += after;
    put_be32(made, size - 4);
    put_be32(made + 4, size - 8); /* a JSON header and no body */
    send_all(fd, made, size);
}

static int64_t number_behind(const uint8_t *head, size_t size, const char *name)
{
    const char *at = memmem(head, size, name, strlen(name));

    if (at == NULL) {
        fprintf(stderr, "arrive: there is no %s in %.*s\n", name, (int)size, (const char *)head);
        exit(2);
    }
    at += strlen(name);
    return strtoll(*at == '"' ? at + 1 : at, NULL, 10);
}

static void take_messages(const uint8_t *at, size_t size, int64_t now)
{
    const uint8_t *end = at + size;

    while ((at = memmem(at, (size_t)(end - at), MARK, MARK_BYTES)) != NULL) {
        int64_t due;

        memcpy(&due, at + MARK_BYTES, sizeof due);
        at += MARK_BYTES + sizeof due;
        if (count < TIMES_MAX) {
            times[count++] = (uint32_t)((now - due) / 1000);
        }
    }
}

/* Takes what has come, and pulls on: the queue is the opaque. */
static void take_answers(int fd)
{
    const ssize_t got = recv(fd, in + in_end, IN_BYTES - in_end, 0);
    const int64_t now = now_ns();
    size_t at = 0;

    if (got <= 0) {
        die("the pulling connection has ended");
    }
    in_end += (size_t)got;
    while (in_end - at >= 4 && in_end - at >= 4 + (size_t)be32(in + at)) {
        const size_t size = 4 + be32(in + at), head = be32(in + at + 4) & 0xffffff;
        const uint8_t *header = in + at + 8;

        take_messages(header + head, size - 8 - head, now);
        send_pull(fd, &frames[number_behind(header, head, "\"opaque\":")],
                  number_behind(header, head, "\"nextBeginOffset\":"));
        at += size;
    }
    memmove(in, in + at, in_end - at);
    in_end -= at;
}

static void drop_answers(int fd)
{
    static uint8_t dropped[1 << 20];

    if (recv(fd, dropped, sizeof dropped, 0) <= 0) {
        die("the sending connection has ended");
    }
}

static int by_time(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

    return one < other ? -1 : one > other;
}

int main(int argc, char **argv)
{
    size_t queues, turn = 0;
    int64_t begun, end, due, step;
    int sends, pulls, epoll;

    if (argc != 6 || (queues = (size_t)atoi(argv[3])) < 1 || queues > QUEUES_MAX || atof(argv[5]) <= 0) {
        fprintf(stderr, "usage: arrive HOST PORT QUEUES SECONDS RATE < frames\n");
        return 2;
    }
    read_frames(queues);
    sends = open_wire(argv[1], atoi(argv[2]));
    pulls = open_wire(argv[1], atoi(argv[2]));
    epoll = epoll_create1(0);
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = i == 0 ? sends : pulls};

        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
    }
    for (size_t i = 0; i < queues; i++) {
        send_pull(pulls, &frames[queues + i], 0);
    }
    step = (int64_t)(1e9 / atof(argv[5]));
    begun = due = now_ns();
    end = begun + (int64_t)(atof(argv[4]) * 1e9);
    for (int64_t now = begun; now < end; now = now_ns()) {
        struct epoll_event events[2];
        struct timespec rest = {0, 0};
        int ready;

        for (; due <= now; due += step) {
            send_message(sends, &frames[turn++ % queues], due);
        }
        now = now_ns();
        rest.tv_nsec = due > now ? due - now : 0;
        ready = epoll_pwait2(epoll, events, 2, &rest, NULL);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == pulls) {
                take_answers(pulls);
            } else {
                drop_answers(sends);
            }
        }
    }
    if (count == 0) {
        errno = 0;
        die("no message came");
    }
    qsort(times, count, sizeof times[0], by_time);
    printf("%zu %.6f %u %u %u %u\n", count, (double)(now_ns() - begun) / 1e9, times[count / 2], times[count * 99 / 100],
           times[count * 999 / 1000], times[count - 1]);
    return 0;
}
