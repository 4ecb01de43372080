/* Finds the file for the next entry, and makes all of them durable. */
#include "index.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/hash.h"
#include "mistakes.h"

#define PATH_BYTES (sizeof RMQ_INDEX_DIRECTORY + 1 + RMQ_INDEX_NAME_DIGITS + 4)
#define NAMED_MS_MAX 253402300799999 /* the end of the year 9999 */
#define DAY_MS 86400000

void rmq_index_init(rmq_index *index, const rmq_disk *disk, rmq_names *names, int64_t slots, int64_t entries,
                    size_t pages_max)
{
    memset(index, 0, sizeof *index);
    index->disk = disk;
    index->names = names;
    index->slots = slots;
    index->entries = entries;
    index->pages_max = pages_max;
}

/* Gives up a file; a job that still flushes it frees it later. */
static void let_go(rmq_index_file *file)
{
    file->pages.disk->close(file->pages.disk->context, file->pages.file);
    rmq_pages_free(&file->pages);
    file->is_gone = true;
    if (file->holders == 0) {
        free(file);
    }
}

void rmq_index_free(rmq_index *index)
{
    for (size_t i = 0; i < index->count; i++) {
        let_go(index->files[i]);
    }
    free(index->files);
    memset(index, 0, sizeof *index);
}

/* --- files ------------------------------------------------------------------------------------------------------- */

/* 17 digits: year to millisecond, in UTC. The calendar repeats every 400 years; a year begins in March here, so that its
 * last day is the one that may be missing. */
static int64_t name_of_time(int64_t created_ms)
{
    const int64_t ms = created_ms < 0 ? 0 : created_ms > NAMED_MS_MAX ? NAMED_MS_MAX : created_ms;
    const int64_t days = ms / DAY_MS + 719468; /* since 1 March of the year 0 */
    const int64_t era = days / 146097, day_of_era = days % 146097;
    const int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month_from_march = (5 * day_of_year + 2) / 153;
    const int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    const int64_t year = 400 * era + year_of_era + (month <= 2 ? 1 : 0);
    const int64_t in_day = ms % DAY_MS, seconds = in_day / 1000;
    const int64_t clock = 10000 * (seconds / 3600) + 100 * (seconds / 60 % 60) + seconds % 60;

    return ((((year * 100 + month) * 100 + day) * 1000000) + clock) * 1000 + in_day % 1000;
}

static void path_of(int64_t name, char *path)
{
    (void)snprintf(path, PATH_BYTES, "%s/%017" PRId64, RMQ_INDEX_DIRECTORY, name);
}

/* A place at the end of the list for a file that is open. */
static rmq_status add(rmq_index *index, int64_t name, rmq_file file, rmq_index_file **added)
{
    rmq_index_file *made = calloc(1, sizeof *made);
    rmq_status status;

    if (index->count == index->capacity) {
        const size_t capacity = index->capacity == 0 ? 4 : 2 * index->capacity;
        rmq_index_file **files = realloc(index->files, capacity * sizeof *files);
        if (files == NULL) {
            free(made);
            return RMQ_NO_MEMORY;
        }
        index->files = files;
        index->capacity = capacity;
    }
    if (made == NULL) {
        return RMQ_NO_MEMORY;
    }
    made->name = name;
    made->pages.disk = index->disk;
    made->pages.file = file;
    made->pages.file_bytes = rmq_index_file_bytes(index->slots, index->entries);
    made->pages.count_max = index->pages_max;
    made->slots = index->slots;
    made->entries = index->entries;
    status = rmq_index_file_load(made);
    if (status != RMQ_OK) {
        free(made);
        return status;
    }
    index->files[index->count] = made;
    index->count += 1;
    *added = made;
    return RMQ_OK;
}

rmq_status rmq_index_found(rmq_index *index, int64_t name)
{
    char path[PATH_BYTES];
    rmq_index_file *file;
    rmq_file handle;
    rmq_status status;

    path_of(name, path);
    RMQ_TRY(index->disk->open(index->disk->context, path, &handle));
    status = add(index, name, handle, &file);
    if (status != RMQ_OK) {
        index->disk->close(index->disk->context, handle);
    }
    return status;
}

