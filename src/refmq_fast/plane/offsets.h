/* How far each consumer group has consumed each queue: CommitOffset, and what the control plane asks. The twin of
 * refmq/plane/offsets.py, whose rule it keeps: the last writer wins, whoever it is.
 *
 * The control plane has a table of its own, which it saves and shows. It takes over what was committed here from a list of
 * the entries that have changed since it last looked: an entry is on it once, however often it changes.
 */
#ifndef RMQ_PLANE_OFFSETS_H
#define RMQ_PLANE_OFFSETS_H

#include "../core/status.h"
#include "../store/table.h"

#define RMQ_OFFSETS_MAX 1000000u      /* as ENTRIES_MAX in offsets.py */
#define RMQ_OFFSET_NAMES_MAX 1024u    /* bytes of a topic and a group together; longer ones are handed over */

/* One committed offset. */
typedef struct rmq_offset {
    rmq_key key; /* the topic, a zero byte, the group; and the queue */
    size_t topic_size;
    int64_t offset;
    bool has_changed;        /* and is on the list */
    struct rmq_offset *next; /* on the list */
} rmq_offset;

typedef struct {
    rmq_table table;
    rmq_offset *first_changed;
    rmq_offset *last_changed;
} rmq_offsets;

void rmq_offsets_free(rmq_offsets *offsets);

/* What is committed, or NULL. */
const rmq_offset *rmq_offset_of(const rmq_offsets *offsets, rmq_text topic, rmq_text group, int64_t queue_id);

/* Sets an offset. `before` is what it was, -1 if there was none. RMQ_NOT_MINE, and nothing has changed, for names that are
 * too long and for a new offset when there are RMQ_OFFSETS_MAX of them. `from_above`: the control plane knows already,
 * and has taken over what had changed before. */
rmq_status rmq_commit_offset(rmq_offsets *offsets, rmq_text topic, rmq_text group, int64_t queue_id, int64_t offset,
                             bool from_above, int64_t *before);

/* Forgets everything: the control plane sets its whole table anew. */
void rmq_forget_offsets(rmq_offsets *offsets);

/* Takes the next changed entry off the list; NULL when it is empty. */
const rmq_offset *rmq_next_changed(rmq_offsets *offsets);

#endif
