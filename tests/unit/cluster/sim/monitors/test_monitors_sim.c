/* SPDX-License-Identifier: Apache-2.0 */
/* test_monitors_sim.c - the same seed of monitors gives the same run, and planted mistakes are
 * found.
 *
 * Method: a few seeds, run twice and compared by the hash over all that happened; every mistake
 * that can be planted, until a seed finds it. The many seeds are run by `millrace sim --monitors`.
 */
#include "unit/test.h"

#include "engine/base/memory.h"
#include "cluster/sim/monitors/monitors_sim.h"

static struct sim_report run(uint64_t seed, enum monitors_mutation mutation)
{
    struct monitors_options options = {.seed = seed, .mutation = mutation, .trace_fd = -1};
    struct sim_report report = {0};
    struct error err;
    assert_int_equal(monitors_run_seed(&options, &report, &err), STATUS_OK);
    return report;
}

static void the_same_seed_is_the_same_run(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sim_report first = run(seed, MONITORS_SIM_SOUND);
        struct sim_report second = run(seed, MONITORS_SIM_SOUND);
        assert_string_equal(first.reason, "");
        assert_true(first.ok);
        assert_true(first.message_count > 0);
        assert_int_equal(first.history, second.history);
        assert_int_equal(first.step_count, second.step_count);
        assert_int_not_equal(first.history, last);
        last = first.history;
    }
}

static void a_leader_without_lease_is_found(void **state)
{
    (void)state;
    uint64_t seed = 1;
    while (seed <= 50 && run(seed, MONITORS_SIM_NO_LEASE).ok) {
        seed++;
    }
    assert_true(seed <= 50);
}

static void memory_that_runs_out_ends_the_run(void **state)
{
    (void)state;
    for (size_t count = 0; count < 12; count++) {
        struct monitors_options options = {.seed = 1, .trace_fd = -1};
        struct sim_report report = {.ok = true};
        struct error err;
        memory_fail_after(count);
        status result = monitors_run_seed(&options, &report, &err);
        bool was_refused = memory_was_refused();
        memory_fail_never();
        assert_true(!was_refused || result != STATUS_OK || !report.ok);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_is_the_same_run),
        cmocka_unit_test(a_leader_without_lease_is_found),
        cmocka_unit_test(memory_that_runs_out_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
