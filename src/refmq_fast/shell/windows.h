/* Windows on files: pieces of them that are mapped, so that a read costs no system call.
 *
 * A disk has a few, and they move: the one that was used longest ago makes room. A piece gets its window when it is missed
 * twice in a row, so that a single read here and there maps nothing. What is mapped counts as resident memory, which is
 * why there are few.
 *
 * Only large files are looked at in this way. A log is, a queue of usual size is not: ten thousand queues would need as
 * many windows.
 */
#ifndef RMQ_SHELL_WINDOWS_H
#define RMQ_SHELL_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RMQ_WINDOWS 8u

typedef struct {
    const void *file; /* NULL: nothing is mapped here */
    int64_t number;   /* of the piece in its file */
    uint8_t *at;
    size_t size;
    uint64_t used; /* when, in uses */
} rmq_window;

typedef struct {
    int64_t bytes_each; /* a multiple of a page of any processor; 0: no windows */
    rmq_window list[RMQ_WINDOWS];
    uint64_t uses;
    const void *missed_file; /* the piece that was missed last */
    int64_t missed_number;
} rmq_windows;

/* Windows that show so many bytes together, rounded down; none if that is too little, or without `rmq_guard_install`. */
void rmq_windows_init(rmq_windows *windows, int64_t bytes);

/* Copies bytes that lie within the first `size_bytes` of a file. False if no window shows them and none was opened, or if
 * they could not be read: then the file is to be asked, which says why. `file` is whose window it is. */
bool rmq_windows_read(rmq_windows *windows, const void *file, int descriptor, int64_t size_bytes, int64_t position,
                      uint8_t *to, size_t length);

/* These bytes will be read soon: what a window shows of them is brought into the cache of the processor. */
void rmq_windows_expect(rmq_windows *windows, const void *file, int64_t position, size_t length);

/* Closes the windows on a file, or with NULL all. */
void rmq_windows_close(rmq_windows *windows, const void *file);

#endif
