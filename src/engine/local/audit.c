/* audit.c - whether all that was sent was applied, and what a job tells about itself.
 *
 * Each edge is counted at both ends by code that knows nothing of the other end, so a batch that is
 * lost, doubled or altered on its way shows here, and there is no answer. What was lost before it
 * was sent shows by what the source counted.
 */
#include "engine/local/audit.h"

#include <stdio.h>

#include "engine/base/buf.h"
#include "engine/local/table_files.h"

/* ---- what was read ---- */

struct book_context {
    const struct table_files *files;
    const uint32_t *chunk_lines;
    struct arena *arena;
};

static void place(const struct book_context *context, const struct tally_line *line,
                  struct book_line *out)
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

static const char *unreadable(const struct book_context *context, struct type type)
{
    char name[TYPE_NAME_SIZE];
    char text[TYPE_NAME_SIZE + 8];
    type_name(type, name);
    (void)snprintf(text, sizeof text, "not %s %s", type.kind == TYPE_INT ? "an" : "a",
                   name); /* Always fits. */
    return arena_copy_string(context->arena, text_of(text));
}

static bool tally_book(const struct tally *tally, const struct table *table,
                       const struct table_files *files, const uint32_t *chunk_lines,
                       struct arena *arena, struct book_table *out_book)
{
    struct book_context context = {files, chunk_lines, arena};
    struct book_line *dropped =
        arena_array(arena, struct book_line, DROP_REASON_COUNT * tally->column_count + 1);
    struct book_line *nulled = arena_array(arena, struct book_line, tally->column_count + 1);
    if (dropped == NULL || nulled == NULL) return false;
    uint32_t dropped_count = 0;
    uint32_t nulled_count = 0;
    if (tally->wrong_fields.count > 0) {
        dropped[dropped_count].reason = "wrong number of fields";
        place(&context, &tally->wrong_fields, &dropped[dropped_count++]);
    }
    for (uint32_t i = 0; i < tally->column_count; i++) {
        const struct field *field = &table->schema.fields[i];
        const char *reasons[] = {"empty", unreadable(&context, field->type)};
        if (reasons[1] == NULL) return false;
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            if (tally->dropped[i][reason].count == 0) continue;
            dropped[dropped_count] =
                (struct book_line){.column = field->name, .reason = reasons[reason]};
            place(&context, &tally->dropped[i][reason], &dropped[dropped_count++]);
        }
        if (tally->nulled[i].count > 0) {
            nulled[nulled_count] = (struct book_line){.column = field->name, .reason = reasons[1]};
            place(&context, &tally->nulled[i], &nulled[nulled_count++]);
        }
    }
    *out_book = (struct book_table){
        .name = table->name,
        .file_count = files->file_count,
        .byte_count = files->byte_count,
        .record_count = tally->record_count,
        .kept_count = tally->kept_count,
        .dropped = dropped,
        .dropped_count = dropped_count,
        .nulled = nulled,
        .nulled_count = nulled_count,
    };
    return true;
}

/* ---- both ends ---- */

static bool ends_agree(const struct book_end *a, const struct book_end *b)
{
    return a->batch_count == b->batch_count && a->row_count == b->row_count &&
           a->hash_sum == b->hash_sum;
}

static status check_edge(const struct books_source *source, const struct pipeline *pipeline,
                         struct error *err)
{
    const struct book_end *sent = &source->account->sent[pipeline->id];
    const struct book_end *applied = &source->account->applied[pipeline->id];
    if (ends_agree(sent, applied)) return STATUS_OK;
    return error_set(
        err, STATUS_INTERNAL,
        "the books don't balance: query %.*s, edge from map %u to fold %u: %llu batches with "
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
        "the books don't balance: query %.*s, map %u: %llu %s were expected, %llu came; "
        "there is no answer, please report this",
        TEXT_ARGS(pipeline->queries), pipeline->id, (unsigned long long)expected, what,
        (unsigned long long)found);
}

/* What was never sent is missing at both ends of its edge. So the maps are held against what their
 * source says by itself: the files' chunks and the records kept, or the rows the fold had. */
static status check_source(const struct books_source *source, const struct pipeline *pipeline,
                           struct error *err)
{
    uint32_t shard_count = source->shard_counts[pipeline->target];
    uint64_t rows;
    uint64_t batches;
    if (pipeline->source_kind == SOURCE_FOLD) {
        rows = source->account->folds[pipeline->source].rows_out;
        batches = source->account->folds[pipeline->source].batches_out;
    } else {
        uint32_t table = source->plan->scans[pipeline->source].table;
        rows = source->account->tallies[table].kept_count;
        batches = source->files[table].chunk_count;
    }
    uint64_t rows_in = source->account->maps[pipeline->id].rows_in;
    uint64_t sent = source->account->sent[pipeline->id].batch_count;
    if (rows_in != rows) return incomplete(pipeline, rows, rows_in, "rows", err);
    if (sent != batches * shard_count) {
        return incomplete(pipeline, batches * shard_count, sent, "batches", err);
    }
    return STATUS_OK;
}

