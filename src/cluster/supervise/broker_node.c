/* SPDX-License-Identifier: Apache-2.0 */
/* broker_node.c - the supervisor of a private RabbitMQ, as a node that sends heartbeats.
 *
 * RabbitMQ dies with the thread that started it, so all happens on the caller's thread, and killing
 * the supervisor kills the broker. When the broker ends, the supervisor ends too, and the monitors
 * restart both. Progress is a successful AMQP handshake: a broker that accepts no connection is
 * hung.
 */
#include <poll.h>

#include "cluster/supervise/broker_process.h"
#include "cluster/bus/bus_amqp.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "cluster/node/exposure.h"
#include "cluster/supervise/monitor_node.h"
#include "cluster/node/node_core.h"

enum {
    LOOK_MS = 100,
    PROBE_PERIOD_MS = 1000,
    PROBE_MS = 1000,
    PREDECESSOR_MS = 5000, /* A broker whose supervisor was killed is about to end. */
    STOP_MS = 8000         /* Less than `up` and the monitors wait for a node to stop. */
};

struct broker_node {
    struct node_core core;
    struct broker_process *broker;
    atomic_bool cancelled;
    uint64_t next_probe_ms;
};

static void on_waiting(void *context)
{
    struct broker_node *node = context;
    heartbeat_thread_progress(node->core.heartbeat_thread); /* It has a deadline of its own. */
    if (node_core_is_to_stop(&node->core)) atomic_store(&node->cancelled, true);
}

static void wait_for_predecessor(struct broker_node *node, const char *folder)
{
    const char *path = file_path(folder, TEXT_LITERAL("uri"), &node->core.arena);
    struct text uri;
    struct error ignored;
    uint64_t deadline_ms = clock_ms() + PREDECESSOR_MS;
    if (path == NULL ||
        file_read_whole(path, 1024, &node->core.arena, &uri, &ignored) != STATUS_OK) {
        return;
    }
    while (clock_ms() < deadline_ms && bus_amqp_probe(uri.bytes, PROBE_MS)) {
        on_waiting(node);
        if (atomic_load(&node->cancelled)) return;
        (void)poll(NULL, 0, LOOK_MS); /* It is no child of ours: its end raises no signal. */
    }
}

static status start(struct broker_node *node, struct error *err)
{
    const struct cluster_config *config = node->core.options.config;
    const char *folder = file_path(config->data_dir, TEXT_LITERAL("broker"), &node->core.arena);
    if (folder == NULL) return error_memory(err);
    TRY(exposure_check_broker(config, err));
    wait_for_predecessor(node, folder);
    struct broker_process_options options = {
        .folder = folder,
        .host = config->broker_host,
        .deadline_ms = config->ready_timeout_ms / 2,
        .cancelled = &node->cancelled,
        .context = node,
        .waiting = on_waiting,
    };
    TRY(broker_process_start(&options, &node->broker, err));
    node_log_say(node->core.log, SAY_INFO, "event=broker-started process=%ld",
                 (long)broker_process_pid(node->broker));
    heartbeat_thread_state(node->core.heartbeat_thread, HEARTBEAT_UP);
    if (node->core.options.ready != NULL) node->core.options.ready(node->core.options.context);
    return STATUS_OK;
}

static status run(struct broker_node *node, struct error *err)
{
    while (!node_core_is_to_stop(&node->core)) {
        if (broker_process_has_ended(node->broker)) {
            return error_set(err, STATUS_IO, "RabbitMQ has ended; see %s/broker/log",
                             node->core.options.config->data_dir);
        }
        uint64_t now_ms = clock_ms();
        if (now_ms >= node->next_probe_ms) {
            node->next_probe_ms = now_ms + PROBE_PERIOD_MS;
            bool is_well = broker_process_answers(node->broker, PROBE_MS);
            if (is_well) heartbeat_thread_progress(node->core.heartbeat_thread);
            if (!is_well) node_log_say(node->core.log, SAY_WARN, "event=broker-silent");
        }
        (void)poll(NULL, 0, LOOK_MS); /* A signal ends it earlier. */
    }
    node_core_tell_stop(&node->core);
    return STATUS_OK;
}

status broker_node_run(const struct node_options *options, struct error *err)
{
    struct broker_node node = {.next_probe_ms = 0};
    status result = node_core_open(&node.core, options, NODE_BROKER, err);
    if (result == STATUS_OK) result = start(&node, err);
    if (result == STATUS_OK) result = run(&node, err);
    if (result != STATUS_OK && result != STATUS_CANCELLED) {
        node_log_say(node.core.log, SAY_ERROR, "event=failed reason=\"%s\"", err->text);
    }
    broker_process_stop(node.broker, node_core_deadline(&node.core, STOP_MS));
    return node_core_close(&node.core, result);
}
