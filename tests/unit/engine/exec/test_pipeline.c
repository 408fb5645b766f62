/* SPDX-License-Identifier: Apache-2.0 */
/* test_pipeline.c - a pipeline's rows are those of its operators applied one after another.
 *
 * Method: random chains of filters, projections, unnests and joins over rows of every type. The
 * model applies each operator to all rows at once with loops over rows. The pipeline is given the
 * rows in pieces, cut in two ways, and must send the same bytes both times. Expansions go beyond
 * the rows that one push may have.
 */
#include "unit/test.h"

#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/group_table.h"
#include "engine/data/key_hash.h"
#include "engine/exec/pipeline.h"
#include "engine/exec/fold/ranker.h"
#include "unit/engine/exec/fold/make_grouping.h"
#include "engine/data/batch_codec.h"

enum { OPS_MAX = 5, COLUMNS_MAX = 64, ROWS_MAX = 30000, INPUT_COLUMNS = 9 };

static const struct schema input_schema = {random_rows_fields, INPUT_COLUMNS};

/* A pipeline and what it should give so far. */
struct op_chain {
    struct random *random;
    struct arena *arena;
    struct pipeline pipeline;
    struct op ops[2 * OPS_MAX + 1]; /* A step may take two. */
    struct join_table sides[2 * OPS_MAX];
    struct value scalar;
    struct batch rows;
};

static void *need(void *pointer)
{
    return random_rows_need(pointer);
}

/* ---- the model: pairs of rows, gathered ---- */

struct pairs {
    struct buf rows;
    struct buf others;
};

static void pairs_put(struct pairs *pairs, uint32_t row, uint32_t other)
{
    buf_put(&pairs->rows, &row, sizeof row);
    buf_put(&pairs->others, &other, sizeof other);
}

/* The rows become those of the pairs, with the columns of `other` (may be NULL) beside them. */
static void take_pairs(struct op_chain *chain, struct pairs *pairs, const struct batch *other)
{
    uint32_t count = (uint32_t)(pairs->rows.size / sizeof(uint32_t));
    uint32_t kept = chain->rows.column_count;
    uint32_t added = other == NULL ? 0 : other->column_count;
    struct column *columns = need(arena_array(chain->arena, struct column, kept + added + 1));
    for (uint32_t i = 0; i < kept + added; i++) {
        const struct column *from = i < kept ? &chain->rows.columns[i] : &other->columns[i - kept];
        const void *numbers = i < kept ? pairs->rows.bytes : pairs->others.bytes;
        assert_true(column_gather(&columns[i], from, numbers, count, chain->arena));
    }
    chain->rows =
        (struct batch){.row_count = count, .column_count = kept + added, .columns = columns};
    buf_done(&pairs->rows);
    buf_done(&pairs->others);
}

static struct schema rows_schema(struct op_chain *chain)
{
    uint32_t count = chain->rows.column_count;
    struct field *fields = need(arena_array(chain->arena, struct field, count + 1));
    for (uint32_t i = 0; i < count; i++) {
        fields[i].type = chain->rows.columns[i].type;
    }
    return (struct schema){fields, count};
}

static void append_op(struct op_chain *chain, struct op op)
{
    op.output = rows_schema(chain);
    chain->ops[chain->pipeline.op_count++] = op;
    chain->pipeline.output = op.output;
}

static const struct expr *column_expr(struct op_chain *chain, uint32_t column)
{
    return need(
        (void *)(uintptr_t)expr_column(chain->arena, column, chain->rows.columns[column].type));
}

static const struct expr *call(struct op_chain *chain, enum function_id function,
                               const struct expr *first, const struct expr *second)
{
    const struct expr **args = need(arena_array(chain->arena, const struct expr *, 2));
    args[0] = first;
    args[1] = second;
    return need((void *)(uintptr_t)expr_call(chain->arena, function, TYPE(BOOL), args,
                                             second == NULL ? 1 : 2));
}

/* A column of this kind, or COLUMNS_MAX. */
static uint32_t find_column(const struct op_chain *chain, enum type_kind kind)
{
    uint32_t start = random_below(chain->random, chain->rows.column_count + 1);
    for (uint32_t i = 0; i < chain->rows.column_count; i++) {
        uint32_t column = (start + i) % chain->rows.column_count;
        if (chain->rows.columns[column].type.kind == kind) return column;
    }
    return COLUMNS_MAX;
}

/* ---- operators ---- */

