/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - what is put into a buf is what a reader gets, and neither passes its end.
 *
 * Method: random sequences of puts are kept in a plain array as well; every limit from 0 to the
 * whole size, every failing allocation and every truncation is tried. The first put that does not
 * fit must be the end of the buf, and the first get that is not covered the end of the reader.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/buf.h"
#include "engine/base/random.h"

enum { MODEL_SIZE = 8192 };

/* Puts something random; the model takes the same bytes, little-endian written out by hand. */
static size_t put_random(struct buf *buf, unsigned char *model, struct random *random)
{
    uint64_t value = random_u64(random);
    size_t size = 0;
    switch (random_below(random, 6)) {
    case 0:
        buf_put_u8(buf, (uint8_t)value);
        size = 1;
        break;
    case 1:
        buf_put_u32(buf, (uint32_t)value);
        size = 4;
        break;
    case 2:
        buf_put_u64(buf, value);
        size = 8;
        break;
    case 3:
        buf_put_string(buf, "string");
        memcpy(model, "string", 6);
        return 6;
    case 4:
        buf_put_text(buf, (struct text){"t\0xt", 4});
        memcpy(model, "t\0xt", 4);
        return 4;
    default:
        buf_put(buf, NULL, 0);
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        model[i] = (unsigned char)(value >> 8 * i);
    }
    return size;
}

static void every_limit_cuts_between_two_puts(void **state)
{
    (void)state;
    for (size_t limit = 0; limit < 600; limit++) {
        struct budget budget = {0};
        struct buf buf = {.limit = limit, .budget = &budget};
        struct random random = {limit / 3};
        unsigned char model[MODEL_SIZE];
        size_t size = 0;
        bool full = false;
        for (int i = 0; i < 200; i++) {
            size_t more = put_random(&buf, model + size, &random);
            if (limit != 0 && size + more > limit && more > 0) full = true;
            if (!full) size += more;
            assert_int_equal(buf.failed, full);
            assert_int_equal(buf.size, size);
        }
        assert_memory_equal(buf.bytes, model, size);
        if (limit != 0) assert_true(buf.capacity <= limit);
        buf_reset(&buf);
        assert_false(buf.failed);
        assert_int_equal(buf.size, 0);
        buf_done(&buf);
        assert_int_equal(budget.used_bytes, 0);
    }
}

static void a_failing_allocation_is_remembered_and_loses_nothing(void **state)
{
    (void)state;
    for (size_t allowed = 0; allowed < 6; allowed++) {
        struct budget budget = {0};
        struct buf buf = {.budget = &budget};
        struct random random = {allowed};
        static unsigned char model[100000];
        size_t size = 0;
        memory_fail_after(allowed);
        for (int i = 0; i < 4000; i++) {
            size_t more = put_random(&buf, model + size, &random);
            if (!buf.failed) size += more;
        }
        memory_fail_never();
        assert_true(memory_was_refused() == buf.failed);
        assert_true(buf.failed || allowed == 5);
        assert_int_equal(buf.size, size);
        if (size > 0) assert_memory_equal(buf.bytes, model, size);
        buf_done(&buf);
        assert_int_equal(budget.used_bytes, 0);
    }
}

static void formatted_text_is_appended_whole(void **state)
{
    (void)state;
    struct buf buf = {0};
    char model[MODEL_SIZE] = "";
    for (int i = 0; i < 200; i++) {
        buf_format(&buf, "%d,%*s;", i, i % 30, "x");
        size_t used = strlen(model);
        (void)snprintf(model + used, sizeof model - used, "%d,%*s;", i, i % 30, "x");
    }
    assert_false(buf.failed);
    assert_int_equal(buf.size, strlen(model));
    assert_memory_equal(buf.bytes, model, buf.size);
    buf_done(&buf);
}

static void numbers_are_read_back_and_truncations_fail(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_put_u8(&buf, 0xfe);
    buf_put_u32(&buf, 0xdeadbeef);
    buf_put_u64(&buf, 0x0123456789abcdef);
    buf_put_string(&buf, "tail");
    for (size_t size = 0; size <= buf.size; size++) {
        unsigned char *exact = memory_alloc(NULL, size + 1);
        memcpy(exact, buf.bytes, size);
        struct buf_reader reader = {.bytes = exact, .size = size};
        uint8_t small = buf_get_u8(&reader);
        assert_int_equal(small, size >= 1 ? 0xfe : 0);
        uint32_t medium = buf_get_u32(&reader);
        assert_int_equal(medium, size >= 5 ? 0xdeadbeef : 0);
        uint64_t large = buf_get_u64(&reader);
        assert_true(large == (size >= 13 ? 0x0123456789abcdefu : 0));
        const char *tail = buf_get(&reader, 4);
        assert_int_equal(reader.failed, size < buf.size);
        if (tail != NULL) assert_memory_equal(tail, "tail", 4);
        assert_int_equal(tail == NULL, reader.failed);
        if (!reader.failed) assert_int_equal(buf_left(&reader), 0);
        /* A reader that has failed gives nothing any more, not even what is there. */
        bool failed = reader.failed;
        assert_int_equal(buf_get(&reader, 0) == NULL, failed);
        assert_null(buf_get(&reader, SIZE_MAX));
        memory_free(NULL, exact, size + 1);
    }
    buf_done(&buf);
}

static void reserving_more_than_there_can_be_fails(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_put_u8(&buf, 1);
    assert_false(buf_reserve(&buf, SIZE_MAX));
    assert_true(buf.failed);
    assert_false(buf_reserve(&buf, 1));
    buf_reset(&buf);
    assert_true(buf_reserve(&buf, 1));
    buf_done(&buf);
}

static void what_is_taken_has_no_limit_and_is_nobodys(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    struct buf buf = {.limit = 300, .budget = &budget};
    buf_put_string(&buf, "some bytes");
    assert_true(atomic_load(&budget.used_bytes) > 0);
    struct buf taken = buf_take(&buf);
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
    assert_int_equal(taken.size, 10);
    assert_memory_equal(taken.bytes, "some bytes", 10);
    assert_true(buf_reserve(&taken, 2000));
    buf_done(&taken);
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
    /* The one that it was taken from is as new. */
    assert_int_equal(buf.size, 0);
    assert_false(buf_reserve(&buf, 301));
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_limit_cuts_between_two_puts),
        cmocka_unit_test(a_failing_allocation_is_remembered_and_loses_nothing),
        cmocka_unit_test(formatted_text_is_appended_whole),
        cmocka_unit_test(numbers_are_read_back_and_truncations_fail),
        cmocka_unit_test(reserving_more_than_there_can_be_fails),
        cmocka_unit_test(what_is_taken_has_no_limit_and_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
