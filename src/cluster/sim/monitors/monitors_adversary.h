/* SPDX-License-Identifier: Apache-2.0 */
/* monitors_adversary.h - sends datagrams past an adversary that records, replays and forges them.
 *
 * The adversary has no key. It can replay what it has recorded, to any process and much later, and
 * make datagrams up. A replayed datagram counts as a recording only where the original can no
 * longer count: it was heard, or it goes to another process, or to another incarnation of it.
 */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_ADVERSARY_H
#define CLUSTER_SIM_MONITORS_MONITORS_ADVERSARY_H

#include "engine/base/buf.h"
#include "cluster/sim/monitors/monitors_net.h"

struct monitors_cluster;
struct monitors_process;

enum { MONITORS_RECORDS_MAX = 32 };

struct monitors_record {
    struct monitors_packet packet;
    bool was_heard; /* The original, by the incarnation it was sent to. */
};

struct monitors_adversary {
    struct datagram_key wrong_key;
    struct buf scratch;
    struct monitors_record records[MONITORS_RECORDS_MAX];
    uint32_t record_count;
    uint64_t recorded_count;
    bool holds_orders; /* They are recorded, and not delivered. */
};

/* Draws the cluster's key too. */
MUST_USE bool monitors_adversary_init(struct monitors_cluster *cluster);
void monitors_adversary_done(struct monitors_adversary *adversary);
/* `sender` NULL: an operator. */
void monitors_send(struct monitors_cluster *cluster, const struct monitors_process *sender,
                   struct monitor_address from, struct monitor_address to,
                   const struct datagram *datagram);
/* Replays a recorded datagram, to the process it was meant for or to any other. */
void monitors_replay(struct monitors_cluster *cluster, uint32_t record);
/* The process that it was sent to has heard the original. */
void monitors_recording_heard(struct monitors_cluster *cluster, uint64_t recording);
void monitors_forge(struct monitors_cluster *cluster);

#endif