/* Not NULL, and an INT greater than the value of a sub-query. */
static void add_filter(struct op_chain *chain)
{
    uint32_t present = random_below(chain->random, chain->rows.column_count);
    uint32_t integer = find_column(chain, TYPE_INT);
    struct expr *scalar = need(arena_new(chain->arena, struct expr));
    *scalar = (struct expr){.kind = EXPR_SCALAR, .type = TYPE(INT)};
    const struct expr **exprs = need(arena_array(chain->arena, const struct expr *, 2));
    struct op op = {.kind = OP_FILTER, .exprs = exprs, .expr_count = 1};
    exprs[0] = call(chain, FUNCTION_IS_NOT_NULL, column_expr(chain, present), NULL);
    if (integer != COLUMNS_MAX) {
        exprs[op.expr_count++] = call(chain, FUNCTION_GREATER, column_expr(chain, integer), scalar);
    }
    struct pairs pairs = {0};
    for (uint32_t row = 0; row < chain->rows.row_count; row++) {
        if (column_is_null(&chain->rows.columns[present], row)) continue;
        if (integer != COLUMNS_MAX) {
            const struct column *column = &chain->rows.columns[integer];
            if (column_is_null(column, row) || column->ints[row] <= chain->scalar.integer) continue;
        }
        pairs_put(&pairs, row, 0);
    }
    take_pairs(chain, &pairs, NULL);
    append_op(chain, op);
}

/* Some columns in another order, and whether each is NULL. */
static void add_project(struct op_chain *chain)
{
    uint32_t count = 1 + random_below(chain->random, 9);
    const struct expr **exprs = need(arena_array(chain->arena, const struct expr *, count));
    struct column *columns = need(arena_array(chain->arena, struct column, count));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = random_below(chain->random, chain->rows.column_count);
        exprs[i] = column_expr(chain, from);
        columns[i] = chain->rows.columns[from];
        if (random_below(chain->random, 4) != 0) continue;
        exprs[i] = call(chain, FUNCTION_IS_NULL, exprs[i], NULL);
        assert_true(column_init(&columns[i], TYPE(BOOL), chain->rows.row_count, chain->arena));
        for (uint32_t row = 0; row < chain->rows.row_count; row++) {
            columns[i].bools[row] = column_is_null(&chain->rows.columns[from], row);
        }
    }
    chain->rows.columns = columns;
    chain->rows.column_count = count;
    append_op(chain, (struct op){.kind = OP_PROJECT, .exprs = exprs, .expr_count = count});
}

static void add_unnest(struct op_chain *chain)
{
    uint32_t column =
        find_column(chain, random_below(chain->random, 2) == 0 ? TYPE_LIST_TEXT : TYPE_LIST_INT);
    if (column == COLUMNS_MAX) return;
    const struct expr **exprs = need(arena_array(chain->arena, const struct expr *, 1));
    exprs[0] = column_expr(chain, column);
    struct column lists = chain->rows.columns[column];
    struct batch elements = {.column_count = 1, .columns = lists.child};
    struct pairs pairs = {0};
    for (uint32_t row = 0; row < chain->rows.row_count; row++) {
        if (column_is_null(&lists, row)) continue;
        for (uint32_t i = 0; i < lists.lists[row].count; i++) {
            pairs_put(&pairs, row, lists.lists[row].first + i);
        }
    }
    take_pairs(chain, &pairs, &elements);
    append_op(chain, (struct op){.kind = OP_UNNEST, .exprs = exprs, .expr_count = 1});
}

static bool is_partner(const struct op_chain *chain, const struct op *op, uint32_t row,
                       const struct batch *side, uint32_t other)
{
    for (uint32_t i = 0; i < op->key_count; i++) {
        const struct column *a = &chain->rows.columns[op->key_columns[i]];
        const struct column *b = &side->columns[i];
        if (column_is_null(a, row) || column_is_null(b, other)) return false;
        if (naive_value_order(a, row, b, other) != 0) return false;
    }
    return true;
}

/* A column that is not a list, or COLUMNS_MAX. */
static uint32_t find_key(const struct op_chain *chain)
{
    uint32_t start = random_below(chain->random, chain->rows.column_count);
    for (uint32_t i = 0; i < chain->rows.column_count; i++) {
        uint32_t column = (start + i) % chain->rows.column_count;
        if (!type_is_list(chain->rows.columns[column].type)) return column;
    }
    return COLUMNS_MAX;
}

