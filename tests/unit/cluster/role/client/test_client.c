/* SPDX-License-Identifier: Apache-2.0 */
/* test_client.c - a client ends with all answers whatever gateways do, and does no more than it
 * has to.
 *
 * Method: the client runs against client_world.h, which checks every request and every answer that
 * is handed out. Without faults each chunk must be sent exactly once; with faults from many seeds
 * the client must still end well. The ways in which a job fails are made one by one.
 */
#include "unit/cluster/role/client/client_world.h"

#include <stdlib.h>

enum { SEEDS = 200, LIMIT_MS = 600000 };

static const struct world_faults no_faults = {0};

static struct client_world *world_new(uint64_t seed, struct world_faults faults)
{
    static struct client_world world;
    world_init(&world, seed, faults);
    return &world;
}

static void check_well(const struct client_world *world)
{
    if (!world->is_done) fail_msg("it never ended");
    if (world->outcome.code != STATUS_OK) fail_msg("%s", world->outcome.text);
    for (uint32_t i = 0; i < WORLD_SCANS; i++) {
        assert_true(world->ends[i] > 0);
        for (uint64_t j = 0; j < world->chunk_count[i]; j++) {
            assert_true(world->accepted[i][j] > 0);
        }
    }
    for (uint32_t i = 0; i < WORLD_QUERIES; i++) {
        assert_int_equal(world->results[i], world->batch_count[i]);
    }
    assert_int_equal(world->audit, WORLD_WORKERS);
}

static void without_faults_every_chunk_is_sent_once(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct client_world *world = world_new(seed, no_faults);
        world_start(world);
        world_run(world, LIMIT_MS);
        check_well(world);
        uint64_t chunks = 0;
        for (uint32_t i = 0; i < WORLD_SCANS; i++) {
            chunks += world->chunk_count[i];
            assert_int_equal(world->ends[i], 1);
            for (uint64_t j = 0; j < world->chunk_count[i]; j++) {
                assert_int_equal(world->puts[i][j], 1);
                assert_int_equal(world->journaled[i][j], 1);
            }
        }
        assert_int_equal(world->job_puts, 1);
        assert_int_equal(world->deletes, 1);
        assert_int_equal(world->progress.sent_chunks, chunks);
        assert_int_equal(world->progress.applied_chunks, chunks);
        assert_int_equal(world->progress.resent_chunks, 0);
        assert_string_equal(world->progress.state, "done");
        assert_true(world->views <= (world->now_ms - 1000) / 20 + 1);
        world_done(world);
    }
}

static struct world_faults faults_of(uint64_t seed)
{
    struct random random = {seed * 77 + 1};
    struct world_faults faults = {0};
    uint32_t *rates[] = {&faults.refused, &faults.broken,  &faults.silent, &faults.unavailable,
                         &faults.doubled, &faults.dropped, &faults.garbled};
    /* Some kinds at a time, so that none hides another. */
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        if (random_below(&random, 2) == 0) *rates[i] = random_below(&random, 200);
    }
    faults.lost_jobs = random_below(&random, 4);
    faults.closings = random_below(&random, 4);
    faults.slot_waits = random_below(&random, 4);
    return faults;
}

static void with_faults_the_answers_come_all_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct client_world *world = world_new(seed, faults_of(seed));
        world->config.retry_for_ms = LIMIT_MS; /* Some seeds fail most requests. */
        world_start(world);
        world_run(world, LIMIT_MS);
        if (!world->is_done) fail_msg("seed %llu: it never ended", (unsigned long long)seed);
        check_well(world);
        world_done(world);
    }
}

static void what_is_lost_is_sent_again_in_proportion(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct client_world *world = world_new(seed, (struct world_faults){.dropped = 100});
        world_start(world);
        world_run(world, LIMIT_MS);
        check_well(world);
        for (uint32_t i = 0; i < WORLD_SCANS; i++) {
            for (uint64_t j = 0; j < world->chunk_count[i]; j++) {
                assert_true(world->puts[i][j] <= 6);
            }
        }
        world_done(world);
    }
}

