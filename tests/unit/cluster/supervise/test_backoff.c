/* SPDX-License-Identifier: Apache-2.0 */
/* test_backoff.c - who dies young waits longer, who has lived begins anew.
 *
 * Method: the whole sequence.
 */
#include "unit/test.h"

#include "cluster/supervise/backoff.h"

static void waits_double_to_their_limit_and_a_life_begins_anew(void **state)
{
    (void)state;
    static const uint32_t expected[] = {200, 400, 800, 1600, 3200, 5000, 5000};
    struct backoff backoff = {0};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
            uint64_t lived_ms = i == 0 ? BACKOFF_UPTIME_MS : BACKOFF_UPTIME_MS - 1;
            assert_int_equal(backoff_next(&backoff, lived_ms), expected[i]);
        }
    }
    backoff = (struct backoff){0};
    assert_int_equal(backoff_next(&backoff, 0), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_to_their_limit_and_a_life_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
