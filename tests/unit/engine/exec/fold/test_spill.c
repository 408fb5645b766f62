/* SPDX-License-Identifier: Apache-2.0 */
/* test_spill.c - what is written to a file comes back: piece by piece, merged, and cut anew.
 *
 * Method: random rows of every type go through each of the parts alone. Merging is compared with
 * sorting everything, for every number of runs and every fan; cutting with a slice of the rows, for
 * every window. Altered bytes, and calls that fail, must be noticed.
 */
#include "unit/test.h"

#include "engine/exec/fold/spill_cut.h"
#include "engine/exec/fold/spill_merge.h"
#include "unit/engine/data/random_rows.h"
#include "unit/engine/exec/fold/memory_store.h"
#include "unit/engine/exec/fold/naive_order.h"

enum { ROWS = 300, KEYS = 7 };

struct desk {
    struct memory_store store;
    struct budget budget;
    struct spill_place place;
    struct random random;
    struct arena arena;
    struct random_rows rows;
};

static void desk_init(struct desk *desk, uint64_t seed)
{
    *desk = (struct desk){.store = memory_store_new(), .random = {seed}};
    desk->place = (struct spill_place){
        .store = &desk->store.store, .budget = &desk->budget, .piece_bytes = 700};
    desk->rows = (struct random_rows){
        .random = &desk->random, .arena = &desk->arena, .null_percent = 10, .plain_doubles = true};
}

static void desk_done(struct desk *desk)
{
    spill_place_done(&desk->place);
    arena_done(&desk->arena);
    assert_int_equal(desk->budget.used_bytes, 0);
    assert_int_equal(desk->store.opened, desk->store.closed);
}

static struct spill_rows write_rows(struct desk *desk, struct schema schema,
                                    const struct batch *batch, struct selection selection)
{
    struct spill_rows rows = {.place = &desk->place, .schema = schema};
    struct spill_writer writer;
    struct error err;
    assert_int_equal(spill_writer_open(&writer, &rows, &err), STATUS_OK);
    /* In two goes: where one ends is not seen. */
    struct selection first = {selection.rows, selection.count / 3};
    struct selection second = {selection.rows + first.count, selection.count - first.count};
    assert_int_equal(spill_writer_append(&writer, batch, first, &err), STATUS_OK);
    assert_int_equal(spill_writer_append(&writer, batch, second, &err), STATUS_OK);
    assert_int_equal(spill_writer_flush(&writer, &err), STATUS_OK);
    spill_writer_done(&writer);
    assert_int_equal(rows.row_count, selection.count);
    return rows;
}

static struct row_lines read_rows(struct desk *desk, const struct spill_rows *rows)
{
    struct row_lines lines = {.arena = &desk->arena};
    struct spill_cursor cursor;
    struct error err;
    spill_cursor_open(&cursor, rows);
    do {
        assert_int_equal(spill_cursor_next(&cursor, &err), STATUS_OK);
        row_lines_add(&lines, &cursor.batch, (struct selection){NULL, cursor.batch.row_count});
    } while (cursor.batch.row_count > 0);
    spill_cursor_done(&cursor);
    return lines;
}

static uint32_t *count_up(struct desk *desk, uint32_t count)
{
    uint32_t *numbers = random_rows_need(arena_array(&desk->arena, uint32_t, count + 1));
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = i;
    }
    return numbers;
}

static void bytes_come_back_or_an_error_does(void **state)
{
    (void)state;
    struct desk desk;
    desk_init(&desk, 1);
    struct buf bytes = {0};
    struct buf read = {0};
    struct spill_extent extents[100];
    struct error err;
    for (uint32_t i = 0; i < 100; i++) {
        buf_reset(&bytes);
        for (uint32_t j = 0; j < 1 + i * 7; j++) {
            buf_put_u8(&bytes, (uint8_t)(i + j));
        }
        assert_int_equal(spill_place_write(&desk.place, &bytes, i, &extents[i], &err), STATUS_OK);
        assert_int_equal(extents[i].row_count, i);
    }
    for (uint32_t i = 100; i-- > 0;) {
        assert_int_equal(spill_read(desk.place.file, extents[i], &read, &err), STATUS_OK);
        assert_int_equal(read.size, 1 + i * 7);
        assert_int_equal(read.bytes[read.size - 1], (uint8_t)(i + i * 7));
        desk.store.flip_read = 0;
        assert_int_equal(spill_read(desk.place.file, extents[i], &read, &err), STATUS_CORRUPT);
        desk.store.reads_left = 0;
        assert_int_equal(spill_read(desk.place.file, extents[i], &read, &err), STATUS_IO);
        desk.store.reads_left = UINT64_MAX;
    }
    spill_close(NULL);
    buf_done(&bytes);
    buf_done(&read);
    desk_done(&desk);
}

