/* SPDX-License-Identifier: Apache-2.0 */
/* test_election.c - never two leaders, and soon one.
 *
 * Method: elections in a small world (election_world.h) with delays, losses, cuts in one direction,
 * pauses, deaths and clocks of different rates. After every message and every ms it is checked that
 * at most one leads, and that terms rise. The classic scenarios by name; all ways in which up to
 * four monitors can hear each other; random schedules. That the check can fail is shown by two
 * bugs planted in the election.
 */
#include "unit/cluster/role/monitor/election_world.h"

static struct election_world world;

static void assert_sound(void)
{
    assert_int_equal(world.overlaps, 0);
    assert_int_equal(world.reversals, 0);
}

static struct term leader_term(void)
{
    return world.hosts[world_leader(&world)].election.own;
}

static void all_start_at_once_and_the_highest_leads(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 16};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            world_init(&world, counts[i], seed);
            assert_in_range(world_until_led(&world, 9 * LEASE), LEASE, LEASE * 3 / 2);
            assert_int_equal(world_leader(&world), counts[i] - 1);
            world_run(&world, LEASE * 5);
            assert_int_equal(world_leader(&world), counts[i] - 1);
            assert_int_equal(leader_term().number, 1);
            assert_sound();
        }
    }
}

static void leader_dies_and_the_next_highest_follows(void **state)
{
    (void)state;
    for (uint32_t count = 3; count <= 5; count++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            world_init(&world, count, seed);
            world_run(&world, LEASE * 3);
            world.hosts[count - 1].is_dead = true;
            assert_in_range(world_until_led(&world, 9 * LEASE), LEASE / 2, LEASE * 2);
            assert_int_equal(world_leader(&world), count - 2);
            assert_sound();
        }
    }
}

static void follower_dies_and_nothing_changes(void **state)
{
    (void)state;
    world_init(&world, 3, 1);
    world_run(&world, LEASE * 3);
    world.hosts[0].is_dead = true;
    for (uint32_t i = 0; i < LEASE * 10; i++) {
        world_step(&world);
        assert_int_equal(world_leader(&world), 2);
    }
    assert_int_equal(leader_term().number, 1);
    assert_sound();
}

static void dead_one_returns_and_the_leader_keeps_office(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        world_init(&world, 3, seed);
        world_run(&world, LEASE * 3);
        world.hosts[2].is_dead = true;
        world_run(&world, LEASE * 3);
        assert_int_equal(world_leader(&world), 1);
        struct term term = leader_term();
        world_start(&world, 2);
        for (uint32_t i = 0; i < LEASE * 10; i++) {
            world_step(&world);
            assert_int_equal(world_leader(&world), 1);
        }
        assert_int_equal(leader_term().number, term.number);
        assert_int_equal(election_leader(&world.hosts[2].election, world_clock(&world, 2)).number,
                         term.number);
        assert_sound();
    }
}

static void half_of_the_monitors_lead_nothing(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= 4; count += 2) {
        world_init(&world, count, 1);
        world_run(&world, LEASE * 3);
        for (uint32_t i = 0; i < count / 2; i++) {
            world.hosts[i].is_dead = true;
        }
        world_run(&world, LEASE);
        for (uint32_t i = 0; i < LEASE * 5; i++) {
            world_step(&world);
            assert_int_equal(world_leader(&world), UINT32_MAX);
        }
        world_start(&world, 0);
        assert_in_range(world_until_led(&world, 9 * LEASE), LEASE / 2, LEASE * 2);
        assert_sound();
    }
}

static void leader_who_resigns_is_replaced_within_half_a_lease(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        world_init(&world, 3, seed);
        world_run(&world, LEASE * 3);
        struct election_outs outs = {0};
        election_resign(&world.hosts[2].election, world_clock(&world, 2), &outs);
        world_send(&world, 2, &outs);
        assert_int_equal(world_leader(&world), UINT32_MAX);
        assert_in_range(world_until_led(&world, 9 * LEASE), 1, LEASE / 2);
        assert_int_equal(world_leader(&world), 1);
        world_run(&world, LEASE * 5);
        assert_int_equal(world_leader(&world), 1);
        assert_sound();
    }
}

