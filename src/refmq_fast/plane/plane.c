/* See plane.h. What does not belong to one kind of request: the way in, the clock, acknowledgements. */
#include "plane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../core/answer.h"
#include "mistakes.h"

#define SEND_MESSAGE 10
#define PULL_MESSAGE 11
#define QUERY_CONSUMER_OFFSET 14
#define UPDATE_CONSUMER_OFFSET 15
#define SEND_MESSAGE_V2 310
#define SEND_BATCH_MESSAGE 320
#define LITE_PULL_MESSAGE 361

#define LOOK_MS 5000 /* how often the waiting pulls are looked through; see LOOK_MS in refmq/plane/pull.py */
#define SHORT_LOOK_MS 1000

/* --- life ---------------------------------------------------------------------------------------------------------- */

rmq_status rmq_plane_new(rmq_store *store, const rmq_port *port, uint64_t seed, rmq_plane **plane)
{
    rmq_plane *made = calloc(1, sizeof *made);

    assert(store != NULL && port->answer != NULL && port->hand_over != NULL);
    if (made == NULL) {
        return RMQ_NO_MEMORY;
    }
    made->store = store;
    made->port = *port;
    rmq_snapshot_init(&made->snapshot, seed);
    made->offsets.table.seed = made->pull_counts.seed = seed;
    made->hold.by_queue.seed = made->hold.by_connection.seed = seed;
    *plane = made;
    return RMQ_OK;
}

void rmq_forget_pull_counts(rmq_plane *plane)
{
    const uint64_t seed = plane->pull_counts.seed;
    size_t at = 0;
    void *count;

    while ((count = rmq_table_next(&plane->pull_counts, &at)) != NULL) {
        free(count);
    }
    rmq_table_free(&plane->pull_counts);
    memset(&plane->pull_counts, 0, sizeof plane->pull_counts);
    plane->pull_counts.seed = seed;
}

void rmq_plane_free(rmq_plane *plane)
{
    rmq_snapshot_free(&plane->snapshot);
    rmq_offsets_free(&plane->offsets);
    rmq_hold_free(&plane->hold);
    rmq_acks_free(&plane->acks);
    rmq_forget_pull_counts(plane);
    free(plane->records.data);
    free(plane->text);
    free(plane->head);
    free(plane);
}

rmq_status rmq_head_room(rmq_plane *plane, size_t bytes)
{
    return rmq_reserve((void **)&plane->head, &plane->head_size, bytes, 1);
}

rmq_status rmq_text_room(rmq_plane *plane, size_t bytes)
{
    return rmq_reserve((void **)&plane->text, &plane->text_size, bytes, 1);
}

/* --- requests ------------------------------------------------------------------------------------------------------ */

bool rmq_is_busy(const rmq_plane *plane, int64_t under_way, int64_t under_way_max, int64_t waited_ms, int64_t wait_ms)
{
    assert(under_way >= 0 && waited_ms >= 0);
    return under_way >= under_way_max || (plane->snapshot.config.fast_failure && waited_ms >= wait_ms);
}

bool rmq_is_hot(int32_t code)
{
    switch (code) {
    case SEND_MESSAGE:
    case SEND_MESSAGE_V2:
    case SEND_BATCH_MESSAGE:
    case PULL_MESSAGE:
    case LITE_PULL_MESSAGE:
    case UPDATE_CONSUMER_OFFSET:
    case QUERY_CONSUMER_OFFSET:
        return true;
    default:
        return false;
    }
}

bool rmq_may_serve(const rmq_plane *plane, int32_t code)
{
    return rmq_is_hot(code) &&
           (!plane->snapshot.config.hands_over_all || !RMQ_IS_RIGHT(RMQ_MISTAKE_ACCESS_UNCHECKED));
}

rmq_status rmq_serve_frame(rmq_plane *plane, const rmq_request *request, rmq_moment now)
{
    if (!rmq_may_serve(plane, request->command->code)) {
        return RMQ_NOT_MINE;
    }
    switch (request->command->code) {
    case SEND_MESSAGE:
    case SEND_MESSAGE_V2:
    case SEND_BATCH_MESSAGE:
        return rmq_serve_send(plane, request, now);
    case PULL_MESSAGE:
    case LITE_PULL_MESSAGE:
        return request->on_vip_port ? RMQ_NOT_MINE : rmq_serve_pull(plane, request, now);
    case UPDATE_CONSUMER_OFFSET:
        return rmq_serve_update_offset(plane, request);
    case QUERY_CONSUMER_OFFSET:
        return rmq_serve_query_offset(plane, request);
    default:
        return RMQ_NOT_MINE;
    }
}

rmq_status rmq_reply(rmq_plane *plane, int64_t connection, int64_t number, bool is_oneway, size_t head_bytes,
                     rmq_text body)
{
    assert(head_bytes <= plane->head_size);
    if (is_oneway) {
        return RMQ_OK;
    }
    return plane->port.answer(plane->port.context, connection, number, (rmq_text){plane->head, head_bytes}, body);
}

/* --- acknowledgements ---------------------------------------------------------------------------------------------- */