static int compare_sent(const void *a, const void *b)
{
    const struct client_sent_chunk *x = a;
    const struct client_sent_chunk *y = b;
    if (x->scan != y->scan) return x->scan < y->scan ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Kills the client after a while and hands its journal, or most of it, to the next one. */
static void resume(struct client_world *world, uint64_t after_ms, uint64_t forgotten)
{
    static struct client_sent_chunk sent[WORLD_SCANS * WORLD_CHUNKS_MAX];
    world_start(world);
    world_run(world, world->now_ms + after_ms);
    world_kill(world);
    if (world->is_done) return;
    uint64_t count = world->journal_count > forgotten ? world->journal_count - forgotten : 0;
    memcpy(sent, world->journal, sizeof *sent * count);
    qsort(sent, count, sizeof *sent, compare_sent);
    world->config.sent = sent;
    world->config.sent_count = count;
    memset(world->journaled, 0, sizeof world->journaled);
    memset(world->results, 0, sizeof world->results);
    world->journal_count = 0;
    world->audit = 0;
    world_start(world);
}

static void a_client_that_was_killed_sends_only_what_is_missing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct client_world *world = world_new(seed, no_faults);
        resume(world, seed * 3, seed % 3);
        /* Killed when the job was deleted already, it has to begin anew. */
        bool was_deleted = world->deletes > 0;
        world_run(world, LIMIT_MS);
        check_well(world);
        uint64_t twice = 0;
        for (uint32_t i = 0; i < WORLD_SCANS; i++) {
            for (uint64_t j = 0; j < world->chunk_count[i]; j++) {
                twice += world->puts[i][j] - 1;
            }
        }
        if (!was_deleted && twice > seed % 3 + WORLD_PUT_LIMIT) {
            fail_msg("seed %llu: %llu chunks were sent twice", (unsigned long long)seed,
                     (unsigned long long)twice);
        }
        world_done(world);
    }
}

static void a_client_that_was_killed_ends_well_with_faults_too(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct client_world *world = world_new(seed, faults_of(seed));
        world->config.retry_for_ms = LIMIT_MS; /* Some seeds fail most requests. */
        resume(world, seed * 10, seed % 5);
        world_run(world, LIMIT_MS);
        check_well(world);
        world_done(world);
    }
}

static void run_to_failure(struct client_world *world, status code, const char *text)
{
    world_run(world, LIMIT_MS);
    assert_true(world->is_done);
    if (world->outcome.code != code || strstr(world->outcome.text, text) == NULL) {
        fail_msg("%d: %s", (int)world->outcome.code, world->outcome.text);
    }
    world_done(world);
}

static void a_file_that_changed_between_two_incarnations_fails_the_job(void **state)
{
    (void)state;
    struct client_world *world = world_new(1, no_faults);
    world->chunk_count[0] = 20;
    resume(world, 150, 0);
    world->salt = 1;
    assert_true(world->config.sent_count > 0);
    run_to_failure(world, STATUS_INPUT, "is not what it was when it was sent");
}

static void a_file_that_changed_before_it_is_read_again_fails_the_job(void **state)
{
    (void)state;
    struct client_world *world = world_new(1, no_faults);
    world_start(world);
    while (world->journal_count < 4) {
        world_advance(world);
    }
    memset(world->applied, 0, sizeof world->applied);
    world->salt = 1;
    /* A chunk that is read for the first time is as good as any. */
    memset(world->chunk_count, 0, sizeof world->chunk_count);
    for (uint32_t i = 0; i < WORLD_SCANS; i++) {
        world->chunk_count[i] = WORLD_CHUNKS_MAX;
    }
    run_to_failure(world, STATUS_INPUT, "is not what it was when it was read first");
}