static void leader_of_an_older_term_than_nodes_have_seen_takes_a_higher_one(void **state)
{
    (void)state;
    world_init(&world, 3, 1);
    world_run(&world, LEASE * 3);
    struct election_outs outs = {0};
    struct term seen = {.number = 57, .holder = 0};
    election_see_term(&world.hosts[2].election, seen, world_clock(&world, 2), &outs);
    world_send(&world, 2, &outs);
    assert_int_equal(world_leader(&world), UINT32_MAX);
    assert_in_range(world_until_led(&world, 9 * LEASE), 1, LEASE / 2);
    assert_int_equal(leader_term().number, 58);
    assert_sound();
}

static void term_of_a_monitor_that_is_no_more_is_only_a_number(void **state)
{
    (void)state;
    world_init(&world, 3, 1);
    for (uint32_t i = 0; i < 3; i++) {
        struct election_outs outs = {0};
        struct term seen = {.number = 57, .holder = 9};
        election_see_term(&world.hosts[i].election, seen, world_clock(&world, i), &outs);
    }
    assert_in_range(world_until_led(&world, 9 * LEASE), LEASE, LEASE * 3 / 2);
    assert_int_equal(world_leader(&world), 2);
    assert_int_equal(leader_term().number, 58);
}

static void leader_that_hears_nobody_gives_way(void **state)
{
    (void)state;
    world_init(&world, 3, 1);
    world_run(&world, LEASE * 3);
    world.is_cut[0][2] = world.is_cut[1][2] = true;
    world_run(&world, LEASE);
    assert_in_range(world_until_led(&world, 9 * LEASE), 0, LEASE * 2);
    assert_int_equal(world_leader(&world), 1);
    struct term term = leader_term();
    world_run(&world, LEASE * 20);
    assert_int_equal(world_leader(&world), 1);
    assert_int_equal(leader_term().number, term.number);
    assert_sound();
}

static void highest_that_nobody_hears_is_passed_over(void **state)
{
    (void)state;
    world_init(&world, 3, 1);
    world.is_cut[2][0] = world.is_cut[2][1] = true;
    assert_in_range(world_until_led(&world, 9 * LEASE), LEASE, LEASE * 2);
    assert_int_equal(world_leader(&world), 1);
    world_run(&world, LEASE * 20);
    assert_int_equal(world_leader(&world), 1);
    assert_int_equal(leader_term().number, 1);
    assert_sound();
}

/* 1 leads by the vote of 0; 2 hears 0 only, so that it stands in vain again and again. */
static void chain_make(uint64_t seed, enum election_mutation mutation)
{
    world_init(&world, 3, seed);
    world_run(&world, LEASE * 3);
    world.mutation = mutation;
    world.hosts[2].is_dead = true;
    world_run(&world, LEASE * 3);
    assert_int_equal(world_leader(&world), 1);
    world.is_cut[1][2] = world.is_cut[2][1] = true;
    world_start(&world, 2);
    world_run(&world, LEASE * 3);
}

static void candidate_who_does_not_hear_the_leader_does_not_disturb_it(void **state)
{
    (void)state;
    chain_make(1, ELECTION_SOUND);
    struct term term = leader_term();
    for (uint32_t i = 0; i < LEASE * 50; i++) {
        world_step(&world);
        assert_int_equal(world_leader(&world), 1);
    }
    assert_int_equal(leader_term().number, term.number);
    assert_true(world.hosts[2].election.highest.number > term.number + 10);
    assert_sound();
}

/* The voter of the chain forgets its promise to 1 while 2 asks for its vote. */
static uint32_t chain_overlaps(uint64_t seed, enum election_mutation mutation)
{
    chain_make(seed, mutation);
    for (uint32_t i = 0; i < 20; i++) {
        world_run(&world, random_below(&world.random, LEASE));
        world_start(&world, 0);
    }
    return world.overlaps;
}

static void voter_that_starts_again_keeps_promises_it_has_forgotten(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        assert_int_equal(chain_overlaps(seed, ELECTION_SOUND), 0);
    }
}

static bool is_two_way(uint32_t a, uint32_t b)
{
    return a == b || (!world.is_cut[a][b] && !world.is_cut[b][a]);
}

static bool has_eligible(void)
{
    for (uint32_t i = 0; i < world.count; i++) {
        uint32_t reached = 0;
        for (uint32_t j = 0; j < world.count; j++) {
            reached += is_two_way(i, j);
        }
        if (reached > world.count / 2) return true;
    }
    return false;
}

