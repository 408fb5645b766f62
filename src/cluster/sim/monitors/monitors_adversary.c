/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_adversary.c - a ring of recorded datagrams, half of it for orders. */
#include "cluster/sim/monitors/monitors_adversary.h"

#include <string.h>

#include "cluster/sim/monitors/monitors_cluster.h"

enum { RECORD_PER_MILLE = 30 };

bool monitors_adversary_init(struct monitors_cluster *cluster)
{
    struct monitors_adversary *adversary = &cluster->adversary;
    struct world *world = &cluster->world;
    for (uint32_t i = 0; i < DATAGRAM_KEY_BYTES; i++) {
        cluster->key.bytes[i] = (uint8_t)world_below(world, 256);
        adversary->wrong_key.bytes[i] = (uint8_t)world_below(world, 256);
    }
    adversary->scratch.limit = (size_t)2 * DATAGRAM_BYTES_MAX;
    return buf_reserve(&adversary->scratch, DATAGRAM_BYTES_MAX);
}

void monitors_adversary_done(struct monitors_adversary *adversary)
{
    buf_done(&adversary->scratch);
}

static void record(struct monitors_cluster *cluster, struct monitors_packet *packet,
                   enum datagram_kind kind)
{
    struct monitors_adversary *adversary = &cluster->adversary;
    /* Orders do the most harm, and there are few: half of the places are theirs. */
    bool is_order = kind == DATAGRAM_ORDER;
    if (!is_order && !world_chance(&cluster->world, RECORD_PER_MILLE)) return;
    uint32_t half = MONITORS_RECORDS_MAX / 2;
    packet->record = ++adversary->recorded_count;
    uint32_t place = (uint32_t)(packet->record % half) + (is_order ? half : 0);
    adversary->records[place] = (struct monitors_record){.packet = *packet};
    if (place >= adversary->record_count) adversary->record_count = place + 1;
}

void monitors_recording_heard(struct monitors_cluster *cluster, uint64_t recording)
{
    for (uint32_t i = 0; i < cluster->adversary.record_count && recording != 0; i++) {
        struct monitors_record *chosen = &cluster->adversary.records[i];
        if (chosen->packet.record == recording) chosen->was_heard = true;
    }
}

void monitors_replay(struct monitors_cluster *cluster, uint32_t place)
{
    struct monitors_adversary *adversary = &cluster->adversary;
    struct world *world = &cluster->world;
    struct monitors_record *chosen = &adversary->records[place];
    struct monitors_packet packet = chosen->packet;
    if (packet.size_bytes == 0 || packet.to.bytes[0] == MONITORS_DOOR_OPERATOR) return;
    struct monitors_process *meant = &cluster->processes[packet.to.bytes[1]];
    struct monitors_process *target = meant;
    if (world_chance(world, 200))
        target = &cluster->processes[world_below(world, cluster->process_count)];
    enum monitors_door door = (enum monitors_door)packet.to.bytes[0];
    if (!monitors_is_monitor(target)) door = MONITORS_DOOR_HEART;
    packet.to = monitors_process_address(target, door); /* The adversary knows its socket. */
    bool is_old = target != meant || chosen->was_heard || packet.receiver_run != target->run;
    packet.origin = is_old ? MONITORS_REPLAYED : MONITORS_GENUINE;
    if (world_is_traced(world)) {
        world_trace(world, "net: a recording is played to %s", target->name);
    }
    monitors_net_put(&cluster->net, &packet);
}

void monitors_forge(struct monitors_cluster *cluster)
{
    struct monitors_adversary *adversary = &cluster->adversary;
    struct world *world = &cluster->world;
    struct monitors_process *target =
        &cluster->processes[world_below(world, cluster->process_count)];
    if (adversary->record_count == 0) return;
    struct monitors_packet packet =
        adversary->records[world_below(world, adversary->record_count)].packet;
    if (packet.size_bytes == 0) return;
    enum monitors_door door =
        monitors_is_monitor(target) ? MONITORS_DOOR_MAIN : MONITORS_DOOR_HEART;
    packet.to = monitors_process_address(target, door);
    packet.origin = MONITORS_FORGED;
    struct datagram datagram;
    struct error err;
    struct text bytes = {(const char *)packet.bytes, packet.size_bytes};
    if (world_chance(world, 500)) {
        packet.bytes[world_below(world, packet.size_bytes)] ^=
            (uint8_t)world_between(world, 1, 255);
    } else if (datagram_decode(bytes, &cluster->key, &datagram, &err) == STATUS_OK) {
        datagram.sequence += 1000;
        datagram_encode(&datagram, &adversary->wrong_key, &adversary->scratch);
        memcpy(packet.bytes, adversary->scratch.bytes, adversary->scratch.size);
        packet.size_bytes = (uint32_t)adversary->scratch.size;
    }
    monitors_net_put(&cluster->net, &packet);
}

void monitors_send(struct monitors_cluster *cluster, const struct monitors_process *sender,
                   struct monitor_address from, struct monitor_address to,
                   const struct datagram *datagram)
{
    struct monitors_adversary *adversary = &cluster->adversary;
    struct world *world = &cluster->world;
    struct monitors_packet packet;
    cluster->report.message_count++;
    packet.from = from;
    packet.to = to;
    packet.origin = MONITORS_GENUINE;
    packet.sender = sender != NULL ? sender->index : UINT32_MAX;
    packet.sender_run = sender != NULL ? sender->run : 0;
    packet.receiver_run = 0;
    packet.record = 0;
    bool to_operator = to.bytes[0] == MONITORS_DOOR_OPERATOR;
    bool is_own = !to_operator && sender != NULL && to.bytes[1] == sender->index;
    datagram_encode(datagram, &cluster->key, &adversary->scratch);
    if (adversary->scratch.failed || adversary->scratch.size > DATAGRAM_BYTES_MAX) {
        world_fail(world, "a datagram of kind %d is too long", (int)datagram->kind);
        return;
    }
    packet.size_bytes = (uint32_t)adversary->scratch.size;
    memcpy(packet.bytes, adversary->scratch.bytes, adversary->scratch.size);
    if (!to_operator) {
        packet.receiver_run = cluster->processes[to.bytes[1]].run;
        if (!cluster->faults_are_over) record(cluster, &packet, datagram->kind);
    }
    if (!is_own && adversary->holds_orders && datagram->kind == DATAGRAM_ORDER) {
        cluster->net.cut[packet.sender][to.bytes[1]] = true; /* Nothing may overtake it. */
        return;
    }
    monitors_net_send(&cluster->net, &packet);
}
