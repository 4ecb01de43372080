/* Flushes on their way from the thread of the store to a flusher and back. Only `rmq_disk_perform` runs elsewhere. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "disk_inside.h"

#define NOT_PERFORMED (-1) /* no errno is negative */

static const char *what(const rmq_disk_work *work)
{
    return work->file != NULL ? "flush" : "flush directory";
}

static rmq_status flush_failed(rmq_posix_disk *disk, const char *path, const rmq_disk_work *work, int number)
{
    (void)rmq_posix_failed(disk, path, what(work), number);
    disk->error.is_flush = true;
    return disk->error.status = RMQ_DISK_FAILED; /* a full disk as well: it is not known what is on the medium */
}

static const char *path_of(const rmq_disk_work *work)
{
    return work->file != NULL ? rmq_posix_file_path(work->file) : work->directory;
}

/* A flush that failed once fails for ever. */
static rmq_status refuse_failed(rmq_posix_disk *disk, const rmq_disk_work *work)
{
    const char *path = path_of(work);
    const rmq_text key = {(const uint8_t *)path, strlen(path)};
    const rmq_posix_name *name =
        work->file != NULL ? ((rmq_posix_file *)work->file)->name : rmq_table_find(&disk->names, key, 0);

    if (name == NULL || name->failed == 0) {
        return RMQ_OK;
    }
    (void)flush_failed(disk, path, work, name->failed);
    (void)snprintf(disk->error.reason, sizeof disk->error.reason, "an earlier flush failed: %s",
                   strerror(name->failed));
    return RMQ_DISK_FAILED;
}

static bool has_no_descriptors(int number)
{
    return number == EMFILE || number == ENFILE;
}

static rmq_status open_file(rmq_posix_disk *disk, rmq_disk_work *work)
{
    rmq_posix_file *file = work->file;
    int number;

    if (rmq_posix_descriptor(disk, file, &number) == 0) {
        work->descriptor = file->descriptor;
        return RMQ_OK;
    }
    if (file->name->is_gone) { /* removed, so nothing is left to flush */
        return RMQ_OK;
    }
    return has_no_descriptors(number) ? RMQ_PENDING : disk->error.status;
}

static rmq_status open_directory(rmq_posix_disk *disk, rmq_disk_work *work)
{
    char full[RMQ_DISK_PATH_MAX];
    int number;

    RMQ_TRY(rmq_posix_locate(disk, work->directory, "flush directory", full));
    /* Opened now: by the time a thread is free, the directory may have been removed. */
    work->descriptor = rmq_posix_open(disk, full, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (work->descriptor >= 0) {
        return RMQ_OK;
    }
    number = errno;
    return has_no_descriptors(number) ? RMQ_PENDING : rmq_posix_failed(disk, work->directory, "flush directory", number);
}

/* Lets go of what `work` holds. */
static void end(rmq_posix_disk *disk, rmq_disk_work *work)
{
    rmq_posix_file *file = work->file;

    if (!work->is_pending) {
        assert(disk->works > 0);
        disk->works -= 1;
    }
    if (file != NULL) {
        assert(file->works > 0);
        file->works -= 1;
        if (file->works == 0 && file->is_closed) {
            rmq_posix_file_free(disk, file);
        }
    } else if (work->descriptor >= 0) {
        (void)close(work->descriptor);
    }
    work->file = NULL;
    work->descriptor = RMQ_NO_DESCRIPTOR;
}

rmq_status rmq_disk_start_again(rmq_posix_disk *disk, rmq_disk_work *work)
{
    rmq_status status = RMQ_PENDING;

    assert(work->is_pending);
    if (disk->works < disk->settings.works_max) {
        status = work->file != NULL ? open_file(disk, work) : open_directory(disk, work);
    }
    if (status == RMQ_OK) {
        work->is_pending = false;
        disk->works += 1;
    } else if (status != RMQ_PENDING) {
        end(disk, work);
    }
    return status;
}

rmq_status rmq_disk_start(rmq_posix_disk *disk, const rmq_operation *operation, rmq_disk_work *work)
{
    *work = (rmq_disk_work){
        .file = operation->kind == RMQ_FLUSH_FILE ? operation->file : NULL,
        .directory = operation->directory,
        .descriptor = RMQ_NO_DESCRIPTOR,
        .number = NOT_PERFORMED,
        .is_pending = true,
    };
    RMQ_TRY(refuse_failed(disk, work));
    if (work->file != NULL) {
        ((rmq_posix_file *)work->file)->works += 1;
    }
    return rmq_disk_start_again(disk, work);
}

void rmq_disk_perform(rmq_disk_work *work)
{
    assert(!work->is_pending && work->number == NOT_PERFORMED);
    work->number = 0;
    if (work->descriptor < 0) {
        return;
    }
    while ((work->file != NULL ? fdatasync(work->descriptor) : fsync(work->descriptor)) != 0) {
        if (errno != EINTR) {
            work->number = errno;
            return;
        }
    }
}

/* Remembers that a flush failed, under the name that the file has now. */
static rmq_status remember(rmq_posix_disk *disk, const rmq_disk_work *work)
{
    rmq_posix_name *name;

    if (work->file != NULL) {
        ((rmq_posix_file *)work->file)->name->failed = work->number;
    } else {
        RMQ_TRY(rmq_posix_name_of(disk, work->directory, &name));
        name->failed = work->number;
    }
    return flush_failed(disk, path_of(work), work, work->number);
}

rmq_status rmq_disk_finish(rmq_posix_disk *disk, rmq_disk_work *work)
{
    rmq_status status = RMQ_OK;

    if (work->number > 0) {
        status = remember(disk, work);
    } else if (work->number == NOT_PERFORMED) {
        status = RMQ_DIED;
    }
    end(disk, work);
    return status;
}
