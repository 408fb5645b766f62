/* SPDX-License-Identifier: Apache-2.0 */
/* fake_monitor.h - a monitor's end of the wire, in a test's hands; and a cluster file with some.
 *
 * It has a socket on the loopback, the cluster's key, and both sides of cluster/role/replay_guard.h
 * for one peer.
 */
#ifndef UNIT_NODE_FAKE_MONITOR_H
#define UNIT_NODE_FAKE_MONITOR_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/buf.h"
#include "engine/file/clock.h"
#include "cluster/net/datagram_socket.h"
#include "cluster/config/cluster_config.h"
#include "cluster/role/replay_guard.h"
#include "cluster/wire/datagram.h"

enum { FAKE_LONG_MS = 20000, FAKE_MONITORS_MAX = 3, FAKE_INCARNATION = 77 };

struct fake_monitor {
    char name[DATAGRAM_NAME_SIZE];
    struct datagram_key key;
    struct datagram_socket *socket;
    char peer[DATAGRAM_NAME_SIZE];      /* Who was heard last, */
    struct socket_address peer_address; /* and where that is. */
    struct replay_guard link;
    struct replay_sender sender;
    struct buf bytes;
};

/* A folder with a key, monitors, and a configuration that names them. */
struct fake_cluster {
    char folder[256];
    char key_path[300];
    char log_path[300];
    struct config_endpoint endpoints[FAKE_MONITORS_MAX];
    struct cluster_config config;
    struct fake_monitor monitors[FAKE_MONITORS_MAX];
};

static const char fake_key_text[] =
    "3031323334353637383961626364656630313233343536373839616263646566\n";

static inline void fake_monitor_open(struct fake_monitor *monitor, const char *name)
{
    struct error err;
    *monitor = (struct fake_monitor){.key = {"0123456789abcdef0123456789abcdef"}};
    (void)snprintf(monitor->name, sizeof monitor->name, "%s", name);
    assert_int_equal(datagram_socket_open("127.0.0.1", 0, &monitor->socket, &err), STATUS_OK);
}

static inline void fake_monitor_close(struct fake_monitor *monitor)
{
    datagram_socket_close(monitor->socket);
    buf_done(&monitor->bytes);
}

static inline void fake_cluster_open(struct fake_cluster *cluster, uint32_t monitor_count)
{
    static const char *const names[FAKE_MONITORS_MAX] = {"m1", "m2", "m3"};
    const char *base = getenv("TMPDIR");
    *cluster = (struct fake_cluster){.folder = ""};
    (void)snprintf(cluster->folder, sizeof cluster->folder, "%s/millrace-test-XXXXXX",
                   base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(cluster->folder));
    (void)snprintf(cluster->key_path, sizeof cluster->key_path, "%s/key", cluster->folder);
    (void)snprintf(cluster->log_path, sizeof cluster->log_path, "%s/log", cluster->folder);
    int fd = open(cluster->key_path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, fake_key_text, sizeof fake_key_text - 1),
                     (ssize_t)sizeof fake_key_text - 1);
    assert_int_equal(close(fd), 0);
    for (uint32_t i = 0; i < monitor_count; i++) {
        fake_monitor_open(&cluster->monitors[i], names[i]);
        cluster->endpoints[i] = (struct config_endpoint){
            names[i], "127.0.0.1", datagram_socket_port(cluster->monitors[i].socket)};
    }
    cluster->config = (struct cluster_config){
        .path = "test.ini",
        .key_file = cluster->key_path,
        .data_dir = cluster->folder,
        .monitors = cluster->endpoints,
        .monitor_count = monitor_count,
        .heartbeat_period_ms = 20,
        .failure_timeout_ms = 200,
    };
}

static inline void fake_cluster_close(struct fake_cluster *cluster)
{
    for (uint32_t i = 0; i < FAKE_MONITORS_MAX; i++) {
        fake_monitor_close(&cluster->monitors[i]);
    }
    assert_int_equal(unlink(cluster->key_path), 0);
    (void)unlink(cluster->log_path); /* Not every test has one. */
    assert_int_equal(rmdir(cluster->folder), 0);
}

/* False: nothing came in time. What comes must be sealed with our key. */
static inline bool fake_monitor_receive(struct fake_monitor *monitor, uint32_t timeout_ms,
                                        struct datagram *out)
{
    char bytes[2 * DATAGRAM_BYTES_MAX];
    struct error err;
    size_t size = datagram_socket_receive(monitor->socket, timeout_ms, bytes, sizeof bytes,
                                          &monitor->peer_address);
    if (size == 0) return false;
    struct text text = {bytes, (uint32_t)size};
    assert_int_equal(datagram_decode(text, &monitor->key, out, &err), STATUS_OK);
    assert_string_equal(out->to, monitor->name);
    memcpy(monitor->peer, out->from, sizeof monitor->peer);
    return true;
}

/* To whom was heard last. */
static inline void fake_monitor_send(struct fake_monitor *monitor, struct datagram *datagram)
{
    memcpy(datagram->from, monitor->name, sizeof datagram->from);
    memcpy(datagram->to, monitor->peer, sizeof datagram->to);
    replay_guard_stamp(&monitor->sender, FAKE_INCARNATION, datagram);
    datagram_encode(datagram, &monitor->key, &monitor->bytes);
    assert_false(monitor->bytes.failed);
    assert_true(datagram_socket_send(monitor->socket, &monitor->peer_address, monitor->bytes.bytes,
                                     monitor->bytes.size));
}

static inline void fake_monitor_challenge(struct fake_monitor *monitor,
                                          const struct datagram *datagram, uint64_t nonce)
{
    struct datagram challenge = {.kind = DATAGRAM_CHALLENGE};
    challenge.challenge = (struct challenge){datagram->incarnation, datagram->sequence, nonce};
    fake_monitor_send(monitor, &challenge);
}

#endif
