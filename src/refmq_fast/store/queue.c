/* Puts, reads and cuts the units of one queue. */
#include "queue.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/bytes.h"
#include "mistakes.h"

#define UNITS_AT_ONCE 64
#define ID_CHARS_MAX 20

static void encode_unit(const rmq_unit *unit, uint8_t *to)
{
    rmq_store_be64(to, (uint64_t)unit->physical_offset);
    rmq_store_be32(to + 8, (uint32_t)unit->size);
    rmq_store_be64(to + 12, (uint64_t)unit->tags_code);
}

static rmq_unit decode_unit(const uint8_t *from)
{
    return (rmq_unit){rmq_load_be64(from), rmq_load_be32(from + 8), rmq_load_be64(from + 12)};
}

rmq_status rmq_queue_new(const rmq_queue_setting *setting, rmq_text topic, int64_t queue_id, rmq_queue **made)
{
    rmq_queue *queue = calloc(1, sizeof *queue + topic.size + 1);
    const size_t directory_bytes = sizeof RMQ_QUEUE_DIRECTORY + 1 + topic.size + 1 + ID_CHARS_MAX + 1;
    char *directory = malloc(directory_bytes);
    rmq_status status = RMQ_NO_MEMORY;

    assert(queue_id >= 0);
    if (queue != NULL && directory != NULL) {
        uint8_t *copy = (uint8_t *)(queue + 1);
        memcpy(copy, topic.at, topic.size);
        queue->topic = (rmq_text){copy, topic.size};
        queue->queue_id = queue_id;
        queue->last_physical_end = -1;
        (void)snprintf(directory, directory_bytes, "%s/%.*s/%" PRId64, RMQ_QUEUE_DIRECTORY, (int)topic.size,
                       (const char *)topic.at, queue_id);
        status = rmq_files_init(&queue->files, setting->disk, setting->names, directory, setting->file_bytes, false,
                                setting->piece_bytes, setting->tail_max);
    }
    free(directory);
    if (status != RMQ_OK) {
        free(queue);
        queue = NULL;
    }
    *made = queue;
    return status;
}

void rmq_queue_free(rmq_queue *queue)
{
    rmq_files_free(&queue->files);
    free(queue);
}

/* --- read -------------------------------------------------------------------------------------------------------- */

int64_t rmq_queue_units_from(const rmq_queue *queue, int64_t queue_offset, int64_t count_max)
{
    const int64_t per_file = queue->files.file_bytes / RMQ_UNIT_BYTES;
    int64_t count = count_max;

    if (queue_offset < rmq_queue_first(queue) || queue_offset >= rmq_queue_end(queue)) {
        return 0;
    }
    if (count > per_file - queue_offset % per_file) {
        count = per_file - queue_offset % per_file;
    }
    return count < rmq_queue_end(queue) - queue_offset ? count : rmq_queue_end(queue) - queue_offset;
}

rmq_status rmq_queue_read(rmq_queue *queue, int64_t queue_offset, int64_t count, rmq_unit *units)
{
    uint8_t bytes[UNITS_AT_ONCE * RMQ_UNIT_BYTES];

    while (count > 0) {
        const int64_t now = count < UNITS_AT_ONCE ? count : UNITS_AT_ONCE;

        RMQ_TRY(rmq_files_read(&queue->files, queue_offset * RMQ_UNIT_BYTES, bytes, (size_t)now * RMQ_UNIT_BYTES));
        for (int64_t i = 0; i < now; i++) {
            units[i] = decode_unit(bytes + i * RMQ_UNIT_BYTES);
        }
        units += now;
        queue_offset += now;
        count -= now;
    }
    return RMQ_OK;
}

rmq_status rmq_queue_unit(rmq_queue *queue, int64_t queue_offset, rmq_unit *unit, bool *is_there)
{
    *is_there = rmq_queue_units_from(queue, queue_offset, 1) == 1;
    return *is_there ? rmq_queue_read(queue, queue_offset, 1, unit) : RMQ_OK;
}

