/* SPDX-License-Identifier: Apache-2.0 */
/* test_cluster_config.c - a cluster file means what it says, and says where it does not.
 *
 * Method: every key is set, left out and set wrongly, in the file and in the environment; every
 * message is compared. All counts of roles for small clusters are compared with the rule. The file
 * is cut at every byte, and allocations fail one after the other.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/buf.h"
#include "engine/base/memory.h"
#include "cluster/config/cluster_config.h"
#include "cluster/config/config_value.h"

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena = (struct arena){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static const char smallest[] = "[gateways]\ng1 = 127.0.0.1:7101\n[workers]\ncount = 3\n";

static struct cluster_config parse_with(const char *text, const char *const *environment)
{
    struct cluster_config config;
    struct error err = {.text = ""};
    status result =
        cluster_config_parse(text_of(text), "conf/c.ini", environment, &arena, &config, &err);
    if (result != STATUS_OK) print_message("%s\n", err.text);
    assert_int_equal(result, STATUS_OK);
    return config;
}

static struct cluster_config parse(const char *text)
{
    return parse_with(text, NULL);
}

static void refuse_with(const char *text, const char *const *environment, const char *expected)
{
    struct cluster_config config;
    struct error err;
    assert_int_equal(
        cluster_config_parse(text_of(text), "c.ini", environment, &arena, &config, &err),
        STATUS_INPUT);
    assert_string_equal(err.text, expected);
}

/* Lines of [cluster], then the smallest file. */
static const char *with_cluster(const char *lines)
{
    static char text[4000];
    int size = snprintf(text, sizeof text, "[cluster]\n%s\n%s", lines, smallest);
    assert_true(size > 0 && (size_t)size < sizeof text);
    return text;
}

static void all_but_nodes_has_defaults(void **state)
{
    (void)state;
    struct cluster_config config = parse(smallest);
    assert_string_equal(config.path, "conf/c.ini");
    assert_string_equal(config.name, "millrace");
    assert_true(config.starts_broker);
    assert_int_equal(config.broker_count, 0);
    assert_string_equal(config.data_dir, "conf/millrace-cluster");
    assert_string_equal(config.key_file, "conf/millrace-cluster/key");
    assert_null(config.token);
    assert_null(config.token_file);
    assert_false(config.is_insecure);
    assert_null(config.tls_certificate);
    assert_null(config.tls_key);
    assert_null(config.broker_ca);
    assert_null(config.sentiment_model);
    assert_null(config.broker_certificate);
    assert_null(config.broker_key);
    assert_int_equal(config.queues, CONFIG_QUEUES_TRANSIENT);
    assert_int_equal(config.work_queues, 2);
    assert_int_equal(config.max_jobs, 8);
    assert_int_equal(config.chunk_size, 4 << 20);
    assert_int_equal(config.window, 32);
    assert_int_equal(config.broadcast_limit, 256 << 20);
    assert_int_equal(config.max_message, 64 << 20);
    assert_int_equal(config.memory_limit, 0);
    assert_int_equal(config.log_limit, (uint64_t)4 << 30);
    assert_int_equal(config.client_timeout_ms, 60000);
    assert_int_equal(config.sync_period_ms, 250);
    assert_int_equal(config.node_timeout_ms, 300000);
    assert_int_equal(config.http_body_limit, 64 << 20);
    assert_int_equal(config.http_connections, 256);
    assert_int_equal(config.http_connections_per_address, 0);
    assert_int_equal(config.http_timeout_ms, 120000);
    assert_int_equal(config.ready_timeout_ms, 120000);
    assert_int_equal(config.log_level, CONFIG_LOG_INFO);
    assert_int_equal(config.worker_threads, 1);
    assert_int_equal(config.gateway_count, 1);
    assert_int_equal(config.monitor_count, 0);
    assert_int_equal(config.heartbeat_period_ms, 250);
    assert_int_equal(config.failure_timeout_ms, 2000);
    assert_int_equal(config.stall_timeout_ms, 30000);
    assert_int_equal(config.lease_ms, 2000);
    assert_int_equal(config.start_timeout_ms, 10000);
    assert_int_equal(config.driver, CONFIG_DRIVER_PROCESS);
    assert_null(config.start_command);
    assert_null(config.kill_command);
    assert_null(config.pause_command);
    assert_null(config.resume_command);
    assert_int_equal(config.driver_timeout_ms, 60000);
    assert_string_equal(config.docker_socket, "/var/run/docker.sock");
    assert_int_equal(config.worker_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(config.workers[i].name[1], '1' + (int)i);
        assert_string_equal(config.workers[i].host, "127.0.0.1");
        assert_true(config.workers[i].maps && config.workers[i].folds);
    }
}

