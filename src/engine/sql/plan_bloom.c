/* SPDX-License-Identifier: Apache-2.0 */
/* plan_bloom.c - of a partitioned join, the larger side sends only rows that may have a partner.
 *
 * The hashes of the smaller side's keys are collected beside the rows themselves, and every map of
 * the larger side gets them as a Bloom filter (Bloom, "Space/Time Trade-offs in Hash Coding with
 * Allowable Errors", CACM 13(7), 1970; as a semijoin reducer: Bratbergsengen, VLDB 1984): some bits
 * per key, which let through every row that has a partner and few others. So the larger side waits
 * for the smaller one, and most of it is neither sent nor kept. Which rows get through is a
 * function of the keys alone.
 */
#include "engine/sql/bind_expr.h"
#include "engine/sql/plan_builder.h"

/* What a row of the smaller side costs every mapper. */
static const double HASH_BYTES = 8;
/* How much smaller it must be: of a side that has partners for all, nothing would be left out. */
static const double BLOOM_SHARE = 0.5;

/* Whether what the stream comes from, by whatever way, is the table. */
static status reads_table(const struct planner *planner, const struct stream *stream,
                          uint32_t table, bool *out_reads, struct error *err)
{
    bool *marked = arena_array(planner->arena, bool, planner->folds.count + 1);
    if (marked == NULL) return binder_memory(err);
    *out_reads = stream->source_kind == SOURCE_SCAN && stream->source == table;
    if (stream->source_kind == SOURCE_FOLD) planner_mark_folds(planner, stream->source, marked);
    planner_mark_used(stream->ops, stream->op_count, marked);
    for (uint32_t i = planner->folds.count; i > 0; i--) {
        if (marked[i - 1]) planner_mark_folds(planner, i - 1, marked);
    }
    for (uint32_t i = 0; i < planner->pipelines.count; i++) {
        const struct pipeline *pipeline = &planner->pipelines.items[i];
        if (!marked[pipeline->target]) continue;
        if (pipeline->source_kind == SOURCE_SCAN && pipeline->source == table) *out_reads = true;
    }
    return STATUS_OK;
}

static status is_worth_it(const struct planner *planner, const struct stream *small,
                          const struct stream *large, uint32_t key_count, bool *out_worth_it,
                          struct error *err)
{
    *out_worth_it = key_count > 0 && small->rows <= large->rows * BLOOM_SHARE &&
                    small->rows * HASH_BYTES <= (double)planner->catalog->broadcast_limit;
    if (!*out_worth_it || large->source_kind == SOURCE_FOLD) return STATUS_OK;
    /* A table that both come from would be read twice. */
    bool reads = false;
    TRY(reads_table(planner, small, large->source, &reads, err));
    *out_worth_it = !reads;
    return STATUS_OK;
}

/* Appends the stream's columns as they are. */
static status add_all(struct planner *planner, const struct stream *stream, uint32_t count,
                      struct projection *projection, struct error *err)
{
    struct schema schema = stream_schema(planner, stream);
    for (uint32_t i = 0; i < count; i++) {
        struct column_place place = {stream->columns[i], schema.fields[i].type};
        TRY(projection_add_position(planner, projection, i, place, err));
    }
    return STATUS_OK;
}

static status add_hash(struct planner *planner, const struct stream *stream, uint32_t key_count,
                       struct projection *projection, struct error *err)
{
    struct schema schema = stream_schema(planner, stream);
    const struct expr **args = arena_array(planner->arena, const struct expr *, key_count);
    if (args == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        args[i] = expr_column(planner->arena, i, schema.fields[i].type);
        if (args[i] == NULL) return binder_memory(err);
    }
    const struct expr *hash =
        expr_call(planner->arena, FUNCTION_KEY_HASH, TYPE(INT), args, key_count);
    if (hash == NULL) return binder_memory(err);
    projection->placed[projection->count] = hash;
    projection_add(projection, hash, COLUMN_NONE);
    return STATUS_OK;
}

/* The stream itself continues unchanged. */
static status collect_bloom(struct planner *planner, struct stream stream, uint32_t key_count,
                            struct side *out_side, struct error *err)
{
    struct projection projection;
    TRY(projection_init(planner, &projection, 1, err));
    TRY(add_hash(planner, &stream, key_count, &projection, err));
    TRY(stream_project(planner, &stream, &projection, err));
    TRY(stream_collect(planner, &stream, "build Bloom filter", err));
    struct fold *fold = &planner->folds.items[stream.source];
    fold->is_build_side = true;
    fold->is_bloom = true;
    fold->side_keys = 1;
    *out_side = (struct side){
        .fold = stream.source, .columns = stream.columns, .column_count = stream.column_count};
    return STATUS_OK;
}

status stream_bloom(struct planner *planner, const struct stream *small, struct stream *large,
                    uint32_t key_count, struct error *err)
{
    bool worth_it = false;
    TRY(is_worth_it(planner, small, large, key_count, &worth_it, err));
    if (!worth_it) return STATUS_OK;
    struct side side;
    TRY(collect_bloom(planner, *small, key_count, &side, err));
    uint32_t column_count = large->column_count;
    struct projection hashed;
    struct projection bare;
    uint32_t *position = arena_array(planner->arena, uint32_t, 1);
    if (position == NULL) return binder_memory(err);
    *position = column_count;
    TRY(projection_init(planner, &hashed, column_count + 1, err));
    TRY(add_all(planner, large, column_count, &hashed, err));
    TRY(add_hash(planner, large, key_count, &hashed, err));
    TRY(stream_project(planner, large, &hashed, err));
    struct probe probe = {
        .side = &side, .key_positions = position, .key_count = 1, .kind = PROBE_SEMI};
    TRY(stream_probe(planner, large, &probe, err));
    TRY(projection_init(planner, &bare, column_count, err));
    TRY(add_all(planner, large, column_count, &bare, err));
    return stream_project(planner, large, &bare, err);
}