static rmq_status correct_min_offset(rmq_queue *queue, int64_t log_min)
{
    const int64_t first = rmq_queue_first(queue);
    int64_t high = rmq_queue_end(queue);
    int64_t low = queue->min_offset < high ? queue->min_offset : high;

    if (low < first || queue->min_offset > high) {
        low = first;
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        rmq_unit unit;
        bool is_there;

        RMQ_TRY(rmq_queue_unit(queue, middle, &unit, &is_there));
        if (is_there && unit.physical_offset >= log_min && unit.size != RMQ_BLANK_SIZE) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    queue->min_offset = low;
    queue->log_min = log_min;
    return RMQ_OK;
}

rmq_status rmq_queue_min_at(rmq_queue *queue, int64_t log_min, int64_t *min_offset)
{
    if (log_min > queue->log_min) {
        RMQ_TRY(correct_min_offset(queue, log_min));
    }
    *min_offset = queue->min_offset;
    return RMQ_OK;
}

/* --- dispatch ---------------------------------------------------------------------------------------------------- */

/* Writes blank units up to `queue_offset`: from the start of its file in an empty queue, else from the end. */
static rmq_status fill_blank(rmq_queue *queue, int64_t queue_offset)
{
    static const rmq_unit blank = {0, RMQ_BLANK_SIZE, 0};
    rmq_files *files = &queue->files;
    const int64_t at_once = files->piece_bytes / RMQ_UNIT_BYTES;
    uint8_t *units;
    rmq_status status = RMQ_OK;

    if (files->count == 0) {
        RMQ_TRY(rmq_files_add(files, rmq_files_base_of(files, queue_offset * RMQ_UNIT_BYTES)));
    }
    units = malloc((size_t)at_once * RMQ_UNIT_BYTES);
    if (units == NULL) {
        return RMQ_NO_MEMORY;
    }
    for (int64_t i = 0; i < at_once; i++) {
        encode_unit(&blank, units + i * RMQ_UNIT_BYTES);
    }
    while (status == RMQ_OK && rmq_queue_end(queue) < queue_offset) {
        int64_t count = queue_offset - rmq_queue_end(queue);

        if (rmq_files_room(files) == 0) {
            status = rmq_files_add(files, rmq_files_limit(files));
        }
        if (status == RMQ_OK) {
            count = count < rmq_files_room(files) / RMQ_UNIT_BYTES ? count : rmq_files_room(files) / RMQ_UNIT_BYTES;
            count = count < at_once ? count : at_once;
            status = rmq_files_append(files, units, (size_t)(count * RMQ_UNIT_BYTES));
        }
    }
    free(units);
    if (status == RMQ_OK && queue->min_offset == 0) {
        queue->min_offset = queue_offset;
    }
    return status;
}

static rmq_status truncate(rmq_queue *queue, int64_t queue_offset)
{
    const int64_t begin = rmq_files_begin(&queue->files), position = queue_offset * RMQ_UNIT_BYTES;

    assert(queue_offset <= rmq_queue_end(queue));
    RMQ_TRY(rmq_files_truncate(&queue->files, position > begin ? position : begin));
    if (queue->min_offset > rmq_queue_end(queue)) {
        queue->min_offset = rmq_queue_end(queue);
    }
    if (queue->dispatched_end > rmq_queue_end(queue)) {
        queue->dispatched_end = rmq_queue_end(queue);
    }
    return RMQ_OK;
}

rmq_status rmq_queue_put(rmq_queue *queue, int64_t queue_offset, const rmq_unit *unit, bool *is_new)
{
    rmq_files *files = &queue->files;
    int64_t end = rmq_queue_end(queue);
    uint8_t bytes[RMQ_UNIT_BYTES];

    assert(queue_offset >= 0 && unit->size > 0 && unit->size < RMQ_BLANK_SIZE);
    *is_new = false;
    if (queue_offset < rmq_queue_first(queue) && unit->physical_offset >= queue->last_physical_end) {
        /* The topic was deleted and started afresh, and only later units of the old one are left. */
        RMQ_TRY(rmq_queue_remove(queue));
        end = 0;
    }
    if (queue_offset < end) {
        rmq_unit there;
        bool is_there;

        if (queue_offset < rmq_queue_first(queue)) {
            return RMQ_OK;
        }
        RMQ_TRY(rmq_queue_unit(queue, queue_offset, &there, &is_there));
        assert(is_there);
        if (there.physical_offset == unit->physical_offset && there.size == unit->size &&
            there.tags_code == unit->tags_code) {
            return RMQ_OK;
        }
        if (RMQ_IS_RIGHT(RMQ_MISTAKE_KEEP_OLD_UNITS)) {
            RMQ_TRY(truncate(queue, queue_offset)); /* the later record owns the offset; what follows it goes */
        } else {
            return RMQ_OK;
        }
    } else if (queue_offset > end) {
        RMQ_TRY(fill_blank(queue, queue_offset));
    }
    if (rmq_files_room(files) == 0) {
        RMQ_TRY(rmq_files_add(files, files->count > 0 ? rmq_files_limit(files) : 0));
    }
    encode_unit(unit, bytes);
    RMQ_TRY(rmq_files_append(files, bytes, sizeof bytes));
    queue->last_physical_end = unit->physical_offset + unit->size;
    assert(rmq_queue_end(queue) == queue_offset + 1);
    *is_new = true;
    return RMQ_OK;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

/* Whether a start finds this unit: that of a record which the checkpoint covers. */
static rmq_status is_kept(rmq_queue *queue, int64_t position, int64_t checkpointed_to, bool *is_one)
{
    rmq_unit unit;

    RMQ_TRY(rmq_queue_read(queue, position / RMQ_UNIT_BYTES, 1, &unit));
    *is_one = unit.size > 0 && unit.size < RMQ_BLANK_SIZE && unit.physical_offset < checkpointed_to;
    return RMQ_OK;
}

rmq_status rmq_queue_remove_expired(rmq_queue *queue, int64_t log_min, int64_t checkpointed_to, bool *has_removed)
{
    rmq_files *files = &queue->files;
    const int64_t following = files->count > 0 ? files->list[0].base + files->file_bytes : 0;
    bool is_first_kept, is_last_kept;
    rmq_unit last;

    *has_removed = false;
    if (files->count < 2 || files->flushed <= following) {
        return RMQ_OK;
    }
    RMQ_TRY(is_kept(queue, following, checkpointed_to, &is_first_kept));
    RMQ_TRY(is_kept(queue, files->flushed - RMQ_UNIT_BYTES, checkpointed_to, &is_last_kept));
    if (!is_first_kept && !is_last_kept) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_queue_read(queue, following / RMQ_UNIT_BYTES - 1, 1, &last));
    if (last.size != RMQ_BLANK_SIZE && last.physical_offset >= log_min && RMQ_IS_RIGHT(RMQ_MISTAKE_EXPIRE_LIVE_UNITS)) {
        return RMQ_OK;
    }
    RMQ_TRY(rmq_files_remove(files, 0));
    *has_removed = true;
    return RMQ_OK;
}

rmq_status rmq_queue_remove(rmq_queue *queue)
{
    RMQ_TRY(rmq_files_remove_all(&queue->files));
    queue->min_offset = queue->dispatched_end = 0;
    queue->last_physical_end = -1;
    return RMQ_OK;
}
