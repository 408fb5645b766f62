/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the text follows the data: phase by phase, each scan with the pipelines that share
 * it, then the folds that are complete after the phase, each with what it is for. JSON and DOT are
 * the same facts as lists.
 *
 * The drawing keeps a stack of "is the last child" flags, as deep as a plan is: phase, scan,
 * pipeline, operator.
 */
#include "engine/sql/explain.h"

#include <inttypes.h>

#include "engine/base/assert.h"
#include "engine/data/print_json.h"
#include "engine/data/print_text.h"

enum { DEPTH_MAX = 8 };

/* --- Words shared by all forms. --- */

static void put_name(const struct schema *schema, uint32_t column, struct buf *out)
{
    if (column < schema->count && schema->fields[column].name.size > 0) {
        buf_put_text(out, schema->fields[column].name);
    } else {
        buf_format(out, "#%" PRIu32, column);
    }
}

static void put_expr(const struct expr *expr, const struct schema *input, struct buf *out)
{
    /* The bare name, also when SQL would need quotes: it is not going to be read as SQL. */
    if (expr->kind == EXPR_COLUMN) {
        put_name(input, expr->column, out);
    } else {
        expr_print(expr, input, out);
    }
}

/* What goes over a pipeline's exchange: "(country TEXT, state of sum(budget))". How an aggregate's
 * partial state is cut into columns says nothing to people. */
static void put_exchange(const struct pipeline *pipeline, struct buf *out)
{
    const struct schema *schema = &pipeline->output;
    const struct op *last = pipeline->op_count == 0 ? NULL : &pipeline->ops[pipeline->op_count - 1];
    const struct grouping *grouping = last == NULL ? NULL : last->grouping;
    uint32_t plain_count = grouping == NULL ? schema->count : grouping->key_count;
    uint32_t state_count = grouping == NULL ? 0 : grouping->aggregate_count;
    buf_put_u8(out, '(');
    for (uint32_t i = 0; i < plain_count; i++) {
        char type[TYPE_NAME_SIZE];
        if (i > 0) buf_put_string(out, ", ");
        put_name(schema, i, out);
        buf_format(out, " %s", type_name(schema->fields[i].type, type));
    }
    for (uint32_t i = 0; i < state_count; i++) {
        buf_put_string(out, i + plain_count > 0 ? ", state of " : "state of ");
        put_name(schema, grouping->aggregates[i].state_column, out);
    }
    buf_put_u8(out, ')');
}

static void put_name_list(const struct schema *schema, const uint32_t *columns, uint32_t count,
                          struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) buf_put_string(out, ", ");
        put_name(schema, columns == NULL ? i : columns[i], out);
    }
}

static void put_sort_keys(const struct schema *schema, const struct ranking *ranking,
                          struct buf *out)
{
    for (uint32_t i = 0; i < ranking->key_count; i++) {
        const struct sort_key *key = &ranking->keys[i];
        if (i > 0) buf_put_string(out, ", ");
        put_name(schema, key->column, out);
        if (key->descending) buf_put_string(out, " DESC");
        if (key->nulls_first) buf_put_string(out, " NULLS FIRST");
    }
}

static void put_ranking(const struct schema *schema, const struct ranking *ranking, struct buf *out)
{
    buf_format(out, "first %" PRIu64, ranking->limit);
    if (ranking->partition_count > 0) {
        buf_put_string(out, " of each ");
        put_name_list(schema, ranking->partition_columns, ranking->partition_count, out);
    }
    buf_put_string(out, " by ");
    put_sort_keys(schema, ranking, out);
}