static void every_key_is_read(void **state)
{
    (void)state;
    struct cluster_config config = parse(
        "\xef\xbb\xbf; a comment that is much longer than the lines that are read by the library, "
        "which is fine since nobody has to read it, and least of all the library, which has only "
        "two hundred bytes for a line\n"
        "# another\n\n"
        "   [cluster] ; indented\r\n"
        "   name = demo ; a comment\n"
        "   broker = amqp://a:b@one:1/v   amqp://two\n"
        "   broker = amqps://three\n"
        "\tdata_dir = ./some where\n"
        "broker_host = far.example\ntoken = s3cret;not-a-comment\ninsecure = yes\nkey_file = "
        "/etc/key\n"
        "tls_certificate = tls/g.pem\ntls_key = ./tls/g.key\nbroker_ca = ca.pem\n"
        "sentiment_model = my.model\n"
        "broker_certificate = b.pem\nbroker_key = b.key\nhttp_connections_per_address = 3\n"
        "queues = quorum\nwork_queues = 3\nmax_jobs=4\nchunk_size = 64k\nwindow : 7\n"
        "broadcast_limit = 0\nmax_message = 2M\nmemory_limit = 3G\nlog_limit = 5242880\n"
        "client_timeout = 2m\nsync_period = 1s\nnode_timeout = 1500ms\nhttp_body_limit = 1M\n"
        "http_connections = 5\nhttp_timeout = 9\nready_timeout = 10m\nlog_level = debug\n"
        "[gateways]\ng1 = 127.0.0.1:7101\ng-2.x = [::1]:65535\n"
        "[workers]\nalpha = host.example\nbeta = ::1\nthreads = 4\n"
        "[monitors]\nm1 = localhost:7101\nm2 = 127.0.0.1:7102\nheartbeat_period = 50ms\n"
        "failure_timeout = 200ms\nstall_timeout = 1m\nlease = 400ms\nstart_timeout = "
        "90\ndriver = command\n"
        "start_command = ssh $HOST start $NODE\nkill_command = ssh $HOST kill $NODE\n"
        "pause_command = p\nresume_command = r\ndriver_timeout = 5\ndocker_socket = d.sock");
    assert_string_equal(config.name, "demo");
    assert_false(config.starts_broker);
    assert_int_equal(config.broker_count, 3);
    assert_string_equal(config.brokers[0], "amqp://a:b@one:1/v");
    assert_string_equal(config.brokers[1], "amqp://two");
    assert_string_equal(config.brokers[2], "amqps://three");
    assert_string_equal(config.data_dir, "conf/some where");
    assert_string_equal(config.broker_host, "far.example");
    assert_string_equal(config.key_file, "/etc/key");
    assert_true(config.is_insecure);
    assert_string_equal(config.tls_certificate, "conf/tls/g.pem");
    assert_string_equal(config.tls_key, "conf/tls/g.key");
    assert_string_equal(config.broker_ca, "conf/ca.pem");
    assert_string_equal(config.sentiment_model, "conf/my.model");
    assert_string_equal(config.broker_certificate, "conf/b.pem");
    assert_string_equal(config.broker_key, "conf/b.key");
    assert_int_equal(config.http_connections_per_address, 3);
    assert_string_equal(config.token, "s3cret;not-a-comment");
    assert_int_equal(config.queues, CONFIG_QUEUES_QUORUM);
    assert_int_equal(config.work_queues, 3);
    assert_int_equal(config.max_jobs, 4);
    assert_int_equal(config.chunk_size, 65536);
    assert_int_equal(config.window, 7);
    assert_int_equal(config.broadcast_limit, 0);
    assert_int_equal(config.max_message, 2 << 20);
    assert_int_equal(config.memory_limit, (uint64_t)3 << 30);
    assert_int_equal(config.log_limit, 5 << 20);
    assert_int_equal(config.client_timeout_ms, 120000);
    assert_int_equal(config.sync_period_ms, 1000);
    assert_int_equal(config.node_timeout_ms, 1500);
    assert_int_equal(config.http_body_limit, 1 << 20);
    assert_int_equal(config.http_connections, 5);
    assert_int_equal(config.http_timeout_ms, 9000);
    assert_int_equal(config.ready_timeout_ms, 600000);
    assert_int_equal(config.log_level, CONFIG_LOG_DEBUG);
    assert_int_equal(config.gateway_count, 2);
    assert_string_equal(config.gateways[1].name, "g-2.x");
    assert_string_equal(config.gateways[1].host, "::1");
    assert_int_equal(config.gateways[1].port, 65535);
    assert_int_equal(config.worker_count, 2);
    assert_int_equal(config.worker_threads, 4);
    assert_string_equal(config.workers[0].name, "alpha");
    assert_string_equal(config.workers[0].host, "host.example");
    assert_string_equal(config.workers[1].host, "::1");
    assert_int_equal(config.monitor_count, 2);
    assert_string_equal(config.monitors[0].host, "localhost");
    assert_int_equal(config.heartbeat_period_ms, 50);
    assert_int_equal(config.failure_timeout_ms, 200);
    assert_int_equal(config.stall_timeout_ms, 60000);
    assert_int_equal(config.lease_ms, 400);
    assert_int_equal(config.start_timeout_ms, 90000);
    assert_int_equal(config.driver, CONFIG_DRIVER_COMMAND);
    assert_string_equal(config.start_command, "ssh $HOST start $NODE");
    assert_string_equal(config.kill_command, "ssh $HOST kill $NODE");
    assert_string_equal(config.pause_command, "p");
    assert_string_equal(config.resume_command, "r");
    assert_int_equal(config.driver_timeout_ms, 5000);
    assert_string_equal(config.docker_socket, "conf/d.sock");
}