static status check_table(const struct books_source *source, uint32_t table, struct error *err)
{
    const struct tally *tally = &source->account->tallies[table];
    uint64_t dropped = tally->wrong_fields.count;
    for (uint32_t i = 0; i < tally->column_count; i++) {
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            dropped += tally->dropped[i][reason].count;
        }
    }
    if (tally->record_count == tally->kept_count + dropped) return STATUS_OK;
    return error_set(
        err, STATUS_INTERNAL,
        "the books don't balance: table %.*s: of %llu records, %llu were kept and %llu "
        "dropped; there is no answer, please report this",
        TEXT_ARGS(source->plan->tables[table].name), (unsigned long long)tally->record_count,
        (unsigned long long)tally->kept_count, (unsigned long long)dropped);
}

status books_check_fold(const struct books_source *source, const struct fold *fold,
                        struct error *err)
{
    for (uint32_t i = 0; i < source->plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &source->plan->pipelines[i];
        if (pipeline->target != fold->id) continue;
        TRY(check_edge(source, pipeline, err));
        TRY(check_source(source, pipeline, err));
    }
    return STATUS_OK;
}

/* A worker that has lost its disk makes everything anew, its account too: what was fetched from it
 * before must be the same. */
static status check_answer(const struct books_source *source, uint32_t query, struct error *err)
{
    if (ends_agree(&source->account->given[query], &source->account->taken[query])) {
        return STATUS_OK;
    }
    return error_set(
        err, STATUS_INTERNAL,
        "the books don't balance: query %.*s: the answer that came is not the one that was made; "
        "there is no answer, please report this",
        TEXT_ARGS(source->plan->queries[query].name));
}

status books_check(const struct books_source *source, struct error *err)
{
    for (uint32_t i = 0; i < source->plan->fold_count; i++) {
        TRY(books_check_fold(source, &source->plan->folds[i], err));
    }
    for (uint32_t i = 0; i < source->plan->table_count; i++) {
        TRY(check_table(source, i, err));
    }
    for (uint32_t i = 0; i < source->plan->query_count; i++) {
        TRY(check_answer(source, i, err));
    }
    return STATUS_OK;
}

static const char *map_label(const struct books_source *source, const struct pipeline *pipeline,
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

static bool book_stages(const struct books_source *source, struct arena *arena, struct books *books)
{
    const struct plan *plan = source->plan;
    uint32_t count = plan->pipeline_count + plan->fold_count;
    struct book_stage *stages = arena_array(arena, struct book_stage, count + 1);
    struct book_edge *edges = arena_array(arena, struct book_edge, plan->pipeline_count + 1);
    if (stages == NULL || edges == NULL) return false;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        struct text query = pipeline->queries;
        stages[i] = (struct book_stage){.query = query,
                                        .kind = "map",
                                        .label = map_label(source, pipeline, arena),
                                        .id = i,
                                        .rows_in = source->account->maps[i].rows_in,
                                        .rows_out = source->account->maps[i].rows_out,
                                        .malformed = source->account->maps[i].malformed};
        if (stages[i].label == NULL) return false;
        edges[i] = (struct book_edge){.query = query,
                                      .from_stage = i,
                                      .to_stage = pipeline->target,
                                      .sent = source->account->sent[i],
                                      .applied = source->account->applied[i]};
        edges[i].balanced = ends_agree(&edges[i].sent, &edges[i].applied);
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        stages[plan->pipeline_count + i] =
            (struct book_stage){.query = plan->folds[i].queries,
                                .kind = "fold",
                                .label = plan->folds[i].label,
                                .id = i,
                                .rows_in = source->account->folds[i].rows_in,
                                .rows_out = source->account->folds[i].rows_out};
    }
    books->stages = stages;
    books->stage_count = count;
    books->edges = edges;
    books->edge_count = plan->pipeline_count;
    return true;
}

status books_make(const struct books_source *source, struct arena *arena, struct books *out_books,
                  struct error *err)
{
    const struct plan *plan = source->plan;
    struct book_table *tables = arena_array(arena, struct book_table, plan->table_count + 1);
    bool fits = tables != NULL && book_stages(source, arena, out_books);
    for (uint32_t i = 0; fits && i < plan->table_count; i++) {
        fits = tally_book(&source->account->tallies[i], &plan->tables[i], &source->files[i],
                          source->chunk_lines[i], arena, &tables[i]);
    }
    if (!fits) return error_set(err, STATUS_MEMORY, "out of memory for the books");
    out_books->tables = tables;
    out_books->table_count = plan->table_count;
    return STATUS_OK;
}