/* `input` is NULL where only the partial states are known: their names are the results'. */
static void put_aggregates(const struct grouping *grouping, const struct schema *input,
                           struct buf *out)
{
    bool is_distinct = grouping->aggregate_count == 0 && grouping->key_count > 0;
    for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
        const struct aggregate *aggregate = &grouping->aggregates[i];
        if (i > 0) buf_put_string(out, ", ");
        if (aggregate->kind == AGGREGATE_COUNT_ROWS) {
            buf_put_string(out, "count(*)");
            continue;
        }
        if (input == NULL) {
            put_name(&grouping->result, grouping->key_count + i, out);
            continue;
        }
        buf_format(out, "%s(", aggregate_name(aggregate->kind));
        put_name(input, aggregate->input_column, out);
        if (aggregate->kind == AGGREGATE_ARG_MIN || aggregate->kind == AGGREGATE_ARG_MAX) {
            buf_put_string(out, ", ");
            put_name(input, aggregate->by_column, out);
        }
        buf_put_u8(out, ')');
    }
    if (grouping->key_count > 0) {
        buf_put_string(out, is_distinct ? "to distinct " : " by ");
        const struct schema *schema = input == NULL ? &grouping->result : input;
        put_name_list(schema, input == NULL ? NULL : grouping->key_columns, grouping->key_count,
                      out);
    }
}

/* Tables (or folds) whose rows end up in the fold, so that one sees which side was built. */
static void put_origins(const struct plan *plan, uint32_t fold, struct buf *out)
{
    bool is_first = true;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        if (pipeline->target != fold) continue;
        buf_put_string(out, is_first ? "" : ", ");
        is_first = false;
        if (pipeline->source_kind == SOURCE_SCAN) {
            buf_put_text(out, plan->tables[plan->scans[pipeline->source].table].name);
        } else {
            buf_format(out, "fold #%" PRIu32, pipeline->source);
        }
    }
}

static void put_probe(const struct plan *plan, const struct op *op, const struct schema *input,
                      struct buf *out)
{
    const struct fold *side = &plan->folds[op->side];
    const char *verbs[] = {[PROBE_JOIN] = op->keep_unmatched ? "left join" : "join",
                           [PROBE_SEMI] = "semi-join",
                           [PROBE_ROW] = "find the row of",
                           [PROBE_FETCH] = "fetch the row of"};
    if (side->is_bloom) {
        buf_format(out, "Bloom filter of build side #%" PRIu32 " (built from ", op->side);
    } else {
        buf_format(out, "%s build side #%" PRIu32 " (built from ", verbs[op->probe], op->side);
    }
    put_origins(plan, op->side, out);
    buf_put_u8(out, ')');
    if (op->probe == PROBE_FETCH) return;
    for (uint32_t i = 0; i < op->key_count; i++) {
        buf_put_string(out, i == 0 ? " on " : " and ");
        put_name(input, op->key_columns[i], out);
        buf_put_string(out, " = ");
        put_name(&side->output, i, out);
    }
    if (op->probe != PROBE_ROW) return;
    buf_put_string(out, ", one for each ");
    put_name_list(&side->output, op->duplicates.columns, op->duplicates.count, out);
}

/* "title" or "budget * 2 AS doubled". */
static void put_projection(const struct op *op, uint32_t column, const struct schema *input,
                           struct buf *out)
{
    size_t start = out->size;
    put_expr(op->exprs[column], input, out);
    if (out->failed || out->size == start || column >= op->output.count) return;
    struct text name = op->output.fields[column].name;
    struct text printed = {(const char *)out->bytes + start, (uint32_t)(out->size - start)};
    if (name.size == 0 || text_equal(name, printed)) return;
    buf_put_string(out, " AS ");
    buf_put_text(out, name);
}

static const char *const op_names[] = {
    [OP_FILTER] = "filter", [OP_PROJECT] = "project",     [OP_UNNEST] = "unnest",
    [OP_PROBE] = "join",    [OP_AGGREGATE] = "aggregate", [OP_RANK] = "rank",
};

