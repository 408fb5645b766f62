/* SPDX-License-Identifier: Apache-2.0 */
/* job_layout.c - planning from a manifest, and which worker owns which shard.
 *
 * Shards are dealt out to the workers that fold, beginning with another one for every fold, so that
 * folds with one shard don't all end up on one worker. The rules use the manifest and nothing else:
 * every node computes the same owners without asking another one. The price is that a worker that
 * is lost for good keeps its shards, until it is back or the job is submitted again.
 */
#include "cluster/role/job_layout.h"

#include <stdio.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/expr/sentiment_model.h"
#include "cluster/role/build_id.h"
#include "engine/sql/compile.h"
#include "engine/sql/explain.h"

const char *const job_layout_build = BUILD_ID;

struct text job_layout_build_with(const struct sentiment_model *sentiment,
                                  char out[JOB_LAYOUT_BUILD_SIZE])
{
    bool is_own = sentiment == NULL || sentiment->checksum == sentiment_builtin.checksum;
    return is_own ? text_of(job_layout_build) : job_layout_build_naming(sentiment, out);
}

struct text job_layout_build_naming(const struct sentiment_model *sentiment,
                                    char out[JOB_LAYOUT_BUILD_SIZE])
{
    if (sentiment == NULL) sentiment = &sentiment_builtin;
    int size = snprintf(out, JOB_LAYOUT_BUILD_SIZE, "%s+sentiment-%016llx", job_layout_build,
                        (unsigned long long)sentiment->checksum);
    ASSERT(size > 0 && size < JOB_LAYOUT_BUILD_SIZE);
    return text_of(out);
}

static status job_layout_memory(struct error *err)
{
    return error_set(err, STATUS_MEMORY, "out of memory while a job was planned");
}

/* ---- planning ---- */

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static status measure_table(void *context, const struct table *table, uint64_t *out_bytes,
                            struct error *err)
{
    const struct manifest *manifest = context;
    (void)err;
    for (uint32_t i = 0; i < manifest->table_count; i++) {
        if (!text_equal_ignoring_case(manifest->tables[i].name, table->name)) continue;
        for (uint32_t j = 0; j < manifest->tables[i].file_count; j++) {
            *out_bytes = add_saturated(*out_bytes, manifest->tables[i].files[j].size);
        }
    }
    return STATUS_OK;
}

static status plan_manifest(struct manifest *manifest, struct arena *arena, struct plan **out_plan,
                            struct error *err)
{
    struct compile_query *queries =
        arena_array(arena, struct compile_query, manifest->query_count + 1);
    struct compile_setting *settings =
        arena_array(arena, struct compile_setting, manifest->setting_count + 1);
    if (queries == NULL || settings == NULL) return job_layout_memory(err);
    for (uint32_t i = 0; i < manifest->query_count; i++) {
        queries[i] = (struct compile_query){manifest->queries[i].name, manifest->queries[i].sql};
    }
    for (uint32_t i = 0; i < manifest->setting_count; i++) {
        settings[i] =
            (struct compile_setting){manifest->settings[i].name, manifest->settings[i].value};
    }
    struct compile_input input = {
        .tables_sql = manifest->tables_sql,
        .queries = queries,
        .query_count = manifest->query_count,
        .settings = settings,
        .setting_count = manifest->setting_count,
        .measure = measure_table,
        .context = manifest,
        .broadcast_limit = manifest->broadcast_limit,
    };
    return compile_queries(&input, arena, out_plan, err);
}

/* The hash of EXPLAIN: plans that differ in a way that matters differ in its words. */
static status fingerprint(const struct plan *plan, uint64_t *out_hash, struct error *err)
{
    struct buf text = {0};
    explain_json(plan, &text);
    status result = STATUS_OK;
    if (text.failed) {
        result = job_layout_memory(err);
    } else {
        *out_hash = hash_bytes(text.bytes, text.size);
    }
    buf_done(&text);
    return result;
}

status job_layout_fingerprint(struct manifest *manifest, struct error *err)
{
    struct arena arena;
    struct plan *plan;
    arena_init(&arena, NULL);
    status result = plan_manifest(manifest, &arena, &plan, err);
    if (result == STATUS_OK) result = fingerprint(plan, &manifest->plan, err);
    arena_done(&arena);
    return result;
}

/* ---- needs ---- */

static void need_scalars(const struct expr *expr, void *context)
{
    bool *needs = context;
    if (expr->kind == EXPR_SCALAR) needs[expr->fold] = true;
}

static void need_pipeline(const struct pipeline *pipeline, bool *needs)
{
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        const struct op *op = &pipeline->ops[i];
        if (op->kind == OP_PROBE) needs[op->side] = true;
        for (uint32_t j = 0; j < op->expr_count; j++) {
            expr_visit(op->exprs[j], need_scalars, needs);
        }
    }
}