static void a_refused_job_is_not_deleted(void **state)
{
    (void)state;
    static const uint32_t refusals[] = {400, 401, 403, 409};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct client_world *world = world_new(i, no_faults);
        world->refusal = refusals[i];
        world_start(world);
        world_run(world, LIMIT_MS);
        assert_int_equal(world->deletes, 0);
        assert_int_equal(world->job_puts, 1);
        run_to_failure(world, STATUS_SQL, "line 1: no such column");
    }
}

static void a_full_cluster_is_waited_for_without_end(void **state)
{
    (void)state;
    struct client_world *world = world_new(3, (struct world_faults){.slot_waits = 100});
    world->config.retry_max_ms = LIMIT_MS;
    world_start(world);
    world_run(world, 60000);
    assert_false(world->is_done);
    assert_string_equal(world->progress.state, "waiting");
    /* A cluster that is full has not failed: however often it was asked, the client waits for what
     * the gateway said, and half as long again, not longer and longer. */
    uint64_t wait_ms = 1000 + 1000 / 2 + WORLD_TICK_MS + 2 * WORLD_DELAY_MAX_MS;
    world_run(world, world->now_ms + 100 * wait_ms);
    assert_string_not_equal(world->progress.state, "waiting");
    world_run(world, LIMIT_MS);
    check_well(world);
    assert_int_equal(world->job_puts, 101);
    world_done(world);
}

static void no_gateway_for_long_ends_it_and_tells_how_to_go_on(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct client_world *world = world_new(seed, no_faults);
        world_start(world);
        world_run(world, 1000 + seed * 5);
        if (world->is_done) continue;
        world->is_dead = true;
        uint64_t since_ms = world->now_ms;
        world_run(world, LIMIT_MS);
        assert_true(world->now_ms >= since_ms + 20000);
        assert_true(world->now_ms <= since_ms + 20000 + WORLD_WAIT_MS + 1000);
        if (world->outcome.code == STATUS_OK) {
            assert_int_equal(world->audit, WORLD_WORKERS);
            world_done(world);
            continue;
        }
        run_to_failure(world, STATUS_UNREACHABLE, "the cluster could not be used for");
    }
}

static void gateways_that_return_in_time_are_enough(void **state)
{
    (void)state;
    struct client_world *world = world_new(5, no_faults);
    world_start(world);
    world_run(world, 1100);
    world->is_dead = true;
    world_run(world, 18000);
    assert_false(world->is_done);
    world->is_dead = false;
    world_run(world, LIMIT_MS);
    check_well(world);
    world_done(world);
}

static void an_answer_counts_even_if_the_job_cannot_be_deleted(void **state)
{
    (void)state;
    struct client_world *world = world_new(6, no_faults);
    world_start(world);
    while (world->audit < WORLD_WORKERS) {
        world_advance(world);
    }
    world->is_dead = true;
    world_run(world, LIMIT_MS);
    check_well(world);
    assert_int_equal(world->deletes, 0);
    world_done(world);
}

static void a_failed_job_is_deleted_and_tells_why(void **state)
{
    (void)state;
    struct client_world *world = world_new(7, no_faults);
    world_start(world);
    world_run(world, 1150);
    world->has_failed = true;
    world_run(world, LIMIT_MS);
    assert_int_equal(world->deletes, 1);
    run_to_failure(world, STATUS_OVERFLOW, "w2: a sum is too large");
}

static void a_job_that_was_cancelled_is_not_asked_for_again(void **state)
{
    (void)state;
    struct client_world *world = world_new(7, no_faults);
    world->has_forced_state = true;
    world->forced_state = JOB_CANCELLED;
    world_start(world);
    world_run(world, LIMIT_MS);
    assert_int_equal(world->job_puts, 1);
    run_to_failure(world, STATUS_CANCELLED, "job job-1 was cancelled");
}

