/* Names: paths below the root, directories, files that are made, renamed and removed. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include "disk_posix.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "disk_inside.h"

#define FILE_MODE 0644
#define DIRECTORY_MODE 0755
#define MS_PER_S 1000
#define NS_PER_MS 1000000

/* --- errors ------------------------------------------------------------------------------------------------------ */

static rmq_status note(rmq_posix_disk *disk, rmq_status status, int number, const char *path, const char *operation,
                       const char *reason)
{
    rmq_disk_error *error = &disk->error;

    error->count += 1;
    error->status = status;
    error->is_flush = false;
    error->number = number;
    error->operation = operation;
    (void)snprintf(error->path, sizeof error->path, "%s", *path == '\0' ? "." : path);
    (void)snprintf(error->reason, sizeof error->reason, "%s", reason);
    return status;
}

rmq_status rmq_posix_failed(rmq_posix_disk *disk, const char *path, const char *operation, int number)
{
    const bool is_full = number == ENOSPC || number == EDQUOT;

    assert(number != 0);
    return note(disk, is_full ? RMQ_DISK_FULL : RMQ_DISK_FAILED, number, path, operation, strerror(number));
}

rmq_status rmq_posix_wrong(rmq_posix_disk *disk, const char *path, const char *operation, const char *reason)
{
    return note(disk, RMQ_DISK_FAILED, 0, path, operation, reason);
}

const rmq_disk_error *rmq_posix_disk_error(const rmq_posix_disk *disk)
{
    return &disk->error;
}

/* --- paths ------------------------------------------------------------------------------------------------------- */

/* Whether a path stays below the root: no part of it is empty, `.` or `..`. */
static bool is_below(const char *path)
{
    while (*path != '\0') {
        const size_t size = strcspn(path, "/");

        if (size == 0 || (path[0] == '.' && (size == 1 || (size == 2 && path[1] == '.')))) {
            return false;
        }
        path += size;
        if (*path == '/' && *++path == '\0') {
            return false;
        }
    }
    return true;
}

rmq_status rmq_posix_locate(rmq_posix_disk *disk, const char *path, const char *operation, char *full)
{
    int size;

    if (!is_below(path)) {
        return rmq_posix_wrong(disk, path, operation, "it is no path below the store");
    }
    size = snprintf(full, RMQ_DISK_PATH_MAX, *path == '\0' ? "%s" : "%s/%s", disk->root, path);
    return size < RMQ_DISK_PATH_MAX ? RMQ_OK : rmq_posix_failed(disk, path, operation, ENAMETOOLONG);
}

static bool is_missing(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ELOOP;
}

/* Makes a directory and what is missing above it. 0, or -1 and errno. `full` is changed and changed back. */
static int make_directories(char *full)
{
    struct stat status;

    if (stat(full, &status) == 0 && S_ISDIR(status.st_mode)) {
        return 0;
    }
    for (char *end = strchr(full + 1, '/');; end = strchr(end + 1, '/')) {
        int number = 0;

        if (end != NULL) {
            *end = '\0';
        }
        if (mkdir(full, DIRECTORY_MODE) != 0) {
            number = errno;
            if (stat(full, &status) == 0 && S_ISDIR(status.st_mode)) {
                number = 0;
            }
        }
        if (end != NULL) {
            *end = '/';
        }
        if (number != 0) {
            errno = number;
            return -1;
        }
        if (end == NULL) {
            return 0;
        }
    }
}

/* The same for the directory that holds a file. */
static int make_parents(char *full)
{
    char *slash = strrchr(full, '/');
    int done;

    if (slash == NULL || slash == full) {
        return 0;
    }
    *slash = '\0';
    done = make_directories(full);
    *slash = '/';
    return done;
}

/* --- names that are open ----------------------------------------------------------------------------------------- */

static rmq_posix_name *find_name(const rmq_posix_disk *disk, const char *path)
{
    return rmq_table_find(&disk->names, (rmq_text){(const uint8_t *)path, strlen(path)}, 0);
}

static void set_path(rmq_posix_name *name, char *path)
{
    name->path = path;
    name->key.text = (rmq_text){(const uint8_t *)path, strlen(path)};
    name->key.number = 0;
}

