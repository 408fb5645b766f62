/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_operator.c - an operator's request to the monitors, as cluster/supervise/operator.h
 * sends it.
 *
 * An operator has none of the cluster's names, so every monitor challenges it first. It asks all of
 * them, several times: datagrams get lost.
 */
#include "cluster/sim/monitors/monitors_cluster.h"

#include <stdio.h>

enum { TRIES = 8, TRY_PAUSE_MS = 200 };

static void send_ask(struct monitors_operator *operator_, uint32_t monitor)
{
    struct monitors_cluster *cluster = operator_->cluster;
    struct datagram datagram = {.kind = DATAGRAM_ASK, .ask = operator_->ask};
    (void)snprintf(datagram.from, sizeof datagram.from, "operator-%u-%u", operator_->index,
                   (unsigned)operator_->incarnation); /* Fits. */
    (void)snprintf(datagram.to, sizeof datagram.to, "%s",
                   monitors_monitor(cluster, monitor)->name); /* Of one size. */
    replay_guard_stamp(&operator_->senders[monitor], operator_->incarnation, &datagram);
    monitors_send(
        cluster, NULL, monitors_address(MONITORS_DOOR_OPERATOR, operator_->index, 0),
        monitors_address(MONITORS_DOOR_MAIN, monitors_monitor(cluster, monitor)->index, 0),
        &datagram);
}

static void ask_timer(void *context, uint64_t incarnation)
{
    struct monitors_operator *operator_ = context;
    struct monitors_cluster *cluster = operator_->cluster;
    if (operator_->incarnation != incarnation || operator_->tries_left == 0) return;
    operator_->tries_left--;
    for (uint32_t i = 0; i < cluster->settings.monitor_count; i++) {
        send_ask(operator_, i);
    }
    world_after(&cluster->world, TRY_PAUSE_MS, ask_timer, operator_, incarnation);
}

void monitors_operator_ask(struct monitors_operator *operator_, const struct ask *ask)
{
    struct monitors_cluster *cluster = operator_->cluster;
    uint32_t index = operator_->index;
    uint64_t incarnation = operator_->incarnation + 1; /* Each is another process. */
    *operator_ = (struct monitors_operator){.cluster = cluster,
                                            .index = index,
                                            .incarnation = incarnation,
                                            .ask = *ask,
                                            .tries_left = TRIES};
    ask_timer(operator_, incarnation);
}

static void note_view(struct monitors_operator *operator_, uint32_t monitor,
                      const struct view *view)
{
    const struct monitors_cluster *cluster = operator_->cluster;
    operator_->seen_leader[monitor] = view->term.number != 0 && view->leader[0] != '\0';
    for (uint32_t i = 0; i < view->node_count; i++) {
        uint32_t node = monitors_process_named(cluster, view->nodes[i].name);
        if (node < cluster->process_count) operator_->seen_mask[monitor] |= 1u << node;
    }
}

static void hear(struct monitors_operator *operator_, const struct datagram *datagram)
{
    const struct monitors_cluster *cluster = operator_->cluster;
    uint32_t index = monitors_process_named(cluster, datagram->from);
    if (index == cluster->process_count || index < cluster->settings.node_count) return;
    uint32_t monitor = monitors_position(&cluster->processes[index]);
    if (datagram->kind == DATAGRAM_VIEW) note_view(operator_, monitor, &datagram->view);
    if (datagram->kind == DATAGRAM_CHALLENGE && operator_->tries_left > 0 &&
        replay_guard_challenged(&operator_->senders[monitor], operator_->incarnation,
                                &datagram->challenge)) {
        send_ask(operator_, monitor);
    }
}

void monitors_operator_receive(void *context, uint32_t index)
{
    struct monitors_cluster *cluster = context;
    const struct monitors_packet *packet = &cluster->net.packets[index];
    uint32_t number = packet->to.bytes[1];
    struct text bytes = {(const char *)packet->bytes, packet->size_bytes};
    struct datagram datagram;
    struct error err;
    bool is_ours = datagram_decode(bytes, &cluster->key, &datagram, &err) == STATUS_OK;
    monitors_packet_free(&cluster->net, index);
    if (is_ours) hear(&cluster->operators[number], &datagram);
}