/* A column with the number of each row, or of its first duplicate. */
static struct batch row_numbers(struct op_chain *chain, const struct batch *side,
                                struct duplicate_set duplicates)
{
    uint32_t count = side->row_count;
    struct sort_key *keys = need(arena_array(chain->arena, struct sort_key, duplicates.count + 1));
    for (uint32_t i = 0; i < duplicates.count; i++) {
        keys[i].column = duplicates.columns[i];
    }
    struct column *column = need(arena_array(chain->arena, struct column, 1));
    assert_true(column_init(column, TYPE(INT), count + 1, chain->arena));
    for (uint32_t row = 0; row < count; row++) {
        uint32_t first = 0;
        while (naive_row_order(side, first, row, keys, duplicates.count) != 0) {
            first++;
        }
        column->ints[row] = first;
    }
    return (struct batch){.row_count = count, .column_count = 1, .columns = column};
}

/* The rows of the build side whose numbers are in the last column. */
static void add_fetch(struct op_chain *chain, uint32_t number, const struct batch *side)
{
    uint32_t *keys = need(arena_array(chain->arena, uint32_t, 1));
    keys[0] = chain->rows.column_count - 1;
    struct op op = {.kind = OP_PROBE,
                    .probe = PROBE_FETCH,
                    .side = number,
                    .key_columns = keys,
                    .key_count = 1};
    struct pairs pairs = {0};
    for (uint32_t row = 0; row < chain->rows.row_count; row++) {
        pairs_put(&pairs, row, (uint32_t)chain->rows.columns[keys[0]].ints[row]);
    }
    take_pairs(chain, &pairs, side);
    append_op(chain, op);
}

/* Without keys it is a cross join. */
static void add_probe(struct op_chain *chain, uint32_t side_rows, uint32_t key_count)
{
    struct field *fields = need(arena_array(chain->arena, struct field, key_count + 2));
    uint32_t *keys = need(arena_array(chain->arena, uint32_t, key_count + 1));
    for (uint32_t i = 0; i < key_count; i++) {
        keys[i] = find_key(chain);
        if (keys[i] == COLUMNS_MAX) return;
        fields[i].type = chain->rows.columns[keys[i]].type;
    }
    fields[key_count] = random_rows_fields[7];
    fields[key_count + 1] = random_rows_fields[1];
    struct random_rows rows = {.random = chain->random, .arena = chain->arena, .null_percent = 10};
    struct batch side = random_rows_batch(&rows, (struct schema){fields, key_count + 2}, side_rows);
    struct op op = {.kind = OP_PROBE,
                    .side = chain->pipeline.op_count,
                    .key_columns = keys,
                    .key_count = key_count,
                    .keep_unmatched = random_below(chain->random, 2) == 0};
    static const enum probe_kind kinds[] = {PROBE_JOIN, PROBE_SEMI, PROBE_ROW};
    if (!op.keep_unmatched) op.probe = kinds[random_below(chain->random, 3)];
    struct error err;
    assert_int_equal(join_table_build(&chain->sides[op.side], side, key_count, chain->arena, &err),
                     STATUS_OK);
    uint32_t *duplicates = need(arena_array(chain->arena, uint32_t, 2));
    duplicates[1] = random_below(chain->random, key_count + 2);
    duplicates[0] = random_below(chain->random, key_count + 2);
    op.duplicates =
        (struct duplicate_set){.columns = duplicates, .count = 1 + random_below(chain->random, 2)};
    assert_int_equal(
        join_table_find_duplicates(&chain->sides[op.side], &op.duplicates, 1, chain->arena, &err),
        STATUS_OK);
    struct pairs pairs = {0};
    for (uint32_t row = 0; row < chain->rows.row_count; row++) {
        bool matched = false;
        for (uint32_t other = 0; other < side_rows && !(matched && op.probe == PROBE_SEMI);
             other++) {
            if (!is_partner(chain, &op, row, &side, other)) continue;
            pairs_put(&pairs, row, other);
            matched = true;
        }
        if (!matched && op.keep_unmatched) pairs_put(&pairs, row, ROW_NONE);
    }
    struct batch numbers = row_numbers(chain, &side, op.duplicates);
    take_pairs(chain, &pairs,
               op.probe == PROBE_SEMI  ? NULL
               : op.probe == PROBE_ROW ? &numbers
                                       : &side);
    append_op(chain, op);
    if (op.probe == PROBE_ROW) add_fetch(chain, op.side, &side);
}

static void add_op(struct op_chain *chain)
{
    switch (random_below(chain->random, 5)) {
    case 0:
        add_filter(chain);
        break;
    case 1:
        add_project(chain);
        break;
    case 2:
        add_unnest(chain);
        break;
    default:
        add_probe(chain, random_below(chain->random, 60), random_below(chain->random, 3));
        break;
    }
}