static void rows_are_read_in_the_order_they_were_written(void **state)
{
    (void)state;
    for (uint32_t row_count = 0; row_count < 100; row_count += 9) {
        struct desk desk;
        desk_init(&desk, row_count);
        struct batch batch = random_rows_batch(&desk.rows, random_rows_every, row_count);
        struct selection all = {count_up(&desk, row_count), row_count};
        struct spill_rows rows = write_rows(&desk, random_rows_every, &batch, all);
        struct row_lines expected = {.arena = &desk.arena};
        row_lines_add(&expected, &batch, all);
        struct row_lines seen = read_rows(&desk, &rows);
        assert_true(row_lines_equal(&seen, &expected));
        assert_true(row_count < 40 || rows.extents.count > 1);
        spill_rows_done(&rows);
        desk_done(&desk);
    }
}

/* ---- merging ---- */

static void check_merge(struct desk *desk, const struct spill_merge *merge, uint32_t run_count)
{
    struct batch batch = random_rows_batch(&desk->rows, random_rows_keys, ROWS);
    struct naive_sort sort = {&batch, merge->keys, merge->key_count};
    uint32_t *order = count_up(desk, ROWS);
    struct spill_runs runs = {.budget = &desk->budget};
    struct error err;
    for (uint32_t i = 0, done = 0; i < run_count; i++) {
        uint32_t count = i + 1 == run_count ? ROWS - done : ROWS / run_count;
        naive_sort_rows(sort, order + done, count);
        struct spill_rows run =
            write_rows(desk, random_rows_keys, &batch, (struct selection){order + done, count});
        assert_int_equal(spill_runs_add(&runs, &run, &err), STATUS_OK);
        done += count;
    }
    naive_sort_rows(sort, order, ROWS);
    struct row_lines expected = {.arena = &desk->arena};
    uint64_t rank = 0;
    for (uint32_t i = 0; i < ROWS && expected.count < merge->row_limit; i++) {
        const struct column *by = &batch.columns[0];
        bool is_null = column_is_null(by, order[i]);
        bool continues = i > 0 && column_is_null(by, order[i - 1]) == is_null &&
                         (is_null || naive_value_order(by, order[i - 1], by, order[i]) == 0);
        rank = continues ? rank + 1 : 1;
        if (merge->cut != NULL && rank > merge->cut->limit) continue;
        row_lines_put(&expected, row_line(&batch, order[i], KEYS, &desk->arena));
    }
    struct spill_rows merged = {.place = &desk->place, .schema = random_rows_keys};
    assert_int_equal(spill_merge(merge, &runs, &merged, &err), STATUS_OK);
    assert_int_equal(merged.row_count, expected.count);
    struct row_lines seen = read_rows(desk, &merged);
    assert_true(row_lines_equal(&seen, &expected));
    spill_rows_done(&merged);
    spill_runs_done(&runs);
}

static void runs_become_one_whatever_their_number(void **state)
{
    (void)state;
    static const uint64_t limits[] = {0, 1, 17, UINT64_MAX};
    uint32_t by = 0;
    struct ranking cut = {.partition_columns = &by, .partition_count = 1, .limit = 20};
    struct sort_key keys[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        keys[i] = (struct sort_key){.column = i, .descending = i % 3 == 2};
    }
    for (uint32_t run_count = 1; run_count <= 30; run_count += 1 + run_count / 5) {
        for (uint32_t fan = 2; fan <= 32; fan *= 2) {
            struct desk desk;
            desk_init(&desk, run_count * 100 + fan);
            struct spill_merge merge = {.keys = keys,
                                        .key_count = KEYS,
                                        .cut = (run_count + fan) % 3 == 0 ? &cut : NULL,
                                        .row_limit = limits[run_count % 4],
                                        .fan = fan};
            check_merge(&desk, &merge, run_count);
            desk_done(&desk);
        }
    }
}