static void the_data_folder_is_beside_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *line;
        const char *expected;
    } cases[] = {
        {"c.ini", "data_dir = ./demo", "demo"},
        {"c.ini", "data_dir = demo/x", "demo/x"},
        {"./c.ini", "data_dir = demo", "./demo"},
        {"/etc/m/c.ini", "data_dir = demo", "/etc/m/demo"},
        {"/c.ini", "data_dir = demo", "/demo"},
        {"a/b/c.ini", "data_dir = ../demo", "a/b/../demo"},
        {"a/c.ini", "data_dir = /var/demo", "/var/demo"},
        {"a/c.ini", "name = x", "a/x-cluster"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cluster_config config;
        struct error err;
        assert_int_equal(cluster_config_parse(text_of(with_cluster(cases[i].line)), cases[i].path,
                                              NULL, &arena, &config, &err),
                         STATUS_OK);
        assert_string_equal(config.data_dir, cases[i].expected);
    }
}

static void mistakes_in_cluster_are_told_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *expected;
    } cases[] = {
        {"max_job = 8", "[cluster] has no key max_job; did you mean max_jobs?"},
        {"zzzzzzzzzzz = 8", "[cluster] has no key zzzzzzzzzzz"},
        {"max_jobs = 0", "max_jobs must be 1 to 1000, got 0"},
        {"max_jobs = 1001", "max_jobs must be 1 to 1000, got 1001"},
        {"max_jobs = -1", "max_jobs must be 1 to 1000, got -1"},
        {"max_jobs = 8 jobs", "max_jobs must be 1 to 1000, got 8 jobs"},
        {"max_jobs =", "max_jobs must be 1 to 1000, got nothing"},
        {"max_jobs = 99999999999999999999", "max_jobs must be 1 to 1000, got 99999999999999999999"},
        {"chunk_size = 1K", "chunk_size must be 4K to 16M, got 1K"},
        {"chunk_size = 1T", "chunk_size must be 4K to 16M, got 1T"},
        {"chunk_size = 17179869184G", "chunk_size must be 4K to 16M, got 17179869184G"},
        {"memory_limit = 1", "memory_limit must be 1M to 65536G, or 0 for no limit, got 1"},
        {"client_timeout = 10ms", "client_timeout must be 1s to 86400s, got 10ms"},
        {"sync_period = 1h", "sync_period must be 10ms to 60s, got 1h"},
        {"sync_period = 1ms", "sync_period must be 10ms to 60s, got 1ms"},
        {"queues = quorom", "queues must be transient or quorum, got quorom; did you mean quorum?"},
        {"queues = x", "queues must be transient or quorum, got x"},
        {"log_level = x", "log_level must be error, warn, info or debug, got x"},
        {"name = a/b", "name must be letters, digits, . _ -, got a/b"},
        {"name =", "name must be letters, digits, . _ -, got nothing"},
        {"data_dir =", "data_dir must be a folder, got nothing"},
        {"token = a b", "token must be visible ASCII characters, got others"},
        {"broker =", "broker must be start, or amqp:// and amqps:// URIs, got nothing"},
        {"broker = http://x", "broker must be start, or amqp:// and amqps:// URIs, got http://x"},
        {"broker = amqps://", "broker must be start, or amqp:// and amqps:// URIs, got amqps://"},
        {"insecure = true", "insecure must be no or yes, got true"},
        {"tls_key = k", "tls_key needs tls_certificate beside it"},
        {"tls_certificate = k", "tls_certificate needs tls_key beside it"},
        {"broker_key = k", "broker_key needs broker_certificate beside it"},
        {"broker_certificate = k", "broker_certificate needs broker_key beside it"},
        {"token = t\ntoken_file = f", "give either token or token_file"},
        {"tls_certifcate = k",
         "[cluster] has no key tls_certifcate; did you mean tls_certificate?"},
        {"http_connections_per_address = 0",
         "http_connections_per_address must be 1 to 65536, got 0"},
        {"broker = amqp://", "broker must be start, or amqp:// and amqps:// URIs, got amqp://"},
        {"broker = start amqp://x", "broker must be start alone, or URIs without start"},
        {"broker = amqp://x start", "broker must be start alone, or URIs without start"},
        {"just words", "expected KEY = VALUE or [SECTION]"},
        {"[worker]", "no section [worker] exists; did you mean workers?"},
        {"[zzzzzzzzzz]", "no section [zzzzzzzzzz] exists"},
        {"[cluster]", "section [cluster] is given twice; merge the two"},
        {"[workers", "expected ] after the section's name"},
        {"[workers] x", "expected only a comment after [workers]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[300];
        (void)snprintf(expected, sizeof expected, "c.ini:2: %s", cases[i].expected); /* Fits. */
        refuse_with(with_cluster(cases[i].line), NULL, expected);
    }
    refuse_with(with_cluster("max_jobs = 1\nwindow = 2\nmax_jobs = 1"), NULL,
                "c.ini:4: max_jobs is given twice, first in line 2");
    refuse_with(with_cluster("broker = start\nbroker = amqp://x"), NULL,
                "c.ini:3: broker must be start alone, or URIs without start");
    refuse_with("\nname = x\n", NULL,
                "c.ini:2: name stands before the first section; put [cluster] above it");
    refuse_with(with_cluster("chunk_size = 1M\nmax_message = 1M"), NULL,
                "c.ini: chunk_size and 64K must fit max_message and http_body_limit");
}

