/* SPDX-License-Identifier: Apache-2.0 */
/* test_result_page.c - pages survive as bytes, and damage is noticed.
 *
 * Method: random pages with batches of every size around the alignment are encoded and decoded.
 * Everything that sealed_bytes.h knows to do to bytes is done to some of them.
 */
#include "unit/test.h"

#include "unit/cluster/wire/sealed_bytes.h"
#include "cluster/wire/api.h"

static struct result_page random_page(struct random *random, struct arena *arena)
{
    uint32_t count = random_below(random, 6);
    struct result_batch *batches = arena_array(arena, struct result_batch, count + 1);
    struct result_page page = {.batches = batches, .batch_count = count};
    uint64_t first = random_below(random, 2) == 0 ? 0 : random_u64(random) / 2;
    if (random_below(random, 8) == 0) first = UINT64_MAX - count;
    for (uint32_t i = 0; i < count; i++) {
        batches[i].number = first + i;
        batches[i].bytes = sealed_random_text(random, arena);
    }
    page.total = first + count;
    if (page.total < UINT64_MAX - 3) page.total += random_below(random, 3);
    return page;
}

static void a_page_decoded_is_the_one_encoded(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t round = 0; round < 500; round++) {
        struct arena arena = {0};
        struct buf bytes = {0};
        struct result_page page = random_page(&random, &arena);
        struct result_page decoded;
        struct error err;
        result_page_encode(&page, &bytes);
        assert_false(bytes.failed);
        struct text text = {(const char *)bytes.bytes, (uint32_t)bytes.size};
        assert_int_equal(result_page_decode(text, &arena, &decoded, &err), STATUS_OK);
        assert_int_equal(decoded.total, page.total);
        assert_int_equal(decoded.batch_count, page.batch_count);
        for (uint32_t i = 0; i < page.batch_count; i++) {
            assert_int_equal(decoded.batches[i].number, page.batches[i].number);
            assert_true(text_equal(decoded.batches[i].bytes, page.batches[i].bytes));
            assert_int_equal((uintptr_t)decoded.batches[i].bytes.bytes % 8, 0);
        }
        buf_done(&bytes);
        arena_done(&arena);
    }
}

static status page_again(struct text bytes, struct buf *out_again, struct error *err)
{
    struct arena arena = {0};
    struct result_page page;
    status code = result_page_decode(bytes, &arena, &page, err);
    if (code == STATUS_OK) result_page_encode(&page, out_again);
    arena_done(&arena);
    return code;
}

static void only_what_an_encoder_wrote_is_a_page(void **state)
{
    (void)state;
    struct random random = {2};
    for (uint32_t round = 0; round < 10; round++) {
        struct arena arena = {0};
        struct buf bytes = {0};
        struct result_page page = random_page(&random, &arena);
        result_page_encode(&page, &bytes);
        sealed_check_damage(&bytes, page_again);
        buf_done(&bytes);
        arena_done(&arena);
    }
    /* The helpers of other tests that are of no use here. */
    (void)sealed_random_name, (void)sealed_random_u32;
}

static void memory_that_runs_out_is_said(void **state)
{
    (void)state;
    bool was_refused = true;
    for (size_t allowed = 0; was_refused; allowed++) {
        struct arena arena = {0};
        struct buf bytes = {0};
        struct result_batch batch = {.number = 3, .bytes = TEXT_LITERAL("rows")};
        struct result_page page = {.total = 4, .batches = &batch, .batch_count = 1};
        struct result_page decoded;
        struct error err;
        status code = STATUS_MEMORY;
        memory_fail_after(allowed);
        result_page_encode(&page, &bytes);
        if (!bytes.failed) {
            struct text text = {(const char *)bytes.bytes, (uint32_t)bytes.size};
            code = result_page_decode(text, &arena, &decoded, &err);
        }
        was_refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, was_refused ? STATUS_MEMORY : STATUS_OK);
        buf_done(&bytes);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_decoded_is_the_one_encoded),
        cmocka_unit_test(only_what_an_encoder_wrote_is_a_page),
        cmocka_unit_test(memory_that_runs_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
