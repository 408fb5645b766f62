/* SPDX-License-Identifier: Apache-2.0 */
/* bench_aggregate.c - GROUP BY with count(*) and sum of a DECIMAL, from ten groups to millions.
 *
 *     add     rows to groups, in a table that keeps its memory from run to run, as a map's does
 *     merge   partial states to groups, in a new table that grows, as a fold's does
 */
#include "micro.h"

#include "engine/base/random.h"
#include "engine/exec/fold/group_table.h"

enum { ROWS_MIN = 1 << 20 };

struct group_detail {
    uint8_t kind;
    uint32_t groups;
};

struct group_state {
    const struct grouping *grouping;
    uint32_t row_count;   /* Whole slices. */
    struct batch rows;    /* k, amount */
    struct batch partial; /* One slice of states, whose keys are put in slice by slice. */
    struct group_table *table;
};

static uint64_t table_sum(const struct group_table *table)
{
    uint32_t count = group_table_count(table);
    return count + group_table_hash(table, count - 1);
}

static uint64_t run_add(struct micro *micro)
{
    struct group_state *state = micro->state;
    struct error err;
    group_table_reset(state->table);
    for (uint32_t first = 0; first < state->row_count; first += MICRO_SLICE_ROWS) {
        struct column columns[2];
        struct batch slice = batch_slice(&state->rows, first, MICRO_SLICE_ROWS, columns);
        struct selection selection = {NULL, MICRO_SLICE_ROWS};
        micro_require(group_table_add(state->table, &slice, selection, &err), &err);
    }
    return table_sum(state->table);
}

static uint64_t run_merge(struct micro *micro)
{
    struct group_state *state = micro->state;
    struct group_table *table;
    struct error err;
    micro_require(group_table_create(state->grouping, NULL, &table, &err), &err);
    for (uint32_t first = 0; first < state->row_count; first += MICRO_SLICE_ROWS) {
        struct column columns[2];
        struct batch slice = batch_slice(&state->rows, first, MICRO_SLICE_ROWS, columns);
        state->partial.columns[0] = slice.columns[0];
        micro_require(group_table_merge(table, &state->partial, &err), &err);
    }
    uint64_t sum = table_sum(table);
    group_table_destroy(table);
    return sum;
}

/* The grouping of the plan, whose input is then the columns k and amount. */
static const struct grouping *find_grouping(const char *sql, struct arena *arena)
{
    const struct plan *plan = micro_compile(sql, arena);
    const struct pipeline *pipeline = &plan->pipelines[0];
    const struct op *op = &pipeline->ops[pipeline->op_count - 1];
    struct error err;
    if (op->kind != OP_AGGREGATE || op->grouping->key_columns[0] != 0 ||
        op->grouping->aggregates[1].input_column != 1) {
        micro_require(error_set(&err, STATUS_INTERNAL, "another plan than expected: %s", sql),
                      &err);
    }
    return op->grouping;
}

static void prepare_rows(struct micro *micro)
{
    const struct group_detail *detail = micro->which->detail;
    struct arena *arena = &micro->arena;
    struct group_state *state = micro_need(arena_new(arena, struct group_state));
    bool is_text = detail->kind == TYPE_TEXT;
    state->grouping = find_grouping(
        is_text ? "SELECT k, count(*) AS n, sum(amount) AS total FROM keyed_text GROUP BY k"
                : "SELECT k, count(*) AS n, sum(amount) AS total FROM keyed_int GROUP BY k",
        arena);
    uint32_t wanted = detail->groups > ROWS_MIN / 2 ? detail->groups * 2 : ROWS_MIN;
    uint32_t count = wanted - wanted % MICRO_SLICE_ROWS;
    struct column *columns = micro_need(arena_array(arena, struct column, 2));
    uint32_t *ids = micro_ids(count, detail->groups, arena);
    columns[0] = micro_keys((struct type){.kind = detail->kind}, ids, count, arena);
    struct type amount = {TYPE_DECIMAL, 18, 3};
    bool ready = column_init(&columns[1], amount, count, arena);
    (void)micro_need(ready ? columns : NULL);
    struct random random = {9};
    for (uint32_t i = 0; i < count; i++) {
        columns[1].ints[i] = (int64_t)random_below(&random, 120) * 500;
    }
    state->row_count = count;
    state->rows = (struct batch){count, 2, columns};
    micro->state = state;
    micro->row_count = count;
    micro->byte_count = micro_column_bytes(&columns[0], count) + (uint64_t)count * sizeof(int64_t);
}

static void prepare_add(struct micro *micro)
{
    prepare_rows(micro);
    struct group_state *state = micro->state;
    struct error err;
    micro_require(group_table_create(state->grouping, NULL, &state->table, &err), &err);
}

/* States of one row each: a table in which every key is another one, read as a map sends it. */
static void prepare_merge(struct micro *micro)
{
    prepare_add(micro);
    struct group_state *state = micro->state;
    struct arena *arena = &micro->arena;
    struct column columns[2];
    struct batch slice = batch_slice(&state->rows, 0, MICRO_SLICE_ROWS, columns);
    uint32_t *ids = micro_ids(MICRO_SLICE_ROWS, MICRO_SLICE_ROWS, arena);
    columns[0] = micro_keys(columns[0].type, ids, MICRO_SLICE_ROWS, arena);
    struct error err;
    struct selection selection = {NULL, MICRO_SLICE_ROWS};
    micro_require(group_table_add(state->table, &slice, selection, &err), &err);
    micro_require(group_table_read(state->table, GROUP_PARTIAL, 0, MICRO_SLICE_ROWS, arena,
                                   &state->partial, &err),
                  &err);
}

static void finish_group(struct micro *micro)
{
    struct group_state *state = micro->state;
    group_table_destroy(state->table);
}

#define GROUP_CASE(name_, work, large_, ...)                                                       \
    {                                                                                              \
        .name = "aggregate/" #work "/" name_, .prepare = prepare_##work, .run = run_##work,        \
        .finish = finish_group, .detail = MICRO_DETAIL(group_detail, __VA_ARGS__), .large = large_ \
    }

static const struct micro_case cases[] = {
    GROUP_CASE("int/10", add, false, TYPE_INT, 10),
    GROUP_CASE("int/10k", add, false, TYPE_INT, 10000),
    GROUP_CASE("int/1M", add, false, TYPE_INT, 1000000),
    GROUP_CASE("int/10M", add, true, TYPE_INT, 10000000),
    GROUP_CASE("text/10", add, false, TYPE_TEXT, 10),
    GROUP_CASE("text/10k", add, false, TYPE_TEXT, 10000),
    GROUP_CASE("text/1M", add, false, TYPE_TEXT, 1000000),
    GROUP_CASE("text/10M", add, true, TYPE_TEXT, 10000000),
    GROUP_CASE("int/10", merge, false, TYPE_INT, 10),
    GROUP_CASE("int/10k", merge, false, TYPE_INT, 10000),
    GROUP_CASE("int/1M", merge, false, TYPE_INT, 1000000),
    GROUP_CASE("int/10M", merge, true, TYPE_INT, 10000000),
    GROUP_CASE("text/10", merge, false, TYPE_TEXT, 10),
    GROUP_CASE("text/10k", merge, false, TYPE_TEXT, 10000),
    GROUP_CASE("text/1M", merge, false, TYPE_TEXT, 1000000),
    GROUP_CASE("text/10M", merge, true, TYPE_TEXT, 10000000),
};

const struct micro_suite micro_aggregate = {cases, sizeof cases / sizeof cases[0]};
