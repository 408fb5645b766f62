/* SPDX-License-Identifier: Apache-2.0 */
/* test_cluster_nodes.c - all nodes of a cluster file are in one list, in one order.
 *
 * Method: cluster files with and without a broker and monitors of their own are read and listed.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/base/buf.h"
#include "cluster/config/cluster_nodes.h"

static const char file[] = "[cluster]\n"
                           "broker = %s\n"
                           "data_dir = /data\n"
                           "[gateways]\n"
                           "g1 = 127.0.0.1:7101\n"
                           "[workers]\n"
                           "b = host-b\n"
                           "a = host-a\n"
                           "[monitors]\n"
                           "m2 = host-m:7202\n"
                           "m1 = 127.0.0.1:7201\n";

static struct cluster_config parse(const char *broker, struct arena *arena)
{
    struct cluster_config config;
    struct error err = {.text = ""};
    struct buf bytes = {0};
    buf_format(&bytes, file, broker);
    struct text text = {(const char *)bytes.bytes, (uint32_t)bytes.size};
    assert_int_equal(cluster_config_parse(text, "c.ini", NULL, arena, &config, &err), STATUS_OK);
    buf_done(&bytes);
    return config;
}

static void nodes_are_listed_in_order(void **state)
{
    (void)state;
    static const struct cluster_node expected[] = {
        {"broker", NODE_BROKER, "127.0.0.1", 0}, {"g1", NODE_GATEWAY, "127.0.0.1", 7101},
        {"b", NODE_WORKER, "host-b", 0},         {"a", NODE_WORKER, "host-a", 0},
        {"m2", NODE_MONITOR, "host-m", 7202},    {"m1", NODE_MONITOR, "127.0.0.1", 7201},
    };
    struct arena arena = {0};
    struct error err;
    for (uint32_t skipped = 0; skipped < 2; skipped++) {
        struct cluster_config config =
            parse(skipped == 0 ? "start" : "amqp://guest:guest@127.0.0.1", &arena);
        struct cluster_nodes nodes;
        assert_int_equal(cluster_nodes_list(&config, &arena, &nodes, &err), STATUS_OK);
        assert_int_equal(nodes.count, 6 - skipped);
        for (uint32_t i = 0; i < nodes.count; i++) {
            const struct cluster_node *node = &expected[i + skipped];
            assert_string_equal(nodes.items[i].name, node->name);
            assert_int_equal(nodes.items[i].role, node->role);
            assert_string_equal(nodes.items[i].host, node->host);
            assert_int_equal(nodes.items[i].port, node->port);
            assert_ptr_equal(cluster_nodes_find(&nodes, node->name), &nodes.items[i]);
        }
        assert_null(cluster_nodes_find(&nodes, "m3"));
        assert_null(cluster_nodes_find(&nodes, ""));
        assert_int_equal(cluster_nodes_find(&nodes, "broker") != NULL, skipped == 0);
    }
    arena_done(&arena);
}

static void every_node_has_a_folder(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct cluster_config config = parse("start", &arena);
    assert_string_equal(cluster_node_folder(&config, "g1", &arena), "/data/g1");
    assert_string_equal(cluster_node_folder(&config, "m1", &arena), "/data/m1");
    assert_string_equal(cluster_node_folder(&config, "broker", &arena), "/data/broker/supervisor");
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_listed_in_order),
        cmocka_unit_test(every_node_has_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
