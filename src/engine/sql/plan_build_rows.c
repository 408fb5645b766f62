/* SPDX-License-Identifier: Apache-2.0 */
/* plan_build_rows.c - aggregates whose keys all come from one build side.
 *
 *     SELECT p.id, p.url, avg(c.score) FROM comments c JOIN posts p ON ... GROUP BY p.id, p.url
 *
 * The keys of such a group are those of the build side's row, and the row has a number that is the
 * same wherever the table is copied to. So the rows of the large side are grouped by that number,
 * which costs neither hashing nor comparing nor sending texts. Two rows may have the same keys: the
 * build side finds that out once, and names the first one for both. A reader of the results first
 * fetches the keys from the build side, once per group.
 */
#include "engine/base/assert.h"
#include "engine/sql/bind_expr.h"
#include "engine/sql/plan_builder.h"

/* The stream's last two operators: the join, and the projection of keys and inputs. */
struct join_below {
    const struct op *probe;
    const struct op *project;
    uint32_t own_count; /* Columns of the join's output that are not the build side's. */
};

struct side_search {
    uint32_t own_count;
    bool found;
};

static void search_side(const struct expr *expr, void *context)
{
    struct side_search *search = context;
    if (expr->kind == EXPR_COLUMN && expr->column >= search->own_count) search->found = true;
}

static bool find_join(const struct planner *planner, const struct stream *stream,
                      struct join_below *out)
{
    if (stream->op_count < 2) return false;
    out->project = &stream->ops[stream->op_count - 1];
    out->probe = &stream->ops[stream->op_count - 2];
    if (out->project->kind != OP_PROJECT || out->probe->kind != OP_PROBE ||
        out->probe->probe != PROBE_JOIN || out->probe->keep_unmatched) {
        return false;
    }
    out->own_count = out->probe->output.count - planner->folds.items[out->probe->side].output.count;
    return true;
}

/* All keys are columns of the build side, nothing else is, and a number is shorter than the keys.
 * Not for doubles: a group gives the one form of those that are equal, and a row its own. */
static bool is_shorter(const struct join_below *join, uint32_t key_count)
{
    const struct op *project = join->project;
    struct side_search search = {.own_count = join->own_count};
    bool has_text = false;
    for (uint32_t i = 0; i < key_count; i++) {
        const struct expr *key = project->exprs[i];
        if (key->kind != EXPR_COLUMN || key->column < join->own_count) return false;
        if (key->type.kind == TYPE_DOUBLE) return false;
        has_text |= key->type.kind == TYPE_TEXT;
    }
    for (uint32_t i = key_count; i < project->expr_count; i++) {
        expr_visit(project->exprs[i], search_side, &search);
    }
    return !search.found && (has_text || key_count > 1);
}

/* The keys as columns of the build side, ascending: which is the first key does not matter here. */
static status key_duplicates(struct planner *planner, const struct join_below *join,
                             uint32_t key_count, struct duplicate_set *out_duplicates,
                             struct error *err)
{
    uint32_t *columns = arena_array(planner->arena, uint32_t, key_count + 1);
    if (columns == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < key_count; i++) {
        uint32_t column = join->project->exprs[i]->column - join->own_count;
        uint32_t place = i;
        while (place > 0 && columns[place - 1] > column) {
            columns[place] = columns[place - 1];
            place--;
        }
        columns[place] = column;
    }
    *out_duplicates = (struct duplicate_set){.columns = columns, .count = key_count};
    return STATUS_OK;
}

/* The join says the number of the row that stands for the keys, and the projection has it as the
 * only key. */