static void long_lines_and_other_bytes_are_refused(void **state)
{
    (void)state;
    char line[300] = "data_dir = ";
    memset(line + 11, 'x', sizeof line - 12);
    line[sizeof line - 1] = '\0';
    refuse_with(with_cluster(line), NULL, "c.ini:2: the line is longer than 198 bytes; shorten it");
    line[198] = '\0';
    struct cluster_config config = parse(with_cluster(line));
    assert_int_equal(strlen(config.data_dir), 5 + 187);

    struct error err;
    assert_int_equal(
        cluster_config_parse((struct text){"a\0b", 3}, "c.ini", NULL, &arena, &config, &err),
        STATUS_INPUT);
    assert_string_equal(err.text, "c.ini: expected a text file, found a zero byte");
}

static void mistakes_with_nodes_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"[workers]\ncount = 1\n",
         "c.ini: there are no gateways: say [gateways] g1 = 127.0.0.1:7101"},
        {"[gateways]\ng = h:1\n", "c.ini: there are no workers: say [workers] count = 3"},
        {"", "c.ini: there are no workers: say [workers] count = 3"},
        {"[gateways]\ng1 = h\n",
         "c.ini:2: g1 must be an address such as 127.0.0.1:7101 or [::1]:7101, got h"},
        {"[gateways]\ng1 = h:0\n",
         "c.ini:2: g1 must be an address such as 127.0.0.1:7101 or [::1]:7101, got h:0"},
        {"[gateways]\ng1 = ::1:7\n",
         "c.ini:2: g1 must be an address such as 127.0.0.1:7101 or [::1]:7101, got ::1:7"},
        {"[gateways]\ng 1 = h:1\n",
         "c.ini:2: a node's name must be 1 to 64 letters, digits, . _ and -, got g 1"},
        {"[gateways]\nbroker = h:1\n", "c.ini:2: no node may be called broker: the broker is"},
        {"[gateways]\ng1 = h:1\ng1 = h:2\n", "c.ini:3: g1 is given twice, first in line 2"},
        {"[gateways]\ng1 = h:1\ng2 = h:1\n",
         "c.ini:3: g1 has the same address; choose another port"},
        {"[gateways]\ng1 = h:1\n[monitors]\nm1 = h:1\n[workers]\ncount = 1\n",
         "c.ini:4: g1 has the same address; choose another port"},
        {"[gateways]\ng1 = h:1\n[monitors]\ng1 = h:2\n",
         "c.ini:4: another node is called g1; choose another name"},
        {"[gateways]\nw2 = h:1\n[workers]\ncount = 2\n",
         "c.ini:4: another node is called w2; choose another name"},
        {"[gateways]\ng = h:1\n[workers]\ncount = 2\na = h\n",
         "c.ini:4: give either a count of workers or their names"},
        {"[gateways]\ng = h:1\n[workers]\ncount = 0\n", "c.ini:4: count must be 1 to 256, got 0"},
        {"[gateways]\ng = h:1\n[workers]\ncount = 257\n",
         "c.ini:4: count must be 1 to 256, got 257"},
        {"[gateways]\ng = h:1\n[workers]\ncount = x\n", "c.ini:4: count must be 1 to 256, got x"},
        {"[gateways]\ng = h:1\n[workers]\nthread = 2\n",
         "c.ini:4: thread must be the host of a worker, or a key of [workers], got 2; did you mean "
         "threads?"},
        {"[gateways]\ng = h:1\n[workers]\na = b/c\n",
         "c.ini:4: a must be the host of a worker, or a key of [workers], got b/c"},
        {"[gateways]\ng = h:1\n[workers]\ncount = 2\nthreads = 0\n",
         "c.ini:5: threads must be 1 to 64, got 0"},
        {"[gateways]\ng = h:1\n[workers]\ncount = 2\nroles.map = 3\n",
         "c.ini:5: roles.map must be 1 to 2, the number of workers, got 3"},
        {"[gateways]\ng = h:1\n[workers]\ncount = 5\nroles.map = 1\nroles.fold = 2\n",
         "c.ini: of 5 workers, the first 1 map and the last 2 fold: 2 would have nothing to do"},
        {"[monitors]\nheartbeat_perod = 50ms\n",
         "c.ini:2: heartbeat_perod must be an address such as 127.0.0.1:7101 or [::1]:7101, got "
         "50ms; did you mean heartbeat_period?"},
        {"[monitors]\nbroker = h:1\n", "c.ini:2: no node may be called broker: the broker is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refuse_with(cases[i].text, NULL, cases[i].expected);
    }
}

