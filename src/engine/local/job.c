/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - reads an analysis, plans it, opens its files and runs it.
 *
 * An analysis is a folder: tables.sql, and a file NAME.sql per query. Queries come in the order of
 * their names, numbers in them counting as numbers (q2 before q10).
 */
#include "engine/local/job.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "engine/local/local.h"
#include "engine/local/sentiment_file.h"
#include "engine/local/spill_folder.h"
#include "engine/local/table_files.h"
#include "engine/sql/compile.h"
#include "engine/sql/diagnostic.h"

enum {
    SOURCE_BYTES_MAX = 4 << 20,
    CHUNK_BYTES = 512 << 10,
    /* Each chunk has a cost of its own; but less data would make few of them, for many workers. */
    LARGE_CHUNK_BYTES = 4 << 20,
    LARGE_DATA_BYTES = 256 << 20,
    BUILD_SIDE_SHARE = 4, /* Of the memory limit a build side may take so much at most. */
    FIELD_BYTES_MAX = 64 << 20,
    MEMORY_SHARE_PERCENT = 80,
    NAMES_LIMIT = 256
};

struct job {
    struct budget budget;        /* Of everything that grows with the data, */
    struct spill_folder spill;   /* and where folds spill when it is short. */
    struct arena arena;          /* Plan and files; not counted: it is bounded by the SQL's size. */
    struct compile_input source; /* The analysis' texts. */
    struct plan *plan;
    const struct sentiment_model *sentiment; /* NULL: the one in the program. */
    struct table_files *files;               /* By the plan's tables; NULL without data. */
    uint32_t open_count;
    struct audit audit;
    struct job_options options;
    double started; /* Of the clock, and of the processor's. */
    double cpu_started;
    bool ran;
};

/* ---- the analysis ---- */

struct query_file {
    struct text name; /* "q1" */
};

static status memory_full(struct error *err)
{
    return error_set(err, STATUS_MEMORY, "out of memory while planning");
}

static status read_source(struct job *job, const char *folder, const char *file,
                          struct text *out_text, struct error *err)
{
    const char *path = file_path(folder, text_of(file), &job->arena);
    if (path == NULL) return memory_full(err);
    return file_read_whole(path, SOURCE_BYTES_MAX, &job->arena, out_text, err);
}

/* "q2" before "q10", "q5" before "q5b". */
static int compare_names(struct text a, struct text b)
{
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < a.size && j < b.size) {
        bool digits = isdigit((unsigned char)a.bytes[i]) && isdigit((unsigned char)b.bytes[j]);
        if (!digits) {
            if (a.bytes[i] != b.bytes[j]) {
                return (unsigned char)a.bytes[i] - (unsigned char)b.bytes[j];
            }
            i++, j++;
            continue;
        }
        uint64_t number_a = 0;
        uint64_t number_b = 0;
        for (; i < a.size && isdigit((unsigned char)a.bytes[i]); i++) {
            number_a = number_a * 10 + (uint64_t)(a.bytes[i] - '0');
        }
        for (; j < b.size && isdigit((unsigned char)b.bytes[j]); j++) {
            number_b = number_b * 10 + (uint64_t)(b.bytes[j] - '0');
        }
        if (number_a != number_b) return number_a < number_b ? -1 : 1;
    }
    return (int)(a.size - i) - (int)(b.size - j);
}

static int compare_query_files(const void *a, const void *b)
{
    return compare_names(((const struct query_file *)a)->name,
                         ((const struct query_file *)b)->name);
}

static status list_queries(struct job *job, struct query_file **out_files, uint32_t *out_count,
                           struct error *err)
{
    struct file_entry *entries;
    uint32_t entry_count;
    TRY(file_list(job->options.analysis_dir, &job->arena, &entries, &entry_count, err));
    struct query_file *files = arena_array(&job->arena, struct query_file, entry_count + 1);
    if (files == NULL) return memory_full(err);
    uint32_t count = 0;
    for (uint32_t i = 0; i < entry_count; i++) {
        struct text name = entries[i].name;
        bool is_sql = name.size > 4 && memcmp(name.bytes + name.size - 4, ".sql", 4) == 0;
        if (!is_sql || entries[i].is_folder || text_equal(name, TEXT_LITERAL("tables.sql"))) {
            continue;
        }
        files[count++].name = (struct text){name.bytes, name.size - 4};
    }
    if (count == 0) {
        return error_set(err, STATUS_USAGE,
                         "%s holds no queries: an analysis has tables.sql and a file per query, "
                         "such as q1.sql",
                         job->options.analysis_dir);
    }
    qsort(files, count, sizeof *files, compare_query_files);
    *out_files = files;
    *out_count = count;
    return STATUS_OK;
}