static void chain_start(struct op_chain *chain, struct batch rows, struct schema schema)
{
    chain->rows = rows;
    chain->scalar = (struct value){.integer = -1};
    chain->pipeline = (struct pipeline){
        .source_kind = SOURCE_FOLD, .ops = chain->ops, .input = schema, .output = schema};
}

/* ---- running ---- */

static struct pipeline_run *start_run(const struct op_chain *chain, const struct finished *finished,
                                      uint32_t shard_count, struct budget *budget)
{
    struct pipeline_run *run;
    struct error err;
    assert_int_equal(
        pipeline_run_create(&chain->pipeline, finished, shard_count, budget, &run, &err),
        STATUS_OK);
    return run;
}

/* All rows in pieces of at most `piece_rows`: slices, or selections from the whole batch. */
static void push_all(struct pipeline_run *run, const struct batch *batch, uint32_t piece_rows,
                     bool by_selection)
{
    struct arena arena = {0};
    struct error err;
    for (uint32_t done = 0; done < batch->row_count;) {
        struct column columns[COLUMNS_MAX];
        uint32_t count = batch->row_count - done;
        if (count > piece_rows) count = piece_rows;
        struct batch piece = *batch;
        struct selection selection = {NULL, count};
        if (by_selection) {
            uint32_t *rows = need(arena_array(&arena, uint32_t, count));
            for (uint32_t i = 0; i < count; i++) {
                rows[i] = done + i;
            }
            selection.rows = rows;
        } else {
            piece = batch_slice(batch, done, count, columns);
        }
        assert_int_equal(pipeline_run_push(run, &piece, selection, NULL, &err), STATUS_OK);
        arena_reset(&arena);
        done += count;
    }
    arena_done(&arena);
}

static void check_lines(const struct buf *bytes, struct schema schema,
                        const struct batch *expected_rows, struct arena *arena)
{
    struct batch decoded;
    struct error err;
    struct row_lines seen = {.arena = arena};
    struct row_lines expected = {.arena = arena};
    assert_int_equal(batch_decode(bytes->bytes, bytes->size, schema, arena, &decoded, &err),
                     STATUS_OK);
    row_lines_add(&seen, &decoded, (struct selection){NULL, decoded.row_count});
    row_lines_add(&expected, expected_rows, (struct selection){NULL, expected_rows->row_count});
    assert_true(row_lines_equal(&seen, &expected));
}

static void check_chain(const struct op_chain *chain, const struct batch *input)
{
    struct finished finished = {.scalars = &chain->scalar, .sides = chain->sides};
    struct budget budget = {0};
    struct buf first = {0};
    struct error err;
    struct pipeline_run *run = start_run(chain, &finished, 1, &budget);
    static const uint32_t sizes[] = {PIPELINE_ROWS, 7, 1, 100};
    for (uint32_t i = 0; i < 4; i++) {
        struct pipeline_output output = {0};
        push_all(run, input, sizes[i], i % 2 == 1);
        assert_int_equal(pipeline_run_flush(run, &output, &err), STATUS_OK);
        assert_int_equal(output.row_count, chain->rows.row_count);
        assert_int_equal(pipeline_run_counts(run)->rows_in, (i + 1) * input->row_count);
        assert_int_equal(pipeline_run_counts(run)->rows_out, (i + 1) * output.row_count);
        if (i == 0) {
            first = output.bytes;
            continue;
        }
        assert_int_equal(output.bytes.size, first.size);
        assert_memory_equal(output.bytes.bytes, first.bytes, first.size);
        buf_done(&output.bytes);
    }
    check_lines(&first, chain->pipeline.output, &chain->rows, chain->arena);
    buf_done(&first);
    pipeline_run_destroy(run);
    assert_int_equal(budget.used_bytes, 0);
}

static void any_chain_of_operators_agrees_with_the_model(void **state)
{
    (void)state;
    struct random random = {1};
    uint32_t largest = 0;
    for (uint32_t round = 0; round < 300; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
        struct batch input =
            random_rows_batch(&rows, input_schema, random_below(&random, 60) * (round % 4));
        static struct op_chain chain;
        chain = (struct op_chain){.random = &random, .arena = &arena};
        chain_start(&chain, input, input_schema);
        uint32_t op_count = round % (OPS_MAX + 1);
        while (op_count-- > 0 && chain.rows.row_count < ROWS_MAX / 60 &&
               chain.rows.column_count < COLUMNS_MAX / 2) {
            add_op(&chain);
        }
        check_chain(&chain, &input);
        if (chain.rows.row_count > largest) largest = chain.rows.row_count;
        arena_done(&arena);
    }
    assert_true(largest > PIPELINE_ROWS);
}

