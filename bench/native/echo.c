/* The least that any server of frames does: reads them, and sends each back. The measure of what a broker costs above
 * that. Prints its port, and serves until it is killed.
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
#include <unistd.h>

#define BUFFER (1u << 20)

typedef struct {
    int fd;
    uint8_t in[BUFFER];
    size_t in_end;
    uint8_t out[BUFFER];
    size_t out_end;
} wire;

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int serve(wire *one)
{
    const ssize_t got = recv(one->fd, one->in + one->in_end, BUFFER - one->in_end, 0);
    size_t at = 0;

    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    one->in_end += (size_t)got;
    while (one->in_end - at >= 4 && one->in_end - at >= 4 + (size_t)be32(one->in + at)) {
        at += 4 + (size_t)be32(one->in + at);
    }
    if (one->out_end + at > BUFFER) {
        return 0;
    }
    memcpy(one->out + one->out_end, one->in, at);
    one->out_end += at;
    memmove(one->in, one->in + at, one->in_end - at);
    one->in_end -= at;
    return 1;
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[64];

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        perror("echo");
        return 1;
    }
    printf("%d\n", ntohs(address.sin_port));
    (void)fflush(stdout);
    for (;;) {
        const int ready = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < ready; i++) {
            wire *one = events[i].data.ptr;

            if (one == NULL) {
                const int on = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

                if (fd >= 0 && (one = calloc(1, sizeof *one)) != NULL) {
                    one->fd = fd;
                    event.data.ptr = one;
                    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
                }
                continue;
            }
            if (!serve(one)) {
                (void)close(one->fd);
                events[i].data.ptr = NULL;
                free(one);
            }
        }
        /* A turn's answers go together, as in the shell. */
        for (int i = 0; i < ready; i++) {
            wire *one = events[i].data.ptr;

            if (one != NULL && one->out_end > 0) {
                size_t sent = 0;

                while (sent < one->out_end) {
                    const ssize_t more = send(one->fd, one->out + sent, one->out_end - sent, MSG_NOSIGNAL);

                    if (more < 0 && errno != EAGAIN && errno != EINTR) {
                        break;
                    }
                    sent += more > 0 ? (size_t)more : 0;
                }
                one->out_end = 0;
            }
        }
    }
}
