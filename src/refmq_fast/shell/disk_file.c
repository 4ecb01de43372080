/* Bytes of open files, and the pool of descriptors. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk_inside.h"

#define EXTENTS_MAX 1000     /* the most pieces of a file examined to find the end of its data */

/* --- the pool ---------------------------------------------------------------------------------------------------- */

static void take_out(rmq_posix_disk *disk, rmq_posix_file *file)
{
    *(file->newer != NULL ? &file->newer->older : &disk->newest) = file->older;
    *(file->older != NULL ? &file->older->newer : &disk->oldest) = file->newer;
    file->newer = file->older = NULL;
    disk->descriptors -= 1;
}

static void put_in(rmq_posix_disk *disk, rmq_posix_file *file)
{
    file->older = disk->newest;
    file->newer = NULL;
    *(disk->newest != NULL ? &disk->newest->newer : &disk->oldest) = file;
    disk->newest = file;
    disk->descriptors += 1;
}

static void give_up_descriptor(rmq_posix_disk *disk, rmq_posix_file *file)
{
    assert(file->descriptor >= 0 && file->works == 0);
    take_out(disk, file);
    (void)close(file->descriptor);
    file->descriptor = RMQ_NO_DESCRIPTOR;
}

/* Closes the least recently used descriptor that no flush needs; false if there is none. */
static bool give_up_oldest(rmq_posix_disk *disk)
{
    rmq_posix_file *file = disk->oldest;

    while (file != NULL && file->works > 0) { /* there are at most as many as works */
        file = file->newer;
    }
    if (file != NULL) {
        give_up_descriptor(disk, file);
    }
    return file != NULL;
}

int rmq_posix_open(rmq_posix_disk *disk, const char *full, int flags, mode_t mode)
{
    for (;;) {
        const int descriptor = open(full, flags, mode);
        const int number = errno;

        if (descriptor >= 0) {
            return descriptor;
        }
        if (number != EINTR && ((number != EMFILE && number != ENFILE) || !give_up_oldest(disk))) {
            errno = number;
            return -1;
        }
    }
}

static void adopt(rmq_posix_disk *disk, rmq_posix_file *file, int descriptor)
{
    while (disk->descriptors >= disk->settings.open_files_max && give_up_oldest(disk)) {
    }
    file->descriptor = descriptor;
    put_in(disk, file);
}

int rmq_posix_descriptor(rmq_posix_disk *disk, rmq_posix_file *file, int *number)
{
    const char *path = file->name->path;
    char full[RMQ_DISK_PATH_MAX];
    struct stat status;
    int descriptor;

    *number = 0;
    if (file->descriptor >= 0) {
        if (disk->newest != file) {
            take_out(disk, file);
            put_in(disk, file);
        }
        return 0;
    }
    if (rmq_posix_locate(disk, path, "open", full) != RMQ_OK) {
        *number = ENAMETOOLONG; /* it fitted once, under another name */
        return -1;
    }
    descriptor = rmq_posix_open(disk, full, O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        *number = errno;
        if (descriptor >= 0) {
            (void)close(descriptor);
        }
        (void)rmq_posix_failed(disk, path, "open", *number);
        return -1;
    }
    if (status.st_dev != file->device || status.st_ino != file->inode) {
        (void)close(descriptor);
        *number = ESTALE;
        (void)rmq_posix_wrong(disk, path, "open", "another file has taken its name");
        return -1;
    }
    adopt(disk, file, descriptor);
    return 0;
}

void rmq_posix_disk_rest(rmq_posix_disk *disk)
{
    while (give_up_oldest(disk)) {
    }
}

