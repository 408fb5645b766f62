/* SPDX-License-Identifier: Apache-2.0 */
/* test_early_filter.c - rows without a partner are not evaluated, and nothing else changes.
 *
 * Method: pipelines that filter, project and join run over batches whose columns are materialized
 * late. The materializer counts for how many rows the text was asked for that only the expensive
 * condition reads.
 * Rows are numbered, so that what must come out is known without any join.
 */
#include "unit/test.h"

#include <stdio.h>

#include "engine/exec/pipeline.h"
#include "engine/data/batch_codec.h"

enum { ROWS = 1000, COLUMNS = 3, BATCHES = 40 };
enum { KEY, TEXT, NUMBER }; /* Columns of the source. */

static struct arena arena;

/* ---- rows ---- */

struct source {
    struct materializer materializer;
    uint64_t loaded[COLUMNS];
    char bytes[ROWS][16];
    char keys[ROWS][24];
    struct column columns[COLUMNS];
    struct batch batch;
};

static status count_load(struct materializer *materializer, uint32_t column,
                         struct selection selection, uint32_t prefix, struct error *err)
{
    (void)prefix; /* All is there. */
    (void)err;    /* Nothing to fail. */
    ((struct source *)materializer)->loaded[column] += selection.count;
    return STATUS_OK;
}

static void write_key(char out[24], uint32_t number, struct column *column, uint32_t row)
{
    if (column->type.kind == TYPE_INT) {
        column->ints[row] = number;
        return;
    }
    int size = snprintf(out, 24, "the key with %u", number);
    column->texts[row] = (struct text){out, (uint32_t)size};
}

/* Every third text has an x; none is a number. */
static struct source *make_source(struct type key_type)
{
    static struct source source;
    source = (struct source){.materializer = {count_load}};
    assert_true(column_init(&source.columns[KEY], key_type, ROWS, &arena));
    assert_true(column_init(&source.columns[TEXT], TYPE(TEXT), ROWS, &arena));
    assert_true(column_init(&source.columns[NUMBER], TYPE(INT), ROWS, &arena));
    for (uint32_t row = 0; row < ROWS; row++) {
        int size = snprintf(source.bytes[row], 16, "%s%u", row % 3 == 0 ? "x" : "y", row);
        write_key(source.keys[row], row, &source.columns[KEY], row);
        source.columns[TEXT].texts[row] = (struct text){source.bytes[row], (uint32_t)size};
        source.columns[NUMBER].ints[row] = row;
    }
    source.batch =
        (struct batch){.row_count = ROWS, .column_count = COLUMNS, .columns = source.columns};
    return &source;
}

/* Keys 0, step, 2 * step... */
static struct join_table *make_side(struct type key_type, uint32_t step)
{
    static struct join_table side;
    static struct column column;
    static char keys[ROWS][24];
    struct error err;
    uint32_t count = (ROWS + step - 1) / step;
    assert_true(column_init(&column, key_type, ROWS, &arena));
    for (uint32_t row = 0; row < count; row++) {
        write_key(keys[row], row * step, &column, row);
    }
    struct batch rows = {.row_count = count, .column_count = 1, .columns = &column};
    assert_int_equal(join_table_build(&side, rows, 1, &arena, &err), STATUS_OK);
    return &side;
}

/* ---- pipelines ---- */

struct made {
    struct pipeline pipeline;
    struct op ops[3];
    const struct expr *conditions[2];
    const struct expr *projected[2];
    struct field fields[COLUMNS];
    struct field out_fields[2];
    uint32_t key_column;
};

static const struct expr *call(enum function_id function, struct type type,
                               const struct expr *first, const struct expr *second)
{
    const struct expr *args[] = {first, second};
    return expr_call(&arena, function, type, args, second == NULL ? 1 : 2);
}

static const struct expr *text_column(void)
{
    return expr_column(&arena, TEXT, TYPE(TEXT));
}

/* contains(text, 'x') */
static const struct expr *dear_condition(void)
{
    struct value value = {.text = TEXT_LITERAL("x")};
    return call(FUNCTION_CONTAINS, TYPE(BOOL), text_column(),
                expr_constant(&arena, value, TYPE(TEXT)));
}

/* CAST(text AS INT) IS NOT NULL fails for every row. */
static const struct expr *failing(void)
{
    return call(FUNCTION_CAST, TYPE(INT), text_column(), NULL);
}