static void mistakes_in_monitors_are_told_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        const char *expected;
    } cases[] = {
        {"heartbeat_period = 49ms", "c.ini:6: heartbeat_period must be 50ms to 2s, got 49ms"},
        {"heartbeat_period = 2001ms", "c.ini:6: heartbeat_period must be 50ms to 2s, got 2001ms"},
        {"heartbeat_period = 501ms",
         "c.ini:6: failure_timeout must be at least four times heartbeat_period (501 ms), got 2000 "
         "ms"},
        {"heartbeat_period = 1\nfailure_timeout = 3999ms",
         "c.ini:7: failure_timeout must be at least four times heartbeat_period (1000 ms), got "
         "3999 "
         "ms"},
        {"lease = 399ms", "c.ini:6: lease must be 400ms to 3600s, got 399ms"},
        {"driver = dokcer",
         "c.ini:6: driver must be process, docker or command, got dokcer; did you mean docker?"},
        {"driver = x", "c.ini:6: driver must be process, docker or command, got x"},
        {"driver = command", "c.ini:6: driver = command needs a start_command"},
        {"driver = command\nstart_command = s", "c.ini:6: driver = command needs a kill_command"},
        {"start_command = s", "c.ini:6: start_command needs driver = command"},
        {"driver = docker\nresume_command = s", "c.ini:7: resume_command needs driver = command"},
        {"docker_socket =", "c.ini:6: docker_socket must be a file, got nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        (void)snprintf(text, sizeof text, "%s[monitors]\n%s\n", smallest, cases[i].lines);
        refuse_with(text, NULL, cases[i].expected);
    }
}

