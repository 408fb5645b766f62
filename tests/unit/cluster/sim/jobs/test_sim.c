/* SPDX-License-Identifier: Apache-2.0 */
/* test_sim.c - the same seed gives the same run, and planted mistakes are found.
 *
 * Method: a few seeds of every profile, run twice and compared by the hash over all events;
 * some mistakes planted into the workers, which a few seeds must find. The many seeds are run by
 * `millrace sim`.
 */
#include "unit/test.h"

#include "cluster/sim/jobs/scenario.h"
#include "cluster/sim/jobs/sim.h"

static struct scenarios *scenarios;

static int set_up(void **state)
{
    (void)state;
    struct error err;
    return scenarios_create(&scenarios, &err) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    scenarios_destroy(scenarios);
    return 0;
}

static struct sim_report run(uint64_t seed, enum sim_profile profile, enum worker_mutation mutation)
{
    struct sim_options options = {
        .seed = seed, .profile = profile, .mutation = mutation, .trace_fd = -1};
    struct sim_report report = {0};
    struct error err;
    assert_int_equal(sim_run_seed(scenarios, &options, &report, &err), STATUS_OK);
    return report;
}

static void the_same_seed_is_the_same_run(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct sim_report first = run(seed, SIM_MIXED, WORKER_AS_IT_SHOULD);
        struct sim_report second = run(seed, SIM_MIXED, WORKER_AS_IT_SHOULD);
        assert_string_equal(first.reason, "");
        assert_true(first.ok);
        assert_int_equal(first.history, second.history);
        assert_int_equal(first.step_count, second.step_count);
        assert_int_not_equal(first.history, last);
        last = first.history;
    }
}

static void every_profile_keeps_its_promises(void **state)
{
    (void)state;
    for (uint32_t profile = 0; profile < SIM_PROFILES; profile++) {
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct sim_report report = run(seed, (enum sim_profile)profile, WORKER_AS_IT_SHOULD);
            assert_string_equal(report.reason, "");
            assert_true(report.ok);
        }
    }
}

static void planted_mistakes_are_found(void **state)
{
    (void)state;
    static const enum worker_mutation mutations[] = {WORKER_APPLIES_TWICE, WORKER_COUNTS_WRONG};
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        uint64_t seed = 1;
        while (seed <= 20 && run(seed, SIM_MIXED, mutations[i]).ok) {
            seed++;
        }
        assert_true(seed <= 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_is_the_same_run),
        cmocka_unit_test(every_profile_keeps_its_promises),
        cmocka_unit_test(planted_mistakes_are_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
