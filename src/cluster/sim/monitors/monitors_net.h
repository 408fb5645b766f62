/* monitors_net.h - a network of datagrams that loses, doubles, delays and cuts, with somebody on it
 * who records and forges.
 *
 * A process has two doors: its heartbeat's socket, and if it is a monitor its main one.
 */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_NET_H
#define CLUSTER_SIM_MONITORS_MONITORS_NET_H

#include "engine/base/buf.h"
#include "cluster/role/monitor/monitor.h"
#include "cluster/wire/datagram.h"

struct monitors_cluster;
struct monitors_process;

enum {
    MONITORS_NODES_MAX = 8,
    MONITORS_MONITORS_MAX = 5,
    MONITORS_PROCESSES_MAX = MONITORS_NODES_MAX + MONITORS_MONITORS_MAX,
    MONITORS_RECORDS_MAX = 32 /* Datagrams that somebody has recorded. */
};

enum monitors_door { MONITORS_DOOR_MAIN = 1, MONITORS_DOOR_HEART, MONITORS_DOOR_OPERATOR };

enum monitors_origin {
    MONITORS_GENUINE,  /* As it was sent; maybe late, maybe twice. */
    MONITORS_REPLAYED, /* By somebody who has recorded it, and who is not in time: it must not
                        * count.
                        */
    MONITORS_FORGED    /* By somebody without the key. */
};

struct monitors_packet {
    struct monitor_address from;
    struct monitor_address to;
    enum monitors_origin origin;
    uint32_t sender; /* A process; UINT32_MAX: an operator or an unknown sender. */
    uint32_t sender_run;
    uint32_t receiver_run; /* When it was sent. */
    uint64_t record;       /* 0: nobody records it. */
    uint32_t next_free;
    uint32_t size_bytes;
    uint8_t bytes[DATAGRAM_BYTES_MAX];
};

struct monitors_record {
    struct monitors_packet packet;
    bool was_heard; /* The original, by the incarnation it was sent to. */
};

struct monitors_net {
    struct datagram_key key;
    struct datagram_key wrong_key;
    struct buf scratch;
    struct monitors_packet *packets;
    uint32_t packet_capacity;
    uint32_t first_free; /* UINT32_MAX: none. */
    struct monitors_record records[MONITORS_RECORDS_MAX];
    uint32_t record_count;
    uint64_t recorded_count;
    bool cut[MONITORS_PROCESSES_MAX][MONITORS_PROCESSES_MAX]; /* From, to. */
    bool holds_orders; /* They are recorded, and go no further. */
    uint32_t lose_per_mille;
    uint32_t double_per_mille;
    uint32_t late_per_mille;
    uint32_t delay_ms;
    uint32_t late_ms;
};

struct monitor_address monitors_address(enum monitors_door door, uint32_t index, uint32_t port);
MUST_USE bool monitors_net_init(struct monitors_cluster *cluster);
void monitors_net_done(struct monitors_cluster *cluster);
/* `sender` NULL: an operator. */
void monitors_send(struct monitors_cluster *cluster, const struct monitors_process *sender,
                   struct monitor_address from, struct monitor_address to,
                   const struct datagram *datagram);
void monitors_packet_free(struct monitors_cluster *cluster, uint32_t packet);
/* Plays a recorded datagram, to whom it was meant for or to anybody. */
void monitors_replay(struct monitors_cluster *cluster, uint32_t record);
/* By the one it was sent to. */
void monitors_recording_heard(struct monitors_cluster *cluster, uint64_t recording);
void monitors_forge(struct monitors_cluster *cluster);

#endif
