/* SPDX-License-Identifier: Apache-2.0 */
/* test_ranker.c - the best rows of each partition are a function of the set of rows offered.
 *
 * Method: the model sorts all rows by partition and keys and cuts each partition. Rows are offered
 * shuffled, in batches of any size, through selections; more of them than the ranker keeps, so that
 * it prunes several times and turns rows away. Limits of none, few, many and all.
 */
#include "unit/test.h"

#include "engine/exec/fold/ranker.h"
#include "unit/engine/data/random_rows.h"
#include "unit/engine/exec/fold/naive_order.h"

enum { COLUMNS = 7 };

struct problem {
    struct ranking ranking;
    uint32_t partition[COLUMNS];
    struct sort_key keys[2 * COLUMNS];
};

/* Some keys, then all columns ascending, as the planner makes them: a total order. */
static void problem_make(struct problem *problem, struct random *random, uint32_t partition_count,
                         uint64_t limit)
{
    uint32_t chosen_count = random_below(random, 3);
    uint32_t key_count = 0;
    for (uint32_t i = 0; i < partition_count; i++) {
        problem->partition[i] = random_below(random, COLUMNS);
    }
    for (; key_count < chosen_count; key_count++) {
        problem->keys[key_count] = (struct sort_key){.column = random_below(random, COLUMNS),
                                                     .descending = random_below(random, 2) == 0,
                                                     .nulls_first = random_below(random, 2) == 0};
    }
    for (uint32_t i = 0; i < COLUMNS; i++) {
        problem->keys[key_count++] = (struct sort_key){.column = i};
    }
    problem->ranking = (struct ranking){.partition_columns = problem->partition,
                                        .partition_count = partition_count,
                                        .keys = problem->keys,
                                        .key_count = key_count,
                                        .limit = limit};
}

static void expect_best(const struct problem *problem, const struct batch *batch,
                        struct row_lines *lines)
{
    const struct ranking *ranking = &problem->ranking;
    struct sort_key order[3 * COLUMNS];
    for (uint32_t i = 0; i < ranking->partition_count; i++) {
        order[i] = (struct sort_key){.column = ranking->partition_columns[i]};
    }
    memcpy(order + ranking->partition_count, ranking->keys,
           ranking->key_count * sizeof *ranking->keys);
    uint32_t *rows =
        random_rows_need(arena_array(lines->arena, uint32_t, (size_t)batch->row_count + 1));
    for (uint32_t i = 0; i < batch->row_count; i++) {
        rows[i] = i;
    }
    naive_sort_rows(
        (struct naive_sort){batch, order, ranking->partition_count + ranking->key_count}, rows,
        batch->row_count);
    uint64_t rank = 0;
    for (uint32_t i = 0; i < batch->row_count; i++) {
        bool same = i > 0 && naive_row_order(batch, rows[i - 1], rows[i], order,
                                             ranking->partition_count) == 0;
        rank = same ? rank + 1 : 0;
        if (rank < ranking->limit) row_lines_add(lines, batch, (struct selection){&rows[i], 1});
    }
}

/* All rows, in random order, in batches of random size; every second row of a batch is not meant.
 */
static void offer_shuffled(struct ranker *ranker, const struct batch *batch, struct random *random)
{
    struct arena arena = {0};
    struct error err;
    uint32_t *order = random_rows_shuffle(random, batch->row_count, &arena);
    for (uint32_t done = 0; done < batch->row_count;) {
        uint32_t count = 1 + random_below(random, 5000);
        if (count > batch->row_count - done) count = batch->row_count - done;
        uint32_t *doubled = random_rows_need(arena_array(&arena, uint32_t, (size_t)count * 2));
        uint32_t *meant = random_rows_need(arena_array(&arena, uint32_t, count));
        struct column columns[COLUMNS];
        for (uint32_t i = 0; i < count; i++) {
            doubled[2 * i] = order[random_below(random, batch->row_count)];
            doubled[2 * i + 1] = order[done + i];
            meant[i] = 2 * i + 1;
        }
        for (uint32_t i = 0; i < COLUMNS; i++) {
            assert_true(column_gather(&columns[i], &batch->columns[i], doubled, 2 * count, &arena));
        }
        struct batch offered = {
            .row_count = 2 * count, .column_count = COLUMNS, .columns = columns};
        assert_int_equal(ranker_add(ranker, &offered, (struct selection){meant, count}, &err),
                         STATUS_OK);
        done += count;
    }
    arena_done(&arena);
}

