/* SPDX-License-Identifier: Apache-2.0 */
/* engine_case.h - an analysis in a folder of its own, run with whatever a test wants to vary.
 *
 *     engine_open -> engine_write* -> (engine_run -> engine_done)* -> engine_close
 *
 * Written without cmocka, so that programs that report by themselves can use it: what fails here is
 * the machine, not the thing tested, and ends the program.
 */
#ifndef UNIT_ENGINE_LOCAL_ENGINE_CASE_H
#define UNIT_ENGINE_LOCAL_ENGINE_CASE_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/array.h"
#include "engine/base/buf.h"
#include "engine/base/random.h"
#include "engine/data/print_csv.h"
#include "engine/local/exchange.h"
#include "engine/local/job.h"
#include "engine/local/local.h"

enum { ENGINE_PATH_SIZE = 512, ENGINE_QUERY_LIMIT = 16 };

struct engine_case {
    char analysis[ENGINE_PATH_SIZE]; /* tables.sql and queries. */
    char data[ENGINE_PATH_SIZE];     /* CSV files. */
};

struct engine_options {
    uint32_t threads; /* 0: one. */
    uint32_t chunk_bytes;
    uint32_t shard_count;
    uint32_t field_limit;
    uint64_t memory_limit;
    uint64_t broadcast_limit;     /* 0: the default. */
    uint64_t shuffle_seed;        /* See engine_shuffle; 0: batches are applied as they come. */
    struct exchange_fault *fault; /* Instead of shuffling. */
    const struct text *queries;   /* Names; count 0: all. */
    uint32_t query_count;
    const struct job_setting *settings;
    uint32_t setting_count;
};

struct engine_result {
    status code;
    bool opened; /* job_open passed: a failure is one of the run. */
    bool balanced;
    struct error err;
    struct buf rows[ENGINE_QUERY_LIMIT]; /* By query: its answer as CSV. */
    uint32_t query_count;
    uint32_t batch_count; /* How often rows were delivered. */
    struct buf audit;     /* All but their history, as text. */
};

static inline void engine_require(bool condition, const char *what)
{
    if (condition) return;
    (void)fprintf(stderr, "cannot go on: %s: %s\n", what, strerror(errno));
    exit(99);
}

static inline const char *engine_path(const char *folder, const char *name,
                                      char out[ENGINE_PATH_SIZE])
{
    int size = snprintf(out, ENGINE_PATH_SIZE, "%s/%s", folder, name);
    engine_require(size > 0 && size < ENGINE_PATH_SIZE, "a path is too long");
    return out;
}

static inline void engine_open(struct engine_case *engine)
{
    const char *base = getenv("TMPDIR");
    char root[ENGINE_PATH_SIZE];
    (void)engine_path(base == NULL ? "/tmp" : base, "millrace-test-XXXXXX", root);
    engine_require(mkdtemp(root) != NULL, root);
    (void)engine_path(root, "analysis", engine->analysis);
    (void)engine_path(root, "data", engine->data);
    engine_require(mkdir(engine->analysis, 0700) == 0, engine->analysis);
    engine_require(mkdir(engine->data, 0700) == 0, engine->data);
}

static inline void engine_empty(const char *folder)
{
    DIR *entries = opendir(folder);
    engine_require(entries != NULL, folder);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        char path[ENGINE_PATH_SIZE];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        engine_require(unlink(engine_path(folder, entry->d_name, path)) == 0, path);
    }
    (void)closedir(entries); /* Nothing was written through it. */
}

static inline void engine_close(struct engine_case *engine)
{
    engine_empty(engine->analysis);
    engine_empty(engine->data);
    engine_require(rmdir(engine->analysis) == 0 && rmdir(engine->data) == 0, engine->data);
    char *last = strrchr(engine->data, '/');
    *last = '\0';
    engine_require(rmdir(engine->data) == 0, engine->data);
}

static inline void engine_write(const char *folder, const char *name, struct text text)
{
    char path[ENGINE_PATH_SIZE];
    FILE *file = fopen(engine_path(folder, name, path), "wb");
    engine_require(file != NULL, path);
    engine_require(fwrite(text.bytes, 1, text.size, file) == text.size, path);
    engine_require(fclose(file) == 0, path);
}

static inline void engine_write_string(const char *folder, const char *name, const char *string)
{
    engine_write(folder, name, text_of(string));
}

/* Batches wait until their producers are done, and are then applied in an order made from the seed:
 * answers must not depend on it. */
struct engine_shuffle {
    struct exchange_fault fault; /* First: pointers to it are pointers to this. */
    pthread_mutex_t lock;
    struct random random;
    ARRAY_OF(struct exchange_batch) waiting;
};

static inline status engine_shuffle_carry(struct exchange_fault *fault, struct exchanges *exchanges,
                                          struct exchange_batch *batch, uint64_t row_count,
                                          struct exchange_count *sent, struct error *err)
{
    struct engine_shuffle *shuffle = (struct engine_shuffle *)fault;
    (void)row_count, (void)sent;
    pthread_mutex_lock(&shuffle->lock);
    struct exchange_batch *waiting = array_add(&shuffle->waiting, exchanges->budget);
    if (waiting != NULL) {
        *waiting = *batch;
        batch->bytes = (struct buf){.budget = batch->bytes.budget};
    }
    pthread_mutex_unlock(&shuffle->lock);
    return waiting == NULL ? error_memory(err) : STATUS_OK;
}

