/* Committed offsets on the hot path: 15 UPDATE_CONSUMER_OFFSET and 14 QUERY_CONSUMER_OFFSET. The twin of
 * refmq/plane/offset_requests.py. Handed over: offsets that nobody has committed
 * yet, for which names and numbers are checked there, and those of the broker's own group, which nobody may commit. */
#include "../core/answer.h"
#include "fields.h"
#include "plane.h"

typedef struct {
    rmq_text group;
    rmq_text topic;
    int64_t queue_id;
} queue_header;

static rmq_status read_header(const rmq_command *command, queue_header *header)
{
    RMQ_TRY(rmq_text_field(command, RMQ_TEXT("consumerGroup"), &header->group));
    RMQ_TRY(rmq_text_field(command, RMQ_TEXT("topic"), &header->topic));
    return rmq_number_field(command, RMQ_TEXT("queueId"), INT32_MIN, INT32_MAX, &header->queue_id);
}

static bool is_oneway(const rmq_request *request)
{
    return (request->command->flag & RMQ_ONEWAY_FLAG) != 0;
}

rmq_status rmq_plane_commit(rmq_plane *plane, rmq_text topic, rmq_text group, int64_t queue_id, int64_t offset)
{
    int64_t before;

    RMQ_TRY(rmq_commit_offset(&plane->offsets, topic, group, queue_id, offset, false, &before));
    if (plane->port.event == NULL) {
        return RMQ_OK;
    }
    return plane->port.event(plane->port.context, "CommitOffset", group, topic, queue_id, before, offset, 0, 0);
}

rmq_status rmq_serve_update_offset(rmq_plane *plane, const rmq_request *request)
{
    const rmq_asked asked = {request->command->opaque, request->command->serialize};
    queue_header header;
    int64_t offset;
    size_t used;

    RMQ_TRY(read_header(request->command, &header));
    RMQ_TRY(rmq_number_field(request->command, RMQ_TEXT("commitOffset"), INT64_MIN, INT64_MAX, &offset));
    if (rmq_offset_of(&plane->offsets, header.topic, header.group, header.queue_id) == NULL ||
        rmq_text_equals(header.group, RMQ_TEXT("CID_RMQ_SYS_TRANS"))) {
        return RMQ_NOT_MINE;
    }
    RMQ_TRY(rmq_head_room(plane, RMQ_ANSWER_BYTES_MAX));
    RMQ_TRY(rmq_plane_commit(plane, header.topic, header.group, header.queue_id, offset));
    RMQ_TRY(rmq_answer_code(asked, RMQ_CODE_SUCCESS, plane->head, plane->head_size, &used));
    return rmq_reply(plane, request->connection, request->number, is_oneway(request), used, (rmq_text){NULL, 0});
}

rmq_status rmq_serve_query_offset(rmq_plane *plane, const rmq_request *request)
{
    const rmq_asked asked = {request->command->opaque, request->command->serialize};
    const rmq_offset *found;
    queue_header header;
    size_t used;

    RMQ_TRY(read_header(request->command, &header));
    found = rmq_offset_of(&plane->offsets, header.topic, header.group, header.queue_id);
    if (found == NULL || found->offset < 0) {
        return RMQ_NOT_MINE;
    }
    RMQ_TRY(rmq_head_room(plane, RMQ_ANSWER_BYTES_MAX));
    RMQ_TRY(rmq_answer_offset(asked, found->offset, plane->head, plane->head_size, &used));
    return rmq_reply(plane, request->connection, request->number, is_oneway(request), used, (rmq_text){NULL, 0});
}
