/* SPDX-License-Identifier: Apache-2.0 */
/* test_mailbox.c - whatever is posted is taken once, in the poster's order, and nobody waits in
 * vain.
 *
 * Method: one thread against a queue that is an array; then many posters and takers at once, each
 * item numbered by its poster. Meant to be run with the thread sanitizer as well.
 */
#include "unit/test.h"

#include <pthread.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/file/clock.h"
#include "cluster/node/mailbox.h"

enum { POSTERS = 6, TAKERS = 3, ITEMS = 3000, LONG_MS = 60000 };

/* Not a power of two in size. */
struct item {
    uint32_t poster;
    uint32_t number;
    uint32_t check;
};

static struct item make_item(uint32_t poster, uint32_t number)
{
    return (struct item){poster, number, poster * 1000003 + number};
}

static struct mailbox *open_box(void)
{
    struct mailbox *mailbox = NULL;
    struct error err;
    assert_int_equal(mailbox_create(sizeof(struct item), &mailbox, &err), STATUS_OK);
    return mailbox;
}

static void items_come_out_in_order_however_full_it_was(void **state)
{
    (void)state;
    struct random random = {3};
    struct mailbox *mailbox = open_box();
    uint32_t posted = 0;
    uint32_t taken = 0;
    for (uint32_t round = 0; round < 2000; round++) {
        /* Phases of filling and of emptying, so that it grows when it is anywhere in its ring. */
        bool fills = random_below(&random, 10) < (round / 200 % 2 == 0 ? 7u : 3u);
        if (fills) {
            struct item item = make_item(0, posted++);
            mailbox_post(mailbox, &item);
        } else {
            struct item item = {0};
            bool found = mailbox_take(mailbox, 0, &item);
            assert_int_equal(found, taken < posted);
            if (!found) continue;
            struct item expected = make_item(0, taken++);
            assert_memory_equal(&item, &expected, sizeof item);
        }
    }
    assert_true(posted > 500);
    mailbox_destroy(mailbox); /* With what is left. */
    mailbox_destroy(NULL);
}

static void taking_from_an_empty_box_waits_as_long_as_it_was_told(void **state)
{
    (void)state;
    static const uint32_t timeouts_ms[] = {0, 1, 30};
    struct mailbox *mailbox = open_box();
    for (size_t i = 0; i < sizeof timeouts_ms / sizeof timeouts_ms[0]; i++) {
        struct item item = make_item(9, 9);
        double before = clock_seconds();
        assert_false(mailbox_take(mailbox, timeouts_ms[i], &item));
        assert_true(clock_seconds() - before >= (double)timeouts_ms[i] / 1000 - 0.0005);
        assert_int_equal(item.poster, 9); /* Left alone. */
    }
    mailbox_destroy(mailbox);
}

/* ---- threads ---- */

struct poster {
    struct mailbox *mailbox;
    uint32_t index;
};

static void *post_all(void *context)
{
    const struct poster *poster = context;
    for (uint32_t i = 0; i < ITEMS; i++) {
        struct item item = make_item(poster->index, i);
        mailbox_post(poster->mailbox, &item);
    }
    return NULL;
}

/* cmocka reports from the main thread only: takers count what is wrong. */
struct taker {
    struct mailbox *mailbox;
    uint32_t next[POSTERS]; /* The least number that may come. */
    uint32_t taken[POSTERS];
    uint32_t wrong_count;
};

static void take_one(struct taker *taker, struct item item)
{
    if (item.poster >= POSTERS || item.check != make_item(item.poster, item.number).check ||
        item.number < taker->next[item.poster]) {
        taker->wrong_count++;
        return;
    }
    taker->next[item.poster] = item.number + 1;
    taker->taken[item.poster]++;
}

/* The item that ends a taker, as a NULL ends a worker's map thread. */
static void post_end(struct mailbox *mailbox)
{
    struct item end = {.poster = POSTERS};
    mailbox_post(mailbox, &end);
}

static void *take_until_end(void *context)
{
    struct taker *taker = context;
    struct item item;
    while (mailbox_take(taker->mailbox, scaled_ms(LONG_MS), &item) && item.poster != POSTERS) {
        take_one(taker, item);
    }
    return NULL;
}

static void run_threads(uint32_t taker_count)
{
    struct mailbox *mailbox = open_box();
    struct poster posters[POSTERS];
    struct taker takers[TAKERS] = {{0}};
    pthread_t post_threads[POSTERS];
    pthread_t take_threads[TAKERS];
    uint64_t before_ms = clock_ms();
    for (uint32_t i = 0; i < taker_count; i++) {
        takers[i].mailbox = mailbox;
        assert_int_equal(pthread_create(&take_threads[i], NULL, take_until_end, &takers[i]), 0);
    }
    for (uint32_t i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){mailbox, i};
        assert_int_equal(pthread_create(&post_threads[i], NULL, post_all, &posters[i]), 0);
    }
    for (uint32_t i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_join(post_threads[i], NULL), 0);
    }
    for (uint32_t i = 0; i < taker_count; i++) {
        post_end(mailbox);
    }
    for (uint32_t i = 0; i < taker_count; i++) {
        assert_int_equal(pthread_join(take_threads[i], NULL), 0);
        assert_int_equal(takers[i].wrong_count, 0);
    }
    for (uint32_t poster = 0; poster < POSTERS; poster++) {
        uint32_t taken = 0;
        for (uint32_t i = 0; i < taker_count; i++) {
            taken += takers[i].taken[poster];
        }
        assert_int_equal(taken, ITEMS);
    }
    assert_true(clock_ms() - before_ms < scaled_ms(LONG_MS)); /* The ends woke them. */
    mailbox_destroy(mailbox);
}

static void one_taker_gets_all_in_the_order_of_each_poster(void **state)
{
    (void)state;
    run_threads(1);
}

static void several_takers_share_what_is_posted(void **state)
{
    (void)state;
    run_threads(TAKERS);
}

static void an_item_wakes_whoever_waits(void **state)
{
    (void)state;
    struct mailbox *there = open_box();
    struct mailbox *back = open_box();
    struct taker taker = {.mailbox = there};
    pthread_t thread;
    struct item item;
    uint64_t before_ms = clock_ms();
    assert_int_equal(pthread_create(&thread, NULL, take_until_end, &taker), 0);
    for (uint32_t i = 0; i < 20; i++) {
        /* Time for it to fall asleep. */
        assert_false(mailbox_take(back, 1, &item));
        item = make_item(0, i);
        mailbox_post(there, &item);
    }
    post_end(there);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(taker.wrong_count, 0);
    assert_int_equal(taker.taken[0], 20);
    assert_true(clock_ms() - before_ms < scaled_ms(LONG_MS));
    mailbox_destroy(there);
    mailbox_destroy(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_out_in_order_however_full_it_was),
        cmocka_unit_test(taking_from_an_empty_box_waits_as_long_as_it_was_told),
        cmocka_unit_test(one_taker_gets_all_in_the_order_of_each_poster),
        cmocka_unit_test(several_takers_share_what_is_posted),
        cmocka_unit_test(an_item_wakes_whoever_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
