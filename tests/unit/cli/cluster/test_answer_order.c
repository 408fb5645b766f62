/* SPDX-License-Identifier: Apache-2.0 */
/* test_answer_order.c - answers go out in the order of the queries, whatever the order in which
 * they come, and whole.
 *
 * Method: three queries with a few rows each; every order in which their batches and ends can be
 * interleaved by a seed is written to a folder as CSV, and compared with what is right.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/random.h"
#include "cli/cluster/answer_order.h"
#include "engine/file/file.h"
#include "engine/file/file_tree.h"
#include "unit/cli/cluster/answers.h"

enum { BATCHES = 3, BATCH_ROWS = 2, SEEDS = 300 };

static void give(struct answer_order *order, uint32_t query, uint32_t batch)
{
    struct answer_rows rows;
    struct error err;
    char words[8];
    (void)snprintf(words, sizeof words, "w%u", query);
    const struct batch *made =
        answer_rows_make(&rows, (int64_t)batch * BATCH_ROWS, BATCH_ROWS, words);
    if (batch < BATCHES) {
        assert_int_equal(answer_order_rows(order, query, made, &err), STATUS_OK);
    } else {
        assert_int_equal(answer_order_end(order, query, &err), STATUS_OK);
    }
}

static void check_file(const char *folder, uint32_t query)
{
    struct arena arena = {0};
    struct text found;
    struct error err;
    char name[16];
    char expected[256] = "number,words\n";
    (void)snprintf(name, sizeof name, "q%u.csv", query + 1);
    for (uint32_t i = 0; i < BATCHES * BATCH_ROWS; i++) {
        size_t used = strlen(expected);
        (void)snprintf(expected + used, sizeof expected - used, "%u,w%u\n", i, query);
    }
    const char *path = file_path(folder, text_of(name), &arena);
    assert_int_equal(file_read_whole(path, 1 << 20, &arena, &found, &err), STATUS_OK);
    assert_string_equal(found.bytes, expected);
    arena_done(&arena);
}

/* For who looks on: the order of the ends. */
static void answers_can_go_out_as_they_end(void **state)
{
    (void)state;
    char folder[] = "/tmp/millrace-order-XXXXXX";
    struct error err;
    assert_non_null(mkdtemp(folder));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct random random = {seed};
        struct arena arena = {0};
        struct output output;
        struct answer_order order;
        struct plan_query shown[ANSWER_QUERIES] = {0};
        struct plan plan = answer_plan;
        plan.queries = shown;
        struct output_options options = {.format = OUTPUT_CSV, .directory = folder, .plan = &plan};
        struct audit audit = {.balanced = true};
        uint32_t given[ANSWER_QUERIES] = {0};
        uint32_t ended = 0;
        assert_int_equal(output_open(&output, &options, &err), STATUS_OK);
        assert_int_equal(answer_order_open(&order, &output, &answer_plan, shown, &arena, &err),
                         STATUS_OK);
        for (uint32_t left = ANSWER_QUERIES * (BATCHES + 1); left > 0;) {
            uint32_t query = random_below(&random, ANSWER_QUERIES);
            if (given[query] > BATCHES) continue;
            give(&order, query, given[query]++);
            left--;
            if (given[query] <= BATCHES) continue;
            assert_true(text_equal(shown[ended].name, answer_plan.queries[query].name));
            ended++;
        }
        assert_int_equal(output_finish(&output, &audit, &err), STATUS_OK);
        for (uint32_t query = 0; query < ANSWER_QUERIES; query++) {
            check_file(folder, query);
        }
        answer_order_close(&order);
        output_close(&output);
        arena_done(&arena);
    }
    assert_int_equal(file_tree_remove(folder, &err), STATUS_OK);
}

static void answers_come_in_any_order_and_go_out_in_theirs(void **state)
{
    (void)state;
    char folder[] = "/tmp/millrace-order-XXXXXX";
    struct error err;
    assert_non_null(mkdtemp(folder));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct random random = {seed};
        struct arena arena = {0};
        struct output output;
        struct answer_order order;
        struct output_options options = {
            .format = OUTPUT_CSV, .directory = folder, .plan = &answer_plan};
        struct audit audit = {.balanced = true};
        uint32_t given[ANSWER_QUERIES] = {0};
        assert_int_equal(output_open(&output, &options, &err), STATUS_OK);
        assert_int_equal(answer_order_open(&order, &output, &answer_plan, NULL, &arena, &err),
                         STATUS_OK);
        for (uint32_t left = ANSWER_QUERIES * (BATCHES + 1); left > 0;) {
            uint32_t query = random_below(&random, ANSWER_QUERIES);
            if (given[query] > BATCHES) continue;
            give(&order, query, given[query]++);
            left--;
        }
        assert_int_equal(output_finish(&output, &audit, &err), STATUS_OK);
        for (uint32_t query = 0; query < ANSWER_QUERIES; query++) {
            check_file(folder, query);
        }
        answer_order_close(&order);
        output_close(&output);
        arena_done(&arena);
    }
    assert_int_equal(file_tree_remove(folder, &err), STATUS_OK);
    assert_false(file_exists(folder));
}

static void one_that_is_left_half_way_is_freed(void **state)
{
    (void)state;
    char folder[] = "/tmp/millrace-order-XXXXXX";
    struct arena arena = {0};
    struct output output;
    struct answer_order order;
    struct error err;
    assert_non_null(mkdtemp(folder));
    struct output_options options = {
        .format = OUTPUT_CSV, .directory = folder, .plan = &answer_plan};
    assert_int_equal(output_open(&output, &options, &err), STATUS_OK);
    assert_int_equal(answer_order_open(&order, &output, &answer_plan, NULL, &arena, &err),
                     STATUS_OK);
    give(&order, 2, 0);
    give(&order, 1, 0);
    answer_order_close(&order);
    answer_order_close(&order);
    output_discard(&output);
    output_close(&output);
    arena_done(&arena);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_in_any_order_and_go_out_in_theirs),
        cmocka_unit_test(answers_can_go_out_as_they_end),
        cmocka_unit_test(one_that_is_left_half_way_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