/* Keeps only the queries asked for, in the analysis' order. */
static status choose_queries(struct job *job, struct query_file *files, uint32_t *in_out_count,
                             struct error *err)
{
    const struct job_options *options = &job->options;
    if (options->query_count == 0) return STATUS_OK;
    struct text names[NAMES_LIMIT];
    char list[512] = "";
    size_t used = 0;
    uint32_t name_count = 0;
    for (uint32_t i = 0; i < *in_out_count && i < NAMES_LIMIT; i++) {
        names[name_count++] = files[i].name;
        if (used < sizeof list) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", i == 0 ? "" : ", ",
                                     TEXT_ARGS(files[i].name));
        }
    }
    for (uint32_t i = 0; i < options->query_count; i++) {
        bool known = false;
        for (uint32_t j = 0; j < *in_out_count; j++) {
            known = known || text_equal(options->queries[i], files[j].name);
        }
        char hint[SQL_SUGGESTION_SIZE];
        if (!known) {
            return error_set(err, STATUS_USAGE, "no query `%.*s` in %s%s (there are: %s)",
                             TEXT_ARGS(options->queries[i]), options->analysis_dir,
                             sql_suggest(hint, sizeof hint, options->queries[i], names, name_count),
                             list);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *in_out_count; i++) {
        for (uint32_t j = 0; j < options->query_count; j++) {
            if (text_equal(options->queries[j], files[i].name)) {
                files[kept++] = files[i];
                break;
            }
        }
    }
    *in_out_count = kept;
    return STATUS_OK;
}

/* ---- planning ---- */

static status read_query(struct job *job, const struct query_file *file, struct text *out_sql,
                         struct error *err)
{
    char name[512];
    int size = snprintf(name, sizeof name, "%.*s.sql", TEXT_ARGS(file->name));
    if (size < 0 || (size_t)size >= sizeof name) {
        return error_set(err, STATUS_USAGE, "a query's name is too long: %.*s",
                         TEXT_ARGS(file->name));
    }
    return read_source(job, job->options.analysis_dir, name, out_sql, err);
}

/* The size of a table's files, to choose what a join builds. What can't be found is reported later,
 * when the files are opened. */
static status measure_table(void *context, const struct table *table, uint64_t *out_bytes,
                            struct error *err)
{
    struct job *job = context;
    for (uint32_t i = 0; i < table->pattern_count; i++) {
        struct text *names;
        uint32_t count;
        if (file_glob(job->options.data_dir, table->patterns[i], &job->arena, &names, &count,
                      err) != STATUS_OK) {
            continue;
        }
        for (uint32_t j = 0; j < count; j++) {
            const char *path = file_path(job->options.data_dir, names[j], &job->arena);
            struct file_info info = {0};
            int fd = -1;
            if (path == NULL) return memory_full(err);
            if (file_open(path, &fd, &info, err) == STATUS_OK) *out_bytes += info.size;
            file_close(fd);
        }
        if (count > 0) break;
    }
    return STATUS_OK;
}

static status plan_job(struct job *job, struct error *err)
{
    const struct job_options *options = &job->options;
    struct query_file *files = NULL;
    uint32_t count = 0;
    TRY(read_source(job, options->analysis_dir, "tables.sql", &job->source.tables_sql, err));
    TRY(list_queries(job, &files, &count, err));
    TRY(choose_queries(job, files, &count, err));
    struct compile_query *queries = arena_array(&job->arena, struct compile_query, count + 1);
    struct compile_setting *settings =
        arena_array(&job->arena, struct compile_setting, options->setting_count + 1);
    if (queries == NULL || settings == NULL) return memory_full(err);
    for (uint32_t i = 0; i < count; i++) {
        queries[i].name = files[i].name;
        TRY(read_query(job, &files[i], &queries[i].sql, err));
    }
    for (uint32_t i = 0; i < options->setting_count; i++) {
        settings[i] =
            (struct compile_setting){options->settings[i].name, options->settings[i].value};
    }
    job->source.queries = queries;
    job->source.query_count = count;
    job->source.settings = settings;
    job->source.setting_count = options->setting_count;
    job->source.measure = options->data_dir != NULL ? measure_table : NULL;
    job->source.context = job;
    job->source.broadcast_limit = options->broadcast_limit;
    return compile_queries(&job->source, &job->arena, &job->plan, err);
}

