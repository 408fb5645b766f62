/* SPDX-License-Identifier: Apache-2.0 */
/* test_batch_codec.c - batches survive as bytes, equal rows are equal bytes, and damage is noticed.
 *
 * Method: random batches of every type are encoded and decoded, and compared line by line. The same
 * rows are appended in other pieces, with and without arrays of nulls, and must give the same
 * bytes. Every truncation and every change of one byte must be refused, or be what an encoder would
 * have written for the rows that come out.
 */
#include "unit/test.h"

#include "unit/engine/data/random_rows.h"
#include "engine/data/batch_codec.h"

static void encode_rows(const struct batch *batch, struct schema schema, uint32_t piece_rows,
                        struct buf *out)
{
    struct batch_builder builder;
    assert_true(builder_init(&builder, schema, NULL));
    for (uint32_t first = 0; first < batch->row_count; first += piece_rows) {
        struct column columns[16];
        uint32_t left = batch->row_count - first;
        struct batch piece =
            batch_slice(batch, first, left < piece_rows ? left : piece_rows, columns);
        builder_append(&builder, &piece, (struct selection){NULL, piece.row_count});
    }
    assert_false(builder.failed);
    batch_encode(&builder, out);
    assert_false(out->failed);
    builder_done(&builder);
}

static void collect(struct row_lines *lines, const struct batch *batch)
{
    row_lines_add(lines, batch, (struct selection){NULL, batch->row_count});
}

static void decoded_rows_are_those_encoded(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t round = 0; round < 200; round++) {
        struct arena arena = {0};
        struct random_rows rows = {
            .random = &random, .arena = &arena, .null_percent = round % 4 * 25};
        struct schema schema = {random_rows_fields, round % (random_rows_every.count + 1)};
        struct batch batch = random_rows_batch(&rows, schema, random_below(&random, 60));
        struct buf bytes = {0};
        struct batch decoded;
        struct error err;
        encode_rows(&batch, schema, 1000, &bytes);
        assert_int_equal(bytes.size % 8, 0);
        assert_int_equal(batch_decode(bytes.bytes, bytes.size, schema, &arena, &decoded, &err),
                         STATUS_OK);
        struct row_lines expected = {.arena = &arena};
        struct row_lines seen = {.arena = &arena};
        collect(&expected, &batch);
        collect(&seen, &decoded);
        assert_true(row_lines_equal(&seen, &expected));
        buf_done(&bytes);
        arena_done(&arena);
    }
}

static void equal_rows_are_equal_bytes_however_they_were_appended(void **state)
{
    (void)state;
    struct random random = {2};
    for (uint32_t round = 0; round < 100; round++) {
        struct arena arena = {0};
        struct random_rows rows = {
            .random = &random, .arena = &arena, .null_percent = round % 4 * 3};
        struct batch batch = random_rows_batch(&rows, random_rows_every, 40);
        struct buf whole = {0};
        encode_rows(&batch, random_rows_every, 40, &whole);
        for (uint32_t piece_rows = 1; piece_rows < 40; piece_rows += 3) {
            struct buf pieces = {0};
            encode_rows(&batch, random_rows_every, piece_rows, &pieces);
            assert_int_equal(pieces.size, whole.size);
            assert_memory_equal(pieces.bytes, whole.bytes, whole.size);
            buf_done(&pieces);
        }
        /* What stands under a NULL, and arrays in which none is, leave no trace. */
        for (uint32_t i = 0; i < batch.column_count; i++) {
            struct column *column = &batch.columns[i];
            if (type_is_list(column->type)) continue;
            struct random other = {random_u64(&random)};
            struct random_rows again = {.random = &other, .arena = &arena};
            struct schema one = {&random_rows_fields[i], 1};
            struct column values = random_rows_batch(&again, one, 40).columns[0];
            size_t width = type_width(column->type);
            assert_true(column_need_nulls(column, 40, &arena));
            for (uint32_t row = 0; row < 40; row++) {
                if (!column->nulls[row]) continue;
                memcpy((char *)column->data + row * width, (char *)values.data + row * width,
                       width);
            }
        }
        struct buf other = {0};
        encode_rows(&batch, random_rows_every, 7, &other);
        assert_int_equal(other.size, whole.size);
        assert_memory_equal(other.bytes, whole.bytes, whole.size);
        buf_done(&other);
        buf_done(&whole);
        arena_done(&arena);
    }
}

/* Flags are 0 or 1: whoever reads them may count on it. */
static void check_flags(const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->column_count; i++) {
        const struct column *column = &batch->columns[i];
        bool are_flags = column->type.kind == TYPE_BOOL || column->type.kind == TYPE_NULL;
        for (uint32_t row = 0; row < batch->row_count; row++) {
            if (column->nulls != NULL) assert_in_range(column->nulls[row], 0, 1);
            if (are_flags) assert_in_range(column->bools[row], 0, 1);
        }
    }
}

/* Decodes a copy of exactly this size, so that the sanitizer sees its end. True: it was accepted,
 * and encoding what came out gives the same bytes again. */