rmq_status rmq_posix_name_of(rmq_posix_disk *disk, const char *path, rmq_posix_name **name)
{
    rmq_posix_name *made;
    char *copy;

    *name = find_name(disk, path);
    if (*name != NULL) {
        return RMQ_OK;
    }
    made = calloc(1, sizeof *made);
    copy = strdup(path);
    if (made != NULL && copy != NULL) {
        set_path(made, copy);
        if (rmq_table_add(&disk->names, &made->key) == RMQ_OK) {
            *name = made;
            return RMQ_OK;
        }
    }
    free(made);
    free(copy);
    return RMQ_NO_MEMORY;
}

void rmq_posix_drop_name(rmq_posix_disk *disk, rmq_posix_name *name)
{
    if (name->handles > 0 || (name->failed != 0 && !name->is_gone)) {
        return;
    }
    if (!name->is_gone) {
        rmq_table_remove(&disk->names, &name->key);
    }
    free(name->path);
    free(name);
}

/* What has this name does not exist any more; its handles may still be open. */
static void lose_name(rmq_posix_disk *disk, const char *path)
{
    rmq_posix_name *name = find_name(disk, path);

    if (name != NULL) {
        rmq_table_remove(&disk->names, &name->key);
        name->is_gone = true;
        rmq_posix_drop_name(disk, name);
    }
}

/* --- questions --------------------------------------------------------------------------------------------------- */

static rmq_status posix_exists(void *context, const char *path, bool *is_there)
{
    char full[RMQ_DISK_PATH_MAX];
    struct stat status;

    *is_there = false;
    RMQ_TRY(rmq_posix_locate(context, path, "examine", full));
    *is_there = stat(full, &status) == 0;
    return *is_there || is_missing(errno) ? RMQ_OK : rmq_posix_failed(context, path, "examine", errno);
}

static rmq_status posix_is_directory(void *context, const char *path, bool *is_one)
{
    char full[RMQ_DISK_PATH_MAX];
    struct stat status;

    *is_one = false;
    RMQ_TRY(rmq_posix_locate(context, path, "examine", full));
    if (stat(full, &status) == 0) {
        *is_one = S_ISDIR(status.st_mode);
        return RMQ_OK;
    }
    return is_missing(errno) ? RMQ_OK : rmq_posix_failed(context, path, "examine", errno);
}

