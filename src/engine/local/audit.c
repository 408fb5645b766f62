/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - whether all that was sent was applied, and what a job tells about itself.
 *
 * Each exchange is counted at both ends by code that knows nothing of the other end, so a batch
 * that is lost, doubled or altered on its way shows here, and there is no answer. What was lost
 * before it was sent shows in the count of its source. This is the end-to-end argument (Saltzer,
 * Reed and Clark, ACM TOCS 2(4), 1984): no part in between has to be trusted.
 */
#include "engine/local/audit.h"

#include <stdio.h>

#include "engine/base/buf.h"
#include "engine/local/table_files.h"

/* ---- what was read ---- */

struct audit_context {
    const struct table_files *files;
    const uint32_t *chunk_lines;
    struct arena *arena;
};

static void place(const struct audit_context *context, const struct drop_counter *line,
                  struct audit_line *out)
{
    out->count = line->count;
    for (uint32_t i = 0; i < context->files->file_count; i++) {
        const struct table_file *file = &context->files->files[i];
        if (line->first_chunk >= file->first_chunk + file->chunk_count) continue;
        uint64_t lines = file->header_lines + line->first_line;
        for (uint64_t chunk = file->first_chunk; chunk < line->first_chunk; chunk++) {
            lines += context->chunk_lines[chunk];
        }
        out->first_file = file->name;
        out->first_line = lines + 1;
        return;
    }
}

static const char *unreadable(const struct audit_context *context, struct type type)
{
    char name[TYPE_NAME_SIZE];
    char text[TYPE_NAME_SIZE + 8];
    type_name(type, name);
    (void)snprintf(text, sizeof text, "not %s %s", type.kind == TYPE_INT ? "an" : "a",
                   name); /* Always fits. */
    return arena_copy_string(context->arena, text_of(text));
}

static bool report_table(const struct table_counters *table_counters, const struct table *table,
                         const struct table_files *files, const uint32_t *chunk_lines,
                         struct arena *arena, struct audit_table *out_book)
{
    struct audit_context context = {files, chunk_lines, arena};
    struct audit_line *dropped =
        arena_array(arena, struct audit_line, DROP_REASON_COUNT * table_counters->column_count + 1);
    struct audit_line *nulled =
        arena_array(arena, struct audit_line, table_counters->column_count + 1);
    if (dropped == NULL || nulled == NULL) return false;
    uint32_t dropped_count = 0;
    uint32_t nulled_count = 0;
    if (table_counters->wrong_fields.count > 0) {
        dropped[dropped_count].reason = "wrong number of fields";
        place(&context, &table_counters->wrong_fields, &dropped[dropped_count++]);
    }
    for (uint32_t i = 0; i < table_counters->column_count; i++) {
        const struct field *field = &table->schema.fields[i];
        const char *reasons[] = {"empty", unreadable(&context, field->type)};
        if (reasons[1] == NULL) return false;
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            if (table_counters->dropped[i][reason].count == 0) continue;
            dropped[dropped_count] =
                (struct audit_line){.column = field->name, .reason = reasons[reason]};
            place(&context, &table_counters->dropped[i][reason], &dropped[dropped_count++]);
        }
        if (table_counters->nulled[i].count > 0) {
            nulled[nulled_count] = (struct audit_line){.column = field->name, .reason = reasons[1]};
            place(&context, &table_counters->nulled[i], &nulled[nulled_count++]);
        }
    }
    *out_book = (struct audit_table){
        .name = table->name,
        .file_count = files->file_count,
        .byte_count = files->byte_count,
        .record_count = table_counters->record_count,
        .kept_count = table_counters->kept_count,
        .dropped = dropped,
        .dropped_count = dropped_count,
        .nulled = nulled,
        .nulled_count = nulled_count,
    };
    return true;
}

/* ---- both ends ---- */

static bool ends_agree(const struct exchange_count *a, const struct exchange_count *b)
{
    return a->batch_count == b->batch_count && a->row_count == b->row_count &&
           a->hash_sum == b->hash_sum;
}

