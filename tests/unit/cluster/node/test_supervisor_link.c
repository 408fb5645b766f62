/* SPDX-License-Identifier: Apache-2.0 */
/* test_supervisor_link.c - a supervisor link is lost when nobody holds the folder, is looked at
 * only now and then, and never comes back.
 *
 * Method: a lock that is taken and given back, a limit on open files that makes looking fail, and a
 * clock that the test moves.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "engine/base/error.h"
#include "engine/file/file_tree.h"
#include "cluster/store/folder_lock.h"
#include "cluster/node/supervisor_link.h"

static char folder[64];
static struct error err;

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/millrace-test-XXXXXX"); /* Fits. */
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_tree_remove(folder, &err) == STATUS_OK ? 0 : -1;
}

static void without_a_supervisor_link_nothing_is_ever_lost(void **state)
{
    (void)state;
    struct supervisor_link supervisor_link = {.folder = NULL};
    for (uint64_t now_ms = 0; now_ms < 10 * SUPERVISOR_LINK_LOOK_MS; now_ms += 100) {
        assert_false(supervisor_link_look(&supervisor_link, now_ms));
    }
}

static void a_supervisor_link_holds_as_long_as_somebody_has_the_lock(void **state)
{
    (void)state;
    struct folder_lock *lock;
    struct supervisor_link supervisor_link = {.folder = folder};
    assert_int_equal(folder_lock_open(folder, 0, &lock, &err), STATUS_OK);
    uint64_t now_ms = 0;
    for (; now_ms <= 3 * SUPERVISOR_LINK_LOOK_MS; now_ms += SUPERVISOR_LINK_LOOK_MS / 10) {
        assert_false(supervisor_link_look(&supervisor_link, now_ms));
    }
    uint64_t looked_ms = 3 * SUPERVISOR_LINK_LOOK_MS;
    folder_lock_close(lock);
    for (; now_ms < looked_ms + SUPERVISOR_LINK_LOOK_MS; now_ms += SUPERVISOR_LINK_LOOK_MS / 10) {
        assert_false(supervisor_link_look(&supervisor_link, now_ms));
    }
    assert_false(supervisor_link_look(
        &supervisor_link, looked_ms + SUPERVISOR_LINK_LOOK_MS)); /* Once says nothing. */
    assert_false(
        supervisor_link_look(&supervisor_link, looked_ms + 2 * SUPERVISOR_LINK_LOOK_MS - 1));
    assert_true(supervisor_link_look(&supervisor_link, looked_ms + 2 * SUPERVISOR_LINK_LOOK_MS));
    assert_int_equal(folder_lock_open(folder, 0, &lock, &err), STATUS_OK);
    assert_true(supervisor_link_look(&supervisor_link,
                                     looked_ms + 5 * SUPERVISOR_LINK_LOOK_MS)); /* For good. */
    folder_lock_close(lock);
}

static void a_folder_that_is_gone_is_held_by_nobody(void **state)
{
    (void)state;
    struct supervisor_link supervisor_link = {.folder = "/nowhere/at/all"};
    assert_false(supervisor_link_look(&supervisor_link, 1));
    assert_true(supervisor_link_look(&supervisor_link, 1 + SUPERVISOR_LINK_LOOK_MS));
}

static void a_supervisor_link_that_can_not_be_looked_at_is_not_lost(void **state)
{
    (void)state;
    struct folder_lock *lock;
    struct rlimit limit;
    struct supervisor_link supervisor_link = {.folder = folder};
    assert_int_equal(folder_lock_open(folder, 0, &lock, &err), STATUS_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool is_lost = false;
    uint64_t now_ms = 0;
    for (; now_ms <= 5 * SUPERVISOR_LINK_LOOK_MS; now_ms += SUPERVISOR_LINK_LOOK_MS) {
        is_lost = supervisor_link_look(&supervisor_link, now_ms) || is_lost;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_false(is_lost);
    folder_lock_close(lock);
    assert_false(supervisor_link_look(&supervisor_link, now_ms));
    /* Free, held, free is not free twice. */
    assert_int_equal(folder_lock_open(folder, 0, &lock, &err), STATUS_OK);
    assert_false(supervisor_link_look(&supervisor_link, now_ms += SUPERVISOR_LINK_LOOK_MS));
    folder_lock_close(lock);
    assert_false(supervisor_link_look(&supervisor_link, now_ms += SUPERVISOR_LINK_LOOK_MS));
    assert_true(supervisor_link_look(&supervisor_link, now_ms += SUPERVISOR_LINK_LOOK_MS));
}

static void whoever_does_not_end_is_overdue_in_the_end(void **state)
{
    (void)state;
    struct supervisor_link supervisor_link = {.folder = "/nowhere/at/all"};
    uint64_t lost_ms = 100 + SUPERVISOR_LINK_LOOK_MS;
    assert_false(supervisor_link_look(&supervisor_link, 100));
    assert_false(supervisor_link_is_overdue(&supervisor_link, 100 + 10 * SUPERVISOR_LINK_KILL_MS));
    assert_true(supervisor_link_look(&supervisor_link, lost_ms));
    assert_true(supervisor_link_look(&supervisor_link, lost_ms + SUPERVISOR_LINK_STOP_MS));
    assert_false(supervisor_link_is_overdue(&supervisor_link, lost_ms + SUPERVISOR_LINK_STOP_MS));
    assert_false(
        supervisor_link_is_overdue(&supervisor_link, lost_ms + SUPERVISOR_LINK_KILL_MS - 1));
    assert_true(supervisor_link_is_overdue(&supervisor_link, lost_ms + SUPERVISOR_LINK_KILL_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_supervisor_link_nothing_is_ever_lost),
        cmocka_unit_test_setup_teardown(a_supervisor_link_holds_as_long_as_somebody_has_the_lock,
                                        set_up, tear_down),
        cmocka_unit_test(a_folder_that_is_gone_is_held_by_nobody),
        cmocka_unit_test_setup_teardown(a_supervisor_link_that_can_not_be_looked_at_is_not_lost,
                                        set_up, tear_down),
        cmocka_unit_test(whoever_does_not_end_is_overdue_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