static rmq_status posix_is_empty(void *context, const char *directory, bool *is_empty)
{
    char full[RMQ_DISK_PATH_MAX];
    const struct dirent *entry;
    int descriptor;
    DIR *names;

    *is_empty = true;
    RMQ_TRY(rmq_posix_locate(context, directory, "list", full));
    descriptor = rmq_posix_open(context, full, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (descriptor < 0) {
        return errno == ENOENT ? RMQ_OK : rmq_posix_failed(context, directory, "list", errno);
    }
    names = fdopendir(descriptor);
    if (names == NULL) {
        (void)close(descriptor);
        return RMQ_NO_MEMORY;
    }
    errno = 0;
    while (*is_empty && (entry = readdir(names)) != NULL) {
        *is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    }
    if (*is_empty && errno != 0) {
        const int number = errno;
        (void)closedir(names);
        return rmq_posix_failed(context, directory, "list", number);
    }
    (void)closedir(names);
    return RMQ_OK;
}

static rmq_status posix_modified_ms(void *context, const char *path, int64_t *modified_ms)
{
    char full[RMQ_DISK_PATH_MAX];
    struct stat status;

    RMQ_TRY(rmq_posix_locate(context, path, "examine", full));
    if (stat(full, &status) != 0) {
        return rmq_posix_failed(context, path, "examine", errno);
    }
    *modified_ms = (int64_t)status.st_mtim.tv_sec * MS_PER_S + (int64_t)status.st_mtim.tv_nsec / NS_PER_MS;
    return RMQ_OK;
}

/* Cuts the last part of a path off; false if there is none. */
static bool cut_last(char *full)
{
    char *slash = strrchr(full, '/');

    if (slash == full) {
        slash += 1;
    }
    if (slash == NULL || *slash == '\0') {
        return false;
    }
    *slash = '\0';
    return true;
}

static rmq_status posix_usage(void *context, const char *path, int64_t *total_bytes, int64_t *free_bytes)
{
    char full[RMQ_DISK_PATH_MAX];
    struct statvfs values;
    const char *there = full;

    RMQ_TRY(rmq_posix_locate(context, path, "measure", full));
    while (statvfs(there, &values) != 0) { /* what is not there yet will be where its directory is */
        if (errno == EINTR) {
            continue;
        }
        if (!is_missing(errno) || there != full) {
            return rmq_posix_failed(context, path, "measure", errno);
        }
        there = cut_last(full) ? full : ".";
    }
    /* Space reserved for root counts as used, as in Java's getUsableSpace. */
    *total_bytes = (int64_t)((values.f_blocks - (values.f_bfree - values.f_bavail)) * values.f_frsize);
    *free_bytes = (int64_t)(values.f_bavail * values.f_frsize);
    return RMQ_OK;
}

/* --- changes of names -------------------------------------------------------------------------------------------- */

/* A handle of a path that is open as `descriptor` (or -1) and has this status. Takes the descriptor, even if it fails. */
static rmq_status new_handle(rmq_posix_disk *disk, const char *path, int descriptor, const struct stat *status,
                             rmq_file *file)
{
    rmq_posix_name *name = NULL;

    *file = NULL;
    if (rmq_posix_name_of(disk, path, &name) == RMQ_OK) {
        *file = rmq_posix_file_new(disk, name, descriptor, status->st_size, status->st_dev, status->st_ino);
        rmq_posix_drop_name(disk, name);
    }
    if (*file == NULL && descriptor >= 0) {
        (void)close(descriptor);
    }
    return *file == NULL ? RMQ_NO_MEMORY : RMQ_OK;
}

static rmq_status posix_open(void *context, const char *path, rmq_file *file)
{
    rmq_posix_disk *disk = context;
    char full[RMQ_DISK_PATH_MAX];
    struct stat status;
    int descriptor;

    *file = NULL;
    RMQ_TRY(rmq_posix_locate(disk, path, "open", full));
    if (stat(full, &status) != 0) {
        return rmq_posix_failed(disk, path, "open", errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return rmq_posix_wrong(disk, path, "open",
                               S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file");
    }
    /* Opened now, so that what may not be opened fails here. What merely has no descriptor gets one when it is used. */
    descriptor = rmq_posix_open(disk, full, O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0 && errno != EMFILE && errno != ENFILE) {
        return rmq_posix_failed(disk, path, "open", errno);
    }
    if (descriptor >= 0 && fstat(descriptor, &status) != 0) {
        const int number = errno;
        (void)close(descriptor);
        return rmq_posix_failed(disk, path, "open", number);
    }
    return new_handle(disk, path, descriptor, &status, file);
}

/* Gives a new file its size. 0, or an errno. */
static int resize(int descriptor, int64_t size_bytes, bool reserve)
{
    int number = 0;

    do {
        if (!reserve) {
            number = ftruncate(descriptor, size_bytes) == 0 ? 0 : errno;
        } else if (size_bytes > 0) {
            number = posix_fallocate(descriptor, 0, size_bytes); /* libc writes zeros where the system cannot reserve */
        }
    } while (number == EINTR);
    return number;
}

static rmq_status posix_create(void *context, const char *path, int64_t size_bytes, bool reserve, rmq_file *file)
{
    rmq_posix_disk *disk = context;
    char full[RMQ_DISK_PATH_MAX];
    struct stat status;
    int descriptor, number;

    assert(size_bytes >= 0);
    *file = NULL;
    RMQ_TRY(rmq_posix_locate(disk, path, "create", full));
    if (make_parents(full) != 0) {
        return rmq_posix_failed(disk, path, "create", errno);
    }
    descriptor = rmq_posix_open(disk, full, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (descriptor < 0) {
        return rmq_posix_failed(disk, path, "create", errno);
    }
    number = resize(descriptor, size_bytes, reserve);
    if (number == 0 && fstat(descriptor, &status) != 0) {
        number = errno;
    }
    if (number != 0) {
        (void)close(descriptor);
        (void)unlink(full); /* nothing is left behind; if that fails too, the first reason is the one to tell */
        return rmq_posix_failed(disk, path, "create", number);
    }
    lose_name(disk, path); /* a file of this name that somebody else took away */
    if (new_handle(disk, path, descriptor, &status, file) != RMQ_OK) {
        (void)unlink(full);
        return RMQ_NO_MEMORY;
    }
    return RMQ_OK;
}

static rmq_status posix_make_directory(void *context, const char *path)
{
    char full[RMQ_DISK_PATH_MAX];

    RMQ_TRY(rmq_posix_locate(context, path, "make directory", full));
    return make_directories(full) == 0 ? RMQ_OK : rmq_posix_failed(context, path, "make directory", errno);
}

static rmq_status posix_remove(void *context, const char *path)
{
    char full[RMQ_DISK_PATH_MAX];
    struct stat status;
    bool is_directory;

    RMQ_TRY(rmq_posix_locate(context, path, "remove", full));
    is_directory = stat(full, &status) == 0 && S_ISDIR(status.st_mode);
    if ((is_directory ? rmdir(full) : unlink(full)) != 0) {
        return rmq_posix_failed(context, path, "remove", errno);
    }
    lose_name(context, path);
    return RMQ_OK;
}

static rmq_status posix_rename(void *context, const char *source, const char *target)
{
    rmq_posix_disk *disk = context;
    char from[RMQ_DISK_PATH_MAX], to[RMQ_DISK_PATH_MAX];
    rmq_posix_name *name;
    char *path;

    RMQ_TRY(rmq_posix_locate(disk, source, "rename", from));
    RMQ_TRY(rmq_posix_locate(disk, target, "rename", to));
    path = strdup(target);
    if (path == NULL) {
        return RMQ_NO_MEMORY;
    }
    if (rename(from, to) != 0) {
        const int number = errno;
        free(path);
        return rmq_posix_failed(disk, source, "rename", number);
    }
    name = strcmp(source, target) == 0 ? NULL : find_name(disk, source);
    if (strcmp(source, target) != 0) {
        lose_name(disk, target);
    }
    if (name == NULL) {
        free(path);
        return RMQ_OK;
    }
    rmq_table_remove(&disk->names, &name->key);
    free(name->path);
    set_path(name, path);
    return rmq_table_add(&disk->names, &name->key); /* it was in there: there is room */
}

/* --- life -------------------------------------------------------------------------------------------------------- */

rmq_status rmq_posix_disk_new(const char *root, const rmq_posix_settings *settings, rmq_posix_disk **disk)
{
    rmq_posix_disk *made;

    assert(settings->open_files_max > 0 && settings->works_max > 0 && settings->mapped_bytes >= 0);
    *disk = NULL;
    if (strlen(root) >= RMQ_DISK_PATH_MAX || *root == '\0') {
        return RMQ_UNFIT;
    }
    made = calloc(1, sizeof *made);
    if (made == NULL || (made->root = strdup(root)) == NULL) {
        free(made);
        return RMQ_NO_MEMORY;
    }
    made->settings = *settings;
    rmq_windows_init(&made->windows, settings->mapped_bytes);
    *disk = made;
    return RMQ_OK;
}

void rmq_posix_disk_free(rmq_posix_disk *disk)
{
    rmq_posix_name *name;
    size_t at = 0;

    assert(disk->files == 0 && disk->works == 0 && disk->descriptors == 0);
    while ((name = rmq_table_next(&disk->names, &at)) != NULL) { /* flushes of them failed */
        free(name->path);
        free(name);
    }
    rmq_table_free(&disk->names);
    rmq_windows_close(&disk->windows, NULL);
    free(disk->root);
    free(disk);
}

rmq_disk rmq_posix_disk_table(rmq_posix_disk *disk)
{
    return (rmq_disk){
        .context = disk,
        .exists = posix_exists,
        .is_directory = posix_is_directory,
        .is_empty = posix_is_empty,
        .modified_ms = posix_modified_ms,
        .usage = posix_usage,
        .open = posix_open,
        .create = posix_create,
        .make_directory = posix_make_directory,
        .remove = posix_remove,
        .rename = posix_rename,
        .read = rmq_posix_read,
        .expect = rmq_posix_expect,
        .write = rmq_posix_write,
        .data_end = rmq_posix_data_end,
        .close = rmq_posix_close,
    };
}