static void put_op(const struct plan *plan, const struct op *op, const struct schema *input,
                   struct buf *out)
{
    switch (op->kind) {
    case OP_FILTER:
        buf_put_string(out, "filter ");
        for (uint32_t i = 0; i < op->expr_count; i++) {
            if (i > 0) buf_put_string(out, " AND ");
            put_expr(op->exprs[i], input, out);
        }
        return;
    case OP_PROJECT:
        buf_put_string(out, "project ");
        for (uint32_t i = 0; i < op->expr_count; i++) {
            if (i > 0) buf_put_string(out, ", ");
            put_projection(op, i, input, out);
        }
        return;
    case OP_UNNEST:
        buf_put_string(out, "unnest ");
        put_expr(op->exprs[0], input, out);
        buf_put_string(out, " AS ");
        put_name(&op->output, op->output.count - 1, out);
        return;
    case OP_PROBE:
        put_probe(plan, op, input, out);
        return;
    case OP_AGGREGATE:
        buf_put_string(out, "pre-aggregate ");
        put_aggregates(op->grouping, input, out);
        return;
    case OP_RANK:
        buf_put_string(out, "pre-rank: ");
        put_ranking(input, op->ranking, out);
        return;
    }
}

static const char *const fold_names[] = {
    [FOLD_COLLECT] = "collect", [FOLD_AGGREGATE] = "aggregate", [FOLD_SORT] = "sort",
    [FOLD_RANK] = "rank",       [FOLD_JOIN] = "join",
};

static void put_fold(const struct fold *fold, struct buf *out)
{
    switch (fold->kind) {
    case FOLD_COLLECT:
        buf_put_string(out, "collect in source order");
        break;
    case FOLD_AGGREGATE:
        if (fold->input_count == 0) { /* SELECT without FROM. */
            buf_put_string(out, "one row");
            break;
        }
        buf_put_string(out, "aggregate ");
        put_aggregates(fold->grouping, NULL, out);
        break;
    case FOLD_SORT:
        buf_put_string(out, "sort by ");
        put_sort_keys(&fold->input, fold->ranking, out);
        break;
    case FOLD_RANK:
        put_ranking(&fold->input, fold->ranking, out);
        break;
    case FOLD_JOIN:
        buf_put_string(out,
                       fold->inner ? "join of both inputs on " : "left join of both inputs on ");
        put_name_list(&fold->input, NULL, fold->key_count, out);
        break;
    }
    /* "first 5" says it already. */
    bool is_said =
        fold->kind == FOLD_RANK && fold->offset == 0 && fold->limit == fold->ranking->limit;
    if (fold->offset > 0) buf_format(out, ", offset %" PRIu64, fold->offset);
    if (fold->limit != UINT64_MAX && !is_said) buf_format(out, ", limit %" PRIu64, fold->limit);
}

static const char *shard_words(const struct fold *fold)
{
    bool by_key = fold->kind == FOLD_AGGREGATE && fold->key_count > 0;
    return by_key || fold->partitioned ? "sharded" : "one shard";
}

/* "result of q3, build side keyed by id". */
static void put_uses(const struct plan *plan, const struct fold *fold, struct buf *out)
{
    size_t start = out->size;
    for (uint32_t i = 0; i < plan->query_count; i++) {
        if (plan->queries[i].result_fold != fold->id) continue;
        buf_format(out, "%sresult of %.*s", out->size > start ? ", " : "",
                   TEXT_ARGS(plan->queries[i].name));
    }
    if (fold->is_build_side) {
        buf_format(out, "%sbuild side", out->size > start ? ", " : "");
        if (fold->side_keys > 0) {
            buf_put_string(out, fold->is_bloom ? ", a Bloom filter of " : " keyed by ");
            put_name_list(&fold->output, NULL, fold->side_keys, out);
        }
    }
    if (fold->is_scalar) buf_format(out, "%svalue of a sub-query", out->size > start ? ", " : "");
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        if (pipeline->source_kind != SOURCE_FOLD || pipeline->source != fold->id) continue;
        buf_format(out, "%sinput of pipeline #%" PRIu32, out->size > start ? ", " : "",
                   pipeline->id);
    }
}

static const struct schema *op_input(const struct pipeline *pipeline, uint32_t op)
{
    return op == 0 ? &pipeline->input : &pipeline->ops[op - 1].output;
}

