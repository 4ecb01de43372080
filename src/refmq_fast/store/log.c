/* Appends and reads records, ends files with blank records, and keeps what a slave has not received whole. */
#include "log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/bytes.h"
#include "../core/record.h"
#include "mistakes.h"

void rmq_log_saw_store_time(rmq_log *log, int64_t store_ms)
{
    if (store_ms > log->last_store_ms) {
        log->last_store_ms = store_ms;
    }
}

bool rmq_log_has_room(const rmq_log *log, int64_t length)
{
    return length + RMQ_BLANK_HEADER_BYTES <= rmq_files_room(&log->files);
}

/* --- append ------------------------------------------------------------------------------------------------------ */

/* Writes the blank record that ends the last file; the log ends behind it. */
static rmq_status write_blank(rmq_files *files)
{
    const int64_t before = files->wrote;
    uint8_t blank[RMQ_BLANK_HEADER_BYTES];
    rmq_status status;

    rmq_encode_blank(rmq_files_room(files), blank);
    RMQ_TRY(rmq_files_append(files, blank, sizeof blank));
    status = rmq_files_write_tail(files);
    if (status != RMQ_OK) {
        files->tail_bytes = 0;
        files->wrote = before;
    }
    return status;
}

rmq_status rmq_log_roll_file(rmq_log *log)
{
    rmq_files *files = &log->files;

    RMQ_TRY(rmq_files_write_tail(files));
    /* In this order: a blank without a next file is taken for the end of the log, and the log would end twice. */
    RMQ_TRY(rmq_files_prepare(files, rmq_files_limit(files)));
    if (rmq_files_room(files) > 0) {
        if (RMQ_IS_RIGHT(RMQ_MISTAKE_NO_BLANK)) {
            RMQ_TRY(write_blank(files));
        }
        files->wrote = rmq_files_limit(files);
    }
    return rmq_files_add(files, files->wrote);
}

rmq_status rmq_log_append(rmq_log *log, const uint8_t *from, size_t length, int64_t store_ms)
{
    assert(length > 0 && rmq_log_has_room(log, (int64_t)length));
    assert(log->incomplete_bytes == 0);
    RMQ_TRY(rmq_files_append(&log->files, from, length));
    rmq_log_saw_store_time(log, store_ms);
    return RMQ_OK;
}

/* How long the record that starts at `at` of the incomplete part will be. */
static int64_t incomplete_size_at(const rmq_log *log, size_t at)
{
    const size_t left = log->incomplete_bytes - at;
    const int64_t room = rmq_files_room(&log->files) - (int64_t)at;
    int64_t size;

    if (left < RMQ_BLANK_HEADER_BYTES) {
        return room < RMQ_BLANK_HEADER_BYTES ? room : RMQ_BLANK_HEADER_BYTES;
    }
    if (rmq_load_be32u(log->incomplete + at + 4) == RMQ_BLANK_MAGIC) {
        return room;
    }
    size = rmq_load_be32(log->incomplete + at);
    return size > 0 && size <= room ? size : (int64_t)left; /* anything that is not a record is taken as it is */
}

static rmq_status keep_incomplete(rmq_log *log, const uint8_t *from, size_t length)
{
    if (log->incomplete_bytes + length > log->incomplete_size) {
        const size_t size = 2 * log->incomplete_size > log->incomplete_bytes + length
                                ? 2 * log->incomplete_size
                                : log->incomplete_bytes + length;
        uint8_t *grown = realloc(log->incomplete, size);
        if (grown == NULL) {
            return RMQ_NO_MEMORY;
        }
        log->incomplete = grown;
        log->incomplete_size = size;
    }
    if (length > 0) {
        memcpy(log->incomplete + log->incomplete_bytes, from, length);
        log->incomplete_bytes += length;
    }
    return RMQ_OK;
}

rmq_status rmq_log_append_raw(rmq_log *log, int64_t position, const uint8_t *from, size_t length, char *message,
                              size_t message_bytes)
{
    rmq_files *files = &log->files;
    size_t whole = 0;

    if (files->count == 0 && files->wrote == 0) {
        if (position < 0 || position != rmq_files_base_of(files, position)) {
            (void)snprintf(message, message_bytes, "an empty log starts at the start of a file, not at %" PRId64, position);
            return RMQ_MISUSE;
        }
        RMQ_TRY(rmq_files_add(files, position));
    }
    if (position != rmq_log_received_to(log)) {
        (void)snprintf(message, message_bytes,
                       "the log ends at %" PRId64 ", bytes for %" PRId64 " cannot be appended", rmq_log_received_to(log),
                       position);
        return RMQ_MISUSE;
    }
    if (position == rmq_files_limit(files)) {
        if (files->flushed == rmq_files_begin(files)) {
            /* A power loss could take the first file and leave the second. */
            (void)snprintf(message, message_bytes,
                           "nothing of the log is durable yet: flush it before continuing at %" PRId64, position);
            return RMQ_MISUSE;
        }
        RMQ_TRY(rmq_files_add(files, rmq_files_limit(files)));
    }
    if ((int64_t)(log->incomplete_bytes + length) > rmq_files_room(files)) {
        (void)snprintf(message, message_bytes, "%zu bytes at %" PRId64 " cross the end of a file", length, position);
        return RMQ_MISUSE;
    }
    RMQ_TRY(keep_incomplete(log, from, length));
    while (whole < log->incomplete_bytes) {
        const int64_t size = incomplete_size_at(log, whole);
        if ((int64_t)whole + size > (int64_t)log->incomplete_bytes) {
            break;
        }
        whole += (size_t)size;
    }
    RMQ_TRY(rmq_files_append(files, log->incomplete, whole));
    log->incomplete_bytes -= whole;
    if (log->incomplete_bytes > 0) {
        memmove(log->incomplete, log->incomplete + whole, log->incomplete_bytes);
    }
    return RMQ_OK;
}

