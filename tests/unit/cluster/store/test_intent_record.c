/* SPDX-License-Identifier: Apache-2.0 */
/* test_intent_record.c - what was in flight when a process ended is known at the next start.
 *
 * Method: random holds, releases, forgettings and restarts are compared with a naive model; a child
 * is killed with SIGKILL while it holds items, and at random moments while it takes and drops them
 * as fast as it can. Files get every bit flipped and every size.
 */
#include "unit/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "cluster/store/intent_record.h"

static char folder[64];
static char intent_path[80];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/millrace-test-XXXXXX"); /* Fits. */
    if (mkdtemp(folder) == NULL) return -1;
    (void)snprintf(intent_path, sizeof intent_path, "%s/intent", folder); /* Fits. */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(intent_path); /* May never have been there. */
    return rmdir(folder);
}

static struct intent_record *open_intents(struct intent_start *out_start)
{
    struct intent_record *intents = NULL;
    struct error err;
    assert_int_equal(intent_record_open(folder, &intents, out_start, &err), STATUS_OK);
    return intents;
}

static uint32_t starts_of(const struct intent_start *start, uint64_t item)
{
    uint32_t starts = 0;
    for (uint32_t i = 0; i < start->found_count; i++) {
        if (start->found[i].item != item) continue;
        assert_int_equal(starts, 0); /* Each stands there once. */
        starts = start->found[i].starts;
    }
    return starts;
}

static void a_new_file_is_empty_and_sound(void **state)
{
    (void)state;
    struct intent_start start = {.found_count = 99};
    intent_record_close(open_intents(&start));
    assert_int_equal(start.found_count, 0);
    assert_false(start.damaged);
    intent_record_close(open_intents(&start));
    assert_int_equal(start.found_count, 0);
    assert_false(start.damaged);
    intent_record_close(NULL);
}

static void starts_are_counted_until_the_item_is_released_or_forgotten(void **state)
{
    (void)state;
    struct intent_start start;
    struct intent_record *intents = open_intents(&start);
    assert_true(intent_record_hold(intents, 7));
    assert_true(intent_record_hold(intents, 8));
    assert_true(intent_record_hold(intents, 9));
    intent_record_release(intents, 8);
    intent_record_release(intents, 1234); /* Never held. */
    for (uint32_t round = 1; round <= 6; round++) {
        intent_record_close(intents);
        intents = open_intents(&start);
        assert_int_equal(start.found_count, 2);
        assert_int_equal(starts_of(&start, 7), round);
        assert_int_equal(starts_of(&start, 9), round);
        assert_true(intent_record_hold(intents, 7)); /* Taken again: the count stays. */
        assert_true(intent_record_hold(intents, 9));
    }
    intent_record_release(intents, 7);
    intent_record_release(intents, 9);
    intent_record_close(intents);
    intents = open_intents(&start);
    assert_int_equal(start.found_count, 0);
    intent_record_close(intents);
}

static void what_was_not_in_flight_is_not_suspected_again(void **state)
{
    (void)state;
    struct intent_start start;
    struct intent_record *intents = open_intents(&start);
    assert_true(intent_record_hold(intents, 7));
    for (uint32_t round = 1; round <= 6; round++) {
        intent_record_close(intents);
        intents = open_intents(&start);
        assert_int_equal(starts_of(&start, 7), 1); /* Only the first end had it in flight. */
    }
    assert_true(intent_record_hold(intents, 7));
    intent_record_close(intents);
    intents = open_intents(&start);
    assert_int_equal(starts_of(&start, 7), 2);
    intent_record_close(intents);
}

static void an_item_in_flight_twice_is_released_twice(void **state)
{
    (void)state;
    struct intent_start start;
    struct intent_record *intents = open_intents(&start);
    assert_true(intent_record_hold(intents, 7));
    assert_true(intent_record_hold(intents, 7));
    intent_record_release(intents, 7);
    intent_record_close(intents);
    intents = open_intents(&start);
    assert_int_equal(starts_of(&start, 7), 1);
    assert_true(intent_record_hold(intents, 7));
    assert_true(intent_record_hold(intents, 7));
    intent_record_release(intents, 7);
    intent_record_release(intents, 7);
    intent_record_close(intents);
    intents = open_intents(&start);
    assert_int_equal(start.found_count, 0);
    intent_record_close(intents);
}