static status narrow_join(struct planner *planner, struct stream *stream,
                          const struct join_below *join, uint32_t key_count, struct field row,
                          struct error *err)
{
    uint32_t input_count = join->project->expr_count - key_count;
    struct field *found = arena_array(planner->arena, struct field, join->own_count + 1);
    struct field *fields = arena_array(planner->arena, struct field, input_count + 1);
    const struct expr **exprs = arena_array(planner->arena, const struct expr *, input_count + 1);
    if (found == NULL || fields == NULL || exprs == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < join->own_count; i++) {
        found[i] = join->probe->output.fields[i];
    }
    found[join->own_count] = row;
    fields[0] = row;
    exprs[0] = expr_column(planner->arena, join->own_count, row.type);
    if (exprs[0] == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < input_count; i++) {
        fields[i + 1] = join->project->output.fields[key_count + i];
        exprs[i + 1] = join->project->exprs[key_count + i];
    }
    struct op probe = *join->probe;
    probe.probe = PROBE_ROW;
    TRY(key_duplicates(planner, join, key_count, &probe.duplicates, err));
    probe.output = (struct schema){.fields = found, .count = join->own_count + 1};
    struct op project = {.kind = OP_PROJECT,
                         .output = {.fields = fields, .count = input_count + 1},
                         .exprs = exprs,
                         .expr_count = input_count + 1};
    stream->op_count -= 2;
    TRY(stream_append(planner, stream, probe, err));
    return stream_append(planner, stream, project, err);
}

/* The same aggregates by one key, the row. */
static status group_by_row(struct planner *planner, const struct grouping *grouping,
                           struct field row, struct grouping **out_grouping, struct error *err)
{
    uint32_t key_count = grouping->key_count;
    uint32_t count = grouping->aggregate_count;
    uint32_t state_count = grouping->partial.count - key_count;
    struct grouping *by_row = arena_new(planner->arena, struct grouping);
    struct aggregate *aggregates = arena_array(planner->arena, struct aggregate, count + 1);
    struct field *partial = arena_array(planner->arena, struct field, state_count + 1);
    struct field *result = arena_array(planner->arena, struct field, count + 1);
    uint32_t *keys = arena_array(planner->arena, uint32_t, 1);
    if (by_row == NULL || aggregates == NULL || partial == NULL || result == NULL || keys == NULL) {
        return binder_memory(err);
    }
    partial[0] = result[0] = row;
    for (uint32_t i = 0; i < state_count; i++) {
        partial[i + 1] = grouping->partial.fields[key_count + i];
    }
    for (uint32_t i = 0; i < count; i++) {
        aggregates[i] = grouping->aggregates[i];
        aggregates[i].input_column += 1 - key_count;
        aggregates[i].by_column += 1 - key_count;
        aggregates[i].state_column += 1 - key_count;
        result[i + 1] = grouping->result.fields[key_count + i];
    }
    *by_row = (struct grouping){
        .key_columns = keys,
        .key_count = 1,
        .aggregates = aggregates,
        .aggregate_count = count,
        .partial = {.fields = partial, .count = state_count + 1},
        .result = {.fields = result, .count = count + 1},
    };
    *out_grouping = by_row;
    return STATUS_OK;
}

/* Results by row to results by key. */
static status fetch_keys(struct planner *planner, struct stream *stream,
                         const struct join_below *join, const struct grouping *grouping,
                         struct error *err)
{
    uint32_t key_count = grouping->key_count;
    struct schema side = planner->folds.items[join->probe->side].output;
    struct schema input = stream_schema(planner, stream);
    struct field *fields = arena_array(planner->arena, struct field, input.count + side.count);
    const struct expr **exprs =
        arena_array(planner->arena, const struct expr *, grouping->result.count + 1);
    uint32_t *keys = arena_array(planner->arena, uint32_t, 1);
    if (fields == NULL || exprs == NULL || keys == NULL) return binder_memory(err);
    for (uint32_t i = 0; i < input.count + side.count; i++) {
        fields[i] = i < input.count ? input.fields[i] : side.fields[i - input.count];
    }
    for (uint32_t i = 0; i < grouping->result.count; i++) {
        uint32_t place = i < key_count
                             ? input.count + join->project->exprs[i]->column - join->own_count
                             : 1 + i - key_count;
        exprs[i] = expr_column(planner->arena, place, fields[place].type);
        if (exprs[i] == NULL) return binder_memory(err);
    }
    ASSERT(input.count == 1 + grouping->aggregate_count);
    struct op fetch = {.kind = OP_PROBE,
                       .probe = PROBE_FETCH,
                       .side = join->probe->side,
                       .key_columns = keys,
                       .key_count = 1,
                       .output = {.fields = fields, .count = input.count + side.count}};
    struct op project = {.kind = OP_PROJECT,
                         .output = grouping->result,
                         .exprs = exprs,
                         .expr_count = grouping->result.count};
    TRY(stream_append(planner, stream, fetch, err));
    return stream_append(planner, stream, project, err);
}

