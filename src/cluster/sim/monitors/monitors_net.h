/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_net.h - a network of datagrams that loses, duplicates, delays and partitions.
 *
 * A process has two sockets ("doors"): its heartbeat's, and if it is a monitor its main one. The
 * network knows doors and numbers of processes, not the processes: each door has a receiver.
 */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_NET_H
#define CLUSTER_SIM_MONITORS_MONITORS_NET_H

#include "cluster/role/monitor/monitor.h"
#include "cluster/sim/world.h"
#include "cluster/wire/datagram.h"

enum {
    MONITORS_NODES_MAX = 8,
    MONITORS_MONITORS_MAX = 5,
    MONITORS_PROCESSES_MAX = MONITORS_NODES_MAX + MONITORS_MONITORS_MAX
};

enum monitors_door {
    MONITORS_DOOR_MAIN = 1,
    MONITORS_DOOR_HEART,
    MONITORS_DOOR_OPERATOR,
    MONITORS_DOORS
};

enum monitors_origin {
    MONITORS_GENUINE,  /* As it was sent; maybe late, maybe twice. */
    MONITORS_REPLAYED, /* Recorded by an adversary and sent too late to count. */
    MONITORS_FORGED    /* By an adversary, without the key. */
};

struct monitors_packet {
    struct monitor_address from;
    struct monitor_address to; /* Its first byte is the door, its second the process. */
    enum monitors_origin origin;
    uint32_t sender; /* A process; UINT32_MAX: an operator or an adversary. */
    uint32_t sender_run;
    uint32_t receiver_run; /* When it was sent. */
    uint64_t record;       /* 0: not recorded. */
    uint32_t next_free;
    uint32_t size_bytes;
    uint8_t bytes[DATAGRAM_BYTES_MAX];
};

struct monitors_net {
    struct world *world;
    struct monitors_packet *packets;
    uint32_t packet_capacity;
    uint32_t first_free;                                      /* UINT32_MAX: none. */
    bool cut[MONITORS_PROCESSES_MAX][MONITORS_PROCESSES_MAX]; /* From, to. */
    uint32_t lose_per_mille;
    uint32_t double_per_mille;
    uint32_t late_per_mille;
    uint32_t delay_ms;
    uint32_t late_ms;
    void *context;
    /* By door; the receiver frees the packet. */
    void (*receive[MONITORS_DOORS])(void *context, uint32_t packet);
};

struct monitor_address monitors_address(enum monitors_door door, uint32_t index, uint32_t port);
void monitors_net_done(struct monitors_net *net);
/* Loses, duplicates and cuts, except from a process to itself. */
void monitors_net_send(struct monitors_net *net, const struct monitors_packet *packet);
/* Only delays. */
void monitors_net_put(struct monitors_net *net, const struct monitors_packet *packet);
void monitors_packet_free(struct monitors_net *net, uint32_t packet);

#endif