/* Bit by bit, who hears whom. */
static void cut(uint32_t graph)
{
    uint32_t bit = 0;
    for (uint32_t from = 0; from < world.count; from++) {
        for (uint32_t to = 0; to < world.count; to++) {
            if (from != to) world.is_cut[from][to] = (graph >> bit++ & 1) != 0;
        }
    }
}

static void any_way_of_hearing_each_other_has_a_leader_if_one_hears_a_majority(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= 4; count++) {
        uint32_t graphs = 1u << (count * (count - 1));
        for (uint32_t i = 0; i < 2 * graphs; i++) {
            world_init(&world, count, i);
            bool cut_later = i >= graphs;
            if (cut_later) world_run(&world, LEASE * 2);
            cut(i % graphs);
            world_run(&world, LEASE * 4);
            if (has_eligible()) {
                assert_in_range(world_until_led(&world, 9 * LEASE), 0, LEASE / 2);
                struct term term = leader_term();
                world_run(&world, LEASE * 2);
                assert_int_equal(leader_term().number, term.number);
            } else {
                assert_int_equal(world_leader(&world), UINT32_MAX);
            }
            assert_sound();
        }
    }
}

static void disturb(void)
{
    struct random *random = &world.random;
    uint32_t one = random_below(random, world.count);
    uint32_t other = random_below(random, world.count);
    switch (random_below(random, 9)) {
    case 0:
        world.hosts[one].is_dead = true;
        break;
    case 1:
    case 2:
        for (uint32_t i = 0; i < world.count; i++) {
            if (world.hosts[i].is_dead) world_start(&world, i);
        }
        break;
    case 3:
        world.hosts[one].paused_until_ms = world.now_ms + random_below(random, 4 * LEASE);
        break;
    case 4:
    case 5:
        world.is_cut[one][other] = !world.is_cut[one][other];
        break;
    case 6:
        memset(world.is_cut, 0, sizeof world.is_cut);
        break;
    case 7:
        world.loss_percent = random_below(random, 50);
        world.delay_ms = random_below(random, LEASE / 2);
        break;
    default:
        world.loss_percent = 0;
        world.delay_ms = 3;
        break;
    }
}

/* Disturbances for a while; they end, and within some leases there is a leader that stays. */
static void schedule_run(uint64_t seed, enum election_mutation mutation)
{
    world_init(&world, 1 + (uint32_t)(seed % 5), seed);
    world.mutation = mutation;
    for (uint32_t i = 0; i < world.count; i++) {
        /* An eighth is the margin: 1.06 to 0.94 is within. */
        world.hosts[i].rate = (int32_t)random_below(&world.random, 121) - 60;
        world.hosts[i].offset_ms += 10000;
        world_start(&world, i);
    }
    for (uint32_t i = 0; i < 60; i++) {
        disturb();
        world_run(&world, random_below(&world.random, LEASE));
    }
}

static void schedule_calm(void)
{
    memset(world.is_cut, 0, sizeof world.is_cut);
    world.loss_percent = 0;
    world.delay_ms = 3;
    for (uint32_t i = 0; i < world.count; i++) {
        world.hosts[i].paused_until_ms = 0;
        if (world.hosts[i].is_dead) world_start(&world, i);
    }
}

static void random_schedules_never_have_two_leaders_and_end_with_one(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        schedule_run(seed, ELECTION_SOUND);
        schedule_calm();
        world_run(&world, LEASE * 4);
        assert_in_range(world_until_led(&world, 9 * LEASE), 0, 0);
        struct term term = leader_term();
        world_run(&world, LEASE * 4);
        assert_int_equal(leader_term().number, term.number);
        if (world.overlaps + world.reversals > 0) print_error("seed %d\n", (int)seed);
        assert_sound();
    }
}

static void planted_bugs_are_found(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (uint64_t seed = 0; seed < 400 && found == 0; seed++) {
        schedule_run(seed, ELECTION_NO_LEASE);
        found = world.overlaps;
    }
    assert_true(found > 0);
    found = 0;
    for (uint64_t seed = 0; seed < 50 && found == 0; seed++) {
        found = chain_overlaps(seed, ELECTION_VOTES_AT_ONCE);
    }
    assert_true(found > 0);
}

