/* SPDX-License-Identifier: Apache-2.0 */
/* test_chaos.c - the same seed disturbs the same nodes, and never those that are protected.
 *
 * Method: pools of every wish over a small cluster are held against what the wish says, word by
 * word; draws of many seeds are repeated and counted. Times are held against a sorted copy.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cluster/chaos.h"

static const struct cluster_node node_list[] = {
    {"broker", NODE_BROKER, "h", 0}, {"g1", NODE_GATEWAY, "h", 1}, {"g2", NODE_GATEWAY, "h", 2},
    {"w1", NODE_WORKER, "h", 0},     {"w2", NODE_WORKER, "h", 0},  {"m1", NODE_MONITOR, "h", 3},
};
enum { NODES = sizeof node_list / sizeof node_list[0] };
static const struct cluster_nodes nodes = {node_list, NODES};

/* The names of the pool, in order. */
static void assert_pool(struct chaos_wish wish, const char *expected)
{
    struct arena arena = {0};
    struct chaos_pool pool;
    struct error err;
    struct buf names = {0};
    if (chaos_pool_make(&nodes, &wish, &arena, &pool, &err) != STATUS_OK) fail_msg("%s", err.text);
    for (uint32_t i = 0; i < pool.count; i++) {
        buf_format(&names, "%s%s", i > 0 ? " " : "", node_list[pool.nodes[i]].name);
    }
    assert_int_equal(names.size, strlen(expected));
    assert_memory_equal(names.bytes, expected, names.size);
    assert_true(pool.at_a_time >= 1 && pool.at_a_time <= pool.count);
    buf_done(&names);
    arena_done(&arena);
}

static void the_pool_is_what_was_wished(void **state)
{
    (void)state;
    assert_pool((struct chaos_wish){0}, "g1 g2 w1 w2 m1");
    assert_pool((struct chaos_wish){.count = 99}, "g1 g2 w1 w2 m1");
    assert_pool((struct chaos_wish){.kill = "w2"}, "w2");
    assert_pool((struct chaos_wish){.kill = "w*,g1"}, "g1 w1 w2");
    assert_pool((struct chaos_wish){.kill = "*1, w2"}, "g1 w1 w2 m1");
    assert_pool((struct chaos_wish){.except = "g*,m1"}, "w1 w2");
    assert_pool((struct chaos_wish){.kill = "w*", .except = "w1"}, "w2");
    assert_pool((struct chaos_wish){.kill = "*"}, "g1 g2 w1 w2 m1"); /* Not named. */
    assert_pool((struct chaos_wish){.kill = "*,broker"}, "broker g1 g2 w1 w2 m1");
    assert_pool((struct chaos_wish){.kill = "broker"}, "broker");
}

static void what_can_not_be_wished_is_refused(void **state)
{
    (void)state;
    static const struct chaos_wish wishes[] = {
        {.kill = "w3"},
        {.kill = "w1,x*"},
        {.except = "w11"},
        {.except = "*"},
        {.kill = "w1", .except = "w1"},
        {.kill = "brok*"},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        struct arena arena = {0};
        struct chaos_pool pool;
        struct error err;
        assert_int_equal(chaos_pool_make(&nodes, &wishes[i], &arena, &pool, &err), STATUS_USAGE);
        arena_done(&arena);
    }
}