/* Who runs clients in the same shell has the token there, whatever the file says. */
static void the_environment_s_token_comes_before_the_file_s(void **state)
{
    (void)state;
    static const char *const token[] = {"MILLRACE_CLUSTER_TOKEN=mine", NULL};
    static const char *const file[] = {"MILLRACE_CLUSTER_TOKEN_FILE=/t", NULL};
    static const char *const both[] = {"MILLRACE_CLUSTER_TOKEN_FILE=/t",
                                       "MILLRACE_CLUSTER_TOKEN=mine", NULL};
    static const char *const neither[] = {
        "MILLRACE_CLUSTER_TOKEN_FILE=", "MILLRACE_CLUSTER_TOKEN=", NULL};
    struct cluster_config config = parse_with(with_cluster("token_file = t"), token);
    assert_string_equal(config.token, "mine");
    assert_null(config.token_file);
    config = parse_with(with_cluster("token = t"), file);
    assert_null(config.token);
    assert_string_equal(config.token_file, "/t");
    config = parse(with_cluster("token_file = t"));
    assert_null(config.token);
    assert_string_equal(config.token_file, "conf/t");
    config = parse_with(with_cluster("token = t"), neither);
    assert_null(config.token);
    assert_null(config.token_file);
    refuse_with(smallest, both, "MILLRACE_CLUSTER_TOKEN: give either token or token_file");
}

static void too_many_nodes_are_refused(void **state)
{
    (void)state;
    struct buf text = {0};
    struct cluster_config config;
    struct error err;
    buf_put_string(&text, "[gateways]\n");
    for (int i = 0; i <= CONFIG_GATEWAYS_MAX; i++) {
        buf_format(&text, "g%d = h:%d\n", i, 1 + i);
    }
    assert_int_equal(cluster_config_parse((struct text){(char *)text.bytes, (uint32_t)text.size},
                                          "c.ini", NULL, &arena, &config, &err),
                     STATUS_INPUT);
    assert_string_equal(err.text, "c.ini:66: more than 64 gateways");
    buf_reset(&text);
    buf_put_string(&text, "[workers]\n");
    for (int i = 0; i <= 1024; i++) {
        buf_format(&text, "w%d = h\n", i);
        if (i != CONFIG_WORKERS_MAX && i != 1024) continue;
        status result = cluster_config_parse((struct text){(char *)text.bytes, (uint32_t)text.size},
                                             "c.ini", NULL, &arena, &config, &err);
        assert_int_equal(result, i == 1024 ? STATUS_LIMIT : STATUS_INPUT);
    }
    buf_done(&text);
}

static void roles_are_the_first_and_the_last(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 5; count++) {
        for (uint32_t maps = 1; maps <= count; maps++) {
            for (uint32_t folds = 1; folds <= count; folds++) {
                char text[200];
                struct cluster_config config;
                struct error err;
                (void)snprintf(text, sizeof text,
                               "[gateways]\ng = h:1\n[workers]\ncount = %u\nroles.map = %u\n"
                               "roles.fold = %u\n",
                               count, maps, folds); /* Fits. */
                status result =
                    cluster_config_parse(text_of(text), "c.ini", NULL, &arena, &config, &err);
                assert_int_equal(result, maps + folds >= count ? STATUS_OK : STATUS_INPUT);
                if (result != STATUS_OK) continue;
                for (uint32_t i = 0; i < count; i++) {
                    assert_int_equal(config.workers[i].maps, i < maps);
                    assert_int_equal(config.workers[i].folds, i >= count - folds);
                }
            }
        }
    }
}