/* --- Text. --- */

struct drawing {
    const struct plan *plan;
    struct buf *out;
    struct buf line; /* Made first and cleaned then: constants may hold control characters. */
    bool is_last[DEPTH_MAX];
    uint32_t depth;
};

static void line_begin(struct drawing *drawing, const char *branch)
{
    for (uint32_t i = 0; i + 1 < drawing->depth; i++) {
        buf_put_string(drawing->out, drawing->is_last[i] ? "   " : "│  ");
    }
    if (drawing->depth > 0) {
        buf_put_string(drawing->out, drawing->is_last[drawing->depth - 1] ? "└─" : "├─");
        buf_put_string(drawing->out, branch);
    }
    buf_reset(&drawing->line);
}

static void line_end(struct drawing *drawing)
{
    struct text line = {(const char *)drawing->line.bytes, (uint32_t)drawing->line.size};
    (void)print_visible(line, UINT32_MAX, drawing->out); /* Never cut. */
    if (drawing->line.failed) drawing->out->failed = true;
    buf_put_u8(drawing->out, '\n');
}

static void descend(struct drawing *drawing)
{
    ASSERT(drawing->depth < DEPTH_MAX);
    drawing->is_last[drawing->depth++] = false;
}

static void draw_pipeline(struct drawing *drawing, const struct pipeline *pipeline)
{
    struct buf *line = &drawing->line;
    const struct plan *plan = drawing->plan;
    line_begin(drawing, " ");
    buf_format(line, "pipeline #%" PRIu32 " for %.*s", pipeline->id, TEXT_ARGS(pipeline->queries));
    line_end(drawing);
    descend(drawing);
    for (uint32_t i = 0; i < pipeline->op_count; i++) {
        line_begin(drawing, " ");
        put_op(plan, &pipeline->ops[i], op_input(pipeline, i), line);
        line_end(drawing);
    }
    drawing->is_last[drawing->depth - 1] = true;
    line_begin(drawing, "▶ ");
    buf_format(line, "fold #%" PRIu32, pipeline->target);
    if (plan->folds[pipeline->target].input_count > 1) {
        buf_format(line, " input %" PRIu32, pipeline->target_input);
    }
    buf_put_string(line, ": ");
    put_exchange(pipeline, line);
    line_end(drawing);
    drawing->depth--;
}

static void draw_scan(struct drawing *drawing, const struct scan *scan)
{
    const struct table *table = &drawing->plan->tables[scan->table];
    struct buf *line = &drawing->line;
    line_begin(drawing, " ");
    buf_format(line, "scan #%" PRIu32 " of %.*s", scan->id, TEXT_ARGS(table->name));
    if (scan->pipeline_count > 1) {
        buf_format(line, ", shared by %" PRIu32 " pipelines", scan->pipeline_count);
    }
    buf_put_string(line, ", reads ");
    bool is_first = true;
    for (uint32_t i = 0; i < table->schema.count; i++) {
        if (!scan->used[i]) continue;
        if (!is_first) buf_put_string(line, ", ");
        is_first = false;
        put_name(&table->schema, i, line);
    }
    if (is_first) buf_put_string(line, "no column");
    line_end(drawing);
    descend(drawing);
    for (uint32_t i = 0; i < scan->pipeline_count; i++) {
        drawing->is_last[drawing->depth - 1] = i + 1 == scan->pipeline_count;
        draw_pipeline(drawing, &drawing->plan->pipelines[scan->pipelines[i]]);
    }
    drawing->depth--;
}

static bool starts_at(const struct pipeline *pipeline, const struct fold *fold)
{
    return pipeline->source_kind == SOURCE_FOLD && pipeline->source == fold->id;
}