static void old_notes_give_way_to_items_in_flight(void **state)
{
    (void)state;
    struct intent_start start;
    struct intent_record *intents = open_intents(&start);
    assert_true(intent_record_hold(intents, 9000)); /* Found twice in the end, the others once. */
    intent_record_close(intents);
    intents = open_intents(&start);
    assert_true(intent_record_hold(intents, 9000));
    for (uint64_t item = 1; item < INTENT_SLOTS; item++) {
        assert_true(intent_record_hold(intents, item));
    }
    intent_record_close(intents);
    intents = open_intents(&start);
    assert_int_equal(start.found_count, INTENT_SLOTS);
    for (uint64_t item = 2001; item < 2000 + INTENT_SLOTS; item++) {
        assert_true(intent_record_hold(intents, item));
    }
    intent_record_close(intents);
    intents = open_intents(&start);
    assert_int_equal(starts_of(&start, 9000), 2);
    assert_int_equal(starts_of(&start, 1), 0);
    for (uint64_t item = 3001; item <= 3000 + INTENT_SLOTS; item++) {
        assert_true(intent_record_hold(intents, item));
    }
    assert_false(intent_record_hold(intents, 4000)); /* All are in flight. */
    intent_record_release(intents, 4000);
    intent_record_release(intents, 3001);
    assert_true(intent_record_hold(intents, 4000));
    intent_record_close(intents);
}

static void any_order_of_calls_is_as_the_model_says(void **state)
{
    (void)state;
    enum { ITEMS = 12, STEPS = 5000 }; /* Fewer than slots, so that none gives way. */
    uint32_t holders[ITEMS + 1] = {0};
    uint32_t starts[ITEMS + 1] = {0};
    bool recorded[ITEMS + 1] = {false};
    struct random random = {3};
    struct intent_start start;
    struct intent_record *intents = open_intents(&start);
    for (int step = 0; step < STEPS; step++) {
        uint64_t item = 1 + random_below(&random, ITEMS);
        uint32_t choice = random_below(&random, 40);
        if (choice < 18) {
            assert_true(intent_record_hold(intents, item));
            starts[item] = recorded[item] ? starts[item] : 0;
            recorded[item] = true;
            holders[item]++;
        } else if (choice < 38) {
            intent_record_release(intents, item);
            holders[item] -= holders[item] > 0;
            if (holders[item] == 0) recorded[item] = false;
        } else {
            intent_record_close(intents);
            intents = open_intents(&start);
            assert_false(start.damaged);
            for (uint64_t i = 1; i <= ITEMS; i++) {
                starts[i] += holders[i] > 0;
                holders[i] = 0;
                assert_int_equal(starts_of(&start, i), recorded[i] ? starts[i] : 0);
            }
        }
    }
    intent_record_close(intents);
}

/* Forks; the child calls `work` and must not come back. Killed after `microseconds`. */
static void kill_child(void (*work)(int ready), useconds_t microseconds)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work(ready[1]);
        _exit(99);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    if (microseconds > 0) (void)usleep(microseconds); /* Any time will do. */
    assert_int_equal(kill(child, SIGKILL), 0);
    int end;
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
}

static void hold_three(int ready)
{
    struct intent_start start;
    struct intent_record *intents = NULL;
    struct error err;
    if (intent_record_open(folder, &intents, &start, &err) != STATUS_OK) _exit(1);
    if (!intent_record_hold(intents, 1) || !intent_record_hold(intents, 2) ||
        !intent_record_hold(intents, 3)) {
        _exit(2);
    }
    intent_record_release(intents, 2);
    if (write(ready, "x", 1) != 1) _exit(3);
    for (;;) {
        (void)pause(); /* Until killed. */
    }
}

static void what_a_killed_process_held_is_found(void **state)
{
    (void)state;
    struct intent_start start;
    kill_child(hold_three, 0);
    intent_record_close(open_intents(&start));
    assert_int_equal(start.found_count, 2);
    assert_int_equal(starts_of(&start, 1), 1);
    assert_int_equal(starts_of(&start, 3), 1);
    kill_child(hold_three, 0); /* Our looking does not count. */
    intent_record_close(open_intents(&start));
    assert_int_equal(starts_of(&start, 1), 2);
    assert_int_equal(starts_of(&start, 3), 2);
}

