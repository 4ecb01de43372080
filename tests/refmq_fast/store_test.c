/* Drives the store from C alone, as a data plane will: no Python, a disk in memory, flushes performed by a loop.
 *
 * What the histories of the conformance suite say about the meaning is not said again. This holds the memory: buffers of
 * exact lengths, jobs that outlive their queues, no room at every single write, tails, and nothing left at the end.
 */
#include "memory_disk.h"
#include "store/append.h"
#include "store/dispatch.h"
#include "store/get.h"
#include "store/jobs.h"
#include "store/open.h"
#include "store/replica.h"

#define NOW 1700000000000

static int failures;

static void expect(int holds, const char *sentence, int line)
{
    if (!holds) {
        printf("line %d: %s\n", line, sentence);
        failures += 1;
    }
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

static rmq_store_config config_of(int64_t tail_bytes)
{
    const rmq_store_config config = {
        .log_file_bytes = 2048,
        .queue_file_bytes = 100,
        .index_enabled = true,
        .index_slots = 3,
        .index_entries = 6,
        .piece_bytes = 500,
        .message_bytes_max = 4 << 20,
        .query_count_max = 64,
        .read_units_min = 800,
        .memory_transfer_bytes_max = 256 * 1024,
        .memory_transfer_count_max = 32,
        .disk_transfer_bytes_max = 64 * 1024,
        .disk_transfer_count_max = 8,
        .memory_bytes = INT64_C(24) << 30,
        .memory_ratio_percent = 40,
        .flush_page_bytes = 4096,
        .log_flush_interval_ms = 500,
        .log_flush_pages = 4,
        .log_flush_thorough_ms = 10000,
        .queue_flush_interval_ms = 1000,
        .queue_flush_pages = 2,
        .queue_flush_thorough_ms = 60000,
        .file_reserved_ms = 1000,
        .delete_files_max = 10,
        .disk_used_percent_max = 75,
        .disk_clean_forcibly_percent = 85,
        .disk_full_percent = 90,
        .delay_levels = 2,
        .delays_ms = {1000, 5000},
        .tail_bytes = tail_bytes,
        .index_pages = tail_bytes / 60,
        .hash_seed = 42,
    };

    return config;
}

static rmq_store *open_with(memory_disk *disk, int64_t tail_bytes, int64_t log_tail_bytes)
{
    rmq_store_config config = config_of(tail_bytes);
    const rmq_disk table = memory_table(disk);
    rmq_store *store;

    config.log_tail_bytes = log_tail_bytes;
    if (rmq_store_new(&config, &table, NULL, NULL, &store) != RMQ_OK ||
        rmq_open_log(store, NULL, 0, 0, 0, -1, 0, 0) != RMQ_OK || rmq_open_done(store, 0, 0, 0, NOW) != RMQ_OK) {
        abort();
    }
    (void)memory_make_directory(disk, "abort"); /* a name that the stop removes */
    return store;
}

static rmq_store *open_store(memory_disk *disk, int64_t tail_bytes)
{
    return open_with(disk, tail_bytes, 0);
}

static rmq_message_to_store message_of(rmq_text topic, int64_t queue_id, size_t body_size, uint8_t *body)
{
    rmq_message_to_store message = {
        .topic = topic,
        .queue_id = queue_id,
        .body = {body, body_size},
        .properties = RMQ_TEXT("TAGS\x01tag\x02KEYS\x01key other\x02UNIQ_KEY\x01u"),
        .born_timestamp_ms = NOW,
    };

    memset(body, 'b', body_size);
    message.born_host.ip_bytes = 4;
    message.store_host.ip_bytes = 16;
    return message;
}

static rmq_put_status put(rmq_store *store, rmq_text topic, int64_t queue_id, size_t body_size)
{
    uint8_t *body = malloc(body_size + 1);
    const rmq_message_to_store message = message_of(topic, queue_id, body_size, body);
    rmq_append_plan plan;
    rmq_put_status status;
    rmq_status failed;

    EXPECT(rmq_plan_message(store, &message, NOW, &plan, &status) == RMQ_OK);
    if (status == RMQ_PUT_OK) {
        EXPECT(rmq_append(store, &plan, &status, &failed) == RMQ_OK);
    }
    free(body);
    return status;
}

/* Takes a job to its end. `meanwhile` happens in every wait. */
static rmq_status run(memory_disk *disk, rmq_job *job, void (*meanwhile)(rmq_store *store))
{
    rmq_operation operation;
    rmq_status status = rmq_job_next(job, RMQ_OK, &operation);

    while (status == RMQ_PENDING) {
        disk->flushes += 1;
        if (meanwhile != NULL) {
            meanwhile(job->store);
        }
        status = rmq_job_next(job, RMQ_OK, &operation);
    }
    return status;
}

static int64_t count_of(rmq_store *store, rmq_text topic, int64_t queue_id)
{
    const rmq_filter all = {.has_codes = false};
    rmq_records records = {NULL, 0, 0, 0};
    rmq_get_result result;
    int64_t count = 0, next = 0;

    do {
        EXPECT(rmq_get_message(store, topic, queue_id, next, 32, &all, &records, &result) == RMQ_OK);
        count += records.count;
        next = result.next_offset;
    } while (result.status == RMQ_GET_FOUND);
    free(records.data);
    return count;
}

static void live(int64_t tail_bytes)
{
    memory_disk disk = {.count = 0};
    rmq_store *store = open_store(&disk, tail_bytes);
    rmq_records records = {NULL, 0, 0, 0};
    rmq_job job;

    for (int i = 0; i < 60; i++) {
        EXPECT(put(store, i % 2 == 0 ? RMQ_TEXT("even") : RMQ_TEXT("odd"), i % 3, (size_t)(i * 7 % 600)) == RMQ_PUT_OK);
    }
    EXPECT(put(store, RMQ_TEXT("a/b"), 0, 1) == RMQ_PUT_MESSAGE_ILLEGAL);
    EXPECT(put(store, RMQ_TEXT("even"), 0, 4000) == RMQ_PUT_MESSAGE_ILLEGAL);
    EXPECT(rmq_dispatch(store, 1000, NULL, NULL) == RMQ_OK);
    for (int queue_id = 0; queue_id < 3; queue_id++) {
        EXPECT(count_of(store, RMQ_TEXT("even"), queue_id) == 10 && count_of(store, RMQ_TEXT("odd"), queue_id) == 10);
    }
    EXPECT(rmq_query_by_key(store, RMQ_TEXT("odd"), RMQ_TEXT("other"), 64, 0, INT64_MAX - 999, &records) == RMQ_OK);
    EXPECT(records.count == 30);
    rmq_start_flush(&job, store);
    EXPECT(run(&disk, &job, NULL) == RMQ_OK && job.result == store->log.files.wrote);
    rmq_start_maintain(&job, store, NOW + 60000);
    EXPECT(run(&disk, &job, NULL) == RMQ_OK && store->checkpointed_to == store->log.files.wrote);
    rmq_start_clean(&job, store, NOW + 60000, -1);
    EXPECT(run(&disk, &job, NULL) == RMQ_OK && job.result > 0 && rmq_files_begin(&store->log.files) > 0);
    rmq_start_stop(&job, store);
    EXPECT(run(&disk, &job, NULL) == RMQ_OK && memory_find(&disk, "abort") == NULL);
    rmq_store_free(store);
    EXPECT(disk.opened == 0);
    free(records.data);
    memory_free(&disk);
}

static void disturb(rmq_store *store)
{
    int64_t count;

    EXPECT(rmq_delete_topic(store, RMQ_TEXT("even"), &count) == RMQ_OK);
    (void)put(store, RMQ_TEXT("even"), 0, 10);
    EXPECT(rmq_dispatch(store, 1000, NULL, NULL) == RMQ_OK);
}

/* Queues that are deleted and come back while they are flushed. */
static void flush_while_queues_go(int64_t tail_bytes)
{
    memory_disk disk = {.count = 0};
    rmq_store *store = open_store(&disk, tail_bytes);
    rmq_job job;

    for (int i = 0; i < 20; i++) {
        (void)put(store, i % 2 == 0 ? RMQ_TEXT("even") : RMQ_TEXT("odd"), i % 3, 20);
    }
    EXPECT(rmq_dispatch(store, 1000, NULL, NULL) == RMQ_OK);
    rmq_start_maintain(&job, store, NOW + 60000);
    EXPECT(run(&disk, &job, disturb) == RMQ_OK);
    EXPECT(count_of(store, RMQ_TEXT("even"), 0) >= 1 && count_of(store, RMQ_TEXT("odd"), 1) > 0);
    rmq_store_free(store);
    EXPECT(disk.opened == 0);
    memory_free(&disk);
}

/* No room at one write after the other: nothing that was put is lost, and everything goes on. */
static void fill_at_every_write(int64_t tail_bytes)
{
    int64_t writes = 1;

    for (int64_t at = 1; at <= writes; at++) {
        memory_disk disk = {.count = 0, .fail_at = at};
        rmq_store *store = open_store(&disk, tail_bytes);
        int64_t stored = 0, found = 0;
        rmq_job job;

        for (int i = 0; i < 12; i++) {
            stored += put(store, RMQ_TEXT("T"), i % 2, (size_t)(i * 90)) == RMQ_PUT_OK ? 1 : 0;
            EXPECT(rmq_dispatch(store, 1000, NULL, NULL) == RMQ_OK);
        }
        EXPECT(rmq_dispatch(store, 1000, NULL, NULL) == RMQ_OK);
        rmq_start_maintain(&job, store, NOW + 60000);
        EXPECT(run(&disk, &job, NULL) == RMQ_OK);
        rmq_start_maintain(&job, store, NOW + 60001);
        EXPECT(run(&disk, &job, NULL) == RMQ_OK && rmq_accepts_puts(store));
        found = count_of(store, RMQ_TEXT("T"), 0) + count_of(store, RMQ_TEXT("T"), 1);
        EXPECT(found == stored && stored >= 10);
        writes = disk.writes;
        rmq_store_free(store);
        EXPECT(disk.opened == 0);
        memory_free(&disk);
    }
    EXPECT(writes > 40);
}

/* A slave gets the log of a master in pieces, and becomes the master. */
static void follow(void)
{
    memory_disk disks[2] = {{.count = 0}, {.count = 0}};
    rmq_store *master = open_store(&disks[0], 0), *slave = open_store(&disks[1], 60);
    rmq_job job;
    int64_t at = 0;

    for (int i = 0; i < 30; i++) {
        (void)put(master, RMQ_TEXT("T"), 0, 100);
    }
    EXPECT(rmq_set_slave(slave, true) == RMQ_OK && put(slave, RMQ_TEXT("T"), 0, 1) == RMQ_PUT_SERVICE_NOT_AVAILABLE);
    while (at < master->log.files.wrote) {
        const size_t size = rmq_log_bytes_from(&master->log, at, 77, master->log.files.wrote);
        uint8_t *piece = malloc(size);

        EXPECT(rmq_log_read(&master->log, at, piece, size) == RMQ_OK);
        EXPECT(rmq_append_log(slave, at, piece, size) == RMQ_OK);
        free(piece);
        at += (int64_t)size;
        rmq_start_flush(&job, slave);
        EXPECT(run(&disks[1], &job, NULL) == RMQ_OK);
    }
    EXPECT(rmq_append_log(slave, at + 1, NULL, 0) == RMQ_MISUSE);
    EXPECT(rmq_set_slave(slave, false) == RMQ_OK && put(slave, RMQ_TEXT("T"), 0, 1) == RMQ_PUT_OK);
    EXPECT(rmq_dispatch(slave, 1000, NULL, NULL) == RMQ_OK && count_of(slave, RMQ_TEXT("T"), 0) == 31);
    rmq_store_free(master);
    rmq_store_free(slave);
    memory_free(&disks[0]);
    memory_free(&disks[1]);
}

/* Tails are there to save writes. */
static void count_writes(void)
{
    memory_disk plain = {.count = 0}, tailed = {.count = 0};
    rmq_store *stores[] = {open_store(&plain, 0), open_store(&tailed, 640)};

    for (int i = 0; i < 100; i++) {
        for (int s = 0; s < 2; s++) {
            (void)put(stores[s], RMQ_TEXT("T"), i % 10, 10);
            EXPECT(rmq_dispatch(stores[s], 10, NULL, NULL) == RMQ_OK);
        }
    }
    EXPECT(tailed.writes < plain.writes - 50);
    for (int s = 0; s < 2; s++) {
        EXPECT(count_of(stores[s], RMQ_TEXT("T"), 7) == 10);
        rmq_store_free(stores[s]);
    }
    memory_free(&plain);
    memory_free(&tailed);
}

/* The records of a turn go to the log in one write, and the log is the same as with one write for each. */
static void write_by_turns(void)
{
    memory_disk disks[2] = {{.count = 0}, {.count = 0}};
    rmq_store *each = open_store(&disks[0], 0), *turns = open_with(&disks[1], 0, 1 << 20);
    rmq_job job;

    for (int turn = 0; turn < 20; turn++) {
        const int64_t before = disks[1].writes;
        for (int i = 0; i < 5; i++) {
            EXPECT(put(each, RMQ_TEXT("T"), 0, (size_t)(10 * i)) == RMQ_PUT_OK);
            EXPECT(put(turns, RMQ_TEXT("T"), 0, (size_t)(10 * i)) == RMQ_PUT_OK);
        }
        EXPECT(rmq_write_appended(turns) == RMQ_OK && disks[1].writes <= before + 4); /* more than one only when it rolls */
        EXPECT(rmq_dispatch(each, 100, NULL, NULL) == RMQ_OK && rmq_dispatch(turns, 100, NULL, NULL) == RMQ_OK);
    }
    (void)put(turns, RMQ_TEXT("T"), 0, 10);
    (void)put(each, RMQ_TEXT("T"), 0, 10);
    rmq_start_flush(&job, turns); /* a flush covers what no turn has written yet */
    EXPECT(run(&disks[1], &job, NULL) == RMQ_OK && job.result == each->log.files.wrote);
    for (size_t i = 0; i < disks[0].count; i++) {
        const memory_file *one = disks[0].files[i], *other = memory_find(&disks[1], one->path);
        EXPECT(strncmp(one->path, "commitlog/", 10) != 0 ||
               (other != NULL && memcmp(one->data, other->data, (size_t)one->size) == 0));
    }
    (void)put(turns, RMQ_TEXT("T"), 0, 10);
    disks[1].fail_at = disks[1].writes + 1;
    EXPECT(rmq_write_appended(turns) == RMQ_DISK_FULL && !rmq_accepts_puts(turns));
    rmq_store_free(each);
    rmq_store_free(turns);
    memory_free(&disks[0]);
    memory_free(&disks[1]);
}

int main(void)
{
    static const int64_t tails[] = {0, 60, 640};

    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        live(tails[i]);
        flush_while_queues_go(tails[i]);
        fill_at_every_write(tails[i]);
    }
    follow();
    count_writes();
    write_by_turns();
    printf("failures: %d\n", failures);
    return failures == 0 ? 0 : 1;
}
