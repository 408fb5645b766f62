/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_net.c - packets stand in one array while they are under way; a timer delivers each. */
#include "cluster/sim/monitors/monitors_net.h"

#include <stddef.h>
#include <string.h>

#include "engine/base/memory.h"

enum { FIRST_PACKETS = 256, PACKETS_MAX = 1 << 16 };

struct monitor_address monitors_address(enum monitors_door door, uint32_t index, uint32_t port)
{
    struct monitor_address address = {.size = 6};
    address.bytes[0] = (uint8_t)door;
    address.bytes[1] = (uint8_t)index;
    for (uint32_t i = 0; i < 4; i++) {
        address.bytes[2 + i] = (uint8_t)(port >> (8 * i));
    }
    return address;
}

void monitors_net_done(struct monitors_net *net)
{
    memory_free(NULL, net->packets, net->packet_capacity * sizeof *net->packets);
}

static bool grow(struct monitors_net *net)
{
    uint32_t old = net->packet_capacity;
    uint32_t capacity = old == 0 ? FIRST_PACKETS : old * 2;
    if (capacity > PACKETS_MAX) {
        world_fail(net->world, "too many datagrams are on their way");
        return false;
    }
    struct monitors_packet *packets =
        memory_resize(NULL, net->packets, old * sizeof *packets, capacity * sizeof *packets);
    if (packets == NULL) {
        world_fail(net->world, "out of memory");
        return false;
    }
    for (uint32_t i = old; i < capacity; i++) {
        packets[i].next_free = i + 1 < capacity ? i + 1 : UINT32_MAX;
    }
    net->packets = packets;
    net->packet_capacity = capacity;
    net->first_free = old;
    return true;
}

void monitors_packet_free(struct monitors_net *net, uint32_t packet)
{
    net->packets[packet].next_free = net->first_free;
    net->first_free = packet;
}

static void arrive_timer(void *context, uint64_t number)
{
    struct monitors_net *net = context;
    uint32_t index = (uint32_t)number;
    net->receive[net->packets[index].to.bytes[0]](net->context, index);
}

void monitors_net_put(struct monitors_net *net, const struct monitors_packet *packet)
{
    struct world *world = net->world;
    if (net->first_free == UINT32_MAX && !grow(net)) return;
    uint32_t index = net->first_free;
    struct monitors_packet *copy = &net->packets[index];
    net->first_free = copy->next_free;
    memcpy(copy, packet, offsetof(struct monitors_packet, bytes) + packet->size_bytes);
    uint64_t delay_ms = world_below(world, net->delay_ms + 1);
    if (world_chance(world, net->late_per_mille)) delay_ms += world_below(world, net->late_ms + 1);
    world_after(world, delay_ms, arrive_timer, net, index);
}

void monitors_net_send(struct monitors_net *net, const struct monitors_packet *packet)
{
    bool to_process = packet->to.bytes[0] != MONITORS_DOOR_OPERATOR;
    uint32_t to = packet->to.bytes[1];
    if (!to_process || packet->sender != to) {
        if (packet->sender != UINT32_MAX && to_process && net->cut[packet->sender][to]) return;
        if (world_chance(net->world, net->lose_per_mille)) return;
        if (world_chance(net->world, net->double_per_mille)) monitors_net_put(net, packet);
    }
    monitors_net_put(net, packet);
}