static void rest_also(bool *own, const bool *other, uint32_t scan_count)
{
    for (uint32_t i = 0; i < scan_count; i++) {
        own[i] = own[i] || other[i];
    }
}

/* One pass is enough: a plan lists folds behind those that they depend on. */
static status find_rests(struct job_layout *layout, struct error *err)
{
    const struct plan *plan = layout->plan;
    uint32_t scans = plan->scan_count;
    bool *rests = arena_array(&layout->arena, bool, (size_t)(plan->fold_count + 1) * (scans + 1));
    if (rests == NULL) return job_layout_memory(err);
    for (uint32_t fold = 0; fold < plan->fold_count; fold++) {
        bool *own = rests + (size_t)fold * scans;
        for (uint32_t i = 0; i < plan->pipeline_count; i++) {
            const struct pipeline *pipeline = &plan->pipelines[i];
            if (pipeline->target != fold) continue;
            if (pipeline->source_kind == SOURCE_SCAN) {
                own[pipeline->source] = true;
            } else {
                rest_also(own, rests + (size_t)pipeline->source * scans, scans);
            }
            for (uint32_t side = 0; side < plan->fold_count; side++) {
                if (!layout->pipeline_needs[(size_t)i * plan->fold_count + side]) continue;
                rest_also(own, rests + (size_t)side * scans, scans);
            }
        }
    }
    layout->rests_on = rests;
    return STATUS_OK;
}

static status find_needs(struct job_layout *layout, struct error *err)
{
    const struct plan *plan = layout->plan;
    bool *needs =
        arena_array(&layout->arena, bool, (size_t)(plan->scan_count + 1) * (plan->fold_count + 1));
    bool *copied = arena_array(&layout->arena, bool, plan->fold_count + 1);
    bool *pipeline_needs = arena_array(&layout->arena, bool,
                                       (size_t)(plan->pipeline_count + 1) * (plan->fold_count + 1));
    if (needs == NULL || copied == NULL || pipeline_needs == NULL) return job_layout_memory(err);
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        bool *own = pipeline_needs + (size_t)i * plan->fold_count;
        need_pipeline(pipeline, own);
        for (uint32_t fold = 0; fold < plan->fold_count; fold++) {
            if (!own[fold]) continue;
            copied[fold] = true;
            if (pipeline->source_kind != SOURCE_SCAN) continue;
            needs[(size_t)pipeline->source * plan->fold_count + fold] = true;
        }
    }
    layout->needs = needs;
    layout->pipeline_needs = pipeline_needs;
    layout->copied = copied;
    return STATUS_OK;
}

enum { SHARDS_MAX = 1024 };

/* A decoder checks the form; this checks the numbers that the rules below divide by. */
static status check_manifest(const struct manifest *manifest, struct error *err)
{
    bool valid = manifest->chunk_bytes > 0 && manifest->field_limit > 0 &&
                 manifest->shard_count > 0 && manifest->shard_count <= SHARDS_MAX;
    for (uint32_t i = 0; i < manifest->worker_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            valid = valid && !text_equal(manifest->workers[i].name, manifest->workers[j].name);
        }
    }
    if (valid) return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, "a manifest has sizes or workers that can't be");
}

static status find_workers(struct job_layout *layout, struct error *err)
{
    const struct manifest *manifest = &layout->manifest;
    uint32_t *workers = arena_array(&layout->arena, uint32_t, manifest->worker_count + 1);
    if (workers == NULL) return job_layout_memory(err);
    for (uint32_t i = 0; i < manifest->worker_count; i++) {
        if (manifest->workers[i].folds) workers[layout->fold_worker_count++] = i;
    }
    if (layout->fold_worker_count == 0) {
        return error_set(err, STATUS_USAGE, "no worker of the manifest folds");
    }
    layout->fold_workers = workers;
    return STATUS_OK;
}