static rmq_status file_for_next(rmq_index *index, int64_t store_ms, rmq_index_file **file)
{
    int64_t name = name_of_time(store_ms), newest = -1;
    char path[PATH_BYTES];
    rmq_file handle;
    rmq_status status;

    if (index->count > 0 && !rmq_index_file_is_full(index->files[index->count - 1])) {
        *file = index->files[index->count - 1];
        return RMQ_OK;
    }
    for (size_t i = 0; i < index->count; i++) {
        newest = index->files[i]->name > newest ? index->files[i]->name : newest;
    }
    name = name <= newest ? newest + 1 : name;
    path_of(name, path);
    RMQ_TRY(rmq_create_file(index->disk, index->names, RMQ_INDEX_DIRECTORY, path,
                            rmq_index_file_bytes(index->slots, index->entries), false, &handle));
    status = add(index, name, handle, file);
    if (status != RMQ_OK) {
        index->disk->close(index->disk->context, handle);
        return status;
    }
    assert(rmq_index_file_count(*file) == 0);
    rmq_pages_are_new(&(*file)->pages);
    return RMQ_OK;
}

static rmq_status remove_first(rmq_index *index)
{
    const int64_t name = index->files[0]->name;
    char path[PATH_BYTES];

    path_of(name, path);
    let_go(index->files[0]);
    memmove(index->files, index->files + 1, (index->count - 1) * sizeof *index->files);
    index->count -= 1;
    RMQ_TRY(index->disk->remove(index->disk->context, path));
    return rmq_names_changed(index->names, RMQ_INDEX_DIRECTORY);
}

rmq_status rmq_index_remove_expired(rmq_index *index, int64_t log_min, int64_t checkpointed_to, bool *has_removed)
{
    *has_removed = false;
    while (index->count > 1 && index->files[0]->end_physical < log_min) {
        const rmq_index_file *following = index->files[1];
        if (rmq_index_file_count(following) == 0 || following->begin_physical >= checkpointed_to) {
            break;
        }
        RMQ_TRY(remove_first(index));
        *has_removed = true;
    }
    return RMQ_OK;
}

/* --- entries ----------------------------------------------------------------------------------------------------- */

rmq_index_end rmq_index_end_of(const rmq_index *index)
{
    for (size_t i = index->count; i > 0; i--) {
        const rmq_index_file *file = index->files[i - 1];
        if (rmq_index_file_count(file) > 0) {
            return (rmq_index_end){file->end_physical, file->name, rmq_index_file_count(file)};
        }
    }
    return (rmq_index_end){-1, 0, 0};
}

int64_t rmq_index_last_ms(const rmq_index *index)
{
    for (size_t i = index->count; i > 0; i--) {
        if (rmq_index_file_count(index->files[i - 1]) > 0) {
            return index->files[i - 1]->end_ms;
        }
    }
    return 0;
}

bool rmq_next_key(const rmq_known_properties *known, size_t *at, rmq_text *key)
{
    /* `*at` is 0 for the unique key, and 1 plus a position in KEYS for what follows it. */
    if (*at == 0) {
        *at = 1;
        if (known->unique_key.size > 0) {
            *key = known->unique_key;
            return true;
        }
    }
    while (*at - 1 < known->keys.size) {
        const uint8_t *piece = known->keys.at + (*at - 1);
        const size_t left = known->keys.size - (*at - 1);
        const uint8_t *end = memchr(piece, ' ', left);
        const size_t size = end == NULL ? left : (size_t)(end - piece);

        *at += size + 1;
        if (size > 0) {
            *key = (rmq_text){piece, size};
            return true;
        }
    }
    return false;
}