status stream_aggregate_by_row(struct planner *planner, struct stream *stream,
                               const struct relation *relation, const struct grouping *grouping,
                               bool *out_done, struct error *err)
{
    struct join_below join;
    *out_done = find_join(planner, stream, &join) && is_shorter(&join, grouping->key_count);
    if (!*out_done) return STATUS_OK;
    struct grouping *by_row = NULL;
    struct field row = {.name = TEXT_LITERAL("row"), .type = TYPE(INT)};
    TRY(narrow_join(planner, stream, &join, grouping->key_count, row, err));
    TRY(group_by_row(planner, grouping, row, &by_row, err));
    struct op aggregate = {.kind = OP_AGGREGATE, .output = by_row->partial, .grouping = by_row};
    TRY(stream_append(planner, stream, aggregate, err));
    struct fold rows = {
        .kind = FOLD_AGGREGATE,
        .output = by_row->result,
        .key_count = 1,
        .grouping = by_row,
        .label = label_of(planner, grouping->aggregate_count == 0 ? "distinct" : "aggregate",
                          grouping->result.fields, grouping->key_count),
    };
    /* No expression names these columns: the next two operators know their places. */
    TRY(stream_end(planner, stream, rows, NULL, 0, err));
    TRY(fetch_keys(planner, stream, &join, grouping, err));
    stream->columns = relation->columns;
    stream->column_count = relation->column_count;
    return STATUS_OK;
}

/* ---- duplicates ---- */

bool duplicate_set_equal(const struct duplicate_set *a, const struct duplicate_set *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->columns[i] != b->columns[i]) return false;
    }
    return true;
}

/* The set's number among those of the fold, which has it then. */
static status duplicate_set_number(struct planner *planner, struct fold *fold,
                                   const struct duplicate_set *set, uint32_t *out_number,
                                   struct error *err)
{
    uint32_t count = fold->duplicate_set_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!duplicate_set_equal(&fold->duplicate_sets[i], set)) continue;
        *out_number = i;
        return STATUS_OK;
    }
    struct duplicate_set *sets = arena_array(planner->arena, struct duplicate_set, count + 1);
    if (sets == NULL) return binder_memory(err);
    if (count > 0) memcpy(sets, fold->duplicate_sets, count * sizeof *sets);
    sets[count] = *set;
    fold->duplicate_sets = sets;
    fold->duplicate_set_count = count + 1;
    *out_number = count;
    return STATUS_OK;
}

status planner_number_duplicates(struct planner *planner, struct error *err)
{
    for (uint32_t i = 0; i < planner->pipelines.count; i++) {
        struct pipeline *pipeline = &planner->pipelines.items[i];
        for (uint32_t j = 0; j < pipeline->op_count; j++) {
            const struct op *op = &pipeline->ops[j];
            if (op->kind != OP_PROBE || op->probe != PROBE_ROW) continue;
            struct op *ops = arena_array(planner->arena, struct op, pipeline->op_count);
            if (ops == NULL) return binder_memory(err);
            memcpy(ops, pipeline->ops, pipeline->op_count * sizeof *ops);
            TRY(duplicate_set_number(planner, &planner->folds.items[op->side], &op->duplicates,
                                     &ops[j].duplicate_set, err));
            pipeline->ops = ops;
        }
    }
    return STATUS_OK;
}