static void expansions_grow_far_beyond_one_push(void **state)
{
    (void)state;
    struct random random = {2};
    for (uint32_t round = 0; round < 6; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 5};
        struct schema schema = {&random_rows_fields[7], 2};
        struct batch input = random_rows_batch(&rows, schema, 150);
        static struct op_chain chain;
        chain = (struct op_chain){.random = &random, .arena = &arena};
        chain_start(&chain, input, schema);
        add_probe(&chain, 50 + round, 0);
        add_unnest(&chain);
        if (round % 2 == 0) add_filter(&chain);
        check_chain(&chain, &input);
        arena_done(&arena);
    }
}

/* ---- the ends of a pipeline ---- */

/* Merges the shards' partial states; each group must have come by the shard of its key. */
static void merge_shards(const struct made_grouping *made, struct pipeline_output *outputs,
                         uint32_t shard_count, struct row_lines *lines)
{
    struct group_table *table;
    struct error err;
    struct batch result;
    static const uint32_t columns[] = {0, 1, 2, 3, 4, 5, 6};
    assert_int_equal(group_table_create(&made->grouping, NULL, &table, &err), STATUS_OK);
    for (uint32_t shard = 0; shard < shard_count; shard++) {
        struct batch partial;
        struct buf *bytes = &outputs[shard].bytes;
        assert_int_equal(batch_decode(bytes->bytes, bytes->size, made->grouping.partial,
                                      lines->arena, &partial, &err),
                         STATUS_OK);
        assert_int_equal(partial.row_count, outputs[shard].row_count);
        for (uint32_t row = 0; row < partial.row_count; row++) {
            uint64_t hash;
            key_hash(&partial, columns, made->grouping.key_count, (struct selection){&row, 1},
                     &hash);
            assert_int_equal(fold_shard_of(hash, shard_count), shard);
        }
        assert_int_equal(group_table_merge(table, &partial, &err), STATUS_OK);
        buf_done(bytes);
    }
    uint32_t count = group_table_count(table);
    assert_int_equal(group_table_read(table, GROUP_RESULT, 0, count, lines->arena, &result, &err),
                     STATUS_OK);
    row_lines_add(lines, &result, (struct selection){NULL, count});
    group_table_destroy(table);
}

static void shards_divide_the_groups_by_key(void **state)
{
    (void)state;
    enum { SHARDS_MAX = 5 };
    struct random random = {3};
    for (uint32_t round = 0; round < 40; round++) {
        struct arena arena = {0};
        struct random_rows rows = {
            .random = &random, .arena = &arena, .domain = 400, .null_percent = 10};
        struct batch input = grouped_rows(&rows, round % 4 == 0 ? 9000 : round * 3);
        struct made_grouping made;
        grouped_keys(&made, 1 + random_below(&random, 127));
        grouped_aggregate(&made, AGGREGATE_COUNT_ROWS, 0, 0);
        grouped_aggregate(&made, AGGREGATE_SUM, GROUPED_DOUBLE, 0);
        grouped_aggregate(&made, AGGREGATE_MIN, 11, 0);
        static struct op_chain chain;
        chain = (struct op_chain){.random = &random, .arena = &arena};
        chain_start(&chain, input, (struct schema){NULL, GROUPED_COLUMNS});
        add_filter(&chain);
        struct row_lines expected = {.arena = &arena};
        naive_groups(&made, &chain.rows, &expected);
        row_lines_sort(&expected);
        chain.ops[1] = (struct op){
            .kind = OP_AGGREGATE, .output = made.grouping.partial, .grouping = &made.grouping};
        chain.pipeline.op_count = 2;
        chain.pipeline.output = made.grouping.partial;
        struct finished finished = {.scalars = &chain.scalar, .sides = chain.sides};
        uint32_t shard_count = 1 + round % SHARDS_MAX;
        struct pipeline_run *run = start_run(&chain, &finished, shard_count, NULL);
        for (uint32_t pass = 0; pass < 2; pass++) {
            struct pipeline_output outputs[SHARDS_MAX] = {{.row_count = 0}};
            struct row_lines seen = {.arena = &arena};
            struct error err;
            push_all(run, &input, pass == 0 ? PIPELINE_ROWS : 31, pass == 1);
            assert_int_equal(pipeline_run_flush(run, outputs, &err), STATUS_OK);
            merge_shards(&made, outputs, shard_count, &seen);
            row_lines_sort(&seen);
            assert_true(row_lines_equal(&seen, &expected));
        }
        pipeline_run_destroy(run);
        arena_done(&arena);
    }
}

