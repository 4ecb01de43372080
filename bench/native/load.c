/* Sends frames and counts answers, as fast as the other side allows: what makes a broker's limits visible.
 *
 *     load HOST PORT CONNECTIONS WINDOW SECONDS RATE < frames
 *
 * Standard input holds the frames, one behind the other; every connection sends them in turn, with WINDOW of them
 * unanswered at most. RATE is the frames a second of all connections together, or 0 for no limit; then a frame is late from
 * the moment at which it should have been sent. An answer counts when its frame is complete; one whose code is not 0 or 21
 * (nothing found) ends the run. Prints: answers, seconds, bytes of answers, processor seconds of its own, and the times of
 * an answer in microseconds, p50 p99 p999 max.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024
#define WINDOW_MAX 4096
#define FRAMES_MAX 65536
#define IN_BYTES (8u << 20)
#define BUCKETS 4096 /* of times: 1 us each up to 1024, then coarser */

typedef struct {
    int fd;
    size_t next;           /* frame to be sent */
    size_t in_flight;
    struct {
        int64_t begun;
        size_t frame;
    } asked[WINDOW_MAX]; /* in order of the frames: answers come back in it */
    size_t first;
    uint8_t *out;
    size_t out_start, out_end, out_size;
    uint8_t *in;
    size_t in_end;
    int is_waiting; /* for room to write */
} wire;

static struct {
    const uint8_t *at;
    size_t size;
} frames[FRAMES_MAX];
static size_t frame_count;
static wire wires[CONNECTIONS_MAX];
static uint64_t buckets[BUCKETS];
static uint64_t answers, answer_bytes;
static int64_t slowest_us;

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "wrong");
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

static void read_frames(void)
{
    size_t size = 0, room = 1 << 20;
    uint8_t *all = malloc(room);

    for (ssize_t got; (got = read(0, all + size, room - size)) > 0;) {
        size += (size_t)got;
        if (size == room) {
            all = realloc(all, room *= 2);
        }
    }
    for (size_t at = 0; at + 4 <= size; frame_count++) {
        if (frame_count == FRAMES_MAX) {
            die("too many frames");
        }
        frames[frame_count].at = all + at;
        frames[frame_count].size = 4 + be32(all + at);
        at += frames[frame_count].size;
    }
    if (frame_count == 0) {
        die("no frames on standard input");
    }
}

/* Bounds of buckets: exact below 1024 us, then 16 steps for each doubling. */
static size_t bucket_of(int64_t us)
{
    size_t exponent = 0;

    if (us < 1024) {
        return (size_t)(us < 0 ? 0 : us);
    }
    while ((us >> exponent) >= 2048) {
        exponent++;
    }
    {
        const size_t bucket = 1024 + exponent * 64 + (size_t)((us >> exponent) - 1024) / 16;
        return bucket < BUCKETS ? bucket : BUCKETS - 1;
    }
}

static int64_t middle_of(size_t bucket)
{
    if (bucket < 1024) {
        return (int64_t)bucket;
    }
    return (int64_t)(1024 + (bucket - 1024) % 64 * 16 + 8) << ((bucket - 1024) / 64);
}

static int64_t percentile(double share)
{
    const uint64_t wanted = (uint64_t)((double)answers * share);
    uint64_t seen = 0;

    for (size_t i = 0; i < BUCKETS; i++) {
        seen += buckets[i];
        if (seen > wanted) {
            return middle_of(i);
        }
    }
    return slowest_us;
}

static void open_wire(wire *one, const char *host, int port, int epoll)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    const int on = 1;

    one->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || one->fd < 0 ||
        connect(one->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        die("connect");
    }
    (void)setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)fcntl(one->fd, F_SETFL, O_NONBLOCK);
    one->in = malloc(IN_BYTES);
    if (one->in == NULL || epoll_ctl(epoll, EPOLL_CTL_ADD, one->fd, &event) != 0) {
        die("epoll");
    }
}

static void wait_for(wire *one, int epoll, int wants_room)
{
    struct epoll_event event = {.events = EPOLLIN | (wants_room ? (uint32_t)EPOLLOUT : 0u), .data.ptr = one};

    if (one->is_waiting != wants_room) {
        one->is_waiting = wants_room;
        (void)epoll_ctl(epoll, EPOLL_CTL_MOD, one->fd, &event);
    }
}

static void push(wire *one, int epoll)
{
    while (one->out_start < one->out_end) {
        const ssize_t sent = send(one->fd, one->out + one->out_start, one->out_end - one->out_start, MSG_NOSIGNAL);

        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            wait_for(one, epoll, 1);
            return;
        }
        if (sent < 0) {
            die("send");
        }
        one->out_start += (size_t)sent;
    }
    one->out_start = one->out_end = 0;
    wait_for(one, epoll, 0);
}