static void draw_fold(struct drawing *drawing, const struct fold *fold)
{
    const struct plan *plan = drawing->plan;
    struct buf *line = &drawing->line;
    line_begin(drawing, " ");
    buf_format(line, "fold #%" PRIu32 " for %.*s: ", fold->id, TEXT_ARGS(fold->queries));
    put_fold(fold, line);
    buf_format(line, " [%s] — ", shard_words(fold));
    put_uses(plan, fold, line);
    line_end(drawing);
    uint32_t left = 0;
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        left += starts_at(&plan->pipelines[i], fold);
    }
    descend(drawing);
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        if (!starts_at(&plan->pipelines[i], fold)) continue;
        drawing->is_last[drawing->depth - 1] = --left == 0;
        draw_pipeline(drawing, &plan->pipelines[i]);
    }
    drawing->depth--;
}

/* Scans of a phase, then its folds; the last of all closes the branch. */
static void draw_phase(struct drawing *drawing, uint32_t phase)
{
    const struct plan *plan = drawing->plan;
    uint32_t left = 0;
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        left += plan->scans[i].phase == phase;
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        left += plan->folds[i].phase == phase;
    }
    line_begin(drawing, "");
    buf_format(&drawing->line, "phase %" PRIu32 " of %" PRIu32, phase + 1, plan->phase_count);
    line_end(drawing);
    descend(drawing);
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        if (plan->scans[i].phase != phase) continue;
        drawing->is_last[0] = --left == 0;
        draw_scan(drawing, &plan->scans[i]);
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (plan->folds[i].phase != phase) continue;
        drawing->is_last[0] = --left == 0;
        draw_fold(drawing, &plan->folds[i]);
    }
    drawing->depth--;
}

void explain_text(const struct plan *plan, struct buf *out)
{
    struct drawing drawing = {.plan = plan, .out = out};
    for (uint32_t phase = 0; phase < plan->phase_count; phase++) {
        if (phase > 0) buf_put_u8(out, '\n');
        draw_phase(&drawing, phase);
    }
    buf_done(&drawing.line);
}

/* --- JSON. --- */

/* Appends what was put into `words` as a JSON string, and empties it. */
static void json_words(struct buf *words, struct buf *out)
{
    print_json_string((struct text){(const char *)words->bytes, (uint32_t)words->size}, out);
    if (words->failed) out->failed = true;
    buf_reset(words);
}

static void json_scans(const struct plan *plan, struct buf *words, struct buf *out)
{
    buf_put_string(out, "\"scans\":[");
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        const struct scan *scan = &plan->scans[i];
        const struct table *table = &plan->tables[scan->table];
        buf_format(out,
                   "%s\n{\"id\":%" PRIu32 ",\"phase\":%" PRIu32 ",\"table\":", i > 0 ? "," : "",
                   scan->id, scan->phase + 1);
        print_json_string(table->name, out);
        buf_put_string(out, ",\"columns\":[");
        bool is_first = true;
        for (uint32_t j = 0; j < table->schema.count; j++) {
            if (!scan->used[j]) continue;
            if (!is_first) buf_put_u8(out, ',');
            is_first = false;
            put_name(&table->schema, j, words);
            json_words(words, out);
        }
        buf_put_string(out, "],\"pipelines\":[");
        for (uint32_t j = 0; j < scan->pipeline_count; j++) {
            buf_format(out, "%s%" PRIu32, j > 0 ? "," : "", scan->pipelines[j]);
        }
        buf_put_string(out, "]}");
    }
    buf_put_u8(out, ']');
}

static void json_pipelines(const struct plan *plan, struct buf *words, struct buf *out)
{
    buf_put_string(out, "\"pipelines\":[");
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        buf_format(out,
                   "%s\n{\"id\":%" PRIu32 ",\"phase\":%" PRIu32 ",\"query\":", i > 0 ? "," : "",
                   pipeline->id, pipeline->phase + 1);
        print_json_string(pipeline->queries, out);
        buf_format(out, ",\"source\":{\"kind\":\"%s\",\"id\":%" PRIu32 "},\"operators\":[",
                   pipeline->source_kind == SOURCE_SCAN ? "scan" : "fold", pipeline->source);
        for (uint32_t j = 0; j < pipeline->op_count; j++) {
            const struct op *op = &pipeline->ops[j];
            buf_format(out, "%s{\"kind\":\"%s\",\"text\":", j > 0 ? "," : "", op_names[op->kind]);
            put_op(plan, op, op_input(pipeline, j), words);
            json_words(words, out);
            if (op->kind == OP_PROBE) buf_format(out, ",\"side\":%" PRIu32, op->side);
            buf_put_u8(out, '}');
        }
        buf_format(out, "],\"target\":{\"fold\":%" PRIu32 ",\"input\":%" PRIu32 "},\"columns\":",
                   pipeline->target, pipeline->target_input);
        print_json_columns(&pipeline->output, out);
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, ']');
}

