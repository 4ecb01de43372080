/* Keeps the list of files, oldest first, and opens each when it is needed. */
#include "files.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mistakes.h"

#define NOT_THERE SIZE_MAX
#define TAIL_FIRST_BYTES 80 /* most queues are nearly idle: a tail grows when it is used */

rmq_status rmq_files_init(rmq_files *files, const rmq_disk *disk, rmq_names *names, const char *directory,
                          int64_t file_bytes, bool reserve, int64_t piece_bytes, size_t tail_max)
{
    const size_t size = strlen(directory) + 1;

    assert(file_bytes > 0 && piece_bytes > 0);
    memset(files, 0, sizeof *files);
    files->disk = disk;
    files->names = names;
    files->file_bytes = file_bytes;
    files->reserve = reserve;
    files->piece_bytes = piece_bytes;
    files->zeroed_base = -1;
    files->tail_max = tail_max;
    files->directory = malloc(size);
    if (files->directory == NULL) {
        return RMQ_NO_MEMORY;
    }
    memcpy(files->directory, directory, size);
    return RMQ_OK;
}

void rmq_files_close(rmq_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (files->list[i].file != NULL) {
            files->disk->close(files->disk->context, files->list[i].file);
            files->list[i].file = NULL;
        }
    }
    if (files->prepared.file != NULL) {
        files->disk->close(files->disk->context, files->prepared.file);
        files->prepared.file = NULL;
    }
}

void rmq_files_free(rmq_files *files)
{
    rmq_files_close(files);
    free(files->list);
    free(files->directory);
    free(files->tail);
    memset(files, 0, sizeof *files);
}

/* --- where things are -------------------------------------------------------------------------------------------- */

static size_t index_of(const rmq_files *files, int64_t base)
{
    /* From the end: nearly everything happens in the last file. */
    for (size_t i = files->count; i > 0; i--) {
        if (files->list[i - 1].base == base) {
            return i - 1;
        }
    }
    return NOT_THERE;
}

bool rmq_files_holds(const rmq_files *files, int64_t position)
{
    if (files->count == 0 || position < rmq_files_begin(files) || position >= rmq_files_limit(files)) {
        return false;
    }
    return index_of(files, rmq_files_base_of(files, position)) != NOT_THERE;
}

size_t rmq_files_path_bytes(const rmq_files *files)
{
    return strlen(files->directory) + 1 + RMQ_NAME_DIGITS + 1;
}

void rmq_files_path(const rmq_files *files, int64_t base, char *path)
{
    (void)snprintf(path, rmq_files_path_bytes(files), "%s/%020" PRId64, files->directory, base);
}

static rmq_status file_at(rmq_files *files, size_t index, rmq_file *file)
{
    rmq_sequence_file *entry = &files->list[index];
    rmq_status status = RMQ_OK;

    assert(index < files->count);
    if (entry->file == NULL) {
        char *path = malloc(rmq_files_path_bytes(files));
        if (path == NULL) {
            return RMQ_NO_MEMORY;
        }
        rmq_files_path(files, entry->base, path);
        status = files->disk->open(files->disk->context, path, &entry->file);
        free(path);
    }
    *file = entry->file;
    return status;
}

/* --- bytes ------------------------------------------------------------------------------------------------------- */

/* Where the bytes end that the file has. */
static int64_t stored_to(const rmq_files *files)
{
    return files->wrote - (int64_t)files->tail_bytes;
}

rmq_status rmq_files_read(rmq_files *files, int64_t position, uint8_t *to, size_t length)
{
    const int64_t base = rmq_files_base_of(files, position), stored = stored_to(files);
    const size_t index = index_of(files, base);
    size_t in_file = length;
    rmq_file file;

    assert(index != NOT_THERE);
    assert(position - base + (int64_t)length <= files->file_bytes);
    if (position >= files->kept_from && position + (int64_t)length <= files->kept_from + (int64_t)files->kept_bytes) {
        memcpy(to, files->tail + (position - files->kept_from), length);
        return RMQ_OK;
    }
    if (files->tail_bytes > 0 && position + (int64_t)length > stored) {
        const int64_t from = position > stored ? position : stored;
        in_file = (size_t)(from - position);
        assert(position + (int64_t)length <= files->wrote);
        memcpy(to + in_file, files->tail + (from - stored), length - in_file);
    }
    if (in_file == 0 && length > 0) {
        return RMQ_OK;
    }
    RMQ_TRY(file_at(files, index, &file));
    return files->disk->read(files->disk->context, file, position - base, to, in_file);
}