/* Filters by one condition, projects key and number, keeps rows with a partner. */
static struct made *make_pipeline(struct type key_type, const struct expr *condition)
{
    static struct made made;
    made = (struct made){.conditions = {condition}};
    made.projected[0] = expr_column(&arena, NUMBER, TYPE(INT));
    made.projected[1] = expr_column(&arena, KEY, key_type);
    made.key_column = 1;
    made.fields[KEY].type = key_type;
    made.fields[TEXT].type = TYPE(TEXT);
    made.fields[NUMBER].type = TYPE(INT);
    made.out_fields[0].type = TYPE(INT);
    made.out_fields[1].type = key_type;
    struct schema input = {made.fields, COLUMNS};
    struct schema output = {made.out_fields, 2};
    made.ops[0] =
        (struct op){.kind = OP_FILTER, .output = input, .exprs = made.conditions, .expr_count = 1};
    made.ops[1] =
        (struct op){.kind = OP_PROJECT, .output = output, .exprs = made.projected, .expr_count = 2};
    made.ops[2] = (struct op){.kind = OP_PROBE,
                              .probe = PROBE_SEMI,
                              .output = output,
                              .key_columns = &made.key_column,
                              .key_count = 1};
    made.pipeline = (struct pipeline){.source_kind = SOURCE_SCAN,
                                      .ops = made.ops,
                                      .op_count = 3,
                                      .input = input,
                                      .output = output};
    return &made;
}

/* So many batches; *out_rows: the numbers of the last one's rows. */
static status push(const struct made *made, const struct join_table *side, struct source *source,
                   uint32_t batch_count, const struct batch **out_rows)
{
    static struct batch rows;
    struct finished finished = {.sides = side};
    struct pipeline_run *run;
    struct error err;
    assert_int_equal(pipeline_run_create(&made->pipeline, &finished, 1, NULL, &run, &err),
                     STATUS_OK);
    status result = STATUS_OK;
    for (uint32_t i = 0; i < batch_count && result == STATUS_OK; i++) {
        struct pipeline_output output = {0};
        result = pipeline_run_push(run, &source->batch, (struct selection){NULL, ROWS},
                                   &source->materializer, &err);
        if (result != STATUS_OK) break;
        assert_int_equal(pipeline_run_flush(run, &output, &err), STATUS_OK);
        unsigned char *bytes = arena_alloc(&arena, output.bytes.size, 8);
        assert_non_null(bytes);
        memcpy(bytes, output.bytes.bytes, output.bytes.size);
        assert_int_equal(
            batch_decode(bytes, output.bytes.size, made->pipeline.output, &arena, &rows, &err),
            STATUS_OK);
        buf_done(&output.bytes);
    }
    if (result == STATUS_OK)
        assert_int_equal(pipeline_run_counts(run)->rows_in, (uint64_t)batch_count * ROWS);
    pipeline_run_destroy(run);
    *out_rows = &rows;
    return result;
}

static uint32_t partner_count(uint32_t step)
{
    return (ROWS + step - 1) / step;
}

/* ---- tests ---- */

static void check_rows(const struct batch *rows, uint32_t step)
{
    uint32_t next = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        if (row % 3 != 0 || row % step != 0) continue;
        assert_true(next < rows->row_count);
        assert_int_equal(rows->columns[0].ints[next++], row);
    }
    assert_int_equal(next, rows->row_count);
}

static void the_same_rows_come_out_whatever_part_has_partners(void **state)
{
    (void)state;
    static const struct type types[] = {{.kind = TYPE_INT}, {.kind = TYPE_TEXT}};
    static const uint32_t steps[] = {1, 2, 3, 5, 50, ROWS};
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < sizeof steps / sizeof steps[0]; j++) {
            const struct batch *rows;
            struct made *made = make_pipeline(types[i], dear_condition());
            struct join_table *side = make_side(types[i], steps[j]);
            struct source *source = make_source(types[i]);
            assert_int_equal(push(made, side, source, BATCHES, &rows), STATUS_OK);
            check_rows(rows, steps[j]);
            arena_reset(&arena);
        }
    }
}

