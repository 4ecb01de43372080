/* See mail.h. */
#include "mail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

rmq_status rmq_mailbox_open(rmq_mailbox *box)
{
    memset(box, 0, sizeof *box);
    box->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (box->bell < 0) {
        return RMQ_NO_MEMORY;
    }
    if (pthread_mutex_init(&box->mutex, NULL) != 0) {
        (void)close(box->bell);
        return RMQ_NO_MEMORY;
    }
    return RMQ_OK;
}

void rmq_mailbox_close(rmq_mailbox *box)
{
    rmq_letter *letter = box->first;

    while (letter != NULL) {
        rmq_letter *next = letter->next;

        rmq_letter_free(letter);
        letter = next;
    }
    (void)pthread_mutex_destroy(&box->mutex);
    (void)close(box->bell);
}

rmq_letter *rmq_letter_new(rmq_letter_kind kind, int64_t connection, size_t size)
{
    rmq_letter *letter = malloc(sizeof *letter + size);

    if (letter != NULL) {
        memset(letter, 0, sizeof *letter);
        letter->kind = kind;
        letter->connection = connection;
        letter->size = size;
    }
    return letter;
}

void rmq_letter_free(rmq_letter *letter)
{
    if ((letter->kind == RMQ_UP_SOCKET || letter->kind == RMQ_DOWN_LISTEN) && letter->number >= 0) {
        (void)close((int)letter->number); /* nobody has taken it */
    }
    free(letter);
}

void rmq_ring(int bell)
{
    const uint64_t one = 1;

    /* It fails only when it has been rung 2^64 - 2 times and never silenced. */
    (void)!write(bell, &one, sizeof one);
}

static size_t held_by(const rmq_letter *letter)
{
    return sizeof *letter + letter->size;
}

void rmq_post(rmq_mailbox *box, rmq_letter *letter)
{
    bool was_empty;

    letter->next = NULL;
    (void)pthread_mutex_lock(&box->mutex);
    was_empty = box->first == NULL;
    if (was_empty) {
        box->first = letter;
    } else {
        box->last->next = letter;
    }
    box->last = letter;
    box->held_bytes += held_by(letter);
    (void)pthread_mutex_unlock(&box->mutex);
    if (was_empty) {
        rmq_ring(box->bell);
    }
}

rmq_letter *rmq_collect(rmq_mailbox *box)
{
    rmq_letter *first;
    uint64_t rings;

    (void)!read(box->bell, &rings, sizeof rings); /* nothing to read: it does not ring */
    (void)pthread_mutex_lock(&box->mutex);
    first = box->first;
    box->first = box->last = NULL;
    box->held_bytes = 0;
    (void)pthread_mutex_unlock(&box->mutex);
    return first;
}

size_t rmq_mailbox_bytes(rmq_mailbox *box)
{
    size_t bytes;

    (void)pthread_mutex_lock(&box->mutex);
    bytes = box->held_bytes;
    (void)pthread_mutex_unlock(&box->mutex);
    return bytes;
}