static void add_frame(wire *one, size_t window, int64_t begun)
{
    const size_t size = frames[one->next].size;

    if (one->out_end + size > one->out_size) {
        one->out_size = (one->out_end + size) * 2;
        one->out = realloc(one->out, one->out_size);
    }
    memcpy(one->out + one->out_end, frames[one->next].at, size);
    one->out_end += size;
    one->asked[(one->first + one->in_flight) % window].begun = begun;
    one->asked[(one->first + one->in_flight) % window].frame = one->next;
    one->in_flight++;
    one->next = (one->next + 1) % frame_count;
}

/* The code of an answer; JSON headers only, in which refmq and Java write it first. An echo has sent the frame back. */
static void check(const uint8_t *frame, size_t size, size_t asked)
{
    const size_t head = be32(frame + 4) & 0xffffff;
    const char *code;

    if (frames[asked].size == size && memcmp(frames[asked].at, frame, size) == 0) {
        return;
    }
    if (frame[4] != 0 || 8 + head > size || (code = memmem(frame + 8, head, "\"code\":", 7)) == NULL ||
        (strncmp(code + 7, "0,", 2) != 0 && strncmp(code + 7, "19,", 3) != 0)) {
        fprintf(stderr, "load: the answer is %.*s\n", (int)(head < 300 ? head : 300), (const char *)frame + 8);
        exit(2);
    }
}

static void take_answers(wire *one, size_t window)
{
    const ssize_t got = recv(one->fd, one->in + one->in_end, IN_BYTES - one->in_end, 0);
    const int64_t now = now_ns();
    size_t at = 0;

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        errno = 0;
        die("the other side has closed the connection");
    }
    one->in_end += (size_t)got;
    while (one->in_end - at >= 4 && one->in_end - at >= 4 + (size_t)be32(one->in + at)) {
        const size_t size = 4 + be32(one->in + at);
        const int64_t us = (now - one->asked[one->first].begun) / 1000;

        check(one->in + at, size, one->asked[one->first].frame);
        answers++;
        answer_bytes += size;
        buckets[bucket_of(us)]++;
        slowest_us = us > slowest_us ? us : slowest_us;
        one->first = (one->first + 1) % window;
        one->in_flight--;
        at += size;
    }
    memmove(one->in, one->in + at, one->in_end - at);
    one->in_end -= at;
}

int main(int argc, char **argv)
{
    struct epoll_event events[64];
    struct rusage usage;
    size_t count, window, unlimited, turn = 0;
    double seconds, rate;
    int64_t begun, end, due;
    int epoll;

    if (argc != 7) {
        fprintf(stderr, "usage: load HOST PORT CONNECTIONS WINDOW SECONDS RATE < frames\n");
        return 2;
    }
    count = (size_t)atoi(argv[3]);
    window = (size_t)atoi(argv[4]);
    seconds = atof(argv[5]);
    rate = atof(argv[6]);
    unlimited = rate == 0;
    if (count < 1 || count > CONNECTIONS_MAX || window < 1 || window > WINDOW_MAX) {
        die("too many connections or frames in flight");
    }
    read_frames();
    epoll = epoll_create1(0);
    for (size_t i = 0; i < count; i++) {
        open_wire(&wires[i], argv[1], atoi(argv[2]), epoll);
        wires[i].next = i * (frame_count / count + 1) % frame_count;
    }
    begun = due = now_ns();
    end = begun + (int64_t)(seconds * 1e9);
    for (int64_t now = begun; now < end; now = now_ns()) {
        int ready;

        for (size_t i = 0; i < count && unlimited; i++) {
            while (wires[i].in_flight < window) {
                add_frame(&wires[i], window, now);
            }
        }
        /* At a rate: whatever is due goes to the next connection with room; what finds none waits, and is late. */
        while (!unlimited && due <= now) {
            size_t tried = 0;

            while (tried < count && wires[turn % count].in_flight == window) {
                turn++;
                tried++;
            }
            if (tried == count) {
                break;
            }
            add_frame(&wires[turn++ % count], window, due);
            due += (int64_t)(1e9 / rate);
        }
        for (size_t i = 0; i < count; i++) {
            if (wires[i].out_end > wires[i].out_start && !wires[i].is_waiting) {
                push(&wires[i], epoll);
            }
        }
        {
            const int64_t rest_ns = unlimited ? 100000000 : due > now ? due - now : 1000000; /* late: nobody has room */
            const struct timespec rest = {rest_ns / 1000000000, rest_ns % 1000000000};

            ready = epoll_pwait2(epoll, events, 64, &rest, NULL);
        }
        for (int i = 0; i < ready; i++) {
            wire *one = events[i].data.ptr;

            if (events[i].events & EPOLLOUT) {
                push(one, epoll);
            }
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                take_answers(one, window);
            }
        }
    }
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%llu %.6f %llu %.6f %lld %lld %lld %lld\n", (unsigned long long)answers, (double)(now_ns() - begun) / 1e9,
           (unsigned long long)answer_bytes,
           (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
           (long long)percentile(0.5), (long long)percentile(0.99), (long long)percentile(0.999), (long long)slowest_us);
    return 0;
}
