/* local_books.c - whether all that was sent was applied, and what the run tells about itself.
 *
 * Each edge is counted at both ends by code that knows nothing of the other end, so a batch that is
 * lost, doubled or altered on its way shows here, and no answer leaves the run. What was lost
 * before it was sent shows by what the source counted.
 */
#include "node/local_run.h"

#include "base/buf.h"

static struct book_end applied_end(const struct local_run *run, const struct pipeline *pipeline)
{
    const struct fold_run *target = &run->folds[pipeline->target];
    struct book_end end = {0};
    for (uint32_t shard = 0; shard < target->shard_count; shard++) {
        const struct book_end *part =
            &target->applied[pipeline->target_input * target->shard_count + shard];
        end.batch_count += part->batch_count;
        end.row_count += part->row_count;
        end.hash_sum += part->hash_sum;
    }
    return end;
}

static bool ends_agree(const struct book_end *a, const struct book_end *b)
{
    return a->batch_count == b->batch_count && a->row_count == b->row_count &&
           a->hash_sum == b->hash_sum;
}

static status check_edge(const struct local_run *run, const struct pipeline *pipeline,
                         struct error *err)
{
    const struct book_end *sent = &run->sent[pipeline->id];
    struct book_end applied = applied_end(run, pipeline);
    if (ends_agree(sent, &applied)) return STATUS_OK;
    return error_set(
        err, STATUS_INTERNAL,
        "the books don't balance: query %.*s, edge from map %u to fold %u: %llu batches with "
        "%llu rows were sent, %llu with %llu applied; there is no answer, please report this",
        TEXT_ARGS(run->plan->queries[pipeline->query].name), pipeline->id, pipeline->target,
        (unsigned long long)sent->batch_count, (unsigned long long)sent->row_count,
        (unsigned long long)applied.batch_count, (unsigned long long)applied.row_count);
}

static status incomplete(const struct local_run *run, const struct pipeline *pipeline,
                         uint64_t expected, uint64_t found, const char *what, struct error *err)
{
    return error_set(
        err, STATUS_INTERNAL,
        "the books don't balance: query %.*s, map %u: %llu %s were expected, %llu came; "
        "there is no answer, please report this",
        TEXT_ARGS(run->plan->queries[pipeline->query].name), pipeline->id,
        (unsigned long long)expected, what, (unsigned long long)found);
}

/* What was never sent is missing at both ends of its edge. So the maps are held against what their
 * source says by itself: the files' chunks and the records kept, or the rows the fold had. */
static status check_source(const struct local_run *run, const struct pipeline *pipeline,
                           struct error *err)
{
    const struct fold_run *target = &run->folds[pipeline->target];
    uint64_t rows;
    uint64_t batches;
    if (pipeline->source_kind == SOURCE_FOLD) {
        rows = run->fold_totals[pipeline->source].rows_out;
        batches = run->fold_totals[pipeline->source].batches_out;
    } else {
        uint32_t table = run->plan->scans[pipeline->source].table;
        rows = run->tallies[table].kept_count;
        batches = run->options.files[table].chunk_count;
    }
    uint64_t rows_in = run->maps[pipeline->id].rows_in;
    uint64_t sent = run->sent[pipeline->id].batch_count;
    if (rows_in != rows) return incomplete(run, pipeline, rows, rows_in, "rows", err);
    if (sent != batches * target->shard_count) {
        return incomplete(run, pipeline, batches * target->shard_count, sent, "batches", err);
    }
    if (target->stream != NULL && target->stream->next_number != batches) {
        return incomplete(run, pipeline, batches, target->stream->next_number, "streamed batches",
                          err);
    }
    return STATUS_OK;
}

static status check_table(const struct local_run *run, uint32_t table, struct error *err)
{
    const struct tally *tally = &run->tallies[table];
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
        TEXT_ARGS(run->plan->tables[table].name), (unsigned long long)tally->record_count,
        (unsigned long long)tally->kept_count, (unsigned long long)dropped);
}