/* ---- opening and closing ---- */

static status open_files(struct job *job, struct error *err)
{
    const struct plan *plan = job->plan;
    job->files = arena_array(&job->arena, struct table_files, plan->table_count + 1);
    if (job->files == NULL) return memory_full(err);
    for (uint32_t i = 0; i < plan->table_count; i++) {
        TRY(table_files_open(&plan->tables[i], job->options.data_dir, job->options.chunk_bytes,
                             &job->arena, &job->files[i], err));
        job->open_count = i + 1;
    }
    return STATUS_OK;
}

/* The caller has not said how large they should be. */
static void choose_chunks(struct job *job)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->open_count; i++) {
        bytes += job->files[i].byte_count;
    }
    if (bytes < LARGE_DATA_BYTES) return;
    job->options.chunk_bytes = LARGE_CHUNK_BYTES;
    for (uint32_t i = 0; i < job->open_count; i++) {
        table_files_cut(&job->files[i], LARGE_CHUNK_BYTES);
    }
}

static uint64_t default_memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_bytes <= 0) return 0;
    return (uint64_t)pages * (uint64_t)page_bytes / 100 * MEMORY_SHARE_PERCENT;
}

static uint32_t default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : (uint32_t)cores;
}

status job_open(const struct job_options *options, struct job **out_job, struct error *err)
{
    struct job *job = memory_alloc(NULL, sizeof *job);
    if (job == NULL) return memory_full(err);
    *job = (struct job){.options = *options};
    job->budget.limit_bytes =
        options->memory_limit != 0 ? options->memory_limit : default_memory_limit();
    budget_start(&job->budget, options->memory_taken);
    if (job->options.thread_count == 0) job->options.thread_count = default_threads();
    if (job->options.chunk_bytes == 0) job->options.chunk_bytes = CHUNK_BYTES;
    if (job->options.field_limit == 0) job->options.field_limit = FIELD_BYTES_MAX;
    if (job->options.broadcast_limit == 0) {
        job->options.broadcast_limit = COMPILE_BROADCAST_LIMIT;
    }
    /* A build side has to fit together with all the rest. */
    uint64_t side_most = job->budget.limit_bytes / BUILD_SIDE_SHARE;
    if (side_most > 0 && job->options.broadcast_limit > side_most) {
        job->options.broadcast_limit = side_most;
    }
    spill_folder_init(&job->spill,
                      options->temp_dir != NULL ? options->temp_dir : spill_folder_default());
    arena_init(&job->arena, NULL);
    status result = plan_job(job, err);
    if (result == STATUS_OK) {
        result = sentiment_file_read(options->sentiment_model, &job->arena, &job->sentiment, err);
    }
    if (result == STATUS_OK && options->data_dir != NULL) result = open_files(job, err);
    if (result == STATUS_OK && options->chunk_bytes == 0) choose_chunks(job);
    if (result != STATUS_OK) {
        job_close(job);
        return result;
    }
    *out_job = job;
    return STATUS_OK;
}

uint32_t job_chunk_bytes(const struct job *job)
{
    return job->options.chunk_bytes;
}

const struct plan *job_plan(const struct job *job)
{
    return job->plan;
}

const struct compile_input *job_source(const struct job *job)
{
    return &job->source;
}

const struct sentiment_model *job_sentiment(const struct job *job)
{
    return job->sentiment;
}

const struct job_options *job_options_of(const struct job *job)
{
    return &job->options;
}

struct arena *job_arena(struct job *job)
{
    return &job->arena;
}

struct table_files *job_files(struct job *job)
{
    return job->files;
}

struct result_sink {
    struct fold_sink sink;
    const struct job_events *events;
    const struct plan *plan;
    uint32_t query;
};

