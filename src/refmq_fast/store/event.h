/* The trace events of a store: names and fields are those of refmq/model/vocabulary.py. */
#ifndef RMQ_STORE_EVENT_H
#define RMQ_STORE_EVENT_H

#include <stdint.h>

#include "../core/properties.h"
#include "../core/status.h"

typedef enum {
    RMQ_APPEND_MESSAGE,
    RMQ_ROLL_FILE,
    RMQ_DISPATCH_MESSAGE,
    RMQ_SERVE_MESSAGE,
    RMQ_FLUSH_LOG,
    RMQ_FLUSH_QUEUE,
    RMQ_FLUSH_INDEX,
    RMQ_WRITE_CHECKPOINT,
    RMQ_EXPIRE_FILE,
    RMQ_STOP_STORE,
    RMQ_ACTIONS
} rmq_action;

typedef struct {
    rmq_action action;
    rmq_text subject; /* a topic, or empty */
    int64_t queue_id; /* -1: none */
    int64_t a;
    int64_t b;
    int64_t c;
    int64_t d;
} rmq_event;

/* Takes one event; what `event` points to is gone afterwards. Anything but RMQ_OK ends the step there. */
typedef rmq_status (*rmq_emit)(void *context, const rmq_event *event);

#endif
