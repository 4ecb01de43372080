/* Pages of a file that are kept in memory until somebody wants them written: an index changes three places of its file for
 * every key, and a write for each would cost more than the rest of a put. What a dying process loses of it is built again
 * (a start believes an index up to the checkpoint). A page is read from the file when it is changed for the first time. */
#ifndef RMQ_STORE_PAGES_H
#define RMQ_STORE_PAGES_H

#include "disk.h"
#include "table.h"

#define RMQ_PAGE_BYTES 4096

typedef struct {
    rmq_key key; /* its number; no text */
    bool is_dirty;
    uint8_t bytes[RMQ_PAGE_BYTES];
} rmq_page;

typedef struct {
    const rmq_disk *disk;
    rmq_file file;
    int64_t file_bytes;
    size_t count_max; /* 0: nothing is kept, and every write goes to the file */
    rmq_table table;  /* of rmq_page */
    uint8_t *stored;  /* of a file that was made here: a bit for each page that was written to it; all others are zero.
                       * NULL: nobody knows what is there */
} rmq_pages;

/* The file was made just now, and is zero throughout: pages that were never written need not be read. Without the memory to
 * know which these are, all are read. */
void rmq_pages_are_new(rmq_pages *pages);

rmq_status rmq_pages_read(rmq_pages *pages, int64_t position, uint8_t *to, size_t length);

/* RMQ_DISK_FULL, when there are too many pages and they find no room: nothing was changed that was written before. */
rmq_status rmq_pages_write(rmq_pages *pages, int64_t position, const uint8_t *from, size_t length);

/* Hands the changed pages to the file, in their order. Those that could not be written stay changed. */
rmq_status rmq_pages_write_back(rmq_pages *pages);

/* Forgets all pages, changed or not. */
void rmq_pages_drop(rmq_pages *pages);

void rmq_pages_free(rmq_pages *pages);

#endif