rmq_status rmq_index_put(rmq_index *index, rmq_text topic, const rmq_known_properties *known, int64_t physical_offset,
                         int64_t store_ms)
{
    size_t done = 0, number = 0, at = 0;
    rmq_index_file *file = NULL;
    rmq_text key;

    assert(physical_offset >= 0);
    if (index->is_half_done && index->half_physical == physical_offset) {
        done = index->half_keys;
        /* The header of a file that became full may be what was not written. */
        for (size_t i = index->count < 2 ? 0 : index->count - 2; i < index->count; i++) {
            RMQ_TRY(rmq_index_file_write_header(index->files[i]));
        }
    } else if (physical_offset <= rmq_index_end_of(index).last) {
        return RMQ_OK;
    }
    for (; rmq_next_key(known, &at, &key); number++) {
        if (number < done || (number > 0 && !RMQ_IS_RIGHT(RMQ_MISTAKE_INDEX_ONE_KEY))) {
            continue;
        }
        index->is_half_done = true;
        index->half_physical = physical_offset;
        index->half_keys = number;
        if (file == NULL || rmq_index_file_is_full(file)) {
            if (file != NULL) {
                RMQ_TRY(rmq_index_file_write_header(file));
            }
            RMQ_TRY(file_for_next(index, store_ms, &file));
        }
        RMQ_TRY(rmq_index_file_put(file, rmq_key_hash(topic.at, topic.size, key.at, key.size), physical_offset, store_ms));
    }
    index->is_half_done = true;
    index->half_physical = physical_offset;
    index->half_keys = number;
    if (file != NULL) {
        RMQ_TRY(rmq_index_file_write_header(file));
    }
    index->is_half_done = false;
    return RMQ_OK;
}

/* --- durability -------------------------------------------------------------------------------------------------- */

void rmq_index_flush_begin(rmq_index_flush *job, rmq_index *index)
{
    memset(job, 0, sizeof *job);
    job->index = index;
}

static rmq_status hold_files(rmq_index_flush *job)
{
    job->files = malloc((job->index->count + 1) * sizeof *job->files);
    if (job->files == NULL) {
        return RMQ_NO_MEMORY;
    }
    for (job->count = 0; job->count < job->index->count; job->count++) {
        job->files[job->count] = job->index->files[job->count];
        job->files[job->count]->holders += 1;
    }
    return RMQ_OK;
}

static void release_files(rmq_index_flush *job)
{
    for (size_t i = 0; i < job->count; i++) {
        job->files[i]->holders -= 1;
        if (job->files[i]->is_gone && job->files[i]->holders == 0) {
            free(job->files[i]);
        }
    }
    free(job->files);
    job->files = NULL;
}

rmq_status rmq_index_flush_next(rmq_index_flush *job, rmq_status performed, rmq_operation *operation)
{
    const rmq_disk *disk = job->index->disk;
    rmq_status status;
    bool is_directory;

    RMQ_JOB_BEGIN;
    RMQ_TRY(hold_files(job));
    for (; job->at < job->count; job->at++) {
        if (!job->files[job->at]->is_dirty || job->files[job->at]->is_gone) {
            continue;
        }
        performed = RMQ_IS_RIGHT(RMQ_MISTAKE_KEEP_PAGES) ? rmq_pages_write_back(&job->files[job->at]->pages) : RMQ_OK;
        if (performed == RMQ_OK) {
            rmq_index_file *file = job->files[job->at];
            if (rmq_index_file_is_full(file)) {
                rmq_pages_drop(&file->pages); /* it changes no more */
            }
            file->is_dirty = false; /* before the wait: an entry that comes meanwhile makes it dirty again */
            *operation = (rmq_operation){.kind = RMQ_FLUSH_FILE, .file = file->pages.file, .end = RMQ_TO_THE_END};
            RMQ_PERFORM;
        }
        if (performed != RMQ_OK) {
            job->files[job->at]->is_dirty = true;
            release_files(job);
            return performed;
        }
    }
    release_files(job);
    RMQ_TRY(disk->is_directory(disk->context, RMQ_INDEX_DIRECTORY, &is_directory));
    if (is_directory) { /* also when the last file has just been removed */
        rmq_names_flush_begin(&job->names, job->index->names, RMQ_INDEX_DIRECTORY);
        RMQ_AWAIT(rmq_names_flush_next, &job->names);
        RMQ_TRY(status);
    }
    RMQ_JOB_END;
}
