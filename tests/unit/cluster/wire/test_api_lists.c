/* SPDX-License-Identifier: Apache-2.0 */
/* test_api_lists.c - lists of jobs and nodes survive as JSON, and what is not one is refused.
 *
 * Method: random lists are encoded, decoded and encoded again; the same text means the same value,
 * as every member is in the text. One text is then cut at every byte, and read with every member
 * taken away.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/random.h"
#include "cluster/wire/api.h"

enum { ROUNDS = 200, ENTRIES_MAX = 6 };

static struct text text_of_buf(const struct buf *buf)
{
    assert_false(buf->failed);
    return (struct text){(const char *)buf->bytes, (uint32_t)buf->size};
}

static struct text some_name(struct random *random, struct arena *arena)
{
    char name[16];
    (void)snprintf(name, sizeof name, "n%u", random_below(random, 1000));
    return text_of(arena_copy_string(arena, text_of(name)));
}

/* 0 is what is left out. */
static uint64_t some_count(struct random *random)
{
    static const uint64_t extremes[] = {0, 1, 999, UINT32_MAX, API_NUMBER_MAX};
    return extremes[random_below(random, sizeof extremes / sizeof extremes[0])];
}

static struct job_list some_jobs(struct random *random, struct arena *arena)
{
    struct job_entry *jobs = arena_array(arena, struct job_entry, ENTRIES_MAX);
    uint32_t count = random_below(random, ENTRIES_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        jobs[i] = (struct job_entry){
            .job = some_name(random, arena),
            .state = (enum job_state)random_below(random, JOB_STATES),
            .age_ms = some_count(random),
            .lease_ms = some_count(random),
            .applied = some_count(random),
            .worker_count = random_below(random, 3),
        };
    }
    bool all_answer = random_below(random, 2) == 0;
    return (struct job_list){
        .jobs = jobs,
        .job_count = count,
        .silent = all_answer ? (struct text){"", 0} : TEXT_LITERAL("w1, w\xc3\xa4"),
    };
}

static struct node_list some_nodes(struct random *random, struct arena *arena)
{
    struct node_entry *nodes = arena_array(arena, struct node_entry, ENTRIES_MAX);
    uint32_t count = random_below(random, ENTRIES_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = (struct node_entry){
            .name = some_name(random, arena),
            .role = (enum node_role)random_below(random, NODE_ROLES),
            .answers = random_below(random, 2) == 0,
            .heard = random_below(random, 2) == 0,
            .answered_ms_ago = some_count(random),
            .maps = random_below(random, 2) == 0,
            .folds = random_below(random, 2) == 0,
            .uptime_ms = some_count(random),
            .job_count = random_below(random, 3),
            .state = random_below(random, 2) == 0 ? TEXT_LITERAL("up") : (struct text){"", 0},
            .incarnation = TEXT_LITERAL("1700000000123"),
            .restarts = random_below(random, 3),
            .silent_ms = some_count(random),
            .resident_bytes = some_count(random),
            .problem = random_below(random, 2) == 0 ? TEXT_LITERAL("no docker") //
                                                    : (struct text){"", 0},
        };
    }
    struct queue_entry *queues = arena_array(arena, struct queue_entry, 2);
    for (uint32_t i = 0; i < 2; i++) {
        queues[i] = (struct queue_entry){some_name(random, arena), some_count(random), i};
    }
    return (struct node_list){
        .cluster = TEXT_LITERAL("demo"),
        .gateway = some_name(random, arena),
        .connected = random_below(random, 2) == 0,
        .nodes = nodes,
        .node_count = count,
        .leader = random_below(random, 2) == 0 ? TEXT_LITERAL("m2") : (struct text){"", 0},
        .term = some_count(random),
        .monitored = random_below(random, 2) == 0,
        .monitored_ms_ago = some_count(random),
        .queues = queues,
        .queue_count = random_below(random, 3),
    };
}

static void a_list_of_jobs_survives(void **state)
{
    (void)state;
    struct random random = {1};
    for (int i = 0; i < ROUNDS; i++) {
        struct arena arena = {0};
        struct buf first = {0};
        struct buf second = {0};
        struct error err;
        struct job_list before = some_jobs(&random, &arena);
        struct job_list after;
        job_list_encode(&before, &first);
        assert_int_equal(job_list_decode(text_of_buf(&first), &arena, &after, &err), STATUS_OK);
        assert_int_equal(before.job_count, after.job_count);
        for (uint32_t j = 0; j < before.job_count; j++) {
            assert_true(text_equal(before.jobs[j].job, after.jobs[j].job));
            assert_int_equal(before.jobs[j].state, after.jobs[j].state);
            assert_true(before.jobs[j].applied == after.jobs[j].applied);
        }
        job_list_encode(&after, &second);
        assert_true(text_equal(text_of_buf(&first), text_of_buf(&second)));
        buf_done(&first);
        buf_done(&second);
        arena_done(&arena);
    }
}

