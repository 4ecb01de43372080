/* Reads and writes entries, slots and the header of one file. */
#include "index_file.h"

#include <assert.h>

#include "../core/bytes.h"

static rmq_status read_at(rmq_index_file *file, int64_t position, uint8_t *to, size_t length)
{
    return rmq_pages_read(&file->pages, position, to, length);
}

static rmq_status write_at(rmq_index_file *file, int64_t position, const uint8_t *from, size_t length)
{
    file->is_dirty = true;
    return rmq_pages_write(&file->pages, position, from, length);
}

static int64_t entry_at(const rmq_index_file *file, int32_t number)
{
    return RMQ_INDEX_HEADER_BYTES + RMQ_INDEX_SLOT_BYTES * file->slots + (int64_t)RMQ_INDEX_ENTRY_BYTES * number;
}

static int64_t slot_at(const rmq_index_file *file, int32_t key_hash)
{
    return RMQ_INDEX_HEADER_BYTES + RMQ_INDEX_SLOT_BYTES * (key_hash % file->slots);
}

static rmq_status slot_of(rmq_index_file *file, int32_t key_hash, int32_t *slot)
{
    uint8_t bytes[RMQ_INDEX_SLOT_BYTES];

    RMQ_TRY(read_at(file, slot_at(file, key_hash), bytes, sizeof bytes));
    *slot = rmq_load_be32(bytes);
    return RMQ_OK;
}

rmq_status rmq_index_file_load(rmq_index_file *file)
{
    uint8_t header[RMQ_INDEX_HEADER_BYTES];

    RMQ_TRY(read_at(file, 0, header, sizeof header));
    file->begin_ms = rmq_load_be64(header);
    file->end_ms = rmq_load_be64(header + 8);
    file->begin_physical = rmq_load_be64(header + 16);
    file->end_physical = rmq_load_be64(header + 24);
    file->used_slots = rmq_load_be32(header + 32);
    file->next_entry = rmq_load_be32(header + 36);
    if (file->next_entry < 1) {
        file->next_entry = 1;
    }
    return RMQ_OK;
}

rmq_status rmq_index_file_write_header(rmq_index_file *file)
{
    uint8_t header[RMQ_INDEX_HEADER_BYTES];

    rmq_store_be64(header, (uint64_t)file->begin_ms);
    rmq_store_be64(header + 8, (uint64_t)file->end_ms);
    rmq_store_be64(header + 16, (uint64_t)file->begin_physical);
    rmq_store_be64(header + 24, (uint64_t)file->end_physical);
    rmq_store_be32(header + 32, (uint32_t)file->used_slots);
    rmq_store_be32(header + 36, (uint32_t)file->next_entry);
    return write_at(file, 0, header, sizeof header);
}

/* Whole seconds between two times, rounded down as Python rounds, in what the field can hold. */
static int32_t seconds_between(int64_t begin_ms, int64_t store_ms)
{
    const int64_t span_ms = (int64_t)((uint64_t)store_ms - (uint64_t)begin_ms);

    if (store_ms <= begin_ms) {
        return 0;
    }
    return span_ms < 0 || span_ms / 1000 > INT32_MAX ? INT32_MAX : (int32_t)(span_ms / 1000);
}

rmq_status rmq_index_file_put(rmq_index_file *file, int32_t key_hash, int64_t physical_offset, int64_t store_ms)
{
    const int32_t number = file->next_entry;
    const int64_t begin_ms = number == 1 ? store_ms : file->begin_ms;
    uint8_t entry[RMQ_INDEX_ENTRY_BYTES], slot[RMQ_INDEX_SLOT_BYTES];
    int32_t previous;

    assert(!rmq_index_file_is_full(file) && key_hash >= 0);
    assert(number == 1 || physical_offset >= file->end_physical);
    RMQ_TRY(slot_of(file, key_hash, &previous));
    if (previous <= 0 || previous >= number) {
        previous = 0;
    }
    rmq_store_be32(entry, (uint32_t)key_hash);
    rmq_store_be64(entry + 4, (uint64_t)physical_offset);
    rmq_store_be32(entry + 12, (uint32_t)seconds_between(begin_ms, store_ms));
    rmq_store_be32(entry + 16, (uint32_t)previous);
    rmq_store_be32(slot, (uint32_t)number);
    RMQ_TRY(write_at(file, entry_at(file, number), entry, sizeof entry));
    RMQ_TRY(write_at(file, slot_at(file, key_hash), slot, sizeof slot));
    file->begin_ms = begin_ms;
    file->end_ms = store_ms;
    file->begin_physical = number == 1 ? physical_offset : file->begin_physical;
    file->end_physical = physical_offset;
    file->used_slots += previous == 0 ? 1 : 0;
    file->next_entry = number + 1;
    return RMQ_OK;
}

rmq_status rmq_index_file_entry(rmq_index_file *file, int32_t number, rmq_index_entry *entry)
{
    uint8_t bytes[RMQ_INDEX_ENTRY_BYTES];

    assert(number >= 0 && number < file->entries);
    RMQ_TRY(read_at(file, entry_at(file, number), bytes, sizeof bytes));
    entry->key_hash = rmq_load_be32(bytes);
    entry->physical_offset = rmq_load_be64(bytes + 4);
    entry->seconds = rmq_load_be32(bytes + 12);
    entry->previous = rmq_load_be32(bytes + 16);
    return RMQ_OK;
}

bool rmq_index_file_covers(const rmq_index_file *file, int64_t begin_ms, int64_t end_ms)
{
    return rmq_index_file_count(file) > 0 && begin_ms <= file->end_ms && file->begin_ms <= end_ms;
}

rmq_status rmq_index_file_find(rmq_index_file *file, int32_t key_hash, int64_t begin_ms, int64_t end_ms, int32_t *number,
                               int64_t *physical_offset)
{
    int32_t at;

    if (*number == 0) {
        RMQ_TRY(slot_of(file, key_hash, &at));
    } else {
        rmq_index_entry entry;
        int64_t stored_ms;

        RMQ_TRY(rmq_index_file_entry(file, *number, &entry));
        stored_ms = file->begin_ms + 1000 * (int64_t)entry.seconds;
        at = entry.previous >= *number || stored_ms < begin_ms - 999 ? 0 : entry.previous;
    }
    while (at > 0 && at < file->next_entry) {
        rmq_index_entry entry;
        int64_t stored_ms;

        RMQ_TRY(rmq_index_file_entry(file, at, &entry));
        if (entry.seconds < 0) {
            break;
        }
        /* The seconds are rounded down, so a message may be up to 999 ms newer than they say. */
        stored_ms = file->begin_ms + 1000 * (int64_t)entry.seconds;
        if (entry.key_hash == key_hash && stored_ms >= begin_ms - 999 && stored_ms <= end_ms) {
            *number = at;
            *physical_offset = entry.physical_offset;
            return RMQ_OK;
        }
        at = entry.previous >= at || stored_ms < begin_ms - 999 ? 0 : entry.previous;
    }
    *number = 0;
    return RMQ_OK;
}
