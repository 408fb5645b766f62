/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch_builder.c - rows appended in any pieces come back as they were.
 *
 * Method: random batches of every type are appended through random selections; the lines of the
 * selected rows are the model. What was appended is freed before it is read. Every allocation is
 * made to fail once.
 */
#include "unit/test.h"

#include "engine/data/batch_builder.h"
#include "unit/engine/data/random_rows.h"

/* Ascending row numbers, or all rows. */
static struct selection random_selection(struct random *random, uint32_t row_count,
                                         struct arena *arena)
{
    if (random_below(random, 4) == 0) return (struct selection){NULL, row_count};
    uint32_t *rows = random_rows_need(arena_array(arena, uint32_t, (size_t)row_count + 1));
    uint32_t percent = random_below(random, 101);
    uint32_t count = 0;
    for (uint32_t i = 0; i < row_count; i++) {
        if (random_below(random, 100) < percent) rows[count++] = i;
    }
    return (struct selection){rows, count};
}

static void check_rows(struct batch_builder *builder, const struct row_lines *expected,
                       struct schema schema)
{
    struct arena arena = {0};
    struct row_lines seen = {.arena = &arena};
    struct batch batch;
    assert_true(builder_batch(builder, &batch));
    assert_int_equal(batch.row_count, expected->count);
    assert_int_equal(batch.column_count, schema.count);
    for (uint32_t i = 0; i < schema.count; i++) {
        assert_true(type_equal(batch.columns[i].type, schema.fields[i].type));
    }
    row_lines_add(&seen, &batch, (struct selection){NULL, batch.row_count});
    assert_true(row_lines_equal(&seen, expected));
    arena_done(&arena);
}

static void appended_rows_come_back_after_their_source_is_gone(void **state)
{
    (void)state;
    struct random random = {1};
    struct budget budget = {0};
    for (uint32_t round = 0; round < 60; round++) {
        struct batch_builder builder;
        assert_true(builder_init(&builder, random_rows_every, &budget));
        for (int filling = 0; filling < 3; filling++) {
            struct arena kept = {0};
            struct row_lines expected = {.arena = &kept};
            uint32_t piece_count = random_below(&random, 6);
            for (uint32_t i = 0; i < piece_count; i++) {
                struct arena arena = {0};
                struct random_rows rows = {
                    .random = &random, .arena = &arena, .null_percent = round % 3 * 20};
                uint32_t row_count = random_below(&random, 50);
                struct batch batch = random_rows_batch(&rows, random_rows_every, row_count);
                struct selection selection = random_selection(&random, row_count, &arena);
                row_lines_add(&expected, &batch, selection);
                builder_append(&builder, &batch, selection);
                arena_done(&arena);
                if (i % 2 == 0) check_rows(&builder, &expected, random_rows_every);
            }
            check_rows(&builder, &expected, random_rows_every);
            builder_reset(&builder);
            arena_done(&kept);
        }
        builder_done(&builder);
        assert_int_equal(budget.used_bytes, 0);
    }
}

static void nulls_are_kept_only_once_there_is_one(void **state)
{
    (void)state;
    int64_t values[] = {7, 8, 9};
    uint8_t nulls[] = {0, 1, 0};
    struct column column = {.type = TYPE(INT), .nulls = nulls, .ints = values};
    struct batch batch = {.row_count = 3, .column_count = 1, .columns = &column};
    struct schema schema = {&random_rows_fields[1], 1};
    uint32_t without_null[] = {0, 2};
    struct batch_builder builder;
    struct batch seen;
    assert_true(builder_init(&builder, schema, NULL));
    builder_append(&builder, &batch, (struct selection){without_null, 2});
    assert_true(builder_batch(&builder, &seen));
    assert_null(seen.columns[0].nulls);
    builder_append(&builder, &batch, (struct selection){NULL, 3});
    assert_true(builder_batch(&builder, &seen));
    assert_memory_equal(seen.columns[0].nulls, "\0\0\0\1\0", 5);
    /* Under the NULL stands nothing, so that equal rows are equal bytes. */
    assert_int_equal(seen.columns[0].ints[3], 0);
    builder_done(&builder);
}

static void batches_may_have_more_columns_than_the_schema(void **state)
{
    (void)state;
    struct random random = {2};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena};
    struct batch batch = random_rows_batch(&rows, random_rows_every, 20);
    for (uint32_t count = 0; count <= random_rows_every.count; count++) {
        struct schema schema = {random_rows_fields, count};
        struct batch_builder builder;
        struct batch first = {.row_count = 20, .column_count = count, .columns = batch.columns};
        struct row_lines expected = {.arena = &arena};
        row_lines_add(&expected, &first, (struct selection){NULL, 20});
        assert_true(builder_init(&builder, schema, NULL));
        builder_append(&builder, &batch, (struct selection){NULL, 20});
        check_rows(&builder, &expected, schema);
        builder_done(&builder);
    }
    arena_done(&arena);
}

/* Their bytes are never looked at, so that there need not be any. */
static void texts_beyond_what_offsets_can_number_are_refused(void **state)
{
    (void)state;
    static const char byte = 'x';
    const struct text huge = {&byte, (uint32_t)1 << 31};
    struct text texts[] = {{&byte, 1}, huge, huge};
    struct column column = {.type = TYPE(TEXT), .texts = texts};
    struct batch batch = {.row_count = 3, .column_count = 1, .columns = &column};
    struct field field = {.type = TYPE(TEXT)};
    struct batch_builder builder;
    assert_true(builder_init(&builder, (struct schema){&field, 1}, NULL));
    builder_append(&builder, &batch, (struct selection){NULL, 1});
    assert_false(builder.failed);
    builder_append(&builder, &batch, (struct selection){NULL, 3});
    assert_true(builder.failed);
    assert_true(builder.too_large);
    builder_reset(&builder);
    assert_false(builder.too_large);
    builder_append(&builder, &batch, (struct selection){NULL, 1});
    assert_false(builder.failed);
    builder_done(&builder);
}

static void every_failing_allocation_is_reported_once(void **state)
{
    (void)state;
    struct random random = {3};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 20};
    struct batch batch = random_rows_batch(&rows, random_rows_every, 300);
    struct selection all = {NULL, 300};
    struct row_lines expected = {.arena = &arena};
    for (int i = 0; i < 3; i++) {
        row_lines_add(&expected, &batch, all);
    }
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct budget budget = {0};
        struct batch_builder builder = {0};
        struct batch seen;
        memory_fail_after(allowed);
        bool passed = builder_init(&builder, random_rows_every, &budget);
        for (int i = 0; passed && i < 3; i++) {
            builder_append(&builder, &batch, all);
        }
        passed = passed && builder_batch(&builder, &seen);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(passed, !refused);
        if (passed) check_rows(&builder, &expected, random_rows_every);
        builder_done(&builder);
        assert_int_equal(budget.used_bytes, 0);
        assert_true(allowed < 1000);
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_rows_come_back_after_their_source_is_gone),
        cmocka_unit_test(nulls_are_kept_only_once_there_is_one),
        cmocka_unit_test(batches_may_have_more_columns_than_the_schema),
        cmocka_unit_test(texts_beyond_what_offsets_can_number_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