void rmq_files_expect(rmq_files *files, int64_t position, size_t length)
{
    const int64_t base = rmq_files_base_of(files, position);
    const size_t index = index_of(files, base);

    if (files->disk->expect != NULL && index != NOT_THERE && files->list[index].file != NULL) {
        files->disk->expect(files->disk->context, files->list[index].file, position - base, length);
    }
}

static rmq_status write_at(rmq_files *files, int64_t position, const uint8_t *from, size_t length)
{
    const int64_t base = rmq_files_base_of(files, position);
    const size_t index = index_of(files, base);
    rmq_file file;

    assert(index != NOT_THERE);
    assert(position - base + (int64_t)length <= files->file_bytes);
    RMQ_TRY(file_at(files, index, &file));
    return files->disk->write(files->disk->context, file, position - base, from, length);
}

rmq_status rmq_files_write_tail(rmq_files *files)
{
    if (files->tail_bytes > 0) {
        const int64_t position = stored_to(files);

        RMQ_TRY(write_at(files, position, files->tail, files->tail_bytes));
        files->kept_from = position;
        files->kept_bytes = files->tail_bytes;
        files->tail_bytes = 0;
    }
    return RMQ_OK;
}

/* Makes room in memory for `length` more bytes of tail. */
static rmq_status grow_tail(rmq_files *files, size_t length)
{
    size_t size = files->tail_size == 0 ? TAIL_FIRST_BYTES : files->tail_size;
    uint8_t *grown;

    while (size < files->tail_bytes + length) {
        size *= 2;
    }
    if (size == files->tail_size) {
        return RMQ_OK;
    }
    grown = realloc(files->tail, size);
    if (grown == NULL) {
        return RMQ_NO_MEMORY;
    }
    files->tail = grown;
    files->tail_size = size;
    return RMQ_OK;
}

