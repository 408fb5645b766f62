/* SPDX-License-Identifier: Apache-2.0 */
/* test_crash_point.c - armed points kill at the hit they were told, and nothing else ever does.
 *
 * Method: killing is replaced by noting the name and the hit; for all names, counts and owners the
 * notes are compared with what the words say. Once, a child is really killed.
 */
#include "unit/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/node/crash_point.h"

enum { HITS = 1000 };

static char killed_name[64];
static uint32_t killed_count;

static void note_kill(const char *name)
{
    (void)snprintf(killed_name, sizeof killed_name, "%s", name); /* Names are shorter. */
    killed_count++;
}

static int set_up(void **state)
{
    (void)state;
    killed_count = 0;
    killed_name[0] = '\0';
    crash_points_replace_kill(note_kill);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    crash_points_disarm();
    crash_points_replace_kill(NULL);
    return 0;
}

static const struct crash_owner owner = {.node = "w2", .role = "worker"};

static void arm(const char *words)
{
    struct error err;
    assert_int_equal(crash_points_arm(words, owner, &err), STATUS_OK);
}

/* At which hits (1..HITS) of the name it kills: their count, sum and the first. */
struct kills {
    uint32_t count;
    uint32_t first;
    uint64_t sum;
};

static struct kills hit(const char *name)
{
    struct kills kills = {0};
    for (uint32_t i = 1; i <= HITS; i++) {
        killed_count = 0;
        CRASH_POINT(name);
        assert_true(killed_count <= 1);
        if (killed_count == 0) continue;
        assert_string_equal(killed_name, name);
        if (kills.count++ == 0) kills.first = i;
        kills.sum += i;
    }
    return kills;
}

static void nothing_is_armed_without_words(void **state)
{
    (void)state;
    assert_false(crash_points_armed);
    arm(NULL);
    assert_false(crash_points_armed);
    arm("");
    assert_false(crash_points_armed);
    assert_int_equal(hit("before-log").count, 0);
}

static void every_point_kills_at_its_count_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < crash_points_known_count; i++) {
        const char *name = crash_points_known[i].bytes;
        char words[64];
        arm(name);
        assert_int_equal(hit(name).first, 1);
        for (uint32_t count = 1; count < 20; count++) {
            (void)snprintf(words, sizeof words, "%s:%u", name, count); /* Fits. */
            arm(words);
            for (size_t j = 0; j < crash_points_known_count; j++) {
                if (j != i) assert_int_equal(hit(crash_points_known[j].bytes).count, 0);
            }
            struct kills kills = hit(name);
            assert_int_equal(kills.count, 1);
            assert_int_equal(kills.first, count);
            assert_int_equal(hit(name).count, 0);
        }
    }
}

static void points_are_for_nodes_and_roles(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        bool is_mine;
    } cases[] = {
        {"after-log", true},          {"after-log@w2", true},    {"after-log@worker", true},
        {"after-log@w1", false},      {"after-log@w", false},    {"after-log@gateway", false},
        {"after-log@worker:1", true}, {"after-log@w3:2", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        arm(cases[i].words);
        assert_int_equal(crash_points_armed, cases[i].is_mine);
        assert_int_equal(hit("after-log").count, cases[i].is_mine);
    }
    arm("after-log@w1,before-emit:3,after-log@w2:5,before-log@gateway");
    assert_int_equal(hit("before-emit").first, 3);
    assert_int_equal(hit("after-log").first, 5);
    assert_int_equal(hit("before-log").count, 0);
}

static void chances_come_from_the_seed(void **state)
{
    (void)state;
    arm("after-publish:p0.1:7");
    struct kills first = hit("after-publish");
    assert_true(first.count > HITS / 20 && first.count < HITS / 5);
    arm("after-publish:p0.1:7");
    struct kills again = hit("after-publish");
    assert_int_equal(first.sum, again.sum);
    assert_int_equal(first.count, again.count);
    arm("after-publish:p0.1:8");
    assert_true(hit("after-publish").sum != first.sum);
    arm("after-publish:p1");
    assert_int_equal(hit("after-publish").count, HITS);
    arm("after-publish:p0.1");
    assert_true(hit("after-publish").count > 0);
}

static void wrong_words_are_refused_and_arm_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        const char *text;
    } cases[] = {
        {"before-lag", "did you mean before-log?"},
        {"acknowledge", "there is no crash point 'acknowledge'"},
        {"zzz", "one is before-log"},
        {"before-log,", "nothing follows"},
        {",before-log", "there is no crash point ''"},
        {"before-log:", "neither a count"},
        {"before-log:0", "neither a count"},
        {"before-log:-1", "neither a count"},
        {"before-log:1:2", "neither a count"},
        {"before-log:99999999999999999999", "neither a count"},
        {"before-log:p", "not a probability"},
        {"before-log:p0", "not a probability"},
        {"before-log:p1.1", "not a probability"},
        {"before-log:p0.5:", "not a seed"},
        {"before-log:p0.5:x", "not a seed"},
        {"before-log:p0.5:1:2", "not a seed"},
        {"before-log@", "missing after @"},
        {"before-log@w9:x", "neither a count"}, /* Also for others. */
        {"before-log:5,after-lag", "did you mean after-log?"},
    };
    struct error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        arm("before-log");
        assert_int_equal(crash_points_arm(cases[i].words, owner, &err), STATUS_USAGE);
        assert_non_null(strstr(err.text, cases[i].text));
        assert_false(crash_points_armed);
        assert_int_equal(hit("before-log").count, 0);
    }
    char many[1000] = "before-log";
    for (int i = 0; i < 16; i++) {
        (void)strncat(many, ",before-log", sizeof many - strlen(many) - 1);
    }
    assert_int_equal(crash_points_arm(many, owner, &err), STATUS_USAGE);
    assert_int_equal(crash_points_arm(many + 11, owner, &err), STATUS_OK); /* One fewer. */
}

static void *hit_much(void *argument)
{
    for (int i = 0; i < HITS; i++) {
        CRASH_POINT("before-result");
    }
    return argument;
}

static void threads_count_together(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    arm("before-result:4000");
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hit_much, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(killed_count, 1);
}

static void the_process_really_dies(void **state)
{
    (void)state;
    int ends[2];
    char text[100] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        crash_points_replace_kill(NULL);
        if (dup2(ends[1], STDERR_FILENO) < 0) _exit(1);
        arm("before-confirm:2");
        CRASH_POINT("before-confirm");
        CRASH_POINT("before-confirm");
        _exit(0);
    }
    int word;
    assert_int_equal(waitpid(child, &word, 0), child);
    assert_true(WIFSIGNALED(word));
    assert_int_equal(WTERMSIG(word), SIGKILL);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "crash point before-confirm: killing process"));
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_armed_without_words),
        TEST(every_point_kills_at_its_count_only),
        TEST(points_are_for_nodes_and_roles),
        TEST(chances_come_from_the_seed),
        TEST(wrong_words_are_refused_and_arm_nothing),
        TEST(threads_count_together),
        TEST(the_process_really_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