static void a_dear_condition_is_asked_of_rows_with_a_partner(void **state)
{
    (void)state;
    enum { STEP = 10 };
    const struct batch *rows;
    struct made *made = make_pipeline(TYPE(INT), dear_condition());
    struct source *source = make_source(TYPE(INT));
    assert_int_equal(push(made, make_side(TYPE(INT), STEP), source, BATCHES, &rows), STATUS_OK);
    check_rows(rows, STEP);
    assert_int_equal(source->loaded[TEXT], BATCHES * partner_count(STEP));
    arena_reset(&arena);
}

/* With all keys in the build side only some batches ask for the keys of all rows. */
static void it_stops_where_it_spares_nothing(void **state)
{
    (void)state;
    const struct batch *rows;
    struct made *made = make_pipeline(TYPE(INT), dear_condition());
    struct source *source = make_source(TYPE(INT));
    assert_int_equal(push(made, make_side(TYPE(INT), 1), source, BATCHES, &rows), STATUS_OK);
    assert_int_equal(source->loaded[TEXT], BATCHES * ROWS);
    assert_true(source->loaded[KEY] > (uint64_t)BATCHES * partner_count(3) + ROWS);
    assert_true(source->loaded[KEY] < (uint64_t)BATCHES * ROWS / 2);
    arena_reset(&arena);
}

static void a_cheap_condition_is_asked_first(void **state)
{
    (void)state;
    const struct batch *rows;
    const struct expr *cheap = call(FUNCTION_IS_NOT_NULL, TYPE(BOOL), text_column(), NULL);
    struct made *made = make_pipeline(TYPE(INT), cheap);
    struct source *source = make_source(TYPE(INT));
    /* And an expensive one after it. */
    made->conditions[1] = dear_condition();
    made->ops[0].expr_count = 2;
    assert_int_equal(push(made, make_side(TYPE(INT), 10), source, 1, &rows), STATUS_OK);
    check_rows(rows, 10);
    assert_int_equal(source->loaded[TEXT], ROWS + partner_count(10));
    arena_reset(&arena);
}

/* Partners or not: a condition that can fail does. */
static void what_can_fail_sees_all_rows(void **state)
{
    (void)state;
    const struct batch *rows;
    const struct expr *fails = call(FUNCTION_IS_NOT_NULL, TYPE(BOOL), failing(), NULL);
    struct join_table *side = make_side(TYPE(INT), ROWS);
    struct source *source = make_source(TYPE(INT));
    /* The only row with a partner is the first. */
    source->columns[TEXT].texts[0] = TEXT_LITERAL("7");
    struct made *made = make_pipeline(TYPE(INT), fails);
    assert_int_not_equal(push(made, side, source, 1, &rows), STATUS_OK);
    /* Behind a condition that need not be evaluated, */
    made = make_pipeline(TYPE(INT), dear_condition());
    made->conditions[1] = fails;
    made->ops[0].expr_count = 2;
    assert_int_not_equal(push(made, side, source, 1, &rows), STATUS_OK);
    /* and in what is projected. */
    made = make_pipeline(TYPE(INT), dear_condition());
    made->projected[0] = failing();
    assert_int_not_equal(push(made, side, source, 1, &rows), STATUS_OK);
    arena_reset(&arena);
}

static void a_left_join_keeps_its_rows(void **state)
{
    (void)state;
    const struct batch *rows;
    struct made *made = make_pipeline(TYPE(INT), dear_condition());
    struct source *source = make_source(TYPE(INT));
    struct field fields[] = {{.type = TYPE(INT)}, {.type = TYPE(INT)}, {.type = TYPE(INT)}};
    made->ops[2].probe = PROBE_JOIN;
    made->ops[2].keep_unmatched = true;
    made->ops[2].output = made->pipeline.output = (struct schema){fields, 3};
    assert_int_equal(push(made, make_side(TYPE(INT), 10), source, 1, &rows), STATUS_OK);
    check_rows(rows, 1);
    arena_reset(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_rows_come_out_whatever_part_has_partners),
        cmocka_unit_test(a_dear_condition_is_asked_of_rows_with_a_partner),
        cmocka_unit_test(it_stops_where_it_spares_nothing),
        cmocka_unit_test(a_cheap_condition_is_asked_first),
        cmocka_unit_test(what_can_fail_sees_all_rows),
        cmocka_unit_test(a_left_join_keeps_its_rows),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_done(&arena);
    return failed;
}
