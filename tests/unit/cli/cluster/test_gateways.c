/* SPDX-License-Identifier: Apache-2.0 */
/* test_gateways.c - addresses of gateways are understood as people write them.
 *
 * Method: a table of what may be written, with what it means or the text of the error.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cluster/gateways.h"

static void addresses_become_urls(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        const char *urls[3];
    } cases[] = {
        {"127.0.0.1:7101", {"http://127.0.0.1:7101"}},
        {"http://127.0.0.1:7101/", {"http://127.0.0.1:7101"}},
        {"https://proxy/millrace//", {"https://proxy/millrace"}},
        {"http://proxy,https://[::1]/a:b", {"http://proxy", "https://[::1]/a:b"}},
        {"a:65535,https://b:1/x", {"http://a:65535", "https://b:1/x"}},
        {"a:1,http://b:2,[::1]:3", {"http://a:1", "http://b:2", "http://[::1]:3"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct gateways gateways;
        struct error err;
        assert_int_equal(gateways_read("submit", cases[i].given, &arena, &gateways, &err),
                         STATUS_OK);
        for (uint32_t j = 0; j < gateways.count; j++) {
            assert_string_equal(gateways.urls[j], cases[i].urls[j]);
        }
        assert_true(gateways.count == 3 || cases[i].urls[gateways.count] == NULL);
        arena_done(&arena);
    }
}

static void what_is_no_address_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        const char *text;
    } cases[] = {
        {NULL, "submit needs a gateway"},
        {"", "`` is no address"},
        {"a:1,,b:2", "`` is no address"},
        {"ftp://a:1", "`ftp://a:1` is no address"},
        {"a b", "`a b` is no address"},
        {"/v1/jobs", "`/v1/jobs` is no address"},
        {"http://", "`http:` is no address"},
        {"127.0.0.1", "`127.0.0.1` has no port"},
        {"a:1,[::1]", "`[::1]` has no port"},
        {"127.0.0.1:99999", "no number from 1 to 65535"},
        {"a:0", "no number from 1 to 65535"},
        {"a:65536", "no number from 1 to 65535"},
        {"a:7x", "no number from 1 to 65535"},
        {"a:+7", "no number from 1 to 65535"},
        {"http://a:99999/x", "no number from 1 to 65535"},
        {"a:99999999999999999999", "no number from 1 to 65535"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct gateways gateways;
        struct error err = {.text = "none"};
        status result = gateways_read("submit", cases[i].given, &arena, &gateways, &err);
        if (result != STATUS_USAGE || strstr(err.text, cases[i].text) == NULL) {
            fail_msg("%s: %s", cases[i].given, err.text);
        }
        arena_done(&arena);
    }
}

static void the_token_comes_from_the_environment(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct gateways gateways;
    struct error err;
    assert_int_equal(unsetenv("MILLRACE_CLUSTER_TOKEN"), 0);
    assert_int_equal(gateways_read("jobs", "a:1", &arena, &gateways, &err), STATUS_OK);
    assert_null(gateways.token);
    assert_int_equal(setenv("MILLRACE_CLUSTER_TOKEN", "", 1), 0);
    assert_int_equal(gateways_read("jobs", "a:1", &arena, &gateways, &err), STATUS_OK);
    assert_null(gateways.token);
    assert_int_equal(setenv("MILLRACE_CLUSTER_TOKEN", "secret", 1), 0);
    assert_int_equal(gateways_read("jobs", "a:1", &arena, &gateways, &err), STATUS_OK);
    assert_string_equal(gateways.token, "secret");
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_become_urls),
        cmocka_unit_test(what_is_no_address_is_named),
        cmocka_unit_test(the_token_comes_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
