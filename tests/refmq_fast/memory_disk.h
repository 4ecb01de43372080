/* A disk in memory, for tests of the store in C: whole files, no holes, and every write that reaches it counted. */
#ifndef RMQ_TESTS_MEMORY_DISK_H
#define RMQ_TESTS_MEMORY_DISK_H

#include "store/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_FILES_MAX 4096
#define MEMORY_PATH_MAX 200

typedef struct {
    char path[MEMORY_PATH_MAX];
    bool is_directory;
    uint8_t *data;
    int64_t size;
} memory_file;

typedef struct {
    memory_file *files[MEMORY_FILES_MAX];
    size_t count;
    int64_t writes;
    int64_t flushes;
    int64_t opened;
    int64_t fail_at; /* the write or create with this number finds no room; 0: none does */
} memory_disk;

static memory_file *memory_find(memory_disk *disk, const char *path)
{
    for (size_t i = 0; i < disk->count; i++) {
        if (strcmp(disk->files[i]->path, path) == 0) {
            return disk->files[i];
        }
    }
    return NULL;
}

static memory_file *memory_add(memory_disk *disk, const char *path, int64_t size, bool is_directory)
{
    memory_file *file = calloc(1, sizeof *file);

    if (file == NULL || disk->count == MEMORY_FILES_MAX) {
        abort();
    }
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    file->is_directory = is_directory;
    file->size = size;
    file->data = calloc(1, size > 0 ? (size_t)size : 1); /* exactly as long: a sanitizer sees the byte behind it */
    disk->files[disk->count] = file;
    disk->count += 1;
    return file;
}

static void memory_free(memory_disk *disk)
{
    for (size_t i = 0; i < disk->count; i++) {
        free(disk->files[i]->data);
        free(disk->files[i]);
    }
}

static bool memory_has_room(memory_disk *disk)
{
    disk->writes += 1;
    return disk->writes != disk->fail_at;
}

static rmq_status memory_exists(void *context, const char *path, bool *is_there)
{
    *is_there = memory_find(context, path) != NULL;
    return RMQ_OK;
}

static rmq_status memory_is_directory(void *context, const char *path, bool *is_one)
{
    const memory_file *file = memory_find(context, path);

    *is_one = *path == '\0' || (file != NULL && file->is_directory);
    return RMQ_OK;
}

static rmq_status memory_is_empty(void *context, const char *directory, bool *is_empty)
{
    memory_disk *disk = context;
    const size_t length = strlen(directory);

    *is_empty = true;
    for (size_t i = 0; i < disk->count; i++) {
        *is_empty &= strncmp(disk->files[i]->path, directory, length) != 0 || disk->files[i]->path[length] != '/';
    }
    return RMQ_OK;
}

static rmq_status memory_modified_ms(void *context, const char *path, int64_t *modified_ms)
{
    (void)context;
    (void)path;
    *modified_ms = 0;
    return RMQ_OK;
}

static rmq_status memory_usage(void *context, const char *path, int64_t *total_bytes, int64_t *free_bytes)
{
    (void)context;
    (void)path;
    *total_bytes = 1000;
    *free_bytes = 900;
    return RMQ_OK;
}

static rmq_status memory_open(void *context, const char *path, rmq_file *file)
{
    memory_disk *disk = context;

    *file = memory_find(disk, path);
    disk->opened += *file != NULL ? 1 : 0;
    return *file == NULL ? RMQ_DISK_FAILED : RMQ_OK;
}

static rmq_status memory_create(void *context, const char *path, int64_t size_bytes, bool reserve, rmq_file *file)
{
    memory_disk *disk = context;

    (void)reserve;
    *file = NULL;
    if (!memory_has_room(disk)) {
        return RMQ_DISK_FULL;
    }
    *file = memory_add(disk, path, size_bytes, false);
    disk->opened += 1;
    return RMQ_OK;
}

static rmq_status memory_make_directory(void *context, const char *path)
{
    if (memory_find(context, path) == NULL) {
        (void)memory_add(context, path, 0, true);
    }
    return RMQ_OK;
}

static rmq_status memory_remove(void *context, const char *path)
{
    memory_disk *disk = context;

    for (size_t i = 0; i < disk->count; i++) {
        if (strcmp(disk->files[i]->path, path) == 0) {
            free(disk->files[i]->data);
            free(disk->files[i]);
            disk->count -= 1;
            disk->files[i] = disk->files[disk->count];
            return RMQ_OK;
        }
    }
    return RMQ_DISK_FAILED;
}

static rmq_status memory_rename(void *context, const char *source, const char *target)
{
    memory_file *file = memory_find(context, source);

    if (file == NULL) {
        return RMQ_DISK_FAILED;
    }
    (void)memory_remove(context, target);
    (void)snprintf(file->path, sizeof file->path, "%s", target);
    return RMQ_OK;
}

static rmq_status memory_read(void *context, rmq_file file, int64_t position, uint8_t *to, size_t length)
{
    const memory_file *from = file;

    (void)context;
    if (position < 0 || position + (int64_t)length > from->size) {
        abort(); /* the store may not ask for that */
    }
    memcpy(to, from->data + position, length);
    return RMQ_OK;
}

static rmq_status memory_write(void *context, rmq_file file, int64_t position, const uint8_t *from, size_t length)
{
    memory_file *to = file;

    if (position < 0 || position + (int64_t)length > to->size) {
        abort();
    }
    if (!memory_has_room(context)) {
        return RMQ_DISK_FULL;
    }
    memcpy(to->data + position, from, length);
    return RMQ_OK;
}

static rmq_status memory_data_end(void *context, rmq_file file, int64_t *end)
{
    (void)context;
    *end = ((memory_file *)file)->size;
    return RMQ_OK;
}

static void memory_close(void *context, rmq_file file)
{
    (void)file;
    ((memory_disk *)context)->opened -= 1;
}

static rmq_disk memory_table(memory_disk *disk)
{
    const rmq_disk table = {
        .context = disk,
        .exists = memory_exists,
        .is_directory = memory_is_directory,
        .is_empty = memory_is_empty,
        .modified_ms = memory_modified_ms,
        .usage = memory_usage,
        .open = memory_open,
        .create = memory_create,
        .make_directory = memory_make_directory,
        .remove = memory_remove,
        .rename = memory_rename,
        .read = memory_read,
        .write = memory_write,
        .data_end = memory_data_end,
        .close = memory_close,
    };

    return table;
}

#endif