static status check_exchange(const struct audit_source *source, const struct pipeline *pipeline,
                             struct error *err)
{
    const struct exchange_count *sent = &source->counters->sent[pipeline->id];
    const struct exchange_count *applied = &source->counters->applied[pipeline->id];
    if (ends_agree(sent, applied)) return STATUS_OK;
    return error_set(
        err, STATUS_INTERNAL,
        "the counts do not reconcile: query %.*s, exchange from map %u to fold %u: %llu batches "
        "with "
        "%llu rows were sent, %llu with %llu applied; there is no answer, please report this",
        TEXT_ARGS(pipeline->queries), pipeline->id, pipeline->target,
        (unsigned long long)sent->batch_count, (unsigned long long)sent->row_count,
        (unsigned long long)applied->batch_count, (unsigned long long)applied->row_count);
}

static status incomplete(const struct pipeline *pipeline, uint64_t expected, uint64_t found,
                         const char *what, struct error *err)
{
    return error_set(
        err, STATUS_INTERNAL,
        "the counts do not reconcile: query %.*s, map %u: %llu %s were expected, %llu came; "
        "there is no answer, please report this",
        TEXT_ARGS(pipeline->queries), pipeline->id, (unsigned long long)expected, what,
        (unsigned long long)found);
}

/* What was never sent is missing at both ends of its exchange. So the maps are held against what
 * their source says by itself: the files' chunks and the records kept, or the rows the fold had. */
static status check_source(const struct audit_source *source, const struct pipeline *pipeline,
                           struct error *err)
{
    uint32_t shard_count = source->shard_counts[pipeline->target];
    uint64_t rows;
    uint64_t batches;
    if (pipeline->source_kind == SOURCE_FOLD) {
        rows = source->counters->folds[pipeline->source].rows_out;
        batches = source->counters->folds[pipeline->source].batches_out;
    } else {
        uint32_t table = source->plan->scans[pipeline->source].table;
        rows = source->counters->tables[table].kept_count;
        batches = source->files[table].chunk_count;
    }
    uint64_t rows_in = source->counters->maps[pipeline->id].rows_in;
    uint64_t sent = source->counters->sent[pipeline->id].batch_count;
    if (rows_in != rows) return incomplete(pipeline, rows, rows_in, "rows", err);
    if (sent != batches * shard_count) {
        return incomplete(pipeline, batches * shard_count, sent, "batches", err);
    }
    return STATUS_OK;
}

static status check_table(const struct audit_source *source, uint32_t table, struct error *err)
{
    const struct table_counters *table_counters = &source->counters->tables[table];
    uint64_t dropped = table_counters->wrong_fields.count;
    for (uint32_t i = 0; i < table_counters->column_count; i++) {
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            dropped += table_counters->dropped[i][reason].count;
        }
    }
    if (table_counters->record_count == table_counters->kept_count + dropped) return STATUS_OK;
    return error_set(
        err, STATUS_INTERNAL,
        "the counts do not reconcile: table %.*s: of %llu records, %llu were kept and %llu "
        "dropped; there is no answer, please report this",
        TEXT_ARGS(source->plan->tables[table].name),
        (unsigned long long)table_counters->record_count,
        (unsigned long long)table_counters->kept_count, (unsigned long long)dropped);
}

status audit_check_fold(const struct audit_source *source, const struct fold *fold,
                        struct error *err)
{
    for (uint32_t i = 0; i < source->plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &source->plan->pipelines[i];
        if (pipeline->target != fold->id) continue;
        TRY(check_exchange(source, pipeline, err));
        TRY(check_source(source, pipeline, err));
    }
    return STATUS_OK;
}

/* A worker that has lost its disk makes everything anew, its counters too: what was fetched from it
 * before must be the same. */
static status check_answer(const struct audit_source *source, uint32_t query, struct error *err)
{
    if (ends_agree(&source->counters->given[query], &source->counters->taken[query])) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_INTERNAL,
                     "the counts do not reconcile: query %.*s: the answer that came is not the one "
                     "that was made; "
                     "there is no answer, please report this",
                     TEXT_ARGS(source->plan->queries[query].name));
}