/* --- read -------------------------------------------------------------------------------------------------------- */

size_t rmq_log_bytes_from(const rmq_log *log, int64_t position, int64_t length_max, int64_t end)
{
    const rmq_files *files = &log->files;
    int64_t limit = end;

    assert(end <= files->wrote);
    if (position < rmq_files_begin(files)) {
        return 0;
    }
    if (limit > rmq_log_next_file(log, position)) {
        limit = rmq_log_next_file(log, position);
    }
    if (position >= limit || !rmq_files_holds(files, position)) {
        return 0;
    }
    return (size_t)(length_max < limit - position ? (length_max < 0 ? 0 : length_max) : limit - position);
}

bool rmq_log_has(const rmq_log *log, int64_t position, int64_t length)
{
    const rmq_files *files = &log->files;

    if (length < 0 || position < rmq_files_begin(files) || position > files->wrote - length) {
        return false;
    }
    return position % files->file_bytes + length <= files->file_bytes && rmq_files_holds(files, position);
}

rmq_status rmq_log_read(rmq_log *log, int64_t position, uint8_t *to, size_t length)
{
    return rmq_files_read(&log->files, position, to, length);
}

/* The header of the record at `position`, of which `length` bytes may be read; size 0 if it is no such record. */
static rmq_status header_at(rmq_log *log, int64_t position, size_t length, rmq_record_header *header)
{
    uint8_t bytes[RMQ_HEADER_BYTES_MAX];

    header->size_bytes = 0;
    if (length > sizeof bytes) {
        length = sizeof bytes;
    }
    RMQ_TRY(rmq_log_read(log, position, bytes, length));
    if (rmq_read_header(bytes, length, 0, position, header, NULL) != RMQ_OK || header->physical_offset != position) {
        header->size_bytes = 0;
    }
    return RMQ_OK;
}

rmq_status rmq_log_record_at(rmq_log *log, int64_t position, int64_t *size_bytes, int64_t *store_ms)
{
    const size_t length = rmq_log_bytes_from(log, position, RMQ_HEADER_BYTES_MAX, log->files.wrote);
    rmq_record_header header;

    *size_bytes = 0;
    if (length == 0) {
        return RMQ_OK;
    }
    RMQ_TRY(header_at(log, position, length, &header));
    if (header.size_bytes > 0 && rmq_log_has(log, position, header.size_bytes)) {
        *size_bytes = header.size_bytes;
        *store_ms = header.store_timestamp_ms;
    }
    return RMQ_OK;
}

rmq_status rmq_log_store_time(rmq_log *log, int64_t position, int64_t size, int64_t *store_ms)
{
    const int64_t length = size < RMQ_HEADER_BYTES_MAX ? size : RMQ_HEADER_BYTES_MAX;
    rmq_record_header header;

    *store_ms = -1;
    if (!rmq_log_has(log, position, length)) {
        return RMQ_OK;
    }
    RMQ_TRY(header_at(log, position, (size_t)length, &header));
    if (header.size_bytes > 0) {
        *store_ms = header.store_timestamp_ms;
    }
    return RMQ_OK;
}

/* --- durability -------------------------------------------------------------------------------------------------- */

int64_t rmq_log_pages_to_flush(const rmq_log *log)
{
    return log->files.wrote / log->flush_page_bytes - log->files.flushed / log->flush_page_bytes;
}

void rmq_log_flush_begin(rmq_log_flush *job, rmq_log *log)
{
    memset(job, 0, sizeof *job);
    job->log = log;
    job->store_ms = log->last_store_ms;
    rmq_files_flush_begin(&job->files, &log->files, log->files.wrote);
}

rmq_status rmq_log_flush_next(rmq_log_flush *job, rmq_status performed, rmq_operation *operation)
{
    rmq_log *log = job->log;
    rmq_status status;

    RMQ_JOB_BEGIN;
    RMQ_AWAIT(rmq_files_flush_next, &job->files);
    RMQ_TRY(status);
    if (!RMQ_IS_RIGHT(RMQ_MISTAKE_FLUSH_TOO_FAR)) {
        log->files.flushed = log->files.wrote;
        job->store_ms = log->last_store_ms;
    }
    if (job->store_ms > log->flushed_store_ms) {
        log->flushed_store_ms = job->store_ms;
    }
    RMQ_JOB_END;
}