status local_run_check_inputs(const struct local_run *run, const struct fold *fold,
                              struct error *err)
{
    for (uint32_t i = 0; i < run->plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &run->plan->pipelines[i];
        if (pipeline->target != fold->id) continue;
        TRY(check_edge(run, pipeline, err));
        TRY(check_source(run, pipeline, err));
    }
    return STATUS_OK;
}

status local_run_check_balance(struct local_run *run, struct error *err)
{
    for (uint32_t i = 0; i < run->plan->fold_count; i++) {
        TRY(local_run_check_inputs(run, &run->plan->folds[i], err));
    }
    for (uint32_t i = 0; i < run->plan->table_count; i++) {
        TRY(check_table(run, i, err));
    }
    run->balanced = true;
    return STATUS_OK;
}

static const char *map_label(const struct local_run *run, const struct pipeline *pipeline,
                             struct arena *arena)
{
    static const char *const op_names[] = {
        [OP_FILTER] = "filter",     [OP_PROJECT] = "project",         [OP_UNNEST] = "unnest",
        [OP_PROBE] = "join with #", [OP_AGGREGATE] = "pre-aggregate", [OP_RANK] = "rank",
    };
    struct buf text = {.limit = 1024};
    if (pipeline->source_kind == SOURCE_SCAN) {
        const struct table *table = &run->plan->tables[run->plan->scans[pipeline->source].table];
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

static bool book_stages(struct local_run *run, struct arena *arena, struct books *books)
{
    const struct plan *plan = run->plan;
    uint32_t count = plan->pipeline_count + plan->fold_count;
    struct book_stage *stages = arena_array(arena, struct book_stage, count + 1);
    struct book_edge *edges = arena_array(arena, struct book_edge, plan->pipeline_count + 1);
    if (stages == NULL || edges == NULL) return false;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        struct text query = plan->queries[pipeline->query].name;
        stages[i] = (struct book_stage){.query = query,
                                        .kind = "map",
                                        .label = map_label(run, pipeline, arena),
                                        .id = i,
                                        .rows_in = run->maps[i].rows_in,
                                        .rows_out = run->maps[i].rows_out,
                                        .malformed = run->maps[i].malformed};
        if (stages[i].label == NULL) return false;
        edges[i] = (struct book_edge){.query = query,
                                      .from_stage = i,
                                      .to_stage = pipeline->target,
                                      .sent = run->sent[i],
                                      .applied = applied_end(run, pipeline)};
        edges[i].balanced = ends_agree(&edges[i].sent, &edges[i].applied);
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        stages[plan->pipeline_count + i] =
            (struct book_stage){.query = plan->queries[plan->folds[i].query].name,
                                .kind = "fold",
                                .label = plan->folds[i].label,
                                .id = i,
                                .rows_in = run->fold_totals[i].rows_in,
                                .rows_out = run->fold_totals[i].rows_out};
    }
    books->stages = stages;
    books->stage_count = count;
    books->edges = edges;
    books->edge_count = plan->pipeline_count;
    return true;
}

status local_run_books(struct local_run *run, struct arena *arena, struct books *out_books,
                       struct error *err)
{
    const struct plan *plan = run->plan;
    struct book_table *tables = arena_array(arena, struct book_table, plan->table_count + 1);
    bool fits = tables != NULL && book_stages(run, arena, out_books);
    for (uint32_t i = 0; fits && i < plan->table_count; i++) {
        fits = tally_book(&run->tallies[i], &plan->tables[i], &run->options.files[i],
                          run->chunk_lines[i], arena, &tables[i]);
    }
    if (!fits) return error_set(err, STATUS_MEMORY, "out of memory for the books");
    out_books->tables = tables;
    out_books->table_count = plan->table_count;
    out_books->balanced = run->balanced;
    out_books->bytes_read = atomic_load(&run->done_bytes);
    return STATUS_OK;
}
