/* Numbers the changes of directories, and flushes those that are not durable. */
#include "names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

rmq_status rmq_name_of(rmq_names *names, const char *path, size_t size, rmq_name **name)
{
    const rmq_text text = {(const uint8_t *)path, size};
    char *copy;

    *name = rmq_table_find(&names->table, text, 0);
    if (*name != NULL) {
        return RMQ_OK;
    }
    *name = calloc(1, sizeof **name + size + 1);
    if (*name == NULL) {
        return RMQ_NO_MEMORY;
    }
    copy = (char *)(*name + 1);
    memcpy(copy, path, size);
    (*name)->key.text = (rmq_text){(const uint8_t *)copy, size};
    (*name)->flushed = -1;
    if (rmq_table_add(&names->table, &(*name)->key) != RMQ_OK) {
        free(*name);
        return RMQ_NO_MEMORY;
    }
    return RMQ_OK;
}

static rmq_status changed(rmq_names *names, const char *path, size_t size)
{
    rmq_name *name;

    RMQ_TRY(rmq_name_of(names, path, size, &name));
    names->changes += 1;
    name->changed = names->changes;
    name->was_changed = true;
    return RMQ_OK;
}

rmq_status rmq_names_changed(rmq_names *names, const char *directory)
{
    return changed(names, directory, strlen(directory));
}

rmq_status rmq_names_made(rmq_names *names, const char *directory)
{
    size_t size = strlen(directory);

    while (size > 0) {
        while (size > 0 && directory[size - 1] != '/') {
            size -= 1;
        }
        size -= size > 0 ? 1 : 0; /* the slash itself */
        RMQ_TRY(changed(names, directory, size));
    }
    return RMQ_OK;
}

void rmq_names_free(rmq_names *names)
{
    size_t at = 0;
    rmq_name *name;

    while ((name = rmq_table_next(&names->table, &at)) != NULL) {
        free(name);
    }
    rmq_table_free(&names->table);
}

/* --- the jobs ---------------------------------------------------------------------------------------------------- */

void rmq_names_flush_begin(rmq_names_flush *job, rmq_names *names, const char *directory)
{
    memset(job, 0, sizeof *job);
    job->names = names;
    job->directory = directory;
}

/* The end of the next longer path above or at the directory. */
static size_t next_end(const char *directory, size_t end)
{
    const char *slash = strchr(directory + end + (end > 0 ? 1 : 0), '/');

    return slash != NULL ? (size_t)(slash - directory) : strlen(directory);
}

rmq_status rmq_names_flush_next(rmq_names_flush *job, rmq_status performed, rmq_operation *operation)
{
    const rmq_disk *disk = job->names->disk;
    bool is_directory;

    RMQ_JOB_BEGIN;
    for (;;) {
        RMQ_TRY(rmq_name_of(job->names, job->directory, job->end, &job->name));
        job->change = job->name->changed;
        if (job->name->flushed < job->change) {
            const char *path = (const char *)job->name->key.text.at;
            RMQ_TRY(disk->is_directory(disk->context, path, &is_directory));
            if (is_directory) {
                *operation = (rmq_operation){.kind = RMQ_FLUSH_DIRECTORY, .directory = path};
                RMQ_PERFORM;
                RMQ_TRY(performed);
                /* Not the latest change but the one from before the wait: there may have been another meanwhile. */
                if (job->name->flushed < job->change) {
                    job->name->flushed = job->change;
                }
            }
        }
        if (job->directory[job->end] == '\0') {
            break;
        }
        job->end = next_end(job->directory, job->end);
    }
    RMQ_JOB_END;
}

void rmq_names_flush_all_begin(rmq_names_flush_all *job, rmq_names *names)
{
    memset(job, 0, sizeof *job);
    job->names = names;
}

static int by_path(const void *a, const void *b)
{
    return rmq_text_compare((*(rmq_name *const *)a)->key.text, (*(rmq_name *const *)b)->key.text);
}

static rmq_status collect_changed(rmq_names_flush_all *job)
{
    size_t at = 0;
    rmq_name *name;

    job->sorted = malloc((job->names->table.count + 1) * sizeof(rmq_name *));
    if (job->sorted == NULL) {
        return RMQ_NO_MEMORY;
    }
    while ((name = rmq_table_next(&job->names->table, &at)) != NULL) {
        if (name->was_changed) {
            job->sorted[job->count] = name;
            job->count += 1;
        }
    }
    qsort(job->sorted, job->count, sizeof(rmq_name *), by_path);
    return RMQ_OK;
}

rmq_status rmq_names_flush_all_next(rmq_names_flush_all *job, rmq_status performed, rmq_operation *operation)
{
    rmq_status status;

    RMQ_JOB_BEGIN;
    RMQ_TRY(collect_changed(job));
    for (; job->at < job->count; job->at++) {
        if (job->sorted[job->at]->flushed < job->sorted[job->at]->changed) {
            rmq_names_flush_begin(&job->flush, job->names, (const char *)job->sorted[job->at]->key.text.at);
            RMQ_AWAIT(rmq_names_flush_next, &job->flush);
            if (status != RMQ_OK) {
                free(job->sorted);
                return status;
            }
        }
    }
    free(job->sorted);
    RMQ_JOB_END;
}