static void json_folds(const struct plan *plan, struct buf *words, struct buf *out)
{
    buf_put_string(out, "\"folds\":[");
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        const struct fold *fold = &plan->folds[i];
        buf_format(out,
                   "%s\n{\"id\":%" PRIu32 ",\"phase\":%" PRIu32 ",\"query\":", i > 0 ? "," : "",
                   fold->id, fold->phase + 1);
        print_json_string(fold->queries, out);
        buf_format(out, ",\"kind\":\"%s\",\"text\":", fold_names[fold->kind]);
        put_fold(fold, words);
        json_words(words, out);
        buf_format(out,
                   ",\"keys\":%" PRIu32
                   ",\"sharded\":%s,\"build_side\":%s,\"scalar\":%s,\"used_as\":",
                   fold->key_count, shard_words(fold)[0] == 's' ? "true" : "false",
                   fold->is_build_side ? "true" : "false", fold->is_scalar ? "true" : "false");
        put_uses(plan, fold, words);
        json_words(words, out);
        buf_put_string(out, ",\"columns\":");
        print_json_columns(&fold->output, out);
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, ']');
}

void explain_json(const struct plan *plan, struct buf *out)
{
    struct buf words = {0};
    buf_format(out, "{\"phases\":%" PRIu32 ",\n\"queries\":[", plan->phase_count);
    for (uint32_t i = 0; i < plan->query_count; i++) {
        const struct plan_query *query = &plan->queries[i];
        buf_put_string(out, i > 0 ? ",\n{\"name\":" : "\n{\"name\":");
        print_json_string(query->name, out);
        buf_format(out, ",\"result\":%" PRIu32 ",\"ordered\":%s,\"columns\":", query->result_fold,
                   query->ordered ? "true" : "false");
        print_json_columns(&query->schema, out);
        buf_put_u8(out, '}');
    }
    buf_put_string(out, "],\n");
    json_scans(plan, &words, out);
    buf_put_string(out, ",\n");
    json_pipelines(plan, &words, out);
    buf_put_string(out, ",\n");
    json_folds(plan, &words, out);
    buf_put_string(out, "}\n");
    buf_done(&words);
}

/* --- DOT. --- */

/* What stands in `words` as a DOT string: visible characters, quotes and backslashes escaped. Lines
 * (ended by '\n' in the words) are set left. */
static void dot_words(struct buf *words, struct buf *out)
{
    struct buf shown = {0};
    struct text text = {(const char *)words->bytes, (uint32_t)words->size};
    buf_put_u8(out, '"');
    for (uint32_t start = 0; start < text.size;) {
        const char *from = text.bytes + start;
        const char *end = memchr(from, '\n', text.size - start);
        uint32_t size = end == NULL ? text.size - start : (uint32_t)(end - from);
        buf_reset(&shown);
        (void)print_visible((struct text){from, size}, 120, &shown); /* Wide enough to read. */
        for (size_t i = 0; i < shown.size; i++) {
            if (shown.bytes[i] == '"' || shown.bytes[i] == '\\') buf_put_u8(out, '\\');
            buf_put_u8(out, shown.bytes[i]);
        }
        if (end != NULL) buf_put_string(out, "\\l");
        start += size + (end != NULL);
    }
    buf_put_u8(out, '"');
    if (words->failed || shown.failed) out->failed = true;
    buf_done(&shown);
    buf_reset(words);
}