status audit_check(const struct audit_source *source, struct error *err)
{
    for (uint32_t i = 0; i < source->plan->fold_count; i++) {
        TRY(audit_check_fold(source, &source->plan->folds[i], err));
    }
    for (uint32_t i = 0; i < source->plan->table_count; i++) {
        TRY(check_table(source, i, err));
    }
    for (uint32_t i = 0; i < source->plan->query_count; i++) {
        TRY(check_answer(source, i, err));
    }
    return STATUS_OK;
}

static const char *map_label(const struct audit_source *source, const struct pipeline *pipeline,
                             struct arena *arena)
{
    static const char *const op_names[] = {
        [OP_FILTER] = "filter",     [OP_PROJECT] = "project",         [OP_UNNEST] = "unnest",
        [OP_PROBE] = "join with #", [OP_AGGREGATE] = "pre-aggregate", [OP_RANK] = "rank",
    };
    struct buf text = {.limit = 1024};
    if (pipeline->source_kind == SOURCE_SCAN) {
        const struct table *table =
            &source->plan->tables[source->plan->scans[pipeline->source].table];
        buf_format(&text, "scan %.*s", TEXT_ARGS(table->name));
    } else {
        buf_format(&text, "from fold %u", pipeline->source);
    }
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        const struct op *op = &pipeline->ops[i];
        if (op->kind == OP_PROJECT) continue; /* Every map has some; they tell nothing. */
        buf_format(&text, ", %s", op_names[op->kind]);
        if (op->kind == OP_PROBE) buf_format(&text, "%u", op->side);
    }
    /* A label that is too long is cut. */
    struct text whole = {(const char *)text.bytes, (uint32_t)text.size};
    const char *label = arena_copy_string(arena, whole);
    buf_done(&text);
    return label;
}

static bool audit_stages(const struct audit_source *source, struct arena *arena,
                         struct audit *audit)
{
    const struct plan *plan = source->plan;
    uint32_t count = plan->pipeline_count + plan->fold_count;
    struct audit_stage *stages = arena_array(arena, struct audit_stage, count + 1);
    struct audit_exchange *exchanges =
        arena_array(arena, struct audit_exchange, plan->pipeline_count + 1);
    if (stages == NULL || exchanges == NULL) return false;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        struct text query = pipeline->queries;
        stages[i] = (struct audit_stage){.query = query,
                                         .kind = "map",
                                         .label = map_label(source, pipeline, arena),
                                         .id = i,
                                         .rows_in = source->counters->maps[i].rows_in,
                                         .rows_out = source->counters->maps[i].rows_out,
                                         .malformed = source->counters->maps[i].malformed};
        if (stages[i].label == NULL) return false;
        exchanges[i] = (struct audit_exchange){.query = query,
                                               .from_stage = i,
                                               .to_stage = pipeline->target,
                                               .sent = source->counters->sent[i],
                                               .applied = source->counters->applied[i]};
        exchanges[i].balanced = ends_agree(&exchanges[i].sent, &exchanges[i].applied);
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        stages[plan->pipeline_count + i] =
            (struct audit_stage){.query = plan->folds[i].queries,
                                 .kind = "fold",
                                 .label = plan->folds[i].label,
                                 .id = i,
                                 .rows_in = source->counters->folds[i].rows_in,
                                 .rows_out = source->counters->folds[i].rows_out};
    }
    audit->stages = stages;
    audit->stage_count = count;
    audit->exchanges = exchanges;
    audit->exchange_count = plan->pipeline_count;
    return true;
}

status audit_make(const struct audit_source *source, struct arena *arena, struct audit *out_audit,
                  struct error *err)
{
    const struct plan *plan = source->plan;
    struct audit_table *tables = arena_array(arena, struct audit_table, plan->table_count + 1);
    bool fits = tables != NULL && audit_stages(source, arena, out_audit);
    for (uint32_t i = 0; fits && i < plan->table_count; i++) {
        fits = report_table(&source->counters->tables[i], &plan->tables[i], &source->files[i],
                            source->chunk_lines[i], arena, &tables[i]);
    }
    if (!fits) return error_set(err, STATUS_MEMORY, "out of memory for the audit");
    out_audit->tables = tables;
    out_audit->table_count = plan->table_count;
    return STATUS_OK;
}
