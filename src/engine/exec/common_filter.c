/* SPDX-License-Identifier: Apache-2.0 */
/* common_filter.c - a tree of conditions; a node's rows are those of its parent that meet its own.
 *
 * At a node all pipelines see the same rows. The condition that one of them would evaluate next, it
 * would evaluate for all of these rows; so if others have the same condition anywhere, applying it
 * now costs nothing more and saves the others the work. The condition that most of them have is
 * taken first, greedily, until every pipeline has only conditions of its own.
 *
 * A condition that can fail, or that counts values it could not read, must see the same rows as
 * without sharing: no condition overtakes it, and it overtakes none.
 */
#include "engine/exec/common_filter.h"

#include "engine/base/assert.h"
#include "engine/exec/expr/eval.h"

struct filter_node {
    uint32_t parent;
    struct eval *eval;
    struct late_columns late;
    uint32_t *members; /* Pipelines at this node or below. */
    uint32_t member_count;
    uint32_t *rows;
    struct selection left;
};

struct common_filter {
    struct common_filter_options options;
    struct arena *arena;
    struct arena batch_arena;
    struct filter_node *nodes; /* Each behind its parent; the first has no condition. */
    uint32_t node_count;
    uint32_t *ends; /* By pipeline: the last node it passes. */
};

/* ---- making ---- */

static const struct op *first_filter(const struct pipeline_run *run)
{
    const struct pipeline *pipeline = pipeline_run_plan(run);
    bool filters = pipeline->op_count > 0 && pipeline->ops[0].kind == OP_FILTER;
    return filters ? &pipeline->ops[0] : NULL;
}

/* The first condition that is still to be evaluated; expr_count: there is none. */
static uint32_t next_condition(const struct op *op, const bool *known)
{
    uint32_t i = 0;
    while (i < op->expr_count && known[i]) {
        i++;
    }
    return i;
}

/* Where a condition stands that could be evaluated now; expr_count: nowhere. */
static uint32_t find_condition(const struct op *op, const bool *known, const struct expr *wanted)
{
    bool moves = !expr_keeps_its_place(wanted);
    for (uint32_t i = next_condition(op, known); i < op->expr_count; i++) {
        if (known[i]) continue;
        if (expr_equal(op->exprs[i], wanted)) return i;
        if (!moves || expr_keeps_its_place(op->exprs[i])) break;
    }
    return op->expr_count;
}

static bool has_condition(const struct common_filter *filter, uint32_t run,
                          const struct expr *wanted)
{
    const struct op *op = first_filter(filter->options.runs[run]);
    if (op == NULL) return false;
    const bool *known = pipeline_run_known(filter->options.runs[run]);
    return find_condition(op, known, wanted) < op->expr_count;
}

/* The next condition of some member that most members have; NULL: none is common to two. */
static const struct expr *most_common(const struct common_filter *filter, const uint32_t *members,
                                      uint32_t count)
{
    const struct expr *best = NULL;
    uint32_t best_count = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct pipeline_run *run = filter->options.runs[members[i]];
        const struct op *op = first_filter(run);
        if (op == NULL) continue;
        uint32_t next = next_condition(op, pipeline_run_known(filter->options.runs[members[i]]));
        if (next == op->expr_count) continue;
        uint32_t having = 0;
        for (uint32_t j = 0; j < count; j++) {
            having += has_condition(filter, members[j], op->exprs[next]);
        }
        if (having <= best_count) continue;
        best = op->exprs[next];
        best_count = having;
    }
    return best;
}

static status node_add(struct common_filter *filter, uint32_t parent, const struct expr *expr,
                       struct error *err)
{
    struct filter_node *node = &filter->nodes[filter->node_count];
    const struct schema *input = &pipeline_run_plan(filter->options.runs[0])->input;
    *node = (struct filter_node){
        .parent = parent,
        .members = arena_array(filter->arena, uint32_t, filter->options.run_count + 1),
        .rows = arena_array(filter->arena, uint32_t, PIPELINE_ROWS),
    };
    if (node->members == NULL || node->rows == NULL) return error_memory(err);
    filter->node_count++;
    if (expr == NULL) return STATUS_OK;
    TRY(late_columns_of(expr, input->count, filter->arena, &node->late, err));
    return eval_create(expr, input, filter->arena, &node->eval, err);
}

