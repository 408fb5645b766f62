/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunk_body.c - the body of a chunk survives as bytes, and is written in one way only.
 *
 * Method: random bodies are encoded, decoded and compared, then cut and changed in every place. A
 * body has no checksum of its own, so that what was changed may be another body.
 */
#include "unit/test.h"

#include "unit/cluster/wire/sealed_bytes.h"
#include "cluster/wire/message.h"

enum { MOST = 4 }; /* Columns. */

#define SAME(field) assert_true(a->field == b->field)

static struct text text_from(const struct buf *bytes)
{
    return (struct text){(const char *)bytes->bytes, (uint32_t)bytes->size};
}

static struct chunk_body any_body(struct random *random, struct arena *arena)
{
    struct chunk_body body = {
        .file = sealed_random_u32(random),
        .offset = sealed_random_u64(random),
        .first_line = sealed_random_u64(random),
        .file_columns = 1 + random_below(random, 5),
        .bytes = sealed_random_text(random, arena),
    };
    uint32_t *map = arena_array(arena, uint32_t, MOST);
    assert_non_null(map);
    for (uint32_t i = 0; i < MOST; i++) {
        map[i] = random_below(random, body.file_columns);
    }
    body.column_map = map;
    body.column_count = random_below(random, MOST + 1);
    return body;
}

static status body_again(struct text bytes, struct buf *out, struct error *err)
{
    struct arena arena = {0};
    struct chunk_body body;
    status code = chunk_body_decode(bytes, &arena, &body, err);
    if (code == STATUS_OK) chunk_body_encode(&body, out);
    arena_done(&arena);
    return code;
}

static void decoded_bodies_are_those_encoded(void **state)
{
    (void)state;
    struct random random = {5};
    struct arena arena = {0};
    for (uint32_t round = 0; round < 300; round++) {
        struct buf bytes = {0};
        struct chunk_body decoded;
        struct error err;
        struct chunk_body body = any_body(&random, &arena);
        chunk_body_encode(&body, &bytes);
        assert_int_equal(chunk_body_decode(text_from(&bytes), &arena, &decoded, &err), STATUS_OK);
        const struct chunk_body *a = &body;
        const struct chunk_body *b = &decoded;
        SAME(file);
        SAME(offset);
        SAME(first_line);
        SAME(file_columns);
        SAME(column_count);
        for (uint32_t i = 0; i < a->column_count; i++) {
            SAME(column_map[i]);
        }
        assert_true(text_equal(a->bytes, b->bytes));
        buf_done(&bytes);
        arena_reset(&arena);
    }
    arena_done(&arena);
}

static void damaged_bodies_are_refused_or_are_others(void **state)
{
    (void)state;
    struct random random = {6};
    struct arena arena = {0};
    for (uint32_t round = 0; round < 20; round++) {
        struct chunk_body body = any_body(&random, &arena);
        struct buf bytes = {0};
        chunk_body_encode(&body, &bytes);
        for (size_t size = 0; size < bytes.size; size++) {
            assert_false(sealed_accepted(bytes.bytes, size, body_again));
        }
        for (size_t bit = 0; bit < bytes.size * 8; bit++) {
            unsigned char mask = (unsigned char)(1u << bit % 8);
            bytes.bytes[bit / 8] ^= mask;
            (void)sealed_accepted(bytes.bytes, bytes.size, body_again);
            bytes.bytes[bit / 8] ^= mask;
        }
        assert_true(sealed_accepted(bytes.bytes, bytes.size, body_again));
        buf_put_u8(&bytes, 0);
        assert_false(sealed_accepted(bytes.bytes, bytes.size, body_again));
        buf_done(&bytes);
    }
    arena_done(&arena);
}

static void columns_that_a_file_has_not_are_refused(void **state)
{
    (void)state;
    enum { COLUMNS_AT = 2 + 4 + 8 + 8 };
    uint32_t map[2] = {2, 0};
    struct chunk_body body = {.file_columns = 3, .column_map = map, .column_count = 2};
    struct buf bytes = {0};
    chunk_body_encode(&body, &bytes);
    for (uint32_t columns = 0; columns < 6; columns++) {
        bytes.bytes[COLUMNS_AT] = (unsigned char)columns;
        assert_int_equal(sealed_accepted(bytes.bytes, bytes.size, body_again), columns >= 3);
    }
    /* More than anybody lays out memory for. */
    for (uint32_t i = 0; i < 4; i++) {
        bytes.bytes[COLUMNS_AT + i] = 0xff;
    }
    assert_false(sealed_accepted(bytes.bytes, bytes.size, body_again));
    buf_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_bodies_are_those_encoded),
        cmocka_unit_test(damaged_bodies_are_refused_or_are_others),
        cmocka_unit_test(columns_that_a_file_has_not_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