static void ranking_within_a_batch_keeps_the_best_rows(void **state)
{
    (void)state;
    struct random random = {4};
    for (uint32_t round = 0; round < 30; round++) {
        struct arena arena = {0};
        struct random_rows rows = {
            .random = &random, .arena = &arena, .null_percent = 10, .plain_doubles = true};
        struct batch input = random_rows_batch(&rows, random_rows_keys, round * 200);
        struct sort_key keys[GROUPED_TYPES];
        uint32_t partition = random_below(&random, GROUPED_TYPES);
        for (uint32_t i = 0; i < GROUPED_TYPES; i++) {
            keys[i] = (struct sort_key){.column = i, .descending = round % 2 == 0};
        }
        struct ranking ranking = {&partition, round % 2, keys, GROUPED_TYPES, round % 4};
        static struct op_chain chain;
        chain = (struct op_chain){.random = &random, .arena = &arena};
        chain_start(&chain, input, random_rows_keys);
        struct ranker *ranker;
        struct error err;
        assert_int_equal(ranker_create(&ranking, random_rows_keys, NULL, &ranker, &err), STATUS_OK);
        assert_int_equal(
            ranker_add(ranker, &input, (struct selection){NULL, input.row_count}, &err), STATUS_OK);
        assert_int_equal(ranker_finish(ranker, &chain.rows, &err), STATUS_OK);
        append_op(&chain, (struct op){.kind = OP_RANK, .ranking = &ranking});
        check_chain(&chain, &input);
        ranker_destroy(ranker);
        arena_done(&arena);
    }
}

static void nothing_pushed_still_gives_a_batch_per_shard(void **state)
{
    (void)state;
    enum { SHARDS = 4 };
    struct random random = {5};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena};
    struct made_grouping made;
    grouped_keys(&made, 2);
    grouped_every_aggregate(&made);
    struct batch input = grouped_rows(&rows, 50);
    static struct op_chain chain;
    chain = (struct op_chain){.random = &random, .arena = &arena};
    chain_start(&chain, input, (struct schema){NULL, GROUPED_COLUMNS});
    chain.ops[0] = (struct op){
        .kind = OP_AGGREGATE, .output = made.grouping.partial, .grouping = &made.grouping};
    chain.pipeline.op_count = 1;
    chain.pipeline.output = made.grouping.partial;
    struct finished finished = {.scalars = &chain.scalar, .sides = chain.sides};
    struct pipeline_run *run = start_run(&chain, &finished, SHARDS, NULL);
    for (uint32_t round = 0; round < 3; round++) {
        struct pipeline_output outputs[SHARDS] = {{.row_count = 9}};
        struct error err;
        if (round == 1) push_all(run, &input, 50, false);
        assert_int_equal(pipeline_run_flush(run, outputs, &err), STATUS_OK);
        for (uint32_t i = 0; i < SHARDS; i++) {
            struct batch decoded;
            assert_int_equal(batch_decode(outputs[i].bytes.bytes, outputs[i].bytes.size,
                                          made.grouping.partial, &arena, &decoded, &err),
                             STATUS_OK);
            assert_int_equal(decoded.row_count, outputs[i].row_count);
            if (round != 1) assert_int_equal(decoded.row_count, 0);
            buf_done(&outputs[i].bytes);
        }
    }
    pipeline_run_destroy(run);
    arena_done(&arena);
}

/* ---- columns that are read late ---- */

struct test_materializer {
    struct materializer materializer;
    const struct batch *truth;
    struct batch *shown; /* Its INTs are wrong until they are loaded. */
    uint32_t loaded_count[INPUT_COLUMNS];
    bool is_there[INPUT_COLUMNS][40];
};

/* Beyond the prefix that the expression looks at, texts are not what they should be. */
static status load(struct materializer *materializer, uint32_t column, struct selection selection,
                   uint32_t prefix, struct error *err)
{
    static const char filler[] = "a text that is longer than all those the expressions know";
    struct test_materializer *test = (struct test_materializer *)materializer;
    size_t width = type_width(test->truth->columns[column].type);
    (void)err; /* Nothing to fail. */
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        memcpy((char *)test->shown->columns[column].data + row * width,
               (char *)test->truth->columns[column].data + row * width, width);
        bool *is_there = &test->is_there[column][row];
        *is_there |= test->truth->columns[column].type.kind != TYPE_TEXT ||
                     test->truth->columns[column].texts[row].size <= prefix;
        if (*is_there) continue;
        assert_true(prefix < sizeof filler - 1);
        test->shown->columns[column].texts[row] = TEXT_LITERAL(filler);
    }
    test->loaded_count[column] += selection.count;
    return STATUS_OK;
}