/* Moves those that have the condition from `members` to a new node; returns how many are left. */
static status node_split(struct common_filter *filter, uint32_t parent, const struct expr *expr,
                         uint32_t *members, uint32_t *in_out_count, struct error *err)
{
    uint32_t left = 0;
    struct filter_node *node = &filter->nodes[filter->node_count];
    TRY(node_add(filter, parent, expr, err));
    for (uint32_t i = 0; i < *in_out_count; i++) {
        uint32_t member = members[i];
        if (!has_condition(filter, member, expr)) {
            members[left++] = member;
            continue;
        }
        struct pipeline_run *run = filter->options.runs[member];
        bool *known = pipeline_run_known(run);
        known[find_condition(first_filter(run), known, expr)] = true;
        node->members[node->member_count++] = member;
    }
    ASSERT(node->member_count > 1);
    *in_out_count = left;
    return STATUS_OK;
}

static status filter_init(struct common_filter *filter, uint32_t *out_culprit, struct error *err)
{
    const struct common_filter_options *options = &filter->options;
    uint32_t conditions = 0;
    *out_culprit = 0;
    for (uint32_t i = 0; i < options->run_count; i++) {
        const struct op *op = first_filter(options->runs[i]);
        if (op != NULL) conditions += op->expr_count;
    }
    filter->nodes = arena_array(filter->arena, struct filter_node, conditions + 1);
    filter->ends = arena_array(filter->arena, uint32_t, options->run_count + 1);
    uint32_t *members = arena_array(filter->arena, uint32_t, options->run_count + 1);
    if (filter->nodes == NULL || filter->ends == NULL || members == NULL) return error_memory(err);
    TRY(node_add(filter, 0, NULL, err));
    for (uint32_t i = 0; i < options->run_count; i++) {
        filter->nodes[0].members[i] = i;
    }
    filter->nodes[0].member_count = options->run_count;
    for (uint32_t i = 0; i < filter->node_count; i++) {
        uint32_t count = filter->nodes[i].member_count;
        memcpy(members, filter->nodes[i].members, count * sizeof *members);
        for (;;) {
            const struct expr *expr = most_common(filter, members, count);
            if (expr == NULL) break;
            *out_culprit = members[0];
            TRY(node_split(filter, i, expr, members, &count, err));
        }
        for (uint32_t j = 0; j < count; j++) {
            filter->ends[members[j]] = i;
        }
    }
    return STATUS_OK;
}

status common_filter_create(const struct common_filter_options *options, struct arena *arena,
                            struct common_filter **out_filter, uint32_t *out_culprit,
                            struct error *err)
{
    ASSERT(options->run_count > 0);
    struct common_filter *filter = arena_new(arena, struct common_filter);
    *out_culprit = 0;
    if (filter == NULL) return error_memory(err);
    *filter = (struct common_filter){.options = *options, .arena = arena};
    arena_init(&filter->batch_arena, options->budget);
    status result = filter_init(filter, out_culprit, err);
    if (result != STATUS_OK) {
        common_filter_destroy(filter);
        return result;
    }
    *out_filter = filter;
    return STATUS_OK;
}

void common_filter_destroy(struct common_filter *filter)
{
    if (filter == NULL) return;
    for (uint32_t i = 0; i < filter->node_count; i++) {
        eval_destroy(filter->nodes[i].eval);
    }
    arena_done(&filter->batch_arena);
}

/* ---- running ---- */

static status node_run(struct common_filter *filter, struct filter_node *node,
                       const struct batch *batch, struct materializer *materializer,
                       struct error *err)
{
    struct selection selection = filter->nodes[node->parent].left;
    node->left = (struct selection){.rows = node->rows};
    if (selection.count == 0) return STATUS_OK;
    uint64_t malformed = 0;
    struct eval_context context = {.scalars = filter->options.finished->scalars,
                                   .arena = &filter->batch_arena,
                                   .malformed = &malformed,
                                   .sentiment = filter->options.finished->sentiment};
    TRY(late_columns_run(&node->late, materializer, selection, err));
    TRY(eval_filter(node->eval, batch, selection, &context, node->rows, &node->left.count, err));
    /* Each of them would have counted the same. */
    for (uint32_t i = 0; malformed > 0 && i < node->member_count; i++) {
        pipeline_run_count_malformed(filter->options.runs[node->members[i]], malformed);
    }
    return STATUS_OK;
}

status common_filter_run(struct common_filter *filter, const struct batch *batch,
                         struct selection selection, struct materializer *materializer,
                         uint32_t *out_culprit, struct error *err)
{
    ASSERT(selection.count <= PIPELINE_ROWS);
    filter->nodes[0].left = selection;
    for (uint32_t i = 1; i < filter->node_count; i++) {
        *out_culprit = filter->nodes[i].members[0];
        TRY(node_run(filter, &filter->nodes[i], batch, materializer, err));
    }
    arena_reset(&filter->batch_arena);
    return STATUS_OK;
}

struct selection common_filter_left(const struct common_filter *filter, uint32_t run)
{
    ASSERT(run < filter->options.run_count);
    return filter->nodes[filter->ends[run]].left;
}