static inline status engine_shuffle_release(struct exchange_fault *fault,
                                            struct exchanges *exchanges, struct error *err)
{
    struct engine_shuffle *shuffle = (struct engine_shuffle *)fault;
    status result = STATUS_OK;
    while (shuffle->waiting.count > 0) {
        size_t chosen = random_u64(&shuffle->random) % shuffle->waiting.count;
        struct exchange_batch batch = shuffle->waiting.items[chosen];
        shuffle->waiting.items[chosen] = shuffle->waiting.items[--shuffle->waiting.count];
        if (result == STATUS_OK) result = exchange_apply(exchanges, &batch, err);
        buf_done(&batch.bytes);
    }
    array_done(&shuffle->waiting, exchanges->budget);
    return result;
}

struct engine_collector {
    struct engine_result *result;
    const struct plan *plan;
};

static inline status engine_collect(void *context, uint32_t query, const struct batch *batch,
                                    struct error *err)
{
    struct engine_collector *collector = context;
    struct buf *rows = &collector->result->rows[query];
    collector->result->batch_count++;
    print_csv_rows(&collector->plan->queries[query].schema, batch, rows);
    if (rows->failed) return error_set(err, STATUS_MEMORY, "no memory for the rows of a test");
    return STATUS_OK;
}

static inline void engine_print_lines(struct buf *out, const char *kind,
                                      const struct audit_line *lines, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_format(out, "  %s %.*s: %s: %llu, first %.*s:%llu\n", kind, TEXT_ARGS(lines[i].column),
                   lines[i].reason, (unsigned long long)lines[i].count,
                   TEXT_ARGS(lines[i].first_file), (unsigned long long)lines[i].first_line);
    }
}

/* What does not depend on how the data was cut: tables, and the rows that stages gave. */
static inline void engine_print_audit(struct buf *out, const struct audit *audit)
{
    buf_format(out, "balanced %d\n", audit->balanced);
    for (uint32_t i = 0; i < audit->table_count; i++) {
        const struct audit_table *table = &audit->tables[i];
        buf_format(out, "table %.*s: %llu files, %llu bytes, %llu records, %llu kept\n",
                   TEXT_ARGS(table->name), (unsigned long long)table->file_count,
                   (unsigned long long)table->byte_count, (unsigned long long)table->record_count,
                   (unsigned long long)table->kept_count);
        engine_print_lines(out, "dropped", table->dropped, table->dropped_count);
        engine_print_lines(out, "nulled", table->nulled, table->nulled_count);
    }
    for (uint32_t i = 0; i < audit->stage_count; i++) {
        const struct audit_stage *stage = &audit->stages[i];
        bool is_map = strcmp(stage->kind, "map") == 0;
        buf_format(out, "%.*s %s %u %s: malformed %llu", TEXT_ARGS(stage->query), stage->kind,
                   stage->id, stage->label, (unsigned long long)stage->malformed);
        /* A map aggregates and ranks within its batch: what it sends depends on the cut. */
        if (is_map) buf_format(out, ", in %llu\n", (unsigned long long)stage->rows_in);
        if (!is_map) buf_format(out, ", out %llu\n", (unsigned long long)stage->rows_out);
    }
}

static inline void engine_run(const struct engine_case *engine,
                              const struct engine_options *options, struct engine_result *result)
{
    *result = (struct engine_result){0};
    struct job_options job_options = {
        .analysis_dir = engine->analysis,
        .data_dir = engine->data,
        .queries = options->queries,
        .query_count = options->query_count,
        .settings = options->settings,
        .setting_count = options->setting_count,
        .thread_count = options->threads == 0 ? 1 : options->threads,
        .memory_limit = options->memory_limit,
        .chunk_bytes = options->chunk_bytes,
        .broadcast_limit = options->broadcast_limit,
        .field_limit = options->field_limit,
    };
    struct job *job = NULL;
    result->code = job_open(&job_options, &job, &result->err);
    if (result->code != STATUS_OK) return;
    result->opened = true;
    struct engine_collector collector = {result, job_plan(job)};
    struct job_events events = {
        .context = &collector, .rows = engine_collect, .stream_query = JOB_STREAM_NONE};
    struct local_options extra = {
        .events = &events,
        .shard_count = options->shard_count,
        .fault = options->fault,
    };
    struct engine_shuffle shuffle = {
        .fault = {.carry = engine_shuffle_carry, .release = engine_shuffle_release},
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .random = {options->shuffle_seed},
    };
    if (options->shuffle_seed != 0) extra.fault = &shuffle.fault;
    result->query_count = collector.plan->query_count;
    engine_require(result->query_count <= ENGINE_QUERY_LIMIT, "too many queries");
    for (uint32_t i = 0; i < result->query_count; i++) {
        print_csv_header(&collector.plan->queries[i].schema, &result->rows[i]);
    }
    result->code = job_run_with(job, &extra, &result->err);
    result->balanced = job_audit(job)->balanced;
    engine_print_audit(&result->audit, job_audit(job));
    if (result->code == STATUS_OK && result->audit.failed) {
        result->code = error_set(&result->err, STATUS_MEMORY, "no memory for the audit of a test");
    }
    job_close(job);
}

static inline void engine_done(struct engine_result *result)
{
    for (uint32_t i = 0; i < ENGINE_QUERY_LIMIT; i++) {
        buf_done(&result->rows[i]);
    }
    buf_done(&result->audit);
}

static inline struct text engine_text(const struct buf *buf)
{
    return (struct text){(const char *)buf->bytes, (uint32_t)buf->size};
}

#endif