static bool accepts(const unsigned char *bytes, size_t size, struct schema schema)
{
    unsigned char *exact = memory_alloc(NULL, size + (size == 0));
    if (size > 0) memcpy(exact, bytes, size);
    struct arena arena = {0};
    struct batch decoded;
    struct error err = {.text = ""};
    status code = batch_decode(exact, size, schema, &arena, &decoded, &err);
    if (code == STATUS_OK) {
        struct buf again = {0};
        check_flags(&decoded);
        encode_rows(&decoded, schema, 1000, &again);
        assert_int_equal(again.size, size);
        assert_memory_equal(again.bytes, exact, size);
        buf_done(&again);
    } else {
        assert_int_equal(code, STATUS_CORRUPT);
        assert_true(err.text[0] != '\0');
    }
    arena_done(&arena);
    memory_free(NULL, exact, size + (size == 0));
    return code == STATUS_OK;
}

static void truncations_and_changed_bytes_are_refused_or_mean_other_rows(void **state)
{
    (void)state;
    struct random random = {3};
    uint32_t accepted_count = 0;
    uint32_t refused_count = 0;
    for (uint32_t round = 0; round < 3; round++) {
        struct arena arena = {0};
        struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = round * 30};
        struct batch batch = random_rows_batch(&rows, random_rows_every, 5);
        struct buf bytes = {0};
        encode_rows(&batch, random_rows_every, 5, &bytes);
        assert_true(accepts(bytes.bytes, bytes.size, random_rows_every));
        for (size_t size = 0; size < bytes.size; size++) {
            assert_false(accepts(bytes.bytes, size, random_rows_every));
        }
        for (size_t i = 0; i < bytes.size; i++) {
            static const unsigned char changes[] = {1, 2, 64, 128, 255};
            for (size_t j = 0; j < sizeof changes; j++) {
                bytes.bytes[i] ^= changes[j];
                bool accepted = accepts(bytes.bytes, bytes.size, random_rows_every);
                bytes.bytes[i] ^= changes[j];
                accepted_count += accepted;
                refused_count += !accepted;
            }
        }
        buf_put_u64(&bytes, 0);
        assert_false(accepts(bytes.bytes, bytes.size, random_rows_every));
        buf_done(&bytes);
        arena_done(&arena);
    }
    assert_true(accepted_count > 100);
    assert_true(refused_count > 1000);
}

static void another_schema_is_refused(void **state)
{
    (void)state;
    struct random random = {4};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
    struct error err;
    struct batch decoded;
    for (uint32_t i = 0; i < random_rows_every.count; i++) {
        struct schema written = {&random_rows_fields[i], 1};
        struct batch batch = random_rows_batch(&rows, written, 10);
        struct buf bytes = {0};
        encode_rows(&batch, written, 10, &bytes);
        for (uint32_t j = 0; j < random_rows_every.count; j++) {
            struct schema wanted = {&random_rows_fields[j], 1};
            status code = batch_decode(bytes.bytes, bytes.size, wanted, &arena, &decoded, &err);
            assert_int_equal(code, i == j ? STATUS_OK : STATUS_CORRUPT);
        }
        assert_int_equal(
            batch_decode(bytes.bytes, bytes.size, random_rows_every, &arena, &decoded, &err),
            STATUS_CORRUPT);
        buf_done(&bytes);
    }
    /* The scale is what the numbers mean; the precision is only a promise. */
    for (uint8_t scale = 0; scale <= 4; scale++) {
        struct field field = {.type = {TYPE_DECIMAL, 10, scale}};
        struct schema written = {&random_rows_fields[2], 1};
        struct batch batch = random_rows_batch(&rows, written, 10);
        struct buf bytes = {0};
        encode_rows(&batch, written, 10, &bytes);
        status code = batch_decode(bytes.bytes, bytes.size, (struct schema){&field, 1}, &arena,
                                   &decoded, &err);
        assert_int_equal(code, scale == 3 ? STATUS_OK : STATUS_CORRUPT);
        buf_done(&bytes);
    }
    arena_done(&arena);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct random random = {5};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .null_percent = 10};
    struct batch batch = random_rows_batch(&rows, random_rows_every, 2000);
    struct buf bytes = {0};
    encode_rows(&batch, random_rows_every, 2000, &bytes);
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct budget budget = {0};
        struct arena decode_arena;
        struct batch decoded;
        struct error err;
        arena_init(&decode_arena, &budget);
        memory_fail_after(allowed);
        status code =
            batch_decode(bytes.bytes, bytes.size, random_rows_every, &decode_arena, &decoded, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        arena_done(&decode_arena);
        assert_int_equal(budget.used_bytes, 0);
        assert_true(allowed < 100);
    }
    buf_done(&bytes);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_rows_are_those_encoded),
        cmocka_unit_test(equal_rows_are_equal_bytes_however_they_were_appended),
        cmocka_unit_test(truncations_and_changed_bytes_are_refused_or_mean_other_rows),
        cmocka_unit_test(another_schema_is_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
