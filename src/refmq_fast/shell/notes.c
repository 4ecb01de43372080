/* See notes.h. */
#define _POSIX_C_SOURCE 200809L
#include "notes.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_NOTES 256u

static const char NOBODY[] = "";

static const char *const STORE_ACTIONS[RMQ_ACTIONS] = {
    [RMQ_APPEND_MESSAGE] = "AppendMessage",     [RMQ_ROLL_FILE] = "RollFile",
    [RMQ_DISPATCH_MESSAGE] = "DispatchMessage", [RMQ_SERVE_MESSAGE] = "ServeMessage",
    [RMQ_FLUSH_LOG] = "FlushLog",               [RMQ_FLUSH_QUEUE] = "FlushQueue",
    [RMQ_FLUSH_INDEX] = "FlushIndex",           [RMQ_WRITE_CHECKPOINT] = "WriteCheckpoint",
    [RMQ_EXPIRE_FILE] = "ExpireFile",           [RMQ_STOP_STORE] = "StopStore",
};

void rmq_notes_init(rmq_notes *notes, uint64_t seed)
{
    memset(notes, 0, sizeof *notes);
    notes->table.seed = seed;
}

void rmq_notes_free(rmq_notes *notes)
{
    for (size_t i = 0; i < notes->name_count; i++) {
        free(notes->names[i]);
    }
    free(notes->names);
    free(notes->notes);
    rmq_table_free(&notes->table);
}

/* Twice the room, or the first. */
static bool grow(void **memory, size_t *size, size_t each, size_t max)
{
    const size_t wanted = *size == 0 ? FIRST_NOTES : *size * 2;
    void *larger = *size >= max ? NULL : realloc(*memory, (wanted < max ? wanted : max) * each);

    if (larger == NULL) {
        return false;
    }
    *memory = larger;
    *size = wanted < max ? wanted : max;
    return true;
}

static bool number_of(rmq_notes *notes, rmq_text text, uint32_t *number)
{
    rmq_noted_name *name = rmq_table_find(&notes->table, text, 0);

    if (name != NULL) {
        *number = name->number;
        return true;
    }
    if (notes->name_count == notes->names_size &&
        !grow((void **)&notes->names, &notes->names_size, sizeof *notes->names, RMQ_NOTE_NAMES_MAX)) {
        return false;
    }
    name = malloc(sizeof *name + text.size);
    if (name == NULL) {
        return false;
    }
    memset(name, 0, sizeof *name);
    if (text.size > 0) {
        memcpy(name + 1, text.at, text.size);
    }
    name->key.text = (rmq_text){(const uint8_t *)(name + 1), text.size};
    name->number = (uint32_t)notes->name_count;
    if (rmq_table_add(&notes->table, &name->key) != RMQ_OK) {
        free(name);
        return false;
    }
    notes->names[notes->name_count] = name;
    notes->name_count += 1;
    *number = name->number;
    return true;
}

static int64_t wall_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The number of a text that nobody changes, found by its address: there are a few dozen, and three or four for a message. */
static bool number_of_constant(rmq_notes *notes, const char *text, uint32_t *number)
{
    rmq_noted_constant *place = &notes->constants[((uintptr_t)text >> 3) % RMQ_NOTE_CONSTANTS];

    if (place->at != text) {
        if (!number_of(notes, (rmq_text){(const uint8_t *)text, strlen(text)}, &place->number)) {
            place->at = NULL;
            return false;
        }
        place->at = text;
    }
    *number = place->number;
    return true;
}

/* The number of a subject: most events are about the same topic as the one before. */
static bool number_of_subject(rmq_notes *notes, rmq_text subject, uint32_t *number)
{
    const bool is_last = notes->last_subject < notes->name_count &&
                         rmq_text_equals(notes->names[notes->last_subject]->key.text, subject);

    if (!is_last && !number_of(notes, subject, &notes->last_subject)) {
        return false;
    }
    *number = notes->last_subject;
    return true;
}

/* Room for one more; NULL if there is none, and the event is dropped. */
static rmq_note *new_note(rmq_notes *notes)
{
    if (notes->count == notes->size &&
        !grow((void **)&notes->notes, &notes->size, sizeof *notes->notes, RMQ_NOTES_MAX)) {
        return NULL;
    }
    return &notes->notes[notes->count];
}

/* Keeps the note if its texts have numbers. */
static void keep(rmq_notes *notes, rmq_note *note, bool has_numbers)
{
    if (note != NULL && has_numbers) {
        note->at_ns = wall_ns();
        notes->count += 1;
    } else {
        notes->dropped += 1;
    }
}

static void fill(rmq_note *note, int64_t queue_id, int64_t a, int64_t b, int64_t c, int64_t d)
{
    note->queue_id = queue_id;
    note->a = a;
    note->b = b;
    note->c = c;
    note->d = d;
}

void rmq_note_event(rmq_notes *notes, rmq_text action, rmq_text actor, rmq_text subject, int64_t queue_id, int64_t a,
                    int64_t b, int64_t c, int64_t d)
{
    rmq_note *note = new_note(notes);
    bool has_numbers = false;

    if (note != NULL) {
        fill(note, queue_id, a, b, c, d);
        has_numbers = number_of(notes, action, &note->action) && number_of(notes, actor, &note->actor) &&
                      number_of_subject(notes, subject, &note->subject);
    }
    keep(notes, note, has_numbers);
}

rmq_status rmq_note_store_event(void *context, const rmq_event *event)
{
    rmq_notes *notes = context;
    rmq_note *note = new_note(notes);
    bool has_numbers = false;

    assert(event->action < RMQ_ACTIONS);
    if (note != NULL) {
        fill(note, event->queue_id, event->a, event->b, event->c, event->d);
        has_numbers = number_of_constant(notes, STORE_ACTIONS[event->action], &note->action) &&
                      number_of_constant(notes, NOBODY, &note->actor) &&
                      number_of_subject(notes, event->subject, &note->subject);
    }
    keep(notes, note, has_numbers);
    return RMQ_OK;
}

void rmq_note_plane_event(rmq_notes *notes, const char *action, rmq_text actor, rmq_text subject, int64_t queue_id,
                          int64_t a, int64_t b, int64_t c, int64_t d)
{
    rmq_note *note = new_note(notes);
    bool has_numbers = false;

    if (note != NULL) {
        fill(note, queue_id, a, b, c, d);
        has_numbers = number_of_constant(notes, action, &note->action) &&
                      (actor.size == 0 ? number_of_constant(notes, NOBODY, &note->actor)
                                       : number_of(notes, actor, &note->actor)) &&
                      number_of_subject(notes, subject, &note->subject);
    }
    keep(notes, note, has_numbers);
}
