/* What the files of the disk share: disk_posix.c has names, disk_file.c bytes and descriptors, disk_work.c flushes. */
#ifndef RMQ_SHELL_DISK_INSIDE_H
#define RMQ_SHELL_DISK_INSIDE_H

#include <sys/types.h>

#include "../store/table.h"
#include "disk_posix.h"
#include "windows.h"

#define RMQ_NO_DESCRIPTOR (-1)

/* A path that somebody has open, or whose flush failed. All handles of a file share it, so they follow a rename. */
typedef struct {
    rmq_key key; /* the path */
    char *path;
    size_t handles;
    int failed;   /* errno of a flush of it that failed; 0: none has */
    bool is_gone; /* removed or replaced: in no table any more */
} rmq_posix_name;

typedef struct rmq_posix_file {
    rmq_posix_name *name;
    int64_t size_bytes;
    dev_t device; /* with `inode`: so that another file which took the name is not taken for this one */
    ino_t inode;
    bool is_closed; /* its works have to end first */
    size_t works;   /* flushes under way: they need the descriptor */
    int descriptor;
    struct rmq_posix_file *newer, *older; /* in the pool, while there is a descriptor */
} rmq_posix_file;

struct rmq_posix_disk {
    char *root;
    rmq_posix_settings settings;
    rmq_table names;
    rmq_posix_file *newest, *oldest; /* of the pool */
    size_t descriptors;
    size_t works;
    size_t files;
    rmq_windows windows;
    rmq_disk_error error;
};

/* --- disk_posix.c ------------------------------------------------------------------------------------------------ */

/* Notes an error of the system or, with number 0, one that the disk found. Returns its status. */
rmq_status rmq_posix_failed(rmq_posix_disk *disk, const char *path, const char *operation, int number);
rmq_status rmq_posix_wrong(rmq_posix_disk *disk, const char *path, const char *operation, const char *reason);

/* Writes the path with the root to `full`, which has room for RMQ_DISK_PATH_MAX. */
rmq_status rmq_posix_locate(rmq_posix_disk *disk, const char *path, const char *operation, char *full);

/* The name of a path, made if there is none. */
rmq_status rmq_posix_name_of(rmq_posix_disk *disk, const char *path, rmq_posix_name **name);

/* Frees a name that nobody needs any more. */
void rmq_posix_drop_name(rmq_posix_disk *disk, rmq_posix_name *name);

/* --- disk_file.c ------------------------------------------------------------------------------------------------- */

/* open(2) of a path below the root. When the process has no descriptor left, those of the pool go first. Returns it, or -1
 * and errno. */
int rmq_posix_open(rmq_posix_disk *disk, const char *full, int flags, mode_t mode);

/* A file of a name, which gets a handle more. `descriptor` is -1 or becomes the file's. NULL: no memory, nothing changed. */
rmq_posix_file *rmq_posix_file_new(rmq_posix_disk *disk, rmq_posix_name *name, int descriptor, int64_t size_bytes,
                                   dev_t device, ino_t inode);
void rmq_posix_file_free(rmq_posix_disk *disk, rmq_posix_file *file);

/* Gives the file a descriptor: 0, or -1, with the error noted and errno in `number`. */
int rmq_posix_descriptor(rmq_posix_disk *disk, rmq_posix_file *file, int *number);

rmq_status rmq_posix_read(void *context, rmq_file file, int64_t position, uint8_t *to, size_t length);
void rmq_posix_expect(void *context, rmq_file file, int64_t position, size_t length);
rmq_status rmq_posix_write(void *context, rmq_file file, int64_t position, const uint8_t *from, size_t length);
rmq_status rmq_posix_data_end(void *context, rmq_file file, int64_t *end);
void rmq_posix_close(void *context, rmq_file file);

#endif