size_t rmq_posix_disk_descriptors(const rmq_posix_disk *disk)
{
    return disk->descriptors;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

rmq_posix_file *rmq_posix_file_new(rmq_posix_disk *disk, rmq_posix_name *name, int descriptor, int64_t size_bytes,
                                   dev_t device, ino_t inode)
{
    rmq_posix_file *file = calloc(1, sizeof *file);

    if (file == NULL) {
        return NULL;
    }
    file->name = name;
    name->handles += 1;
    file->size_bytes = size_bytes;
    file->device = device;
    file->inode = inode;
    file->descriptor = RMQ_NO_DESCRIPTOR;
    if (descriptor >= 0) {
        adopt(disk, file, descriptor);
    }
    disk->files += 1;
    return file;
}

void rmq_posix_file_free(rmq_posix_disk *disk, rmq_posix_file *file)
{
    assert(file->works == 0);
    if (file->descriptor >= 0) {
        give_up_descriptor(disk, file);
    }
    rmq_windows_close(&disk->windows, file);
    file->name->handles -= 1;
    rmq_posix_drop_name(disk, file->name);
    disk->files -= 1;
    free(file);
}

void rmq_posix_close(void *context, rmq_file given)
{
    rmq_posix_file *file = given;

    assert(!file->is_closed);
    file->is_closed = true;
    if (file->works == 0) {
        rmq_posix_file_free(context, file);
    }
}

int64_t rmq_posix_file_size(rmq_file file)
{
    return ((const rmq_posix_file *)file)->size_bytes;
}

const char *rmq_posix_file_path(rmq_file file)
{
    return ((const rmq_posix_file *)file)->name->path;
}

/* --- bytes ------------------------------------------------------------------------------------------------------- */

static rmq_status check_inside(rmq_posix_disk *disk, const rmq_posix_file *file, const char *operation,
                               int64_t position, size_t length)
{
    char reason[RMQ_DISK_REASON_MAX];

    if (position >= 0 && position <= file->size_bytes && length <= (uint64_t)(file->size_bytes - position)) {
        return RMQ_OK;
    }
    (void)snprintf(reason, sizeof reason, "%zu bytes at %lld are outside the file, which has %lld", length,
                   (long long)position, (long long)file->size_bytes);
    return rmq_posix_wrong(disk, file->name->path, operation, reason);
}

rmq_status rmq_posix_read(void *context, rmq_file given, int64_t position, uint8_t *to, size_t length)
{
    rmq_posix_disk *disk = context;
    rmq_posix_file *file = given;
    size_t done = 0;
    int number;

    RMQ_TRY(check_inside(disk, file, "read", position, length));
    if (rmq_posix_descriptor(disk, file, &number) != 0) {
        return disk->error.status;
    }
    if (file->size_bytes >= disk->settings.mapped_file_bytes_min &&
        rmq_windows_read(&disk->windows, file, file->descriptor, file->size_bytes, position, to, length)) {
        return RMQ_OK;
    }
    while (done < length) {
        const ssize_t now = pread(file->descriptor, to + done, length - done, position + (int64_t)done);

        if (now == 0) {
            return rmq_posix_wrong(disk, file->name->path, "read", "the file became shorter while it was open");
        }
        if (now < 0 && errno != EINTR) {
            number = errno;
            (void)rmq_posix_failed(disk, file->name->path, "read", number);
            return disk->error.status = RMQ_DISK_FAILED;
        }
        done += now > 0 ? (size_t)now : 0;
    }
    return RMQ_OK;
}

void rmq_posix_expect(void *context, rmq_file file, int64_t position, size_t length)
{
    rmq_windows_expect(&((rmq_posix_disk *)context)->windows, file, position, length);
}

/* How a write ended that did `done` of `length` bytes. */
static rmq_status write_failed(rmq_posix_disk *disk, const rmq_posix_file *file, size_t done, size_t length, int number)
{
    const rmq_status status = rmq_posix_failed(disk, file->name->path, "write", number);
    char reason[RMQ_DISK_REASON_MAX];

    if (done == 0) {
        return status;
    }
    (void)snprintf(reason, sizeof reason, "%s; %zu of %zu bytes were written", strerror(number), done, length);
    (void)rmq_posix_wrong(disk, file->name->path, "write", reason);
    disk->error.number = number;
    return RMQ_DISK_FAILED;
}

rmq_status rmq_posix_write(void *context, rmq_file given, int64_t position, const uint8_t *from, size_t length)
{
    rmq_posix_disk *disk = context;
    rmq_posix_file *file = given;
    size_t done = 0;
    int number;

    RMQ_TRY(check_inside(disk, file, "write", position, length));
    if (rmq_posix_descriptor(disk, file, &number) != 0) {
        return disk->error.status;
    }
    while (done < length) {
        const ssize_t now = pwrite(file->descriptor, from + done, length - done, position + (int64_t)done);

        if (now < 0 && errno != EINTR) {
            return write_failed(disk, file, done, length, errno);
        }
        done += now > 0 ? (size_t)now : 0;
    }
    return RMQ_OK;
}

rmq_status rmq_posix_data_end(void *context, rmq_file given, int64_t *end)
{
    rmq_posix_disk *disk = context;
    rmq_posix_file *file = given;
    int64_t at = 0;
    int number;

    if (rmq_posix_descriptor(disk, file, &number) != 0) {
        return disk->error.status;
    }
    *end = file->size_bytes; /* of a file system that cannot tell, or a file in very many pieces */
    for (int i = 0; i < EXTENTS_MAX; i++) {
        const off_t data = lseek(file->descriptor, at, SEEK_DATA);
        const off_t hole = data < 0 ? -1 : lseek(file->descriptor, data, SEEK_HOLE);

        if (hole < 0) {
            if (errno == ENXIO) { /* no data behind it */
                *end = at < file->size_bytes ? at : file->size_bytes;
            }
            break;
        }
        at = hole;
    }
    return RMQ_OK;
}