static status job_layout_init(struct job_layout *layout, struct text bytes, struct error *err)
{
    struct manifest *manifest = &layout->manifest;
    unsigned char *copy = arena_alloc(&layout->arena, (size_t)bytes.size + 1, 8);
    if (copy == NULL) return job_layout_memory(err);
    if (bytes.size > 0) memcpy(copy, bytes.bytes, bytes.size);
    layout->bytes = (struct text){(const char *)copy, bytes.size};
    layout->hash = manifest_hash(layout->bytes);
    TRY(manifest_decode(layout->bytes, &layout->arena, manifest, err));
    TRY(check_manifest(manifest, err));
    char own[JOB_LAYOUT_BUILD_SIZE];
    struct text build = job_layout_build_with(layout->sentiment, own);
    if (!text_equal(manifest->build, build)) {
        return error_set(err, STATUS_USAGE,
                         "the job was planned by build %.*s and this is build %.*s: let all nodes "
                         "and clients run the same one, with the same sentiment_model",
                         TEXT_ARGS(manifest->build), TEXT_ARGS(build));
    }
    struct plan *plan;
    uint64_t hash = 0;
    TRY(plan_manifest(manifest, &layout->arena, &plan, err));
    TRY(fingerprint(plan, &hash, err));
    if (hash != manifest->plan) {
        return error_set(err, STATUS_USAGE,
                         "the job's SQL gives another plan here: let all nodes run the same build");
    }
    layout->plan = plan;
    uint32_t *shard_counts = arena_array(&layout->arena, uint32_t, plan->fold_count + 1);
    if (shard_counts == NULL) return job_layout_memory(err);
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        shard_counts[i] = fold_shard_count(&plan->folds[i], manifest->shard_count);
    }
    layout->shard_counts = shard_counts;
    TRY(find_workers(layout, err));
    TRY(find_needs(layout, err));
    return find_rests(layout, err);
}

status job_layout_create(struct text bytes, const struct sentiment_model *sentiment,
                         struct job_layout **out, struct error *err)
{
    struct job_layout *layout = memory_alloc(NULL, sizeof *layout);
    if (layout == NULL) return job_layout_memory(err);
    *layout = (struct job_layout){.uses = 1, .sentiment = sentiment};
    arena_init(&layout->arena, NULL);
    status result = job_layout_init(layout, bytes, err);
    if (result != STATUS_OK) {
        job_layout_release(layout);
        return result;
    }
    *out = layout;
    return STATUS_OK;
}

struct job_layout *job_layout_keep(struct job_layout *layout)
{
    atomic_fetch_add(&layout->uses, 1);
    return layout;
}

void job_layout_release(struct job_layout *layout)
{
    if (layout == NULL || atomic_fetch_sub(&layout->uses, 1) != 1) return;
    arena_done(&layout->arena);
    memory_free(NULL, layout, sizeof *layout);
}

/* ---- ownership ---- */

uint32_t job_layout_owner(const struct job_layout *layout, uint32_t fold, uint32_t shard)
{
    return layout->fold_workers[(fold + shard) % layout->fold_worker_count];
}

uint32_t job_layout_counter_owner(const struct job_layout *layout, uint32_t scan)
{
    return layout->fold_workers[scan % layout->fold_worker_count];
}

static bool owns_some(const struct job_layout *layout, uint32_t fold, uint32_t worker)
{
    for (uint32_t shard = 0; shard < layout->shard_counts[fold]; shard++) {
        if (job_layout_owner(layout, fold, shard) == worker) return true;
    }
    return false;
}

bool job_layout_feeds(const struct job_layout *layout, enum stream_source kind, uint32_t source,
                      uint32_t worker)
{
    const struct plan *plan = layout->plan;
    if (kind == STREAM_SCAN && job_layout_counter_owner(layout, source) == worker) return true;
    if (kind == STREAM_COPY) return layout->copied[source];
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        bool is_source = (pipeline->source_kind == SOURCE_SCAN) == (kind == STREAM_SCAN) &&
                         pipeline->source == source;
        if (is_source && owns_some(layout, pipeline->target, worker)) return true;
    }
    return false;
}

uint32_t job_layout_worker(const struct job_layout *layout, struct text name)
{
    uint32_t i = 0;
    while (i < layout->manifest.worker_count &&
           !text_equal(layout->manifest.workers[i].name, name)) {
        i++;
    }
    return i;
}

const struct manifest_table *job_layout_files(const struct job_layout *layout, uint32_t table)
{
    const struct manifest *manifest = &layout->manifest;
    struct text name = layout->plan->tables[table].name;
    for (uint32_t i = 0; i < manifest->table_count; i++) {
        if (text_equal_ignoring_case(manifest->tables[i].name, name)) return &manifest->tables[i];
    }
    return NULL;
}

uint64_t job_layout_chunk_limit(const struct job_layout *layout, uint32_t scan)
{
    const struct manifest_table *files = job_layout_files(layout, layout->plan->scans[scan].table);
    uint64_t limit = 0;
    for (uint32_t i = 0; files != NULL && i < files->file_count; i++) {
        uint64_t chunks = files->files[i].size / layout->manifest.chunk_bytes;
        limit = add_saturated(limit, add_saturated(chunks, 1));
    }
    return limit;
}

uint32_t job_layout_work_queue(const struct job_layout *layout, uint64_t number,
                               uint32_t queue_count)
{
    return (uint32_t)((layout->hash + number) % queue_count);
}
