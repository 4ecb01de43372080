/* See windows.h. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "windows.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "guard.h"

#define CACHE_LINE_BYTES 64
#define EXPECTED_BYTES_MAX 512 /* of one record: the processor sees by itself how a long one goes on */
#define STEP_BYTES 65536 /* windows begin at a multiple of it: of a page of any processor */

void rmq_windows_init(rmq_windows *windows, int64_t bytes)
{
    const int64_t each = bytes / RMQ_WINDOWS;

    assert(bytes >= 0);
    memset(windows, 0, sizeof *windows);
    windows->bytes_each = rmq_guard_install() ? each - each % STEP_BYTES : 0;
}

static void close_window(rmq_window *window)
{
    if (window->file != NULL) {
        (void)munmap(window->at, window->size);
        *window = (rmq_window){0};
    }
}

void rmq_windows_close(rmq_windows *windows, const void *file)
{
    for (size_t i = 0; i < RMQ_WINDOWS; i++) {
        if (file == NULL || windows->list[i].file == file) {
            close_window(&windows->list[i]);
        }
    }
    windows->missed_file = NULL; /* its address may become another file's */
}

static rmq_window *find(rmq_windows *windows, const void *file, int64_t number)
{
    for (size_t i = 0; i < RMQ_WINDOWS; i++) {
        if (windows->list[i].file == file && windows->list[i].number == number) {
            return &windows->list[i];
        }
    }
    return NULL;
}

static rmq_window *used_longest_ago(rmq_windows *windows)
{
    rmq_window *oldest = &windows->list[0];

    for (size_t i = 1; i < RMQ_WINDOWS; i++) {
        if (windows->list[i].used < oldest->used) {
            oldest = &windows->list[i];
        }
    }
    return oldest;
}

/* NULL: a first miss, a file system without mappings, or no room for one. */
static rmq_window *open_window(rmq_windows *windows, const void *file, int descriptor, int64_t size_bytes, int64_t number)
{
    const int64_t from = number * windows->bytes_each, left = size_bytes - from;
    const size_t size = (size_t)(left < windows->bytes_each ? left : windows->bytes_each);
    rmq_window *window;
    void *at;

    if (windows->missed_file != file || windows->missed_number != number) {
        windows->missed_file = file;
        windows->missed_number = number;
        return NULL;
    }
    at = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, from);
    if (at == MAP_FAILED) {
        return NULL;
    }
    window = used_longest_ago(windows);
    close_window(window);
    *window = (rmq_window){.file = file, .number = number, .at = at, .size = size};
    return window;
}

bool rmq_windows_read(rmq_windows *windows, const void *file, int descriptor, int64_t size_bytes, int64_t position,
                      uint8_t *to, size_t length)
{
    assert(position >= 0 && position <= size_bytes && (int64_t)length <= size_bytes - position);
    if (windows->bytes_each == 0) {
        return false;
    }
    while (length > 0) {
        const int64_t number = position / windows->bytes_each;
        const size_t into = (size_t)(position % windows->bytes_each);
        rmq_window *window = find(windows, file, number);
        size_t now;

        if (window == NULL) {
            window = open_window(windows, file, descriptor, size_bytes, number);
        }
        if (window == NULL) {
            return false;
        }
        windows->uses += 1;
        window->used = windows->uses;
        now = length < window->size - into ? length : window->size - into;
        if (!rmq_guarded_copy(to, window->at + into, now)) {
            close_window(window);
            return false;
        }
        position += (int64_t)now;
        to += now;
        length -= now;
    }
    return true;
}

void rmq_windows_expect(rmq_windows *windows, const void *file, int64_t position, size_t length)
{
    const rmq_window *window =
        windows->bytes_each == 0 ? NULL : find(windows, file, position / windows->bytes_each);
    size_t into;

    if (window == NULL) {
        return;
    }
    into = (size_t)(position % windows->bytes_each);
    length = length < EXPECTED_BYTES_MAX ? length : EXPECTED_BYTES_MAX;
    for (size_t at = into; at < into + length && at < window->size; at += CACHE_LINE_BYTES) {
        __builtin_prefetch(window->at + at); /* it never faults, whatever is there */
    }
}
