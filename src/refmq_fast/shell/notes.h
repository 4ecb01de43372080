/* Trace events on their way from a step to the recorder: noted by whoever holds the lock, in the order in which things
 * happened, and taken by the control plane. Texts are numbered here, so that noting an event allocates nothing.
 *
 * While the control plane is busy events gather, up to a bound; behind it they are dropped and counted.
 */
#ifndef RMQ_SHELL_NOTES_H
#define RMQ_SHELL_NOTES_H

#include "../core/text.h"
#include "../store/event.h"
#include "../store/table.h"

#define RMQ_NOTES_MAX 262144u      /* 18 MiB */
#define RMQ_NOTE_CONSTANTS 64u
#define RMQ_NOTE_NAMES_MAX 1048576u /* different texts; an event with one more is dropped */

typedef struct {
    int64_t at_ns; /* of the wall's clock */
    int64_t queue_id;
    int64_t a;
    int64_t b;
    int64_t c;
    int64_t d;
    uint32_t action;
    uint32_t actor;
    uint32_t subject;
} rmq_note;

typedef struct {
    rmq_key key;
    uint32_t number;
} rmq_noted_name;

/* The number of a text that was asked for lately. */
typedef struct {
    const void *at; /* where the text is written down in the program; NULL: nothing */
    uint32_t number;
} rmq_noted_constant;

typedef struct {
    rmq_table table;
    rmq_noted_constant constants[RMQ_NOTE_CONSTANTS]; /* names of actions, found by their address */
    uint32_t last_subject;
    rmq_noted_name **names; /* by number */
    size_t name_count;
    size_t names_size;
    size_t names_told; /* so many the control plane knows */
    rmq_note *notes;
    size_t count;
    size_t size;
    uint64_t dropped; /* since the last time */
} rmq_notes;

void rmq_notes_init(rmq_notes *notes, uint64_t seed);
void rmq_notes_free(rmq_notes *notes);

/* Notes an event. It cannot fail: what there is no memory for is dropped. */
void rmq_note_event(rmq_notes *notes, rmq_text action, rmq_text actor, rmq_text subject, int64_t queue_id, int64_t a,
                    int64_t b, int64_t c, int64_t d);

/* An rmq_emit with the notes as its context. */
rmq_status rmq_note_store_event(void *notes, const rmq_event *event);

/* The `event` of an rmq_port; its context is not the notes, so the owner of the port calls this. `action` is a text that is
 * written down in the program: its number is kept by its address. */
void rmq_note_plane_event(rmq_notes *notes, const char *action, rmq_text actor, rmq_text subject, int64_t queue_id,
                          int64_t a, int64_t b, int64_t c, int64_t d);

#endif
