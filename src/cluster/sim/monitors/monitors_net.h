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

struct watch_cluster;
struct watch_process;

enum {
    WATCH_NODES_MAX = 8,
    WATCH_MONITORS_MAX = 5,
    WATCH_PROCESSES_MAX = WATCH_NODES_MAX + WATCH_MONITORS_MAX,
    WATCH_RECORDS_MAX = 32 /* Datagrams that somebody has recorded. */
};

enum watch_door { WATCH_DOOR_MAIN = 1, WATCH_DOOR_HEART, WATCH_DOOR_OPERATOR };

enum watch_origin {
    WATCH_GENUINE,  /* As it was sent; maybe late, maybe twice. */
    WATCH_REPLAYED, /* By somebody who has recorded it, and who is not in time: it must not count.
                     */
    WATCH_FORGED    /* By somebody without the key. */
};

struct watch_packet {
    struct monitor_address from;
    struct monitor_address to;
    enum watch_origin origin;
    uint32_t sender; /* A process; UINT32_MAX: an operator or a stranger. */
    uint32_t sender_life;
    uint32_t receiver_life; /* When it was sent. */
    uint64_t record;        /* 0: nobody records it. */
    uint32_t next_free;
    uint32_t size_bytes;
    uint8_t bytes[DATAGRAM_BYTES_MAX];
};

struct watch_record {
    struct watch_packet packet;
    bool was_heard; /* The original, by the life it was sent to. */
};

struct watch_net {
    struct datagram_key key;
    struct datagram_key wrong_key;
    struct buf scratch;
    struct watch_packet *packets;
    uint32_t packet_capacity;
    uint32_t first_free; /* UINT32_MAX: none. */
    struct watch_record records[WATCH_RECORDS_MAX];
    uint32_t record_count;
    uint64_t recorded_count;
    bool cut[WATCH_PROCESSES_MAX][WATCH_PROCESSES_MAX]; /* From, to. */
    bool holds_orders;                                  /* They are recorded, and go no further. */
    uint32_t lose_per_mille;
    uint32_t double_per_mille;
    uint32_t late_per_mille;
    uint32_t delay_ms;
    uint32_t late_ms;
};

struct monitor_address watch_address(enum watch_door door, uint32_t index, uint32_t port);
MUST_USE bool watch_net_init(struct watch_cluster *cluster);
void watch_net_done(struct watch_cluster *cluster);
/* `sender` NULL: an operator. */
void watch_send(struct watch_cluster *cluster, const struct watch_process *sender,
                struct monitor_address from, struct monitor_address to,
                const struct datagram *datagram);
void watch_packet_free(struct watch_cluster *cluster, uint32_t packet);
/* Plays a recorded datagram, to whom it was meant for or to anybody. */
void watch_replay(struct watch_cluster *cluster, uint32_t record);
/* By the one it was sent to. */
void watch_recording_heard(struct watch_cluster *cluster, uint64_t recording);
void watch_forge(struct watch_cluster *cluster);

#endif
