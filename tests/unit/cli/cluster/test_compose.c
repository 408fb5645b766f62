/* SPDX-License-Identifier: Apache-2.0 */
/* test_compose.c - the same cluster file gives the same files for containers, byte for byte.
 *
 * Method: for each cluster file in tests/unit/cli/cluster/compose the three files that come of it
 * are held against those kept beside it. What containers read is also read here, as a node would:
 * it must name the same nodes, and no host of the original. MILLRACE_GOLDEN=write keeps what comes
 * out, to be looked at before it is believed.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cluster/compose.h"
#include "engine/file/file.h"
#include "cluster/config/cluster_config.h"

static const char *const clusters[] = {"monitored", "plain"};
enum { CLUSTERS = sizeof clusters / sizeof clusters[0] };

static const char *golden_path(const char *cluster, const char *name, struct arena *arena)
{
    const char *source = getenv("SOURCE_DIR");
    char path[1024];
    assert_non_null(source);
    (void)snprintf(path, sizeof path, "%s/tests/unit/cli/cluster/compose/%s.%s", source, cluster,
                   name);
    return arena_copy_string(arena, text_of(path));
}

static struct text read_golden(const char *cluster, const char *name, struct arena *arena)
{
    struct text text;
    struct error err;
    const char *path = golden_path(cluster, name, arena);
    if (file_read_whole(path, 1 << 20, arena, &text, &err) != STATUS_OK) fail_msg("%s", err.text);
    return text;
}

static void check(const char *cluster, const char *name, const struct buf *made,
                  struct arena *arena)
{
    assert_false(made->failed);
    const char *mode = getenv("MILLRACE_GOLDEN");
    if (mode != NULL && strcmp(mode, "write") == 0) {
        FILE *file = fopen(golden_path(cluster, name, arena), "w");
        assert_non_null(file);
        assert_int_equal(fwrite(made->bytes, 1, made->size, file), made->size);
        assert_int_equal(fclose(file), 0);
        return;
    }
    struct text expected = read_golden(cluster, name, arena);
    struct text text = {(const char *)made->bytes, (uint32_t)made->size};
    if (!text_equal(text, expected)) {
        fail_msg("%s.%s is not what is kept; it is now:\n%.*s", cluster, name, TEXT_ARGS(text));
    }
}

static struct cluster_config read_config(const char *cluster, struct arena *arena,
                                         struct text *out_file)
{
    struct cluster_config config;
    struct error err;
    *out_file = read_golden(cluster, "ini", arena);
    status result = cluster_config_parse(*out_file, "/srv/cluster.ini", NULL, arena, &config, &err);
    if (result != STATUS_OK) fail_msg("%s: %s", cluster, err.text);
    return config;
}

static void the_files_are_those_that_are_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLUSTERS; i++) {
        struct arena arena = {0};
        struct text file;
        struct buf system = {0};
        struct buf clients = {0};
        struct buf container = {0};
        struct cluster_config config = read_config(clusters[i], &arena, &file);
        compose_system(&config, &system);
        compose_clients(&config, &clients);
        compose_cluster_file(&config, file, &container);
        check(clusters[i], "system.yml", &system, &arena);
        check(clusters[i], "clients.yml", &clients, &arena);
        check(clusters[i], "container.ini", &container, &arena);
        buf_done(&system);
        buf_done(&clients);
        buf_done(&container);
        arena_done(&arena);
    }
}

static void a_container_reads_a_file_of_the_same_nodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLUSTERS; i++) {
        struct arena arena = {0};
        struct text file;
        struct error err;
        struct buf container = {0};
        struct cluster_config there;
        struct cluster_config here = read_config(clusters[i], &arena, &file);
        compose_cluster_file(&here, file, &container);
        struct text text = {(const char *)container.bytes, (uint32_t)container.size};
        if (cluster_config_parse(text, "/etc/millrace/cluster.ini", NULL, &arena, &there, &err) !=
            STATUS_OK) {
            fail_msg("%s: %s", clusters[i], err.text);
        }
        assert_string_equal(here.name, there.name);
        assert_int_equal(here.starts_broker, there.starts_broker);
        if (there.starts_broker) assert_string_equal(there.broker_host, "broker");
        assert_string_equal(there.data_dir, "/var/lib/millrace");
        assert_int_equal(here.max_jobs, there.max_jobs);
        assert_int_equal(here.worker_threads, there.worker_threads);
        assert_int_equal(here.failure_timeout_ms, there.failure_timeout_ms);
        assert_int_equal(here.gateway_count, there.gateway_count);
        for (uint32_t j = 0; j < here.gateway_count; j++) {
            assert_string_equal(here.gateways[j].name, there.gateways[j].name);
            assert_string_equal(here.gateways[j].name, there.gateways[j].host);
            assert_int_equal(here.gateways[j].port, there.gateways[j].port);
        }
        assert_int_equal(here.worker_count, there.worker_count);
        for (uint32_t j = 0; j < here.worker_count; j++) {
            assert_string_equal(here.workers[j].name, there.workers[j].name);
            assert_int_equal(here.workers[j].maps, there.workers[j].maps);
        }
        assert_int_equal(here.monitor_count, there.monitor_count);
        for (uint32_t j = 0; j < here.monitor_count; j++) {
            assert_string_equal(here.monitors[j].name, there.monitors[j].host);
            assert_int_equal(there.driver, CONFIG_DRIVER_DOCKER);
            assert_string_equal(there.key_file, "/etc/millrace/key");
        }
        buf_done(&container);
        arena_done(&arena);
    }
}

static void a_path_may_have_any_character(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct text file;
    struct buf system = {0};
    struct cluster_config config = read_config("plain", &arena, &file);
    config.tls_key = "/srv/a \"b\":$c\\d\n";
    compose_system(&config, &system);
    buf_put_u8(&system, 0);
    assert_false(system.failed);
    assert_non_null(
        strstr((const char *)system.bytes, "source: \"/srv/a \\\"b\\\":$$c\\\\d\\x0a\"\n"));
    buf_done(&system);
    arena_done(&arena);
}

/* Its broker has no TLS, but others reach it; ports are published as the file has it. */
static void a_secured_cluster_with_a_private_broker_says_insecure(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct text file;
    struct buf system = {0};
    struct buf container = {0};
    struct cluster_config config = read_config("plain", &arena, &file);
    config.starts_broker = true;
    compose_system(&config, &system);
    compose_cluster_file(&config, file, &container);
    buf_put_u8(&system, 0);
    buf_put_u8(&container, 0);
    assert_false(system.failed || container.failed);
    assert_non_null(strstr((const char *)container.bytes, "\ninsecure = yes"));
    assert_non_null(strstr((const char *)system.bytes, "ports: [\"80:80\"]"));
    buf_done(&system);
    buf_done(&container);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_are_those_that_are_kept),
        cmocka_unit_test(a_container_reads_a_file_of_the_same_nodes),
        cmocka_unit_test(a_path_may_have_any_character),
        cmocka_unit_test(a_secured_cluster_with_a_private_broker_says_insecure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