static void columns_are_loaded_before_use_and_only_for_rows_still_meant(void **state)
{
    (void)state;
    struct random random = {6};
    for (uint32_t round = 0; round < 50; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena};
        struct batch input = random_rows_batch(&rows, random_rows_keys, 40);
        struct batch shown = random_rows_batch(&rows, random_rows_keys, 40);
        for (uint32_t i = 0; i < GROUPED_TYPES; i++) {
            shown.columns[i].nulls = input.columns[i].nulls;
        }
        static struct op_chain chain;
        chain = (struct op_chain){.random = &random, .arena = &arena};
        chain_start(&chain, input, random_rows_keys);
        chain.pipeline.source_kind = SOURCE_SCAN;
        add_filter(&chain);
        uint32_t left = chain.rows.row_count;
        add_project(&chain);
        struct test_materializer materializer = {
            .materializer = {load}, .truth = &input, .shown = &shown};
        struct finished finished = {.scalars = &chain.scalar, .sides = chain.sides};
        struct pipeline_run *run = start_run(&chain, &finished, 1, NULL);
        struct pipeline_output output = {0};
        struct error err;
        assert_int_equal(pipeline_run_push(run, &shown, (struct selection){NULL, 40},
                                           &materializer.materializer, &err),
                         STATUS_OK);
        assert_int_equal(pipeline_run_flush(run, &output, &err), STATUS_OK);
        check_lines(&output.bytes, chain.pipeline.output, &chain.rows, &arena);
        for (uint32_t i = 0; i < GROUPED_TYPES; i++) {
            bool filtered = i == 1 || i == chain.ops[0].exprs[0]->args[0]->column;
            if (!filtered) assert_int_equal(materializer.loaded_count[i] % (left + (left == 0)), 0);
            if (!filtered && left == 0) assert_int_equal(materializer.loaded_count[i], 0);
        }
        buf_done(&output.bytes);
        pipeline_run_destroy(run);
        arena_done(&arena);
    }
}

/* ---- several over one source ---- */

/* lower(text), then length(lower(text)), of the text column. */
static void add_text_functions(struct op_chain *chain)
{
    uint32_t text = find_column(chain, TYPE_TEXT);
    const struct expr **exprs = need(arena_array(chain->arena, const struct expr *, 2));
    const struct expr *from = column_expr(chain, text);
    exprs[0] =
        need((void *)(uintptr_t)expr_call(chain->arena, FUNCTION_LOWER, TYPE(TEXT), &from, 1));
    exprs[1] =
        need((void *)(uintptr_t)expr_call(chain->arena, FUNCTION_LENGTH, TYPE(INT), exprs, 1));
    struct column *columns = need(arena_array(chain->arena, struct column, 2));
    columns[0].type = TYPE(TEXT);
    columns[1].type = TYPE(INT);
    chain->rows.columns = columns;
    chain->rows.column_count = 2;
    append_op(chain, (struct op){.kind = OP_PROJECT, .exprs = exprs, .expr_count = 2});
}

/* The first and the last see all rows, those between them some. */
static void pipelines_that_share_send_what_each_sends_alone(void **state)
{
    (void)state;
    enum { RUNS = 4, INPUT_ROWS = 300 };
    static struct op_chain chains[RUNS];
    struct random random = {9};
    for (uint32_t round = 0; round < 50; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 20};
        struct batch input = random_rows_batch(&rows, input_schema, INPUT_ROWS);
        struct pipeline_common common = {0};
        struct pipeline_run *runs[RUNS];
        struct pipeline_run *alone[RUNS];
        struct error err;
        struct finished finished = {.scalars = &chains[0].scalar};
        for (uint32_t i = 0; i < RUNS; i++) {
            chains[i] = (struct op_chain){.random = &random, .arena = &arena};
            chain_start(&chains[i], input, input_schema);
            if (i % 3 != 0) add_filter(&chains[i]);
            add_text_functions(&chains[i]);
            runs[i] = start_run(&chains[i], &finished, 1, NULL);
            alone[i] = start_run(&chains[i], &finished, 1, NULL);
        }
        /* What they did before is not what they have in common. */
        push_all(runs[0], &input, INPUT_ROWS, false);
        pipeline_run_discard(runs[0]);
        assert_int_equal(pipeline_runs_share(runs, RUNS, &common, &arena, &err), STATUS_OK);
        for (uint32_t first = 0; first < INPUT_ROWS; first += 100) {
            struct column columns[COLUMNS_MAX];
            struct batch piece = batch_slice(&input, first, 100, columns);
            common.stamp++;
            for (uint32_t i = 0; i < RUNS; i++) {
                uint32_t number = (i + round) % RUNS;
                struct selection all = {NULL, 100};
                assert_int_equal(pipeline_run_push(runs[number], &piece, all, NULL, &err),
                                 STATUS_OK);
                assert_int_equal(pipeline_run_push(alone[number], &piece, all, NULL, &err),
                                 STATUS_OK);
            }
            arena_reset(&common.arena);
        }
        for (uint32_t i = 0; i < RUNS; i++) {
            struct pipeline_output outputs[2] = {{.row_count = 0}};
            assert_int_equal(pipeline_run_flush(runs[i], &outputs[0], &err), STATUS_OK);
            assert_int_equal(pipeline_run_flush(alone[i], &outputs[1], &err), STATUS_OK);
            assert_int_equal(outputs[0].bytes.size, outputs[1].bytes.size);
            assert_memory_equal(outputs[0].bytes.bytes, outputs[1].bytes.bytes,
                                outputs[0].bytes.size);
            buf_done(&outputs[0].bytes);
            buf_done(&outputs[1].bytes);
            pipeline_run_destroy(runs[i]);
            pipeline_run_destroy(alone[i]);
        }
        arena_done(&common.arena);
        arena_done(&arena);
    }
}

