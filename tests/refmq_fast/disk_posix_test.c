/* Real files in C: what the system answers, and a flusher in a thread of its own.
 *
 * What the system does when it is well is tested from Python, beside RealDisk (tests/net/test_files.py). Here it is not
 * well: the calls below stand before those of libc and fail when they are told to. The last part is for ThreadSanitizer.
 */
#define _GNU_SOURCE

#include "shell/disk_posix.h"
#include "shell/windows.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIG (16 << 20)
#define WINDOW (128 << 10)
#define ROUNDS 60

static int failures;

static void expect(int holds, const char *sentence, int line)
{
    if (!holds) {
        printf("line %d: %s\n", line, sentence);
        failures += 1;
    }
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* --- calls that fail when they are told to ------------------------------------------------------------------------ */

static _Atomic int flush_errno, flush_interrupts, write_errno, write_at_most, write_interrupts, reserve_errno, open_errno;
static _Atomic int64_t reads;

int fdatasync(int descriptor);
ssize_t pwrite64(int descriptor, const void *from, size_t length, off64_t position);
ssize_t pread64(int descriptor, void *to, size_t length, off64_t position);
int posix_fallocate64(int descriptor, off64_t start, off64_t length);
int open64(const char *path, int flags, ...);

int fdatasync(int descriptor)
{
    if (flush_interrupts > 0) {
        flush_interrupts -= 1;
        errno = EINTR;
        return -1;
    }
    if (flush_errno != 0) {
        errno = flush_errno;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, descriptor);
}

ssize_t pwrite64(int descriptor, const void *from, size_t length, off64_t position)
{
    if (write_interrupts > 0) {
        write_interrupts -= 1;
        errno = EINTR;
        return -1;
    }
    if (write_at_most > 0 && length > (size_t)write_at_most) {
        length = (size_t)write_at_most;
    } else if (write_errno != 0) {
        errno = write_errno;
        return -1;
    }
    return (ssize_t)syscall(SYS_pwrite64, descriptor, from, length, position);
}

ssize_t pread64(int descriptor, void *to, size_t length, off64_t position)
{
    reads += 1;
    return (ssize_t)syscall(SYS_pread64, descriptor, to, length, position);
}

int posix_fallocate64(int descriptor, off64_t start, off64_t length)
{
    return reserve_errno != 0 ? reserve_errno : (syscall(SYS_fallocate, descriptor, 0, start, length) == 0 ? 0 : errno);
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (open_errno != 0) {
        errno = open_errno;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* --- help --------------------------------------------------------------------------------------------------------- */

static char root[] = "/tmp/refmq-disk-XXXXXX";
static rmq_posix_disk *disk;
static rmq_disk table;

static void new_disk(rmq_posix_settings settings)
{
    if (rmq_posix_disk_new(root, &settings, &disk) != RMQ_OK) {
        abort();
    }
    table = rmq_posix_disk_table(disk);
}

static rmq_file made(const char *path, int64_t size_bytes)
{
    rmq_file file = NULL;

    EXPECT(table.create(disk, path, size_bytes, true, &file) == RMQ_OK);
    return file;
}

static rmq_status written(rmq_file file, int64_t position, const char *text)
{
    return table.write(disk, file, position, (const uint8_t *)text, strlen(text));
}

static int holds(rmq_file file, int64_t position, const char *text)
{
    uint8_t found[64];

    return table.read(disk, file, position, found, strlen(text)) == RMQ_OK && memcmp(found, text, strlen(text)) == 0;
}

static int reason_is(const char *text)
{
    return strcmp(rmq_posix_disk_error(disk)->reason, text) == 0;
}

static rmq_status flushed(rmq_file file)
{
    const rmq_operation operation = {.kind = RMQ_FLUSH_FILE, .file = file, .end = RMQ_TO_THE_END};
    rmq_disk_work work;
    rmq_status status = rmq_disk_start(disk, &operation, &work);

    if (status == RMQ_OK) {
        rmq_disk_perform(&work);
        status = rmq_disk_finish(disk, &work);
    }
    return status;
}

static void closed(rmq_file file)
{
    table.close(disk, file);
}

static int descriptors_of_process(void)
{
    int count = 0;

    for (int descriptor = 0; descriptor < 1024; descriptor++) {
        count += fcntl(descriptor, F_GETFD) >= 0;
    }
    return count;
}

/* --- what may go wrong -------------------------------------------------------------------------------------------- */

static void writes(void)
{
    rmq_file file = made("w", 1000);

    write_at_most = 3;
    write_interrupts = 2;
    EXPECT(written(file, 10, "in many pieces") == RMQ_OK);
    EXPECT(write_interrupts == 0 && holds(file, 10, "in many pieces"));
    write_at_most = 0;
    for (int i = 0; i < 3; i++) {
        static const struct {
            int number;
            rmq_status status;
        } cases[] = {{ENOSPC, RMQ_DISK_FULL}, {EDQUOT, RMQ_DISK_FULL}, {EIO, RMQ_DISK_FAILED}};

        write_errno = cases[i].number;
        EXPECT(written(file, 10, "IN") == cases[i].status);
        EXPECT(rmq_posix_disk_error(disk)->number == cases[i].number && holds(file, 10, "in many pieces"));
        EXPECT(strcmp(rmq_posix_disk_error(disk)->operation, "write") == 0);
        EXPECT(strcmp(rmq_posix_disk_error(disk)->path, "w") == 0);
        write_at_most = 3; /* full in the middle: something was changed */
        EXPECT(written(file, 100, "12345") == RMQ_DISK_FAILED && rmq_posix_disk_error(disk)->number == cases[i].number);
        EXPECT(strstr(rmq_posix_disk_error(disk)->reason, "; 3 of 5 bytes were written") != NULL);
        write_at_most = 0;
    }
    write_errno = 0;
    EXPECT(written(file, 996, "inside") == RMQ_DISK_FAILED && written(file, -1, "") == RMQ_DISK_FAILED);
    EXPECT(written(file, INT64_MAX, "x") == RMQ_DISK_FAILED && written(file, 1000, "") == RMQ_OK);
    EXPECT(!holds(file, 998, "abc"));
    closed(file);
    EXPECT(table.remove(disk, "w") == RMQ_OK);
}

static void no_room_for_a_file(void)
{
    rmq_file file, again;
    bool is_there;

    reserve_errno = ENOSPC;
    EXPECT(table.create(disk, "d/f", 100, true, &file) == RMQ_DISK_FULL && file == NULL);
    EXPECT(table.exists(disk, "d/f", &is_there) == RMQ_OK && !is_there);
    reserve_errno = EIO;
    EXPECT(table.create(disk, "d/f", 100, true, &file) == RMQ_DISK_FAILED);
    reserve_errno = 0;
    file = made("d/f", 100);
    EXPECT(table.create(disk, "d/f", 9, true, &again) == RMQ_DISK_FAILED && rmq_posix_disk_error(disk)->number == EEXIST);
    EXPECT(table.open(disk, "d/f", &again) == RMQ_OK);
    EXPECT(rmq_posix_file_size(again) == 100);
    closed(again);
    closed(file);
}

static void flushes_that_fail(void)
{
    rmq_file file = made("log", 100), again, other = made("other", 100);

    flush_interrupts = 3;
    EXPECT(flushed(file) == RMQ_OK && flush_interrupts == 0);
    flush_errno = EIO;
    EXPECT(flushed(file) == RMQ_DISK_FAILED && rmq_posix_disk_error(disk)->is_flush);
    EXPECT(reason_is("Input/output error"));
    flush_errno = 0;
    EXPECT(flushed(file) == RMQ_DISK_FAILED && reason_is("an earlier flush failed: Input/output error"));
    EXPECT(table.open(disk, "log", &again) == RMQ_OK && flushed(again) == RMQ_DISK_FAILED);
    EXPECT(table.rename(disk, "log", "log2") == RMQ_OK && flushed(file) == RMQ_DISK_FAILED);
    EXPECT(strcmp(rmq_posix_file_path(again), "log2") == 0);
    closed(file);
    closed(again);
    EXPECT(table.open(disk, "log2", &again) == RMQ_OK && flushed(again) == RMQ_DISK_FAILED); /* known by its name */
    EXPECT(flushed(other) == RMQ_OK);
    EXPECT(table.rename(disk, "other", "log2") == RMQ_OK && flushed(other) == RMQ_OK);
    closed(again);
    closed(other);
    flush_errno = ENOSPC; /* of a flush it is a failure as any other */
    file = made("log", 100);
    EXPECT(flushed(file) == RMQ_DISK_FAILED);
    flush_errno = 0;
    closed(file);
    EXPECT(table.remove(disk, "log") == RMQ_OK);
    file = made("log", 100); /* a new file of the name */
    EXPECT(flushed(file) == RMQ_OK);
    closed(file);
}

/* A flush that waits for its thread while its file is closed, removed, renamed, and the pool is far too small. */
static void what_happens_meanwhile(void)
{
    const int before = descriptors_of_process();
    rmq_file file = made("q/a", 100), follow, extra[20];
    rmq_operation operation = {.kind = RMQ_FLUSH_FILE, .file = file, .end = RMQ_TO_THE_END};
    const rmq_operation names = {.kind = RMQ_FLUSH_DIRECTORY, .directory = "q"};
    rmq_disk_work work, directory, never;

    EXPECT(rmq_disk_start(disk, &operation, &work) == RMQ_OK);
    EXPECT(rmq_disk_start(disk, &operation, &never) == RMQ_OK);
    EXPECT(rmq_disk_start(disk, &names, &directory) == RMQ_OK);
    for (int i = 0; i < 20; i++) {
        char path[20];
        (void)snprintf(path, sizeof path, "more/%d", i);
        extra[i] = made(path, 10);
    }
    EXPECT(rmq_posix_disk_descriptors(disk) == 3);
    EXPECT(table.rename(disk, "q/a", "q/b") == RMQ_OK && table.remove(disk, "q/b") == RMQ_OK);
    closed(file);
    EXPECT(table.remove(disk, "q") == RMQ_OK);
    rmq_disk_perform(&work);
    rmq_disk_perform(&directory);
    EXPECT(rmq_disk_finish(disk, &work) == RMQ_OK && rmq_disk_finish(disk, &directory) == RMQ_OK);
    EXPECT(rmq_disk_finish(disk, &never) == RMQ_DIED);
    for (int i = 0; i < 20; i++) {
        closed(extra[i]);
    }
    follow = made("q/c", 10);
    EXPECT(table.remove(disk, "q/c") == RMQ_OK);
    rmq_posix_disk_rest(disk);
    operation.file = follow;
    EXPECT(rmq_disk_start(disk, &operation, &work) == RMQ_OK && work.descriptor < 0); /* nothing is left to flush */
    rmq_disk_perform(&work);
    EXPECT(rmq_disk_finish(disk, &work) == RMQ_OK);
    closed(follow);
    EXPECT(descriptors_of_process() == before);
}

static void no_descriptors(void)
{
    rmq_file file = made("e", 100), opened;
    const rmq_operation operation = {.kind = RMQ_FLUSH_FILE, .file = file, .end = RMQ_TO_THE_END};
    const rmq_operation names = {.kind = RMQ_FLUSH_DIRECTORY, .directory = ""};
    rmq_disk_work work, directory;

    rmq_posix_disk_rest(disk);
    open_errno = EMFILE;
    EXPECT(rmq_disk_start(disk, &operation, &work) == RMQ_PENDING);
    EXPECT(rmq_disk_start(disk, &names, &directory) == RMQ_PENDING);
    EXPECT(rmq_disk_start_again(disk, &work) == RMQ_PENDING);
    EXPECT(table.open(disk, "e", &opened) == RMQ_OK); /* a handle needs none yet */
    EXPECT(written(opened, 0, "x") == RMQ_DISK_FAILED && rmq_posix_disk_error(disk)->number == EMFILE);
    closed(opened);
    closed(file); /* while its flush is on its way */
    open_errno = 0;
    EXPECT(rmq_disk_start_again(disk, &work) == RMQ_OK && rmq_disk_start_again(disk, &directory) == RMQ_OK);
    rmq_disk_perform(&work);
    rmq_disk_perform(&directory);
    EXPECT(rmq_disk_finish(disk, &work) == RMQ_OK && rmq_disk_finish(disk, &directory) == RMQ_OK);
    open_errno = ENOENT;
    EXPECT(rmq_disk_start(disk, &names, &directory) == RMQ_DISK_FAILED);
    EXPECT(!rmq_posix_disk_error(disk)->is_flush); /* nothing was flushed, and nothing is remembered */
    open_errno = 0;
    EXPECT(rmq_disk_start(disk, &names, &directory) == RMQ_OK && rmq_disk_finish(disk, &directory) == RMQ_DIED);
    EXPECT(table.remove(disk, "e") == RMQ_OK);
}

/* As many works as are allowed, and one more. */
static void too_many_works(void)
{
    rmq_file file = made("m", 100);
    const rmq_operation operation = {.kind = RMQ_FLUSH_FILE, .file = file, .end = RMQ_TO_THE_END};
    rmq_disk_work works[5];

    for (int i = 0; i < 4; i++) {
        EXPECT(rmq_disk_start(disk, &operation, &works[i]) == RMQ_OK);
    }
    EXPECT(rmq_disk_start(disk, &operation, &works[4]) == RMQ_PENDING);
    for (int i = 0; i < 4; i++) {
        rmq_disk_perform(&works[i]);
        EXPECT(rmq_disk_finish(disk, &works[i]) == RMQ_OK);
    }
    EXPECT(rmq_disk_start_again(disk, &works[4]) == RMQ_OK && rmq_disk_finish(disk, &works[4]) == RMQ_DIED);
    closed(file);
    EXPECT(table.remove(disk, "m") == RMQ_OK);
}

/* Reads that need no system call once somebody has come twice, and those that must not do without one. */
static void windows(void)
{
    static uint8_t data[1 << 16], found[1 << 16];
    rmq_file file = made("big", BIG), files[10];
    int64_t before;

    for (int64_t at = 0; at < BIG; at += (int64_t)sizeof data) {
        for (size_t i = 0; i < sizeof data; i++) {
            data[i] = (uint8_t)((at >> 16) + (int64_t)i * 7);
        }
        EXPECT(table.write(disk, file, at, data, sizeof data) == RMQ_OK);
        EXPECT(table.read(disk, file, at, found, sizeof data) == RMQ_OK && memcmp(found, data, sizeof data) == 0);
    }
    before = reads;
    for (int64_t at = WINDOW / 2; at < WINDOW - 100; at += 4096) {
        EXPECT(table.read(disk, file, at, found, 100) == RMQ_OK && found[0] == (uint8_t)((at >> 16) + at % 65536 * 7));
    }
    EXPECT(reads == before + 1); /* the first one only asks for the window */
    EXPECT(written(file, WINDOW - 3, "changed") == RMQ_OK);
    for (int i = 0; i < 3; i++) {
        EXPECT(holds(file, WINDOW - 3, "changed")); /* from two windows, the second of which has to be opened */
    }
    before = reads;
    EXPECT(holds(file, WINDOW - 3, "changed") && reads == before);
    EXPECT(written(file, WINDOW - 3, "CHANGED") == RMQ_OK && holds(file, WINDOW - 3, "CHANGED") && reads == before);
    files[0] = made("once", BIG);
    before = reads;
    for (int64_t at = 0; at < BIG; at += WINDOW) { /* once in each piece: nothing is opened for that */
        EXPECT(table.read(disk, files[0], at, found, 100) == RMQ_OK);
    }
    EXPECT(reads == before + BIG / WINDOW && holds(file, WINDOW - 3, "CHANGED") && reads == before + BIG / WINDOW);
    closed(files[0]);
    closed(file);
    EXPECT(table.remove(disk, "once") == RMQ_OK);
    EXPECT(table.remove(disk, "big") == RMQ_OK);
    for (int i = 0; i < 10; i++) { /* more files than windows */
        char path[20];
        (void)snprintf(path, sizeof path, "big%d", i);
        EXPECT(table.create(disk, path, BIG, false, &files[i]) == RMQ_OK);
        data[0] = (uint8_t)i;
        EXPECT(table.write(disk, files[i], 0, data, sizeof data) == RMQ_OK);
    }
    for (int i = 0; i < 60; i++) {
        EXPECT(table.read(disk, files[i / 3 % 10], 0, found, sizeof found) == RMQ_OK && found[0] == i / 3 % 10);
    }
    for (int i = 0; i < 10; i++) {
        char path[20];
        (void)snprintf(path, sizeof path, "big%d", i);
        closed(files[i]);
        EXPECT(table.remove(disk, path) == RMQ_OK);
    }
    file = made("small", 1 << 16);
    EXPECT(table.write(disk, file, 0, data, sizeof data) == RMQ_OK);
    before = reads;
    for (int i = 0; i < 3; i++) {
        EXPECT(table.read(disk, file, 0, found, 100) == RMQ_OK);
    }
    EXPECT(reads == before + 3);
    closed(file);
    EXPECT(table.remove(disk, "small") == RMQ_OK);
}

/* A path leaves the store neither upwards nor sideways. */
static void paths(void)
{
    static const char *const wrong[] = {"..", "../x", "a/..", "a/../b", ".", "./a", "a/./b", "a//b", "/a", "a/"};
    bool is_there;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        EXPECT(table.exists(disk, wrong[i], &is_there) == RMQ_DISK_FAILED);
        EXPECT(strstr(rmq_posix_disk_error(disk)->reason, "below the store") != NULL);
    }
    EXPECT(table.exists(disk, ".a/..b/...", &is_there) == RMQ_OK && !is_there);
    EXPECT(table.exists(disk, "", &is_there) == RMQ_OK && is_there); /* the root itself */
}

/* Somebody makes a file shorter that is being read through a window: an error, and not the end of the process. */
static void file_cut_under_a_window(void)
{
    static uint8_t found[100];
    char path[RMQ_DISK_PATH_MAX];
    rmq_file file = made("cut", BIG);

    EXPECT(written(file, WINDOW / 2, "there") == RMQ_OK);
    for (int i = 0; i < 3; i++) {
        EXPECT(holds(file, WINDOW / 2, "there"));
    }
    (void)snprintf(path, sizeof path, "%s/cut", root);
    EXPECT(truncate(path, 4096) == 0);
    for (int i = 0; i < 4; i++) {
        EXPECT(table.read(disk, file, WINDOW / 2, found, sizeof found) == RMQ_DISK_FAILED);
        EXPECT(strstr(rmq_posix_disk_error(disk)->reason, "shorter") != NULL);
    }
    closed(file);
    EXPECT(table.remove(disk, "cut") == RMQ_OK);
}

/* --- a flusher in its own thread ------------------------------------------------------------------------------------ */

#define WORKS 4

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    rmq_disk_work *waiting[WORKS];
    size_t count, performed;
    bool is_over;
} belt;

static void *flusher(void *given)
{
    belt *to = given;

    (void)pthread_mutex_lock(&to->mutex);
    for (;;) {
        rmq_disk_work *work;

        while (to->performed == to->count && !to->is_over) {
            (void)pthread_cond_wait(&to->changed, &to->mutex);
        }
        if (to->performed == to->count) {
            break;
        }
        work = to->waiting[to->performed];
        (void)pthread_mutex_unlock(&to->mutex); /* not held during the flush */
        rmq_disk_perform(work);
        (void)pthread_mutex_lock(&to->mutex);
        to->performed += 1;
        (void)pthread_cond_broadcast(&to->changed);
    }
    (void)pthread_mutex_unlock(&to->mutex);
    return NULL;
}

/* Does to files what a store does, while others of them are flushed. */
static void round_of(int number, belt *to)
{
    rmq_disk_work works[WORKS];
    rmq_file files[WORKS];
    char path[40], target[40];
    uint8_t found[64];

    for (int i = 0; i < WORKS; i++) {
        rmq_operation operation = {.kind = RMQ_FLUSH_FILE, .start = 0, .end = RMQ_TO_THE_END};

        (void)snprintf(path, sizeof path, "t/%d/%d", number, i);
        files[i] = made(path, 5000 + (i == 0 ? BIG : 0));
        EXPECT(written(files[i], 10 * i, "some bytes") == RMQ_OK);
        operation.file = files[i];
        EXPECT(rmq_disk_start(disk, &operation, &works[i]) == RMQ_OK);
        (void)pthread_mutex_lock(&to->mutex);
        to->waiting[i] = &works[i];
        to->count = (size_t)i + 1;
        (void)pthread_cond_broadcast(&to->changed);
        (void)pthread_mutex_unlock(&to->mutex);
        EXPECT(written(files[i], 10 * i, "SOME BYTES") == RMQ_OK);
        EXPECT(table.read(disk, files[i], 10 * i, found, 10) == RMQ_OK);
        (void)snprintf(target, sizeof target, "t/%d/%d-renamed", number, i);
        EXPECT(table.rename(disk, path, target) == RMQ_OK);
        if (i % 2 == 0) {
            closed(files[i]);
        }
        EXPECT(table.remove(disk, target) == RMQ_OK);
    }
    (void)pthread_mutex_lock(&to->mutex);
    while (to->performed < to->count) {
        (void)pthread_cond_wait(&to->changed, &to->mutex);
    }
    to->performed = to->count = 0;
    (void)pthread_mutex_unlock(&to->mutex);
    for (int i = 0; i < WORKS; i++) {
        EXPECT(rmq_disk_finish(disk, &works[i]) == RMQ_OK);
        if (i % 2 == 1) {
            closed(files[i]);
        }
    }
}

static void two_threads(void)
{
    belt to = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;

    if (pthread_create(&thread, NULL, flusher, &to) != 0) {
        abort();
    }
    for (int number = 0; number < ROUNDS; number++) {
        round_of(number, &to);
        (void)rmq_posix_disk_descriptors(disk);
    }
    (void)pthread_mutex_lock(&to.mutex);
    to.is_over = true;
    (void)pthread_cond_broadcast(&to.changed);
    (void)pthread_mutex_unlock(&to.mutex);
    (void)pthread_join(thread, NULL);
}

int main(void)
{
    rmq_posix_settings settings = RMQ_POSIX_SETTINGS;
    char command[100];

    if (mkdtemp(root) == NULL) {
        abort();
    }
    settings.open_files_max = 3;
    settings.works_max = 4;
    settings.mapped_bytes = WINDOW * RMQ_WINDOWS;
    new_disk(settings);
    writes();
    no_room_for_a_file();
    flushes_that_fail();
    what_happens_meanwhile();
    no_descriptors();
    too_many_works();
    paths();
    windows();
    file_cut_under_a_window();
    two_threads();
    rmq_posix_disk_rest(disk);
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    EXPECT(system(command) == 0);
    rmq_posix_disk_free(disk);
    printf("%d failures\n", failures);
    return failures != 0;
}
