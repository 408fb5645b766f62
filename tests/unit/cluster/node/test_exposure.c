/* SPDX-License-Identifier: Apache-2.0 */
/* test_exposure.c - no gateway or broker is open to others unless it was said that it may be.
 *
 * Method: all combinations of token, TLS and consent, for addresses on both sides of loopback, are
 * compared with the rule; the message names what is missing. Token files hold every kind of thing.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/buf.h"
#include "cluster/node/exposure.h"

static struct cluster_config config_at(const char *const *hosts, struct config_endpoint *gateways,
                                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        gateways[i] = (struct config_endpoint){.name = i == 0 ? "g1" : "g2", .host = hosts[i]};
    }
    return (struct cluster_config){
        .path = "c.ini", .gateways = gateways, .gateway_count = count, .http_connections = 100};
}

static void what_is_missing_is_refused_beyond_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *hosts[2];
        const char *exposed; /* NULL: none. */
    } places[] = {
        {{"127.0.0.1", "::1"}, NULL},
        {{"localhost", "127.9.9.9"}, NULL},
        {{"0.0.0.0", "127.0.0.1"}, "gateway g1 would listen on 0.0.0.0"},
        {{"127.0.0.1", "::"}, "gateway g2 would listen on ::"},
        {{"127.0.0.1", "10.0.0.11"}, "gateway g2 would listen on 10.0.0.11"},
        {{"127.0.0.1", "no.such.host.invalid"}, "gateway g2 would listen on no.such.host.invalid"},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        for (unsigned bits = 0; bits < 16; bits++) {
            struct config_endpoint gateways[2];
            struct cluster_config config = config_at(places[i].hosts, gateways, 2);
            bool has_token = (bits & 3) != 0;
            bool has_tls = (bits & 4) != 0;
            if ((bits & 1) != 0) config.token = "t";
            if ((bits & 2) != 0) config.token_file = "f";
            if (has_tls) config.tls_certificate = "c";
            config.is_insecure = (bits & 8) != 0;
            struct error err = {.text = ""};
            status result = cluster_config_check_exposure(&config, &err);
            bool is_fine =
                places[i].exposed == NULL || config.is_insecure || (has_token && has_tls);
            assert_int_equal(result, is_fine ? STATUS_OK : STATUS_USAGE);
            if (is_fine) continue;
            assert_non_null(strstr(err.text, places[i].exposed));
            assert_non_null(strstr(err.text, "insecure = yes"));
            assert_int_equal(strstr(err.text, "without a token") != NULL, !has_token);
            assert_int_equal(strstr(err.text, "token_file") != NULL, !has_token);
            assert_int_equal(strstr(err.text, "without TLS") != NULL, !has_tls);
            assert_int_equal(strstr(err.text, "tls_key") != NULL, !has_tls);
        }
    }
}

static void a_private_broker_beyond_loopback_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool is_exposed;
    } places[] = {
        {NULL, false},        {"127.0.0.1", false}, {"::1", false},
        {"localhost", false}, {"10.0.0.11", true},  {"no.such.host.invalid", true},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        for (unsigned bits = 0; bits < 4; bits++) {
            struct cluster_config config = {.path = "c.ini",
                                            .broker_host = places[i].host,
                                            .starts_broker = (bits & 1) != 0,
                                            .is_insecure = (bits & 2) != 0,
                                            .token = "t",
                                            .tls_certificate = "c"};
            bool is_fine = !places[i].is_exposed || bits != 1;
            struct error err = {.text = ""};
            assert_int_equal(exposure_check_broker(&config, &err),
                             is_fine ? STATUS_OK : STATUS_USAGE);
            assert_int_equal(cluster_config_check_exposure(&config, &err),
                             is_fine ? STATUS_OK : STATUS_USAGE);
            if (is_fine) continue;
            assert_non_null(strstr(err.text, places[i].host));
            assert_non_null(strstr(err.text, "insecure = yes"));
        }
    }
}

static void one_address_gets_half_of_what_is_open_to_others(void **state)
{
    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "0.0.0.0"};
    struct config_endpoint gateways[2];
    struct cluster_config config = config_at(hosts, gateways, 2);
    assert_int_equal(exposure_address_limit(&config, &gateways[0]), 0);
    assert_int_equal(exposure_address_limit(&config, &gateways[1]), 50);
    config.http_connections_per_address = 7;
    assert_int_equal(exposure_address_limit(&config, &gateways[0]), 7);
    assert_int_equal(exposure_address_limit(&config, &gateways[1]), 7);
}

static status read_token(const char *content, size_t size, mode_t mode, char out[300],
                         struct error *err)
{
    char path[] = "/tmp/millrace-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
    struct cluster_config config = {.token_file = path};
    struct arena arena = {0};
    struct text token;
    status result = exposure_token(&config, &arena, &token, err);
    if (result == STATUS_OK) (void)snprintf(out, 300, "%.*s", TEXT_ARGS(token));
    struct gateway_call call = {.token = "other"};
    struct error other;
    assert_int_equal(exposure_call(&config, &arena, &call, &other), result);
    if (result == STATUS_OK) assert_string_equal(call.token, out);
    assert_int_equal(exposure_check_files(&config, &other), result);
    arena_done(&arena);
    assert_int_equal(unlink(path), 0);
    return result;
}

static void a_token_file_holds_one_line(void **state)
{
    (void)state;
    char token[300];
    char longest[300];
    struct error err;
    memset(longest, 'x', sizeof longest);
    assert_int_equal(read_token("secret", 6, 0600, token, &err), STATUS_OK);
    assert_string_equal(token, "secret");
    assert_int_equal(read_token("secret\r\n", 8, 0400, token, &err), STATUS_OK);
    assert_string_equal(token, "secret");
    assert_int_equal(read_token(longest, 256, 0600, token, &err), STATUS_OK);
    assert_int_equal(strlen(token), 256);
    assert_int_equal(read_token(longest, 257, 0600, token, &err), STATUS_INPUT);
    static const char *const wrong[] = {"",    "\n",   "two\nlines\n", " begins",
                                        "a b", "\x01", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(read_token(wrong[i], strlen(wrong[i]), 0600, token, &err), STATUS_USAGE);
    }
    assert_int_equal(read_token("a\0b", 3, 0600, token, &err), STATUS_USAGE);
    assert_int_equal(read_token("secret", 6, 0640, token, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "chmod 600"));
}

static void a_call_from_the_same_host_trusts_the_gateway_s_own_certificate(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err;
    struct gateway_call call = {.token = "other", .target = "/healthz"};
    struct cluster_config config = {.token = "t", .tls_certificate = "c.pem", .tls_key = "c.key"};
    assert_int_equal(exposure_call(&config, &arena, &call, &err), STATUS_OK);
    assert_string_equal(call.token, "t");
    assert_string_equal(call.ca, "c.pem");
    assert_true(call.any_name);
    assert_string_equal(call.target, "/healthz");
    struct cluster_config open = {0};
    assert_int_equal(exposure_call(&open, &arena, &call, &err), STATUS_OK);
    assert_null(call.token);
    assert_null(call.ca);
    assert_false(call.any_name);
    assert_int_equal(exposure_check_files(&open, &err), STATUS_OK);
    assert_int_equal(exposure_check_files(&config, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "c.pem"));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_refused_beyond_loopback),
        cmocka_unit_test(a_private_broker_beyond_loopback_is_refused),
        cmocka_unit_test(one_address_gets_half_of_what_is_open_to_others),
        cmocka_unit_test(a_token_file_holds_one_line),
        cmocka_unit_test(a_call_from_the_same_host_trusts_the_gateway_s_own_certificate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