static void a_list_of_nodes_survives(void **state)
{
    (void)state;
    struct random random = {2};
    for (int i = 0; i < ROUNDS; i++) {
        struct arena arena = {0};
        struct buf first = {0};
        struct buf second = {0};
        struct error err;
        struct node_list before = some_nodes(&random, &arena);
        struct node_list after;
        node_list_encode(&before, &first);
        assert_int_equal(node_list_decode(text_of_buf(&first), &arena, &after, &err), STATUS_OK);
        assert_int_equal(before.node_count, after.node_count);
        for (uint32_t j = 0; j < before.node_count; j++) {
            assert_true(text_equal(before.nodes[j].name, after.nodes[j].name));
            assert_int_equal(before.nodes[j].role, after.nodes[j].role);
            assert_int_equal(before.nodes[j].answers, after.nodes[j].answers);
        }
        node_list_encode(&after, &second);
        assert_true(text_equal(text_of_buf(&first), text_of_buf(&second)));
        buf_done(&first);
        buf_done(&second);
        arena_done(&arena);
    }
}

static void a_timeline_survives(void **state)
{
    (void)state;
    struct random random = {4};
    for (int i = 0; i < ROUNDS; i++) {
        struct arena arena = {0};
        struct buf first = {0};
        struct buf second = {0};
        struct error err;
        struct timeline_event events[ENTRIES_MAX];
        struct timeline before = {.job = some_name(&random, &arena),
                                  .events = events,
                                  .event_count = random_below(&random, ENTRIES_MAX + 1)};
        struct timeline after;
        for (uint32_t j = 0; j < before.event_count; j++) {
            events[j] = (struct timeline_event){.ms_ago = some_count(&random),
                                                .what = TEXT_LITERAL("replayed"),
                                                .number = some_count(&random),
                                                .text = TEXT_LITERAL("w\xc3\xa4")};
            if (random_below(&random, 2) == 0) events[j].node = some_name(&random, &arena);
        }
        timeline_encode(&before, &first);
        assert_int_equal(timeline_decode(text_of_buf(&first), &arena, &after, &err), STATUS_OK);
        assert_int_equal(before.event_count, after.event_count);
        timeline_encode(&after, &second);
        assert_true(text_equal(text_of_buf(&first), text_of_buf(&second)));
        for (uint32_t size = 0; i == 0 && size + 1 < first.size; size++) {
            struct text cut = {(const char *)first.bytes, size};
            assert_int_equal(timeline_decode(cut, &arena, &after, &err), STATUS_CORRUPT);
        }
        buf_done(&first);
        buf_done(&second);
        arena_done(&arena);
    }
}

static void a_list_that_is_cut_is_refused(void **state)
{
    (void)state;
    struct random random = {3};
    struct arena arena = {0};
    struct buf jobs = {0};
    struct buf nodes = {0};
    struct error err;
    struct job_list job_list = some_jobs(&random, &arena);
    struct node_list node_list = some_nodes(&random, &arena);
    job_list_encode(&job_list, &jobs);
    node_list_encode(&node_list, &nodes);
    for (uint32_t size = 0; size + 1 < jobs.size; size++) { /* The line end may go. */
        struct text cut = {(const char *)jobs.bytes, size};
        assert_int_equal(job_list_decode(cut, &arena, &job_list, &err), STATUS_CORRUPT);
    }
    for (uint32_t size = 0; size + 1 < nodes.size; size++) {
        struct text cut = {(const char *)nodes.bytes, size};
        assert_int_equal(node_list_decode(cut, &arena, &node_list, &err), STATUS_CORRUPT);
    }
    buf_done(&jobs);
    buf_done(&nodes);
    arena_done(&arena);
}

static void what_is_needed_is_needed_and_what_is_new_is_skipped(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *problem; /* NULL: it is read. */
    } cases[] = {
        {"{\"jobs\":[]}", NULL},
        {"{\"jobs\":[{\"id\":\"j\",\"state\":\"running\"}],\"new\":{}}", NULL},
        {"{\"jobs\":[{\"id\":\"j\",\"state\":\"running\",\"new\":1}]}", NULL},
        {"{}", "\"jobs\" is missing"},
        {"{\"jobs\":[{\"id\":\"j\"}]}", "\"state\" is missing"},
        {"{\"jobs\":[{\"id\":\"a/b\",\"state\":\"running\"}]}", "no name"},
        {"{\"jobs\":[{\"id\":\"j\",\"state\":\"asleep\"}]}", "\"state\" must be"},
        {"{\"jobs\":[{\"id\":\"j\",\"state\":\"done\",\"applied\":-1}]}", "whole number"},
        {"[]", "an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct job_list list;
        struct error err;
        status result = job_list_decode(text_of(cases[i].json), &arena, &list, &err);
        assert_int_equal(result, cases[i].problem == NULL ? STATUS_OK : STATUS_CORRUPT);
        if (cases[i].problem != NULL && strstr(err.text, cases[i].problem) == NULL) {
            fail_msg("%s: %s", cases[i].json, err.text);
        }
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_jobs_survives),
        cmocka_unit_test(a_list_of_nodes_survives),
        cmocka_unit_test(a_timeline_survives),
        cmocka_unit_test(a_list_that_is_cut_is_refused),
        cmocka_unit_test(what_is_needed_is_needed_and_what_is_new_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
