/* SPDX-License-Identifier: Apache-2.0 */
/* scan_run.c - a chunk is parsed once, and every pipeline runs over the same parsed batches, less
 * the rows that conditions they have in common leave out. */
#include "engine/exec/scan_run.h"

#include "engine/base/arena.h"
#include "engine/exec/common_filter.h"

struct scan_run {
    struct materializer materializer; /* First: the pipelines see only this. */
    struct scan_run_options options;
    struct chunk_scan *scan;
    struct pipeline_run **pipelines;
    struct common_filter *filter;
    struct pipeline_common common;
    struct arena arena;
};

static status load_column(struct materializer *materializer, uint32_t column,
                          struct selection selection, uint32_t prefix, struct error *err)
{
    struct scan_run *run = (struct scan_run *)materializer;
    return chunk_scan_materialize(run->scan, column, selection, prefix, err);
}

static status scan_run_init(struct scan_run *run, uint32_t *out_culprit, struct error *err)
{
    const struct scan_run_options *options = &run->options;
    const struct plan *plan = options->plan;
    const struct scan *scan = options->scan;
    *out_culprit = SCAN_RUN_ITSELF;
    run->pipelines = arena_array(&run->arena, struct pipeline_run *, scan->pipeline_count + 1);
    if (run->pipelines == NULL) return error_memory(err);
    TRY(chunk_scan_create(&plan->tables[scan->table], scan->used, options->field_limit,
                          options->budget, &run->scan, err));
    for (uint32_t i = 0; i < scan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[scan->pipelines[i]];
        *out_culprit = i;
        TRY(pipeline_run_create(pipeline, options->finished,
                                options->shard_counts[pipeline->target], options->budget,
                                &run->pipelines[i], err));
    }
    *out_culprit = SCAN_RUN_ITSELF;
    TRY(pipeline_runs_share(run->pipelines, scan->pipeline_count, &run->common, &run->arena, err));
    struct common_filter_options filter = {.runs = run->pipelines,
                                           .run_count = scan->pipeline_count,
                                           .finished = options->finished,
                                           .budget = options->budget};
    return common_filter_create(&filter, &run->arena, &run->filter, out_culprit, err);
}

status scan_run_create(const struct scan_run_options *options, struct scan_run **out_run,
                       uint32_t *out_culprit, struct error *err)
{
    *out_culprit = SCAN_RUN_ITSELF;
    struct scan_run *run = memory_alloc(options->budget, sizeof *run);
    if (run == NULL) return error_memory(err);
    *run = (struct scan_run){.materializer = {.load = load_column}, .options = *options};
    arena_init(&run->arena, options->budget);
    arena_init(&run->common.arena, options->budget);
    status result = scan_run_init(run, out_culprit, err);
    if (result != STATUS_OK) {
        scan_run_destroy(run);
        return result;
    }
    *out_run = run;
    return STATUS_OK;
}

void scan_run_destroy(struct scan_run *run)
{
    if (run == NULL) return;
    common_filter_destroy(run->filter);
    for (uint32_t i = 0; run->pipelines != NULL && i < run->options.scan->pipeline_count; i++) {
        pipeline_run_destroy(run->pipelines[i]);
    }
    chunk_scan_destroy(run->scan);
    arena_done(&run->common.arena);
    arena_done(&run->arena);
    memory_free(run->options.budget, run, sizeof *run);
}

status scan_run_chunk(struct scan_run *run, const struct chunk *chunk, uint32_t *out_culprit,
                      struct error *err)
{
    *out_culprit = SCAN_RUN_ITSELF;
    TRY(chunk_scan_begin(run->scan, chunk, err));
    for (bool more = true;;) {
        struct batch batch;
        struct selection selection;
        *out_culprit = SCAN_RUN_ITSELF;
        TRY(chunk_scan_next(run->scan, &batch, &selection, &more, err));
        if (!more) return STATUS_OK;
        TRY(common_filter_run(run->filter, &batch, selection, &run->materializer, out_culprit,
                              err));
        run->common.stamp++;
        for (uint32_t i = 0; i < run->options.scan->pipeline_count; i++) {
            struct selection left = common_filter_left(run->filter, i);
            *out_culprit = i;
            TRY(pipeline_run_push_left(run->pipelines[i], &batch, left, selection.count,
                                       &run->materializer, err));
        }
        arena_reset(&run->common.arena);
    }
}

uint32_t scan_run_error_offset(const struct scan_run *run)
{
    return chunk_scan_error_offset(run->scan);
}

const struct chunk_counters *scan_run_counters(const struct scan_run *run)
{
    return chunk_scan_counters(run->scan);
}

struct pipeline_run *scan_run_pipeline(struct scan_run *run, uint32_t index)
{
    return run->pipelines[index];
}

static void line_add(struct drop_counter *line, uint64_t chunk_number,
                     const struct drop_count *more)
{
    if (more->count == 0) return;
    if (line->count == 0 || chunk_number < line->first_chunk) {
        line->first_chunk = chunk_number;
        line->first_line = more->first_line;
    }
    line->count += more->count;
}

void table_counters_add(struct table_counters *table_counters, uint64_t chunk_number,
                        const struct chunk_counters *more)
{
    table_counters->record_count += more->record_count;
    table_counters->kept_count += more->kept_count;
    line_add(&table_counters->wrong_fields, chunk_number, &more->wrong_fields);
    for (uint32_t i = 0; i < table_counters->column_count; i++) {
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            line_add(&table_counters->dropped[i][reason], chunk_number, &more->dropped[i][reason]);
        }
        line_add(&table_counters->nulled[i], chunk_number, &more->nulled[i]);
    }
}