static void the_environment_comes_first(void **state)
{
    (void)state;
    static const char *const environment[] = {
        "PATH=/bin",
        "MILLRACE_CLUSTER_MAX_JOBS=3",
        "MILLRACE_CLUSTER_TOKEN=  secret ",
        "MILLRACE_CLUSTER_BROKER=amqp://other amqp://more",
        "MILLRACE_WORKERS_COUNT=4",
        "MILLRACE_WORKERS_ROLES_MAP=2",
        "MILLRACE_GATEWAYS_G1=127.0.0.1:9999",
        "MILLRACE_GATEWAYS_OTHER_GATE=h:2",
        "MILLRACE_CRASH=before-log",
        "MILLRACE_CLUSTER=x",
        "MILLRACE=y",
        "MILLRACE_",
        "MILLRACE_CLUSTER_CA=for clients only",
        "MILLRACE_CLUSTER_=",
        NULL,
    };
    static const char text[] =
        "[cluster]\nmax_jobs = 7\nbroker = amqp://one\nbroker = amqp://two\nwindow = 5\n"
        "[gateways]\ng1 = h:1\nother-gate = h:1\ng3 = h:3\n[workers]\ncount = 2\n";
    const char *const *most = environment;
    const char *without_last[16];
    size_t count = 0;
    for (; most[count + 1] != NULL; count++) {
        without_last[count] = most[count];
    }
    without_last[count] = NULL;
    struct cluster_config config = parse_with(text, without_last);
    assert_int_equal(config.max_jobs, 3);
    assert_int_equal(config.window, 5);
    assert_string_equal(config.token, "secret");
    assert_int_equal(config.broker_count, 2);
    assert_string_equal(config.brokers[0], "amqp://other");
    assert_string_equal(config.brokers[1], "amqp://more");
    assert_int_equal(config.worker_count, 4);
    assert_true(config.workers[1].maps && !config.workers[2].maps);
    assert_int_equal(config.gateways[0].port, 9999);
    assert_string_equal(config.gateways[1].name, "other-gate");
    assert_int_equal(config.gateways[1].port, 2);
    assert_int_equal(config.gateways[2].port, 3);
    refuse_with(text, environment, "MILLRACE_CLUSTER_: [cluster] has no such key");
}

static void mistakes_in_the_environment_are_told_with_their_name(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        const char *expected;
    } cases[] = {
        {"MILLRACE_CLUSTER_MAX_JOB=1",
         "MILLRACE_CLUSTER_MAX_JOB: [cluster] has no such key; did you mean max_jobs?"},
        {"MILLRACE_CLUSTER_MAX_JOBS=x",
         "MILLRACE_CLUSTER_MAX_JOBS: max_jobs must be 1 to 1000, got x"},
        {"MILLRACE_GATEWAYS_G9=h:1", "MILLRACE_GATEWAYS_G9: [gateways] has no such key"},
        {"MILLRACE_GATEWAYS_G1=h",
         "MILLRACE_GATEWAYS_G1: g1 must be an address such as 127.0.0.1:7101 or [::1]:7101, got h"},
        {"MILLRACE_WORKERS_THREADS=0", "MILLRACE_WORKERS_THREADS: threads must be 1 to 64, got 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const environment[] = {cases[i].variable, NULL};
        refuse_with(smallest, environment, cases[i].expected);
    }
}

static const char whole[] = "[cluster]\nname = demo\nbroker = amqp://a amqp://b\nchunk_size = 64K\n"
                            "tls_certificate = c\ntls_key = k\ntoken_file = t\n"
                            "queues = quorum\n[gateways]\ng1 = [::1]:7101\n[workers]\ncount = 3\n"
                            "roles.map = 2\n[monitors]\nm1 = h:7201\ndriver = command\n"
                            "start_command = s\nkill_command = k\n";

