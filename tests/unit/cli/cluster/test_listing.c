/* SPDX-License-Identifier: Apache-2.0 */
/* test_listing.c - what gateways tell, as people see it.
 *
 * Method: lists by hand, drawn as for a pipe; what must be seen is looked for in the text, and what
 * must not be seen too.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cluster/listing.h"

static const struct terminal pipe_terminal = {.width = 120};

static bool shows(const struct buf *out, const char *words)
{
    return memmem(out->bytes, out->size, words, strlen(words)) != NULL;
}

static void the_leader_its_term_and_problems_are_shown(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct buf out = {0};
    const struct node_entry nodes[] = {
        {.name = TEXT_LITERAL("w1"),
         .role = NODE_WORKER,
         .answers = true,
         .maps = true,
         .state = TEXT_LITERAL("up"),
         .uptime_ms = 61000,
         .restarts = 2,
         .incarnation = TEXT_LITERAL("1700000654321"),
         .resident_bytes = 45200000},
        {.name = TEXT_LITERAL("w2"),
         .role = NODE_WORKER,
         .heard = true,
         .answered_ms_ago = 7000,
         .state = TEXT_LITERAL("broken"),
         .uptime_ms = 5000,
         .problem = TEXT_LITERAL("no\x1b[31m program")},
        {.name = TEXT_LITERAL("m2"),
         .role = NODE_MONITOR,
         .answers = true,
         .state = TEXT_LITERAL("up")},
    };
    struct node_list list = {.gateway = TEXT_LITERAL("g1"),
                             .nodes = nodes,
                             .node_count = 3,
                             .leader = TEXT_LITERAL("m2"),
                             .term = 5,
                             .monitored = true};
    listing_nodes(&list, pipe_terminal, &arena, &out);
    assert_true(shows(&out, "led by m2 *, term 5"));
    assert_true(shows(&out, "monitor *"));
    assert_true(shows(&out, "654321"));
    assert_false(shows(&out, "1700000654321"));
    assert_true(shows(&out, "45.2 MB"));
    assert_true(shows(&out, "7.0 s"));
    assert_false(shows(&out, "5.0 s")); /* The age of what is dead is of no use. */
    assert_true(shows(&out, "w2: no"));
    assert_false(shows(&out, "\x1b"));
    buf_done(&out);
    list.leader = (struct text){"", 0};
    list.monitored_ms_ago = 9000;
    listing_nodes(&list, pipe_terminal, &arena, &out);
    assert_true(shows(&out, "no leader of the monitors for 9.0 s"));
    buf_done(&out);
    arena_done(&arena);
}

static void queues_that_are_as_they_should_be_are_only_counted(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct buf out = {0};
    const struct queue_entry queues[] = {
        {TEXT_LITERAL("inbox.w1"), 0, 1},
        {TEXT_LITERAL("inbox.w2"), 7, 1},
        {TEXT_LITERAL("inbox.w3"), 0, 0},
        {TEXT_LITERAL("work.0"), 0, 3},
    };
    struct node_list list = {.queues = queues, .queue_count = 4};
    listing_queues(&list, pipe_terminal, &arena, &out);
    assert_false(shows(&out, "inbox.w1"));
    assert_true(shows(&out, "inbox.w2") && shows(&out, "inbox.w3") && shows(&out, "work.0"));
    assert_true(shows(&out, "1 more inboxes"));
    buf_done(&out);
    list.queue_count = 0; /* Not known. */
    listing_queues(&list, pipe_terminal, &arena, &out);
    assert_int_equal(out.size, 0);
    arena_done(&arena);
}

static void jobs_have_their_progress_if_it_is_known(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct buf out = {0};
    const struct job_entry jobs[] = {{.job = TEXT_LITERAL("a"), .state = JOB_RUNNING},
                                     {.job = TEXT_LITERAL("b"), .state = JOB_DONE}};
    const struct view_scan scans[] = {{.sent = 10, .applied = 8}, {.sent = 2, .applied = 2}};
    const struct job_view view = {.phase = 2, .phase_count = 3, .scans = scans, .scan_count = 2};
    const struct job_view *views[] = {&view, NULL};
    struct job_list list = {.jobs = jobs, .job_count = 2};
    listing_jobs(&list, views, pipe_terminal, &arena, &out);
    assert_true(shows(&out, "2 of 3") && shows(&out, "10 of 12"));
    buf_done(&out);
    listing_jobs(&list, NULL, pipe_terminal, &arena, &out);
    assert_false(shows(&out, "phase"));
    buf_done(&out);
    arena_done(&arena);
}

static void a_timeline_counts_from_when_it_was_submitted(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct buf out = {0};
    const struct timeline_event events[] = {
        {9000, TEXT_LITERAL("elected"), TEXT_LITERAL("m1"), 0, TEXT_LITERAL("")},
        {8000, TEXT_LITERAL("submitted"), TEXT_LITERAL(""), 0, TEXT_LITERAL("")},
        {7500, TEXT_LITERAL("phase"), TEXT_LITERAL(""), 2, TEXT_LITERAL("")},
        {5000, TEXT_LITERAL("suspected"), TEXT_LITERAL("w2"), 2000, TEXT_LITERAL("")},
        {4000, TEXT_LITERAL("not-started"), TEXT_LITERAL("w2"), 0, TEXT_LITERAL("no docker")},
        {3000, TEXT_LITERAL("replayed"), TEXT_LITERAL("w2"), 464, TEXT_LITERAL("")},
        {0, TEXT_LITERAL("news"), TEXT_LITERAL("w9"), 3, TEXT_LITERAL("of a later build")},
    };
    struct timeline timeline = {
        .job = TEXT_LITERAL("j"), .events = events, .event_count = 7, .silent = TEXT_LITERAL("w3")};
    setenv("TZ", "UTC", 1);
    tzset();
    listing_timeline(&timeline, 1700000000500, pipe_terminal, &arena, &out); /* 22:13:20.5 */
    static const char *const seen[] = {
        "22:13:11.5", "-1.0 s",      "+0.0 s", "+0.5 s",           "silent for 2.0 s",
        "no docker",  "464 records", "+8.0 s", "of a later build", "no answer from w3",
    };
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        if (!shows(&out, seen[i])) {
            fail_msg("no `%s` in\n%.*s", seen[i], (int)out.size, (const char *)out.bytes);
        }
    }
    buf_done(&out);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_leader_its_term_and_problems_are_shown),
        cmocka_unit_test(queues_that_are_as_they_should_be_are_only_counted),
        cmocka_unit_test(jobs_have_their_progress_if_it_is_known),
        cmocka_unit_test(a_timeline_counts_from_when_it_was_submitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