static void dot_nodes(const struct plan *plan, uint32_t phase, struct buf *words, struct buf *out)
{
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        const struct scan *scan = &plan->scans[i];
        if (scan->phase != phase) continue;
        buf_format(words, "scan %.*s\n", TEXT_ARGS(plan->tables[scan->table].name));
        buf_format(out, "    scan%" PRIu32 " [shape=cylinder, label=", scan->id);
        dot_words(words, out);
        buf_put_string(out, "];\n");
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        if (pipeline->phase != phase) continue;
        buf_format(words, "pipeline #%" PRIu32 " for %.*s\n", pipeline->id,
                   TEXT_ARGS(pipeline->queries));
        for (uint32_t j = 0; j < pipeline->op_count; j++) {
            put_op(plan, &pipeline->ops[j], op_input(pipeline, j), words);
            buf_put_u8(words, '\n');
        }
        buf_format(out, "    pipeline%" PRIu32 " [shape=box, label=", pipeline->id);
        dot_words(words, out);
        buf_put_string(out, "];\n");
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        const struct fold *fold = &plan->folds[i];
        if (fold->phase != phase) continue;
        buf_format(words, "fold #%" PRIu32 " for %.*s\n", fold->id, TEXT_ARGS(fold->queries));
        put_fold(fold, words);
        buf_put_u8(words, '\n');
        put_uses(plan, fold, words);
        buf_put_u8(words, '\n');
        buf_format(out, "    fold%" PRIu32 " [shape=box, style=rounded, label=", fold->id);
        dot_words(words, out);
        buf_put_string(out, "];\n");
    }
}

struct dot_uses {
    uint32_t pipeline;
    struct buf *out;
};

/* A finished fold that the pipeline looks into: dashed. */
static void dot_use(struct dot_uses *uses, uint32_t fold)
{
    buf_format(uses->out, "  fold%" PRIu32 " -> pipeline%" PRIu32 " [style=dashed];\n", fold,
               uses->pipeline);
}

static void dot_scalar(const struct expr *expr, void *context)
{
    if (expr->kind == EXPR_SCALAR) dot_use(context, expr->fold);
}

static void dot_exchanges(const struct plan *plan, struct buf *words, struct buf *out)
{
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        buf_format(out, "  %s%" PRIu32 " -> pipeline%" PRIu32 ";\n",
                   pipeline->source_kind == SOURCE_SCAN ? "scan" : "fold", pipeline->source,
                   pipeline->id);
        put_exchange(pipeline, words);
        buf_format(out, "  pipeline%" PRIu32 " -> fold%" PRIu32 " [label=", pipeline->id,
                   pipeline->target);
        dot_words(words, out);
        buf_put_string(out, "];\n");
        struct dot_uses uses = {.pipeline = pipeline->id, .out = out};
        for (uint32_t j = 0; j < pipeline->op_count; j++) {
            const struct op *op = &pipeline->ops[j];
            if (op->kind == OP_PROBE) dot_use(&uses, op->side);
            for (uint32_t k = 0; k < op->expr_count; k++) {
                expr_visit(op->exprs[k], dot_scalar, &uses);
            }
        }
    }
}

void explain_dot(const struct plan *plan, struct buf *out)
{
    struct buf words = {0};
    buf_put_string(out, "digraph plan {\n  rankdir=LR;\n  node [fontname=\"monospace\"];\n"
                        "  edge [fontname=\"monospace\"];\n");
    for (uint32_t phase = 0; phase < plan->phase_count; phase++) {
        buf_format(out, "  subgraph cluster_%" PRIu32 " {\n    label=\"phase %" PRIu32 "\";\n",
                   phase, phase + 1);
        dot_nodes(plan, phase, &words, out);
        buf_put_string(out, "  }\n");
    }
    dot_exchanges(plan, &words, out);
    buf_put_string(out, "}\n");
    buf_done(&words);
}