static void check_ranker(struct random *random, uint32_t row_count, uint32_t partition_count,
                         uint64_t limit, uint32_t domain)
{
    struct arena arena = {0};
    struct budget budget = {0};
    struct problem problem;
    struct random_rows rows = {.random = random,
                               .arena = &arena,
                               .domain = domain,
                               .null_percent = 10,
                               .plain_doubles = true};
    struct batch batch = random_rows_batch(&rows, random_rows_keys, row_count);
    problem_make(&problem, random, partition_count, limit);
    struct row_lines expected = {.arena = &arena};
    expect_best(&problem, &batch, &expected);
    struct ranker *ranker;
    struct error err;
    assert_int_equal(ranker_create(&problem.ranking, random_rows_keys, &budget, &ranker, &err),
                     STATUS_OK);
    for (int round = 0; round < 2; round++) {
        struct row_lines seen = {.arena = &arena};
        struct batch best;
        offer_shuffled(ranker, &batch, random);
        assert_int_equal(ranker_finish(ranker, &best, &err), STATUS_OK);
        row_lines_add(&seen, &best, (struct selection){NULL, best.row_count});
        assert_true(row_lines_equal(&seen, &expected));
        ranker_reset(ranker);
    }
    ranker_destroy(ranker);
    assert_int_equal(budget.used_bytes, 0);
    arena_done(&arena);
}

static void few_rows_are_ranked_whatever_the_order(void **state)
{
    (void)state;
    static const uint64_t limits[] = {0, 1, 3, 100000, UINT64_MAX};
    struct random random = {1};
    for (uint32_t round = 0; round < 300; round++) {
        check_ranker(&random, random_below(&random, 60), round % 3, limits[round % 5],
                     round % 2 * 20);
    }
}

static void many_rows_are_ranked_whatever_the_order(void **state)
{
    (void)state;
    static const uint64_t limits[] = {0, 1, 3, 500, 9000, UINT64_MAX};
    struct random random = {2};
    for (uint32_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (uint32_t partition_count = 0; partition_count < 3; partition_count++) {
            check_ranker(&random, 13000, partition_count, limits[i], partition_count * 500);
        }
    }
}

static void ranking_goes_on_after_it_was_looked_at(void **state)
{
    (void)state;
    struct random random = {3};
    struct arena arena = {0};
    struct problem problem;
    struct random_rows rows = {
        .random = &random, .arena = &arena, .domain = 50, .plain_doubles = true};
    struct batch batch = random_rows_batch(&rows, random_rows_keys, 9000);
    problem_make(&problem, &random, 1, 3);
    struct ranker *ranker;
    struct error err;
    struct batch best;
    assert_int_equal(ranker_create(&problem.ranking, random_rows_keys, NULL, &ranker, &err),
                     STATUS_OK);
    for (uint32_t end = 0; end <= 9000; end += 1000) {
        struct column columns[COLUMNS];
        struct batch head = batch_slice(&batch, 0, end, columns);
        struct row_lines expected = {.arena = &arena};
        struct row_lines seen = {.arena = &arena};
        expect_best(&problem, &head, &expected);
        if (end > 0) {
            struct batch piece = batch_slice(&batch, end - 1000, 1000, columns);
            assert_int_equal(ranker_add(ranker, &piece, (struct selection){NULL, 1000}, &err),
                             STATUS_OK);
        }
        assert_int_equal(ranker_finish(ranker, &best, &err), STATUS_OK);
        row_lines_add(&seen, &best, (struct selection){NULL, best.row_count});
        assert_true(row_lines_equal(&seen, &expected));
    }
    ranker_destroy(ranker);
    arena_done(&arena);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct random random = {4};
    struct arena arena = {0};
    struct problem problem;
    struct random_rows rows = {
        .random = &random, .arena = &arena, .domain = 900, .plain_doubles = true};
    struct batch batch = random_rows_batch(&rows, random_rows_keys, 6000);
    problem_make(&problem, &random, 1, 2);
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct budget budget = {0};
        struct ranker *ranker = NULL;
        struct error err;
        struct batch best;
        memory_fail_after(allowed);
        status code = ranker_create(&problem.ranking, random_rows_keys, &budget, &ranker, &err);
        if (code == STATUS_OK) {
            code = ranker_add(ranker, &batch, (struct selection){NULL, 6000}, &err);
        }
        if (code == STATUS_OK) code = ranker_finish(ranker, &best, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        ranker_destroy(ranker);
        assert_int_equal(budget.used_bytes, 0);
        assert_true(allowed < 2000);
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_are_ranked_whatever_the_order),
        cmocka_unit_test(many_rows_are_ranked_whatever_the_order),
        cmocka_unit_test(ranking_goes_on_after_it_was_looked_at),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
