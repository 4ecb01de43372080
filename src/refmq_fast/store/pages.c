/* Looks each page up by its number; there are a few thousand at most. */
#include "pages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const rmq_text NO_TEXT = {NULL, 0};

/* How much of a piece lies in the page that its first byte is in. */
static size_t in_page(int64_t position, size_t length)
{
    const size_t left = (size_t)(RMQ_PAGE_BYTES - position % RMQ_PAGE_BYTES);

    return length < left ? length : left;
}

static size_t page_bytes(const rmq_pages *pages, int64_t number)
{
    const int64_t left = pages->file_bytes - number * RMQ_PAGE_BYTES;

    return (size_t)(left < RMQ_PAGE_BYTES ? left : RMQ_PAGE_BYTES);
}

void rmq_pages_are_new(rmq_pages *pages)
{
    const int64_t count = (pages->file_bytes + RMQ_PAGE_BYTES - 1) / RMQ_PAGE_BYTES;

    assert(pages->stored == NULL && pages->table.count == 0);
    if (pages->count_max > 0) { /* else every write goes to the file, and nobody notes it */
        pages->stored = calloc(1, (size_t)count / 8 + 1);
    }
}

static void note_stored(rmq_pages *pages, int64_t number)
{
    if (pages->stored != NULL) {
        pages->stored[number / 8] |= (uint8_t)(1u << number % 8);
    }
}

/* What the file has of a piece of one page. */
static rmq_status read_stored(const rmq_pages *pages, int64_t position, uint8_t *to, size_t length)
{
    const int64_t number = position / RMQ_PAGE_BYTES;

    if (pages->stored != NULL && (pages->stored[number / 8] & 1u << number % 8) == 0) {
        memset(to, 0, length);
        return RMQ_OK;
    }
    return pages->disk->read(pages->disk->context, pages->file, position, to, length);
}

rmq_status rmq_pages_read(rmq_pages *pages, int64_t position, uint8_t *to, size_t length)
{
    while (length > 0) {
        const size_t now = in_page(position, length);
        const rmq_page *page = rmq_table_find(&pages->table, NO_TEXT, position / RMQ_PAGE_BYTES);

        if (page != NULL) {
            memcpy(to, page->bytes + position % RMQ_PAGE_BYTES, now);
        } else {
            RMQ_TRY(read_stored(pages, position, to, now));
        }
        position += (int64_t)now;
        to += now;
        length -= now;
    }
    return RMQ_OK;
}

/* The page with this number, read if it is not there. */
static rmq_status page_of(rmq_pages *pages, int64_t number, rmq_page **page)
{
    rmq_status status;

    *page = rmq_table_find(&pages->table, NO_TEXT, number);
    if (*page != NULL) {
        return RMQ_OK;
    }
    if (pages->table.count >= pages->count_max) {
        RMQ_TRY(rmq_pages_write_back(pages));
        rmq_pages_drop(pages);
    }
    *page = malloc(sizeof **page);
    if (*page == NULL) {
        return RMQ_NO_MEMORY;
    }
    (*page)->key.text = NO_TEXT;
    (*page)->key.number = number;
    (*page)->is_dirty = false;
    status = read_stored(pages, number * RMQ_PAGE_BYTES, (*page)->bytes, page_bytes(pages, number));
    if (status == RMQ_OK) {
        status = rmq_table_add(&pages->table, &(*page)->key);
    }
    if (status != RMQ_OK) {
        free(*page);
    }
    return status;
}

rmq_status rmq_pages_write(rmq_pages *pages, int64_t position, const uint8_t *from, size_t length)
{
    assert(position >= 0 && position + (int64_t)length <= pages->file_bytes);
    if (pages->count_max == 0) {
        return pages->disk->write(pages->disk->context, pages->file, position, from, length);
    }
    while (length > 0) {
        const size_t now = in_page(position, length);
        rmq_page *page;

        RMQ_TRY(page_of(pages, position / RMQ_PAGE_BYTES, &page));
        memcpy(page->bytes + position % RMQ_PAGE_BYTES, from, now);
        page->is_dirty = true;
        position += (int64_t)now;
        from += now;
        length -= now;
    }
    return RMQ_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t first = (*(rmq_page *const *)a)->key.number, second = (*(rmq_page *const *)b)->key.number;

    return (first > second) - (first < second);
}

rmq_status rmq_pages_write_back(rmq_pages *pages)
{
    rmq_page **changed = malloc((pages->table.count + 1) * sizeof(rmq_page *));
    size_t count = 0, at = 0;
    rmq_page *page;
    rmq_status status = changed == NULL ? RMQ_NO_MEMORY : RMQ_OK;

    while (status == RMQ_OK && (page = rmq_table_next(&pages->table, &at)) != NULL) {
        if (page->is_dirty) {
            changed[count] = page;
            count += 1;
        }
    }
    if (count > 0) {
        qsort(changed, count, sizeof(rmq_page *), by_number);
    }
    for (size_t i = 0; i < count && status == RMQ_OK; i++) {
        note_stored(pages, changed[i]->key.number); /* also of a write that fails: a part of it may be there */
        status = pages->disk->write(pages->disk->context, pages->file, changed[i]->key.number * RMQ_PAGE_BYTES,
                                    changed[i]->bytes, page_bytes(pages, changed[i]->key.number));
        changed[i]->is_dirty = status != RMQ_OK;
    }
    free(changed);
    return status;
}

void rmq_pages_drop(rmq_pages *pages)
{
    size_t at = 0;
    rmq_page *page;

    while ((page = rmq_table_next(&pages->table, &at)) != NULL) {
        free(page);
    }
    rmq_table_free(&pages->table);
}

void rmq_pages_free(rmq_pages *pages)
{
    rmq_pages_drop(pages);
    free(pages->stored);
    pages->stored = NULL;
}