/* ---- failures ---- */

static void check_allocations(const struct op_chain *chain, const struct batch *input)
{
    enum { SHARDS = 2 };
    struct finished finished = {.scalars = &chain->scalar, .sides = chain->sides};
    bool is_sharded = chain->pipeline.ops[chain->pipeline.op_count - 1].kind == OP_AGGREGATE;
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct budget budget = {0};
        struct pipeline_run *run = NULL;
        struct pipeline_output outputs[SHARDS] = {{.bytes = {.budget = &budget}},
                                                  {.bytes = {.budget = &budget}}};
        struct error err;
        memory_fail_after(allowed);
        status code = pipeline_run_create(&chain->pipeline, &finished, is_sharded ? SHARDS : 1,
                                          &budget, &run, &err);
        if (code == STATUS_OK) {
            struct selection all = {NULL, input->row_count};
            code = pipeline_run_push(run, input, all, NULL, &err);
        }
        if (code == STATUS_OK) code = pipeline_run_flush(run, outputs, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        buf_done(&outputs[0].bytes);
        buf_done(&outputs[1].bytes);
        pipeline_run_destroy(run);
        assert_int_equal(budget.used_bytes, 0);
        assert_true(allowed < 5000);
    }
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct random random = {7};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
    struct batch input = random_rows_batch(&rows, input_schema, 200);
    static struct op_chain chain;
    chain = (struct op_chain){.random = &random, .arena = &arena};
    chain_start(&chain, input, input_schema);
    add_filter(&chain);
    add_unnest(&chain);
    add_probe(&chain, 40, 1);
    add_project(&chain);
    check_allocations(&chain, &input);
    arena_done(&arena);
}

/* Rows of as many keys, most of which do not go through a table. */
static void every_failing_allocation_of_groups_is_reported(void **state)
{
    (void)state;
    struct random random = {8};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .domain = 100000000};
    struct batch input = grouped_rows(&rows, PIPELINE_ROWS);
    struct made_grouping made;
    grouped_keys(&made, 1 << 1 | 1 << 3 | 1 << 4);
    grouped_every_aggregate(&made);
    static struct op_chain chain;
    chain = (struct op_chain){.random = &random, .arena = &arena};
    chain_start(&chain, input, (struct schema){NULL, GROUPED_COLUMNS});
    chain.ops[0] = (struct op){
        .kind = OP_AGGREGATE, .output = made.grouping.partial, .grouping = &made.grouping};
    chain.pipeline.op_count = 1;
    chain.pipeline.output = made.grouping.partial;
    check_allocations(&chain, &input);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_chain_of_operators_agrees_with_the_model),
        cmocka_unit_test(expansions_grow_far_beyond_one_push),
        cmocka_unit_test(shards_divide_the_groups_by_key),
        cmocka_unit_test(ranking_within_a_batch_keeps_the_best_rows),
        cmocka_unit_test(nothing_pushed_still_gives_a_batch_per_shard),
        cmocka_unit_test(columns_are_loaded_before_use_and_only_for_rows_still_meant),
        cmocka_unit_test(pipelines_that_share_send_what_each_sends_alone),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(every_failing_allocation_of_groups_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