static void a_file_cut_anywhere_is_read_or_refused(void **state)
{
    (void)state;
    for (uint32_t size = 0; size < sizeof whole; size++) {
        struct cluster_config config;
        struct error err = {.text = ""};
        char *bytes = memory_alloc(NULL, size + 1); /* Watched at its end. */
        memcpy(bytes, whole, size);
        status result =
            cluster_config_parse((struct text){bytes, size}, "c.ini", NULL, &arena, &config, &err);
        assert_true(result == STATUS_OK || (result == STATUS_INPUT && err.text[0] != '\0'));
        memory_free(NULL, bytes, size + 1);
    }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    static const char *const environment[] = {"MILLRACE_CLUSTER_BROKER=amqp://x", NULL};
    bool refused = true;
    for (size_t count = 0; refused; count++) {
        struct arena small = {0};
        struct cluster_config config;
        struct error err;
        memory_fail_after(count);
        status result =
            cluster_config_parse(text_of(whole), "c/c.ini", environment, &small, &config, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(result, refused ? STATUS_MEMORY : STATUS_OK);
        arena_done(&small);
    }
}

static void files_are_read_and_named(void **state)
{
    (void)state;
    char path[] = "/tmp/millrace-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, smallest, sizeof smallest - 1), sizeof smallest - 1);
    assert_int_equal(close(fd), 0);
    struct cluster_config config;
    struct error err;
    assert_int_equal(cluster_config_read(path, NULL, &arena, &config, &err), STATUS_OK);
    assert_string_equal(config.data_dir, "/tmp/millrace-cluster");
    assert_string_equal(config.path, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(cluster_config_read(path, NULL, &arena, &config, &err), STATUS_IO);
    assert_non_null(strstr(err.text, path));
}

static void values_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
        const char *host;
        uint16_t port;
    } addresses[] = {
        {"h:1", true, "h", 1},          {"a.b-c:65535", true, "a.b-c", 65535},
        {"[::1]:5", true, "::1", 5},    {"[fe80::1%eth0]:5", true, "fe80::1%eth0", 5},
        {"h:65536", false, NULL, 0},    {":1", false, NULL, 0},
        {"[]:1", false, NULL, 0},       {"[h]:1", false, NULL, 0},
        {"h:", false, NULL, 0},         {"", false, NULL, 0},
        {"h:1x", false, NULL, 0},       {"a b:1", false, NULL, 0},
        {"http://h:1", false, NULL, 0},
    };
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct text host;
        uint16_t port = 0;
        bool valid = config_address_parse(text_of(addresses[i].text), &host, &port);
        assert_int_equal(valid, addresses[i].valid);
        if (!valid) continue;
        assert_true(text_equal(host, text_of(addresses[i].host)));
        assert_int_equal(port, addresses[i].port);
    }
    static const struct {
        const char *text;
        int64_t size; /* -1: it is none. */
        int64_t duration_ms;
    } numbers[] = {
        {"0", 0, 0},
        {"7", 7, 7000},
        {"7K", 7168, -1},
        {"2m", 2 << 20, 120000},
        {"3g", 3221225472, -1},
        {"5ms", -1, 5},
        {"5S", -1, 5000},
        {"1.0", -1, -1},
        {"K", -1, -1},
        {"", -1, -1},
        {"1 K", -1, -1},
        {"1KB", -1, -1},
        {"0x1", -1, -1},
        {"+1", -1, -1},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t value = 0;
        struct text text = text_of(numbers[i].text);
        assert_int_equal(config_size_parse(text, &value), numbers[i].size >= 0);
        if (numbers[i].size >= 0) assert_int_equal(value, numbers[i].size);
        assert_int_equal(config_duration_parse(text, &value), numbers[i].duration_ms >= 0);
        if (numbers[i].duration_ms >= 0) assert_int_equal(value, numbers[i].duration_ms);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(all_but_nodes_has_defaults),
        TEST(every_key_is_read),
        TEST(the_data_folder_is_beside_the_file),
        TEST(mistakes_in_cluster_are_told_with_their_line),
        TEST(long_lines_and_other_bytes_are_refused),
        TEST(mistakes_with_nodes_are_told),
        TEST(mistakes_in_monitors_are_told_with_their_line),
        TEST(the_environment_s_token_comes_before_the_file_s),
        TEST(too_many_nodes_are_refused),
        TEST(roles_are_the_first_and_the_last),
        TEST(the_environment_comes_first),
        TEST(mistakes_in_the_environment_are_told_with_their_name),
        TEST(a_file_cut_anywhere_is_read_or_refused),
        TEST(memory_that_runs_out_is_an_error),
        TEST(files_are_read_and_named),
        TEST(values_are_read_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