rmq_status rmq_files_append(rmq_files *files, const uint8_t *from, size_t length)
{
    assert((int64_t)length <= rmq_files_room(files));
    if (files->tail_bytes + length > files->tail_max) {
        RMQ_TRY(rmq_files_write_tail(files));
    }
    files->kept_bytes = 0;
    if (length > files->tail_max || files->tail_max == 0) {
        RMQ_TRY(write_at(files, files->wrote, from, length));
    } else {
        RMQ_TRY(grow_tail(files, length));
        memcpy(files->tail + files->tail_bytes, from, length);
        files->tail_bytes += length;
    }
    files->wrote += (int64_t)length;
    return RMQ_OK;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

rmq_status rmq_create_file(const rmq_disk *disk, rmq_names *names, const char *directory, const char *path,
                           int64_t size_bytes, bool reserve, rmq_file *file)
{
    bool is_directory;

    assert(size_bytes > 0);
    RMQ_TRY(disk->is_directory(disk->context, directory, &is_directory));
    if (!is_directory) {
        RMQ_TRY(disk->make_directory(disk->context, directory));
        RMQ_TRY(rmq_names_made(names, directory));
    }
    RMQ_TRY(disk->create(disk->context, RMQ_CREATING, size_bytes, reserve, file));
    disk->close(disk->context, *file);
    RMQ_TRY(disk->rename(disk->context, RMQ_CREATING, path));
    RMQ_TRY(rmq_names_changed(names, directory));
    return disk->open(disk->context, path, file);
}

static rmq_status make_list_longer(rmq_files *files)
{
    if (files->count == files->capacity) {
        const size_t capacity = files->capacity == 0 ? 1 : 2 * files->capacity;
        rmq_sequence_file *list = realloc(files->list, capacity * sizeof *list);

        if (list == NULL) {
            return RMQ_NO_MEMORY;
        }
        files->list = list;
        files->capacity = capacity;
    }
    return RMQ_OK;
}

rmq_status rmq_files_found(rmq_files *files, int64_t base)
{
    assert(files->count == 0 || base > files->list[files->count - 1].base);
    RMQ_TRY(make_list_longer(files));
    files->list[files->count] = (rmq_sequence_file){base, NULL};
    files->count += 1;
    return RMQ_OK;
}

rmq_status rmq_files_prepare(rmq_files *files, int64_t base)
{
    rmq_status status;
    char *path;

    assert(base % files->file_bytes == 0);
    assert(files->count == 0 || base == rmq_files_limit(files));
    RMQ_TRY(make_list_longer(files));
    if (files->prepared.file != NULL) {
        if (files->prepared.base == base) {
            return RMQ_OK;
        }
        files->disk->close(files->disk->context, files->prepared.file);
        files->prepared.file = NULL;
    }
    path = malloc(rmq_files_path_bytes(files));
    if (path == NULL) {
        return RMQ_NO_MEMORY;
    }
    rmq_files_path(files, base, path);
    files->prepared.base = base;
    status = rmq_create_file(files->disk, files->names, files->directory, path, files->file_bytes, files->reserve,
                             &files->prepared.file);
    if (status != RMQ_OK) {
        files->prepared.file = NULL;
    }
    free(path);
    return status;
}

rmq_status rmq_files_add(rmq_files *files, int64_t base)
{
    RMQ_TRY(rmq_files_prepare(files, base));
    if (RMQ_IS_RIGHT(RMQ_MISTAKE_LOSE_TAIL)) {
        RMQ_TRY(rmq_files_write_tail(files));
    }
    files->tail_bytes = 0;
    if (files->count == 0) {
        files->flushed = base;
    }
    assert(files->wrote <= base);
    files->list[files->count] = files->prepared;
    files->count += 1;
    files->prepared.file = NULL;
    files->wrote = base;
    return RMQ_OK;
}

rmq_status rmq_files_remove(rmq_files *files, size_t index)
{
    rmq_sequence_file *entry = &files->list[index];
    rmq_status status;
    char *path;

    assert(index == 0 || index == files->count - 1);
    if (entry->file != NULL) {
        files->disk->close(files->disk->context, entry->file);
        entry->file = NULL;
    }
    path = malloc(rmq_files_path_bytes(files));
    if (path == NULL) {
        return RMQ_NO_MEMORY;
    }
    rmq_files_path(files, entry->base, path);
    status = files->disk->remove(files->disk->context, path);
    free(path);
    RMQ_TRY(status);
    memmove(entry, entry + 1, (files->count - index - 1) * sizeof *entry);
    files->count -= 1;
    return rmq_names_changed(files->names, files->directory);
}

rmq_status rmq_files_remove_all(rmq_files *files)
{
    const rmq_disk *disk = files->disk;
    bool is_directory, is_empty = false;

    files->cuts += 1;
    files->tail_bytes = files->kept_bytes = 0;
    while (files->count > 0) {
        RMQ_TRY(rmq_files_remove(files, files->count - 1));
    }
    RMQ_TRY(disk->is_directory(disk->context, files->directory, &is_directory));
    if (is_directory) {
        RMQ_TRY(disk->is_empty(disk->context, files->directory, &is_empty));
    }
    if (is_empty) {
        char *slash;
        rmq_status status;

        RMQ_TRY(disk->remove(disk->context, files->directory));
        slash = strrchr(files->directory, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
        status = rmq_names_changed(files->names, slash != NULL ? files->directory : "");
        if (slash != NULL) {
            *slash = '/';
        }
        RMQ_TRY(status);
    }
    files->wrote = files->flushed = 0;
    return RMQ_OK;
}

/* Zeroes a file from `position` to its end, and writes only where it is not zero. */
static rmq_status zero_from(rmq_files *files, int64_t position, bool *has_zeroed)
{
    const int64_t base = rmq_files_base_of(files, position);
    rmq_file file;
    int64_t end, at = position - base;
    uint8_t *piece;
    rmq_status status;

    *has_zeroed = false;
    RMQ_TRY(file_at(files, index_of(files, base), &file));
    RMQ_TRY(files->disk->data_end(files->disk->context, file, &end));
    piece = malloc((size_t)files->piece_bytes);
    if (piece == NULL) {
        return RMQ_NO_MEMORY;
    }
    status = RMQ_OK;
    while (at < end && status == RMQ_OK) {
        const size_t length = (size_t)(files->piece_bytes < end - at ? files->piece_bytes : end - at);
        size_t first = 0, last = length;

        status = files->disk->read(files->disk->context, file, at, piece, length);
        while (last > 0 && piece[last - 1] == 0) {
            last -= 1;
        }
        if (status == RMQ_OK && last > 0) {
            while (piece[first] == 0) {
                first += 1;
            }
            memset(piece, 0, length);
            status = files->disk->write(files->disk->context, file, at + (int64_t)first, piece, last - first);
            *has_zeroed = true;
        }
        at += (int64_t)length;
    }
    free(piece);
    return status;
}

rmq_status rmq_files_truncate(rmq_files *files, int64_t position)
{
    assert(position >= rmq_files_begin(files) && position <= files->wrote);
    files->cuts += 1;
    files->kept_bytes = 0;
    if (files->tail_bytes > 0) {
        const int64_t stored = stored_to(files);
        files->tail_bytes = position > stored ? (size_t)(position - stored) : 0;
    }
    /* The file that starts right there stays if it is the only one, and it is whole: recovery has seen to that. */
    while (files->count > 0 && files->list[files->count - 1].base > position) {
        RMQ_TRY(rmq_files_remove(files, files->count - 1));
    }
    if (rmq_files_holds(files, position)) {
        const int64_t from = position - (int64_t)files->tail_bytes; /* what is in memory was never in the file */
        bool has_zeroed;

        RMQ_TRY(zero_from(files, from, &has_zeroed));
        if (has_zeroed) {
            files->zeroed_base = rmq_files_base_of(files, position);
        }
    }
    files->wrote = position;
    if (files->flushed > position) {
        files->flushed = position;
    }
    return RMQ_OK;
}

/* --- durability -------------------------------------------------------------------------------------------------- */

void rmq_files_flush_begin(rmq_files_flush *job, rmq_files *files, int64_t target)
{
    assert(target <= files->wrote);
    memset(job, 0, sizeof *job);
    job->files = files;
    job->target = target;
    job->cuts = files->cuts;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

rmq_status rmq_files_flush_next(rmq_files_flush *job, rmq_status performed, rmq_operation *operation)
{
    rmq_files *files = job->files;
    rmq_status status;

    RMQ_JOB_BEGIN;
    if (files->flushed < job->target) {
        RMQ_TRY(rmq_files_write_tail(files));
    }
    while (files->flushed < job->target && files->cuts == job->cuts) {
        const int64_t position = larger(files->flushed, rmq_files_begin(files));
        const int64_t base = rmq_files_base_of(files, position);
        const size_t index = index_of(files, base);

        job->end = smaller(job->target, base + files->file_bytes);
        if (index == NOT_THERE) { /* removed meanwhile by cleaning */
            files->flushed = larger(files->flushed, job->end);
            continue;
        }
        job->has_zeroed = base == files->zeroed_base;
        *operation = (rmq_operation){
            .kind = RMQ_FLUSH_FILE,
            .start = position - base,
            .end = job->has_zeroed ? files->file_bytes : job->end - base,
        };
        RMQ_TRY(file_at(files, index, &operation->file));
        RMQ_PERFORM;
        RMQ_TRY(performed);
        if (job->end == job->target && index_of(files, job->end) != NOT_THERE) {
            /* An empty file follows. It shows that the run continues, so it has to survive with its size. */
            *operation = (rmq_operation){.kind = RMQ_FLUSH_FILE, .start = 0, .end = 0};
            RMQ_TRY(file_at(files, index_of(files, job->end), &operation->file));
            RMQ_PERFORM;
            RMQ_TRY(performed);
        }
        rmq_names_flush_begin(&job->names, files->names, files->directory);
        RMQ_AWAIT(rmq_names_flush_next, &job->names);
        RMQ_TRY(status);
        if (files->cuts == job->cuts) {
            files->flushed = larger(files->flushed, job->end);
            files->zeroed_base = job->has_zeroed ? -1 : files->zeroed_base;
        }
    }
    RMQ_JOB_END;
}
