/* SPDX-License-Identifier: Apache-2.0 */
/* bench_filter.c - WHERE over batches that are in memory: eval_filter, one condition after another.
 *
 * The conditions come out of a plan, so they have been rewritten as the planner does it. Batches
 * are visited in turn; all of them together fit the caches near a core or little more, as a batch
 * does that was just parsed.
 */
#include "micro.h"

#include "engine/exec/expr/eval.h"

enum { BATCHES = 64 };

struct filter_detail {
    enum micro_file file;
    const char *sql;
};

struct filter_state {
    struct micro_rows rows;
    struct eval **evals;
    uint32_t eval_count;
    struct arena batch_arena;
};

static uint64_t run_filter(struct micro *micro)
{
    struct filter_state *state = micro->state;
    struct error err;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < state->rows.batch_count; i++) {
        uint32_t rows[MICRO_SLICE_ROWS];
        struct eval_context context = {.arena = &state->batch_arena};
        struct selection selection = {NULL, state->rows.rows_each};
        for (uint32_t j = 0; j < state->eval_count; j++) {
            uint32_t count;
            micro_require(eval_filter(state->evals[j], &state->rows.batches[i], selection, &context,
                                      rows, &count, &err),
                          &err);
            selection = (struct selection){rows, count};
        }
        sum += selection.count;
        arena_reset(&state->batch_arena);
    }
    return sum;
}

static void mark_column(const struct expr *expr, void *context)
{
    bool *used = context;
    if (expr->kind == EXPR_COLUMN) used[expr->column] = true;
}

static void prepare_filter(struct micro *micro)
{
    const struct filter_detail *detail = micro->which->detail;
    const struct plan *plan = micro_compile(detail->sql, &micro->arena);
    const struct op *op = &plan->pipelines[0].ops[0];
    struct error err;
    if (op->kind != OP_FILTER) {
        micro_require(error_set(&err, STATUS_INTERNAL, "no filter in: %s", detail->sql), &err);
    }
    struct filter_state *state = micro_need(arena_new(&micro->arena, struct filter_state));
    state->rows = (struct micro_rows){
        .file = detail->file,
        .table = &plan->tables[0],
        .rows_each = MICRO_SLICE_ROWS,
        .batch_count = BATCHES,
    };
    micro_rows_make(&state->rows, &micro->arena);
    uint32_t column_count = plan->tables[0].schema.count;
    bool *used = micro_need(arena_array(&micro->arena, bool, column_count));
    state->eval_count = op->expr_count;
    state->evals = micro_need(arena_array(&micro->arena, struct eval *, op->expr_count));
    for (uint32_t i = 0; i < op->expr_count; i++) {
        micro_require(eval_create(op->exprs[i], &plan->pipelines[0].input, &micro->arena,
                                  &state->evals[i], &err),
                      &err);
        expr_visit(op->exprs[i], mark_column, used);
    }
    for (uint32_t column = 0; column < column_count; column++) {
        if (used[column]) micro->byte_count += micro_rows_bytes(&state->rows, column);
    }
    micro->row_count = (uint64_t)BATCHES * MICRO_SLICE_ROWS;
    micro->state = state;
}

static void finish_filter(struct micro *micro)
{
    struct filter_state *state = micro->state;
    for (uint32_t i = 0; i < state->eval_count; i++) {
        eval_destroy(state->evals[i]);
    }
    micro_rows_done(&state->rows);
    arena_done(&state->batch_arena);
}

#define FILTER_CASE(name_, file_, from, condition)                                                 \
    {                                                                                              \
        .name = "filter/" name_, .prepare = prepare_filter, .run = run_filter,                     \
        .finish = finish_filter,                                                                   \
        .detail = MICRO_DETAIL(filter_detail, file_, "SELECT 1 FROM " from " WHERE " condition)    \
    }

static const struct micro_case cases[] = {
    FILTER_CASE("compare/int", MICRO_TRANSACTIONS, "transactions", "store_id > 5"),
    FILTER_CASE("compare/decimal", MICRO_TRANSACTIONS, "transactions", "final_amount >= 75"),
    FILTER_CASE("compare/text", MICRO_TRANSACTIONS, "transactions", "transaction_id < '8'"),
    FILTER_CASE("in/int", MICRO_TRANSACTIONS, "transactions", "store_id IN (2, 3, 5, 7)"),
    FILTER_CASE("in/text", MICRO_COMMENTS, "comments", "body NOT IN ('[deleted]', '[removed]')"),
    FILTER_CASE("like/inside", MICRO_COMMENTS, "comments", "body LIKE '%student%'"),
    FILTER_CASE("regexp/literals", MICRO_COMMENTS, "comments",
                "regexp_matches(body, 'university|college|student|teacher|professor', 'i')"),
    FILTER_CASE("regexp/pattern", MICRO_COMMENTS, "comments",
                "regexp_matches(body, 's[a-z]+nts?[ ,.]')"),
    FILTER_CASE("year", MICRO_TRANSACTIONS, "transactions",
                "year(created_at) BETWEEN 2024 AND 2025"),
    FILTER_CASE("time-of-day", MICRO_TRANSACTIONS, "transactions",
                "time_of_day(created_at) BETWEEN '06:00:00' AND '23:00:00'"),
    FILTER_CASE("year+time+amount", MICRO_TRANSACTIONS, "transactions",
                "year(created_at) BETWEEN 2024 AND 2025 AND"
                " time_of_day(created_at) BETWEEN '06:00:00' AND '23:00:00' AND"
                " final_amount >= 75"),
};

const struct micro_suite micro_filter = {cases, sizeof cases / sizeof cases[0]};