static void cancelling_deletes_the_job(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct client_world *world = world_new(seed, no_faults);
        world_start(world);
        world_run(world, 1000 + seed * 4);
        world_send(world, CLIENT_CANCEL);
        world_run(world, LIMIT_MS);
        assert_int_equal(world->deletes, 1);
        run_to_failure(world, STATUS_CANCELLED, "cancelled");
    }
}

static void cancelling_twice_ends_at_once(void **state)
{
    (void)state;
    struct client_world *world = world_new(8, no_faults);
    world_start(world);
    world_run(world, 1100);
    world->is_dead = true;
    world_send(world, CLIENT_CANCEL);
    assert_false(world->is_done);
    world_send(world, CLIENT_CANCEL);
    assert_true(world->is_done);
    run_to_failure(world, STATUS_CANCELLED, "cancelled");
}

static void cancelling_without_gateways_ends_soon(void **state)
{
    (void)state;
    struct client_world *world = world_new(8, no_faults);
    world_start(world);
    world_run(world, 1100);
    world->is_dead = true;
    world_send(world, CLIENT_CANCEL);
    world_run(world, 1100 + 3000);
    run_to_failure(world, STATUS_CANCELLED, "cancelled");
}

static void a_file_that_cannot_be_read_fails_the_job(void **state)
{
    (void)state;
    struct client_world *world = world_new(9, no_faults);
    world_start(world);
    world_run(world, 1100);
    world->read_fails = true;
    world_run(world, LIMIT_MS);
    assert_int_equal(world->deletes, 1);
    run_to_failure(world, STATUS_INPUT, "t0.csv changed");
}

static void a_chunk_that_is_refused_fails_the_job(void **state)
{
    (void)state;
    static const uint32_t refusals[] = {400, 403, 413};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct client_world *world = world_new(i, no_faults);
        world->chunk_refusal = refusals[i];
        world_start(world);
        world_run(world, LIMIT_MS);
        assert_int_equal(world->deletes, 1);
        run_to_failure(world, STATUS_LIMIT, ": too large");
    }
}

static void an_answer_whose_size_changes_is_no_answer(void **state)
{
    (void)state;
    struct client_world *world = world_new(10, no_faults);
    world->batch_count[0] = 7;
    world->extra_batches = 1;
    world_start(world);
    run_to_failure(world, STATUS_INTERNAL, "the number of batches of an answer has changed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_every_chunk_is_sent_once),
        cmocka_unit_test(with_faults_the_answers_come_all_the_same),
        cmocka_unit_test(what_is_lost_is_sent_again_in_proportion),
        cmocka_unit_test(a_client_that_was_killed_sends_only_what_is_missing),
        cmocka_unit_test(a_client_that_was_killed_ends_well_with_faults_too),
        cmocka_unit_test(a_file_that_changed_between_two_incarnations_fails_the_job),
        cmocka_unit_test(a_file_that_changed_before_it_is_read_again_fails_the_job),
        cmocka_unit_test(a_refused_job_is_not_deleted),
        cmocka_unit_test(a_full_cluster_is_waited_for_without_end),
        cmocka_unit_test(no_gateway_for_long_ends_it_and_tells_how_to_go_on),
        cmocka_unit_test(gateways_that_return_in_time_are_enough),
        cmocka_unit_test(an_answer_counts_even_if_the_job_cannot_be_deleted),
        cmocka_unit_test(a_failed_job_is_deleted_and_tells_why),
        cmocka_unit_test(a_job_that_was_cancelled_is_not_asked_for_again),
        cmocka_unit_test(cancelling_deletes_the_job),
        cmocka_unit_test(cancelling_twice_ends_at_once),
        cmocka_unit_test(cancelling_without_gateways_ends_soon),
        cmocka_unit_test(a_file_that_cannot_be_read_fails_the_job),
        cmocka_unit_test(a_chunk_that_is_refused_fails_the_job),
        cmocka_unit_test(an_answer_whose_size_changes_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