static void messages_that_nobody_could_have_sent_change_nothing(void **state)
{
    (void)state;
    world_init(&world, 3, 1);
    world_run(&world, LEASE * 3);
    struct election before = world.hosts[1].election;
    struct election_outs outs = {0};
    const struct {
        uint32_t from;
        struct election_message message;
    } cases[] = {
        {1, {.kind = ELECTION_STAND, .term = {9, 1}}}, /* Of ourselves. */
        {3, {.kind = ELECTION_STAND, .term = {9, 3}}}, /* Of no monitor. */
        {0, {.kind = ELECTION_STAND, .term = {9, 2}}}, /* For another. */
        {0, {.kind = ELECTION_RENEW, .term = {9, 2}}},
        {0, {.kind = ELECTION_RELEASE, .term = before.promised}},
        {0, {.kind = ELECTION_RENEW, .term = {0, 0}}},
        {0, {.kind = ELECTION_KINDS, .term = {9, 0}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        election_hear(&world.hosts[1].election, cases[i].from, &cases[i].message,
                      world_clock(&world, 1), &outs);
        assert_int_equal(outs.count, 0);
        assert_memory_equal(&before, &world.hosts[1].election, sizeof before);
    }
}

static enum election_kind ask_vote(struct election *voter, struct term term)
{
    struct election_outs outs = {0};
    struct election_message stand = {.kind = ELECTION_STAND, .term = term, .round = 1};
    election_hear(voter, term.holder, &stand, LEASE + 2, &outs);
    assert_int_equal(outs.count, 1);
    struct election_message release = {.kind = ELECTION_RELEASE, .term = term};
    election_hear(voter, term.holder, &release, LEASE + 2, &outs);
    return outs.items[0].message.kind;
}

/* Neither candidate knew of the other's term. Nodes compare (number, holder), so a leader of the
 * second rises above the first; the other way round it would fall behind, and is not elected. */
static void of_two_terms_of_one_number_only_the_higher_may_follow(void **state)
{
    (void)state;
    static struct election voter;
    const struct election_config config = {.self = 1, .count = 3, .lease_ms = LEASE, .seed = 1};
    election_init(&voter, &config, 1);
    assert_int_equal(ask_vote(&voter, (struct term){5, 0}), ELECTION_GRANT);
    assert_int_equal(ask_vote(&voter, (struct term){5, 2}), ELECTION_GRANT);
    election_init(&voter, &config, 1);
    assert_int_equal(ask_vote(&voter, (struct term){5, 2}), ELECTION_GRANT);
    assert_int_equal(ask_vote(&voter, (struct term){5, 0}), ELECTION_REFUSE);
    assert_int_equal(ask_vote(&voter, (struct term){6, 0}), ELECTION_GRANT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_start_at_once_and_the_highest_leads),
        cmocka_unit_test(leader_dies_and_the_next_highest_follows),
        cmocka_unit_test(follower_dies_and_nothing_changes),
        cmocka_unit_test(dead_one_returns_and_the_leader_keeps_office),
        cmocka_unit_test(half_of_the_monitors_lead_nothing),
        cmocka_unit_test(leader_who_resigns_is_replaced_within_half_a_lease),
        cmocka_unit_test(leader_of_an_older_term_than_nodes_have_seen_takes_a_higher_one),
        cmocka_unit_test(term_of_a_monitor_that_is_no_more_is_only_a_number),
        cmocka_unit_test(leader_that_hears_nobody_gives_way),
        cmocka_unit_test(highest_that_nobody_hears_is_passed_over),
        cmocka_unit_test(candidate_who_does_not_hear_the_leader_does_not_disturb_it),
        cmocka_unit_test(voter_that_starts_again_keeps_promises_it_has_forgotten),
        cmocka_unit_test(any_way_of_hearing_each_other_has_a_leader_if_one_hears_a_majority),
        cmocka_unit_test(random_schedules_never_have_two_leaders_and_end_with_one),
        cmocka_unit_test(planted_bugs_are_found),
        cmocka_unit_test(of_two_terms_of_one_number_only_the_higher_may_follow),
        cmocka_unit_test(messages_that_nobody_could_have_sent_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