static status give_rows(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                        struct error *err)
{
    struct result_sink *result = (struct result_sink *)sink;
    (void)number; /* Rows come in order. */
    struct batch visible = *batch;
    visible.column_count = result->plan->queries[result->query].schema.count;
    return result->events->rows(result->events->context, result->query, &visible, err);
}

static status give_results(struct job *job, struct local_run *run, const struct job_events *events,
                           struct error *err)
{
    struct result_sink sink = {.sink = {.accept = give_rows}, .events = events, .plan = job->plan};
    for (uint32_t i = 0; i < job->plan->query_count; i++) {
        sink.query = i;
        TRY(local_run_result(run, i, &sink.sink, err));
    }
    return STATUS_OK;
}

/* Passes rows on, and remembers that there were some. */
struct row_watch {
    struct job_events events; /* As the run sees them. */
    const struct job_events *outer;
    bool has_given;
};

static status watch_rows(void *context, uint32_t query, const struct batch *batch,
                         struct error *err)
{
    struct row_watch *watch = context;
    watch->has_given = true;
    return watch->outer->rows(watch->outer->context, query, batch, err);
}

static void watch_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct row_watch *watch = context;
    watch->outer->progress(watch->outer->context, done_bytes, total_bytes);
}

static status run_once(struct job *job, struct local_options *options, struct error *err)
{
    struct local_run *run;
    options->plan = job->plan;
    TRY(local_run_create(options, &run, err));
    status result = local_run_execute(run, err);
    struct error audit_error;
    status audited = local_run_audit(run, &job->arena, &job->audit, &audit_error);
    if (result == STATUS_OK && audited != STATUS_OK) {
        *err = audit_error;
        result = audited;
    }
    job->audit.elapsed_seconds = clock_seconds() - job->started;
    job->audit.cpu_seconds = clock_cpu_seconds() - job->cpu_started;
    job->audit.thread_count = job->options.thread_count;
    job->audit.peak_memory_bytes = atomic_load(&job->budget.peak_bytes);
    job->audit.spilled_bytes = atomic_load(&job->spill.written_bytes);
    if (result == STATUS_OK) result = give_results(job, run, options->events, err);
    local_run_destroy(run);
    return result;
}

/* How large a build side becomes is an estimate. When one was larger than memory, the job is
 * planned anew without any: a partitioned join can spill to files. */
static status run_without_sides(struct job *job, struct local_options *options, struct error *err)
{
    const struct plan *planned = job->plan;
    job->source.broadcast_limit = 1;
    TRY(compile_queries(&job->source, &job->arena, &job->plan, err));
    ASSERT(job->plan->table_count == planned->table_count);
    return run_once(job, options, err);
}

static bool has_side(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (plan->folds[i].is_build_side) return true;
    }
    return false;
}

status job_run_with(struct job *job, const struct local_options *extra, struct error *err)
{
    ASSERT(job->files != NULL && !job->ran);
    job->ran = true;
    job->started = clock_seconds();
    job->cpu_started = clock_cpu_seconds();
    struct row_watch watch = {.events = *extra->events, .outer = extra->events};
    watch.events.context = &watch;
    watch.events.rows = watch_rows;
    if (extra->events->progress != NULL) watch.events.progress = watch_progress;
    struct local_options options = *extra;
    options.events = &watch.events;
    options.files = job->files;
    options.cancelled = job->options.cancelled;
    options.thread_count = job->options.thread_count;
    options.field_limit = job->options.field_limit;
    options.sentiment = job->sentiment;
    options.budget = &job->budget;
    options.store = &job->spill.store;
    status result = run_once(job, &options, err);
    if (result == STATUS_MEMORY && !watch.has_given && has_side(job->plan)) {
        result = run_without_sides(job, &options, err);
    }
    return result;
}

status job_run(struct job *job, const struct job_events *events, struct error *err)
{
    struct local_options options = {.events = events};
    return job_run_with(job, &options, err);
}

const struct audit *job_audit(const struct job *job)
{
    return &job->audit;
}

void job_close(struct job *job)
{
    if (job == NULL) return;
    for (uint32_t i = 0; i < job->open_count; i++) {
        table_files_close(&job->files[i]);
    }
    arena_done(&job->arena);
    memory_free(NULL, job, sizeof *job);
}