static void hold_many(int ready)
{
    struct intent_start start;
    struct intent_record *intents = NULL;
    struct error err;
    if (intent_record_open(folder, &intents, &start, &err) != STATUS_OK) _exit(1);
    if (write(ready, "x", 1) != 1) _exit(3);
    for (uint64_t i = 1;; i++) {
        (void)intent_record_hold(intents, i); /* There is always a slot: three are held. */
        if (i > 3) intent_record_release(intents, i - 3);
    }
}

static void a_process_killed_at_any_moment_leaves_a_sound_file(void **state)
{
    (void)state;
    for (useconds_t round = 0; round < 30; round++) {
        struct intent_start start;
        kill_child(hold_many, 1 + 97 * round);
        struct intent_record *intents = open_intents(&start);
        assert_false(start.damaged);
        uint32_t fresh = 0;
        for (uint32_t i = 0; i < start.found_count; i++) {
            fresh += start.found[i].starts == 1;
            intent_record_release(intents, start.found[i].item);
        }
        assert_true(fresh <= 4);
        intent_record_close(intents);
    }
}

static void write_intent_record(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(intent_path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void a_damaged_file_is_emptied_and_told(void **state)
{
    (void)state;
    enum { SIZE = 16 * INTENT_SLOTS };
    unsigned char bytes[SIZE + 1] = {0};
    struct intent_start start;
    struct intent_record *intents = open_intents(&start);
    assert_true(intent_record_hold(intents, 0x123456789abcdef0));
    intent_record_close(intents);
    FILE *file = fopen(intent_path, "r");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), SIZE);
    assert_int_equal(fclose(file), 0);

    for (uint32_t bit = 0; bit < 128; bit++) { /* Of the one slot that is taken. */
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        write_intent_record(bytes, SIZE);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        intents = open_intents(&start);
        assert_true(start.damaged);
        assert_int_equal(start.found_count, 0);
        assert_true(intent_record_hold(intents, 5));
        intent_record_close(intents);
        intent_record_close(open_intents(&start));
        assert_false(start.damaged);
        assert_int_equal(starts_of(&start, 5), 1);
    }
    for (size_t size = 0; size <= SIZE + 1; size++) {
        write_intent_record(bytes, size);
        intent_record_close(open_intents(&start));
        assert_int_equal(start.damaged, size != 0 && size != SIZE);
        assert_int_equal(start.found_count, size == SIZE);
    }
}

static void failures_name_the_file(void **state)
{
    (void)state;
    struct intent_start start;
    struct intent_record *intents = NULL;
    struct error err;
    assert_int_equal(intent_record_open("/no/where", &intents, &start, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/no/where/intent"));
    assert_int_equal(mkfifo(intent_path, 0600), 0);
    assert_int_equal(intent_record_open(folder, &intents, &start, &err), STATUS_IO);
    assert_non_null(strstr(err.text, intent_path));
    assert_int_equal(unlink(intent_path), 0);
    memory_fail_after(0);
    status result = intent_record_open(folder, &intents, &start, &err);
    memory_fail_never();
    assert_int_equal(result, STATUS_MEMORY);
}

static void *hold_and_release(void *argument)
{
    struct intent_record *intents = argument;
    for (uint64_t i = 1; i <= 20000; i++) {
        uint64_t item = 1 + i % 4; /* Other threads have the same in flight. */
        if (!intent_record_hold(intents, item)) return intents;
        intent_record_release(intents, item);
    }
    return NULL;
}

static void threads_may_share_the_notes(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct intent_start start;
    struct intent_record *intents = open_intents(&start);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_release, intents), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    intent_record_close(intents);
    intent_record_close(open_intents(&start));
    assert_int_equal(start.found_count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_new_file_is_empty_and_sound),
        TEST(starts_are_counted_until_the_item_is_released_or_forgotten),
        TEST(what_was_not_in_flight_is_not_suspected_again),
        TEST(an_item_in_flight_twice_is_released_twice),
        TEST(old_notes_give_way_to_items_in_flight),
        TEST(any_order_of_calls_is_as_the_model_says),
        TEST(what_a_killed_process_held_is_found),
        TEST(a_process_killed_at_any_moment_leaves_a_sound_file),
        TEST(a_damaged_file_is_emptied_and_told),
        TEST(failures_name_the_file),
        TEST(threads_may_share_the_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