static void the_same_seed_draws_the_same_nodes(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err;
    uint32_t drawn[NODES] = {0};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct chaos_wish wish = {.count = 1 + (uint32_t)seed % 5};
        struct chaos_pool first;
        struct chaos_pool second;
        struct random one = {seed};
        struct random other = {seed};
        assert_int_equal(chaos_pool_make(&nodes, &wish, &arena, &first, &err), STATUS_OK);
        assert_int_equal(chaos_pool_make(&nodes, &wish, &arena, &second, &err), STATUS_OK);
        for (int round = 0; round < 20; round++) {
            bool seen[NODES] = {false};
            chaos_draw(&first, &one);
            chaos_draw(&second, &other);
            for (uint32_t i = 0; i < first.at_a_time; i++) {
                assert_int_equal(first.nodes[i], second.nodes[i]);
                assert_false(seen[first.nodes[i]]); /* Nobody twice at a time. */
                seen[first.nodes[i]] = true;
                drawn[first.nodes[i]]++;
            }
        }
    }
    assert_int_equal(drawn[0], 0); /* The broker. */
    for (uint32_t i = 1; i < NODES; i++) {
        assert_true(drawn[i] > 450 && drawn[i] < 750); /* 600 each, on average. */
    }
    arena_done(&arena);
}

static void only_the_name_itself_names_what_is_protected(void **state)
{
    (void)state;
    assert_true(chaos_is_spelled("w1,m1", "m1"));
    assert_true(chaos_is_spelled("m1", "m1"));
    assert_false(chaos_is_spelled("m*", "m1"));
    assert_false(chaos_is_spelled("*,m11", "m1"));
    assert_false(chaos_is_spelled(NULL, "m1"));
}

/* A node is killed at 10000, when its incarnation 5 was known of. */
static void a_node_is_back_when_another_life_is_heard_after_the_kill(void **state)
{
    (void)state;
    const struct chaos_death death = {.incarnation = 5, .ended_ms = 10000};
    struct monitored seen = {.state = HEALTH_UP, .incarnation = 5, .silent_ms = 0};
    assert_false(chaos_is_reborn(death, &seen, 10050));
    assert_false(chaos_is_reborn(death, &seen, 20000)); /* Somebody counts silence anew. */
    /* It had been started again just before: that incarnation is over too, though not missed yet.
     */
    seen = (struct monitored){.state = HEALTH_UP, .incarnation = 6, .silent_ms = 200};
    assert_false(chaos_is_reborn(death, &seen, 9999));
    assert_false(chaos_is_reborn(death, &seen, 10100));
    seen.silent_ms = 1300;
    assert_false(chaos_is_reborn(death, &seen, 11200));
    /* The next one heartbeats. */
    seen = (struct monitored){.state = HEALTH_UP, .incarnation = 7, .silent_ms = 400};
    assert_true(chaos_is_reborn(death, &seen, 12000));
    seen.state = HEALTH_STARTING;
    assert_false(chaos_is_reborn(death, &seen, 12000));
    seen = (struct monitored){.state = HEALTH_UP, .incarnation = 0, .silent_ms = 0};
    assert_false(chaos_is_reborn(death, &seen, 12000));
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void times_are_those_of_a_sorted_list(void **state)
{
    (void)state;
    enum { MOST = 300 };
    uint64_t times[MOST];
    uint64_t sorted[MOST];
    struct random random = {3};
    assert_int_equal(chaos_times_of(times, 0).longest_ms, 0);
    for (uint32_t count = 1; count <= MOST; count++) {
        for (uint32_t i = 0; i < count; i++) {
            sorted[i] = times[i] = random_below(&random, 1000);
        }
        qsort(sorted, count, sizeof sorted[0], compare);
        struct chaos_times result = chaos_times_of(times, count);
        assert_int_equal(result.longest_ms, sorted[count - 1]);
        assert_int_equal(result.median_ms, sorted[(count - 1) / 2]);
        uint32_t within = 0; /* How many took no longer. */
        while (within < count && sorted[within] <= result.late_ms) {
            within++;
        }
        assert_true(within * 100 >= count * 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pool_is_what_was_wished),
        cmocka_unit_test(what_can_not_be_wished_is_refused),
        cmocka_unit_test(the_same_seed_draws_the_same_nodes),
        cmocka_unit_test(only_the_name_itself_names_what_is_protected),
        cmocka_unit_test(a_node_is_back_when_another_life_is_heard_after_the_kill),
        cmocka_unit_test(times_are_those_of_a_sorted_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
