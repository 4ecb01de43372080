/* See notes.h. */
#define _POSIX_C_SOURCE 200809L
#include "notes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_NOTES 256u

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

void rmq_note_event(rmq_notes *notes, rmq_text action, rmq_text actor, rmq_text subject, int64_t queue_id, int64_t a,
                    int64_t b, int64_t c, int64_t d)
{
    rmq_note note = {.at_ns = wall_ns(), .queue_id = queue_id, .a = a, .b = b, .c = c, .d = d};

    if ((notes->count == notes->size &&
         !grow((void **)&notes->notes, &notes->size, sizeof *notes->notes, RMQ_NOTES_MAX)) ||
        !number_of(notes, action, &note.action) || !number_of(notes, actor, &note.actor) ||
        !number_of(notes, subject, &note.subject)) {
        notes->dropped += 1;
        return;
    }
    notes->notes[notes->count] = note;
    notes->count += 1;
}

static rmq_text text_of(const char *text)
{
    return (rmq_text){(const uint8_t *)text, strlen(text)};
}

rmq_status rmq_note_store_event(void *notes, const rmq_event *event)
{
    assert(event->action < RMQ_ACTIONS);
    rmq_note_event(notes, text_of(STORE_ACTIONS[event->action]), RMQ_TEXT(""), event->subject, event->queue_id, event->a,
                   event->b, event->c, event->d);
    return RMQ_OK;
}

void rmq_note_plane_event(rmq_notes *notes, const char *action, rmq_text actor, rmq_text subject, int64_t queue_id,
                          int64_t a, int64_t b, int64_t c, int64_t d)
{
    rmq_note_event(notes, text_of(action), actor, subject, queue_id, a, b, c, d);
}