/* The producer of a put learns where its messages are, and how safe. */
static rmq_status acknowledge(rmq_plane *plane, const rmq_put *put, int32_t code, int32_t put_status, rmq_moment now)
{
    const rmq_plane_config *config = &plane->snapshot.config;
    const rmq_sent sent = {
        .code = code,
        .message_id = put->ids,
        .queue_id = put->answered_queue,
        .queue_offset = put->queue_offset,
        .region = {config->region.bytes, config->region.size},
        .trace_on = config->trace_on,
    };
    rmq_topic *topic = rmq_topic_of(&plane->snapshot, put->topic);
    size_t used;

    assert(now.uptime_ms >= put->begun_ms);
    for (size_t i = 0; plane->port.event != NULL && i < put->count; i++) {
        const rmq_place *place = &put->places[i];

        RMQ_TRY(plane->port.event(plane->port.context, "AckPut", (rmq_text){NULL, 0}, put->topic, put->queue_id,
                                  place->physical_offset, place->queue_offset, place->fingerprint, put_status));
    }
    if (topic != NULL) {
        topic->sends += 1;
        topic->messages += (int64_t)put->count;
        topic->sent_bytes += put->size_bytes;
        topic->took_ms += now.uptime_ms - put->begun_ms;
    }
    RMQ_TRY(rmq_head_room(plane, RMQ_LONG_ANSWER_BYTES_MAX(put->ids.size)));
    RMQ_TRY(rmq_answer_sent((rmq_asked){put->opaque, put->serialize}, &sent, plane->head, plane->head_size, &used));
    return rmq_reply(plane, put->connection, put->number, put->is_oneway, used, (rmq_text){NULL, 0});
}

static rmq_status acknowledge_first(rmq_plane *plane, int32_t code, int32_t put_status, rmq_moment now)
{
    rmq_put *put = rmq_acks_take(&plane->acks);
    const rmq_status status = acknowledge(plane, put, code, put_status, now);

    free(put);
    return status;
}

rmq_status rmq_durable(rmq_plane *plane, int64_t flushed_to, rmq_moment now)
{
    assert(flushed_to >= 0);
    while (plane->acks.first != NULL && rmq_ack_put_enabled(plane->acks.first->durable_at, flushed_to)) {
        RMQ_TRY(acknowledge_first(plane, RMQ_CODE_SUCCESS, RMQ_PUT_OK, now));
    }
    plane->wants_dispatch = true;
    return RMQ_OK;
}

rmq_status rmq_flush_failed(rmq_plane *plane, rmq_moment now)
{
    while (plane->acks.first != NULL) {
        const bool is_ok = !RMQ_IS_RIGHT(RMQ_MISTAKE_FAILED_IS_OK);

        RMQ_TRY(acknowledge_first(plane, is_ok ? RMQ_CODE_SUCCESS : RMQ_CODE_FLUSH_DISK_TIMEOUT,
                                  is_ok ? RMQ_PUT_OK : RMQ_PUT_FLUSH_DISK_TIMEOUT, now));
    }
    return RMQ_OK;
}

/* The puts that have waited too long. One that has become safe although nobody has said so yet is not called late. */
static rmq_status timeout_puts(rmq_plane *plane, rmq_moment now)
{
    const int64_t limit_ms = plane->snapshot.config.flush_timeout_ms;

    while (plane->acks.first != NULL && now.uptime_ms - plane->acks.first->begun_ms >= limit_ms) {
        const bool is_safe = rmq_ack_put_enabled(plane->acks.first->durable_at, plane->store->log.files.flushed);

        RMQ_TRY(acknowledge_first(plane, is_safe ? RMQ_CODE_SUCCESS : RMQ_CODE_FLUSH_DISK_TIMEOUT,
                                  is_safe ? RMQ_PUT_OK : RMQ_PUT_FLUSH_DISK_TIMEOUT, now));
    }
    return RMQ_OK;
}

/* --- arrivals and the clock ---------------------------------------------------------------------------------------- */

typedef struct {
    rmq_plane *plane;
    rmq_held *woken;
    rmq_tell others;
    void *context;
} arriving;

static rmq_status arrive(void *context, const rmq_dispatched *message)
{
    arriving *to = context;
    rmq_held *more = rmq_take_arrived(&to->plane->hold, message->topic, message->queue_id, message->queue_offset,
                                      message->tags_code);

    while (more != NULL) {
        rmq_held *next = more->next;

        more->next = to->woken;
        to->woken = more;
        more = next;
    }
    return to->others == NULL ? RMQ_OK : to->others(to->context, message);
}

rmq_status rmq_plane_dispatch(rmq_plane *plane, int64_t count_max, rmq_tell others, void *context, bool *went_on,
                              rmq_moment now)
{
    const int64_t before = plane->store->dispatched_to;
    arriving to = {plane, NULL, others, context};
    const rmq_status status = rmq_dispatch(plane->store, count_max, arrive, &to);
    const rmq_status woken = rmq_wake(plane, rmq_held_in_order(to.woken), now);

    *went_on = plane->store->dispatched_to > before;
    return status == RMQ_OK ? woken : status;
}

static int64_t end_of(const void *context, rmq_text topic, int64_t queue_id)
{
    return rmq_max_offset(context, topic, queue_id);
}

rmq_status rmq_tick(rmq_plane *plane, rmq_moment now)
{
    const int64_t period_ms = plane->snapshot.config.long_polling ? LOOK_MS : SHORT_LOOK_MS;

    RMQ_TRY(timeout_puts(plane, now));
    if (now.uptime_ms - plane->looked_ms < period_ms) {
        return RMQ_OK;
    }
    plane->looked_ms = now.uptime_ms;
    return rmq_wake(plane, rmq_held_in_order(rmq_take_due(&plane->hold, now.uptime_ms, end_of, plane->store)), now);
}

rmq_status rmq_drain(rmq_plane *plane, rmq_moment now)
{
    return rmq_wake(plane, rmq_held_in_order(rmq_take_every(&plane->hold)), now);
}

void rmq_closed(rmq_plane *plane, int64_t connection)
{
    const bool takes_all = !RMQ_IS_RIGHT(RMQ_MISTAKE_CLOSED_TAKES_ALL);

    rmq_held_free(takes_all ? rmq_take_every(&plane->hold) : rmq_take_connection(&plane->hold, connection));
}