/* Rows that compare as equal come by their run, also when some runs were merged before others. */
static void equal_rows_keep_the_order_of_their_runs(void **state)
{
    (void)state;
    enum { RUNS = 41 };
    struct desk desk;
    desk_init(&desk, 3);
    struct field fields[2] = {random_rows_fields[1], random_rows_fields[1]};
    struct schema schema = {fields, 2};
    struct sort_key key = {.column = 0};
    struct error err;
    for (uint32_t fan = 2; fan < 20; fan++) {
        struct spill_runs runs = {.budget = &desk.budget};
        for (uint32_t i = 0; i < RUNS; i++) {
            int64_t keys[4] = {1, 1, 2, 3};
            int64_t values[4] = {i * 2, i * 2 + 1, i, i};
            struct column columns[2] = {{.type = TYPE(INT), .ints = keys},
                                        {.type = TYPE(INT), .ints = values}};
            struct batch batch = {.row_count = 4, .column_count = 2, .columns = columns};
            struct spill_rows run =
                write_rows(&desk, schema, &batch, (struct selection){count_up(&desk, 4), 4});
            assert_int_equal(spill_runs_add(&runs, &run, &err), STATUS_OK);
        }
        struct spill_merge merge = {
            .keys = &key, .key_count = 1, .row_limit = UINT64_MAX, .fan = fan};
        struct spill_rows merged = {.place = &desk.place, .schema = schema};
        assert_int_equal(spill_merge(&merge, &runs, &merged, &err), STATUS_OK);
        struct row_lines lines = read_rows(&desk, &merged);
        struct row_lines sorted = lines;
        sorted.items = random_rows_need(arena_array(&desk.arena, const char *, lines.count));
        memcpy((void *)sorted.items, (const void *)lines.items, lines.count * sizeof *lines.items);
        row_lines_sort(&sorted); /* Lines of small numbers sort as the numbers do. */
        assert_int_equal(lines.count, RUNS * 4);
        assert_true(row_lines_equal(&lines, &sorted));
        spill_rows_done(&merged);
        spill_runs_done(&runs);
    }
    desk_done(&desk);
}

/* ---- cutting ---- */

struct spill_collector {
    struct fold_sink sink;
    struct row_lines lines;
    uint64_t next_number;
    uint32_t batch_rows;
    uint64_t left;
};

static status collect(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                      struct error *err)
{
    struct spill_collector *collector = (struct spill_collector *)sink;
    (void)err;
    assert_int_equal(number, collector->next_number++);
    uint64_t count =
        collector->left < collector->batch_rows ? collector->left : collector->batch_rows;
    assert_int_equal(batch->row_count, count);
    collector->left -= count;
    row_lines_add(&collector->lines, batch, (struct selection){NULL, batch->row_count});
    return STATUS_OK;
}

static void every_window_is_cut_into_batches_of_one_size(void **state)
{
    (void)state;
    struct desk desk;
    desk_init(&desk, 4);
    struct batch batch = random_rows_batch(&desk.rows, random_rows_every, ROWS);
    struct selection all = {count_up(&desk, ROWS), ROWS};
    struct spill_rows rows = write_rows(&desk, random_rows_every, &batch, all);
    for (uint32_t batch_rows = 1; batch_rows <= ROWS + 50; batch_rows += 1 + batch_rows / 2) {
        for (uint32_t first = 0; first <= ROWS; first += 37) {
            uint32_t count = random_below(&desk.random, ROWS - first + 1);
            struct spill_collector collector = {.sink = {collect},
                                                .lines = {.arena = &desk.arena},
                                                .batch_rows = batch_rows,
                                                .left = count};
            struct spill_window window = {first, count, batch_rows};
            struct row_lines expected = {.arena = &desk.arena};
            struct error err;
            assert_int_equal(spill_cut(&rows, window, &collector.sink, &err), STATUS_OK);
            row_lines_add(&expected, &batch, (struct selection){all.rows + first, count});
            assert_true(row_lines_equal(&collector.lines, &expected));
        }
    }
    spill_rows_done(&rows);
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back_or_an_error_does),
        cmocka_unit_test(rows_are_read_in_the_order_they_were_written),
        cmocka_unit_test(runs_become_one_whatever_their_number),
        cmocka_unit_test(equal_rows_keep_the_order_of_their_runs),
        cmocka_unit_test(every_window_is_cut_into_batches_of_one_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
