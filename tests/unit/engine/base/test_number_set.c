/* SPDX-License-Identifier: Apache-2.0 */
/* test_number_set.c - a set of numbers holds what was added, and knows where its first gap is.
 *
 * Method: every set of a few numbers around the extremes of words, in random orders, and long
 * random ones, against an array of truths that is searched from the start.
 */
#include "unit/test.h"

#include "engine/base/number_set.h"
#include "engine/base/random.h"

enum { MODEL_SIZE = 1100 };

struct set_model {
    bool has[MODEL_SIZE];
    uint64_t count;
};

static uint64_t model_missing(const struct set_model *model, uint64_t from)
{
    while (from < MODEL_SIZE && model->has[from]) {
        from++;
    }
    return from;
}

static void add_both(struct number_set *set, struct set_model *model, uint64_t number)
{
    assert_true(number_set_add(set, number));
    if (!model->has[number]) model->count++;
    model->has[number] = true;
}

static void check_counts(const struct number_set *set, const struct set_model *model)
{
    assert_int_equal(set->count, model->count);
    assert_int_equal(set->contiguous, model_missing(model, 0));
}

static void check_all(const struct number_set *set, const struct set_model *model)
{
    check_counts(set, model);
    for (uint64_t number = 0; number < MODEL_SIZE; number++) {
        assert_int_equal(number_set_has(set, number), model->has[number]);
        assert_int_equal(number_set_missing(set, number), model_missing(model, number));
    }
}

static void an_empty_set_has_nothing(void **state)
{
    (void)state;
    struct number_set set = {0};
    struct set_model model = {.count = 0};
    check_all(&set, &model);
    assert_false(number_set_has(&set, UINT64_MAX));
    assert_true(number_set_missing(&set, UINT64_MAX) == UINT64_MAX);
    number_set_done(&set);
    number_set_done(&set);
}

/* Numbers on both sides of the extremes of words, and of the memory that is taken first. */
static void every_set_of_edges_is_the_models(void **state)
{
    (void)state;
    static const uint64_t extremes[] = {0, 1, 62, 63, 64, 127, 128, 255, 256, 257};
    enum { EXTREMES = sizeof extremes / sizeof extremes[0] };
    struct random random = {1};
    for (uint32_t chosen = 0; chosen < 1u << EXTREMES; chosen++) {
        struct number_set set = {0};
        struct set_model model = {.count = 0};
        uint32_t left = chosen;
        while (left != 0) {
            uint32_t extreme = random_below(&random, EXTREMES);
            if ((left >> extreme & 1) == 0) continue;
            left &= ~(1u << extreme);
            add_both(&set, &model, extremes[extreme]);
            check_counts(&set, &model);
        }
        for (uint64_t number = 0; number < 330; number++) {
            assert_int_equal(number_set_has(&set, number), model.has[number]);
            assert_int_equal(number_set_missing(&set, number), model_missing(&model, number));
        }
        number_set_done(&set);
    }
}

static void random_sets_are_the_models(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 30; round++) {
        struct random random = {100 + round};
        struct number_set set = {0};
        struct set_model model = {.count = 0};
        uint32_t bound = 1 + random_below(&random, MODEL_SIZE);
        uint32_t steps = random_below(&random, 3 * bound);
        for (uint32_t step = 0; step < steps; step++) {
            add_both(&set, &model, random_below(&random, bound));
            check_counts(&set, &model);
        }
        check_all(&set, &model);
        number_set_done(&set);
    }
}

/* As streams fill up: nearly in order, most numbers twice, no gap in the end. */
static void a_set_that_is_filled_has_no_gap(void **state)
{
    (void)state;
    struct random random = {7};
    struct number_set set = {0};
    struct set_model model = {.count = 0};
    for (uint64_t number = 0; number < MODEL_SIZE; number++) {
        uint64_t behind = random_below(&random, 20);
        if (random_below(&random, 4) > 0) add_both(&set, &model, number);
        if (behind <= number) add_both(&set, &model, number - behind);
    }
    check_all(&set, &model);
    while (set.contiguous < MODEL_SIZE) {
        add_both(&set, &model, number_set_missing(&set, 0));
    }
    check_all(&set, &model);
    assert_int_equal(set.count, MODEL_SIZE);
    number_set_done(&set);
}

static void a_number_beyond_the_budget_changes_nothing(void **state)
{
    (void)state;
    static const uint64_t beyond[] = {100000, UINT32_MAX, UINT64_MAX / 2, UINT64_MAX - 1,
                                      UINT64_MAX};
    struct budget budget = {.limit_bytes = 4096};
    struct number_set set = {.budget = &budget};
    struct set_model model = {.count = 0};
    for (uint64_t number = 0; number < 70; number++) {
        add_both(&set, &model, number);
    }
    size_t used = atomic_load(&budget.used_bytes);
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        assert_false(number_set_add(&set, beyond[i]));
        assert_false(number_set_has(&set, beyond[i]));
        assert_true(number_set_missing(&set, beyond[i]) == beyond[i]);
        assert_int_equal(atomic_load(&budget.used_bytes), used);
    }
    check_all(&set, &model);
    add_both(&set, &model, MODEL_SIZE - 1);
    check_all(&set, &model);
    number_set_done(&set);
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
    /* It can be used again, and still has its budget. */
    assert_false(number_set_add(&set, 100000));
    assert_true(number_set_add(&set, 3));
    assert_int_equal(set.count, 1);
    number_set_done(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_set_has_nothing),
        cmocka_unit_test(every_set_of_edges_is_the_models),
        cmocka_unit_test(random_sets_are_the_models),
        cmocka_unit_test(a_set_that_is_filled_has_no_gap),
        cmocka_unit_test(a_number_beyond_the_budget_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
