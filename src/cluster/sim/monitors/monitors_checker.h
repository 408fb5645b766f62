/* monitors_checker.h - what must hold at every step; see watch_sim.h. */
#ifndef CLUSTER_SIM_MONITORS_MONITORS_CHECKER_H
#define CLUSTER_SIM_MONITORS_MONITORS_CHECKER_H

#include "cluster/sim/monitors/monitors_process.h"

/* What the checker knows of what monitor and node have heard of each other. */
struct watch_sight {
    uint32_t monitor_life;
    uint64_t fresh_nonce; /* The last challenge, */
    uint64_t fresh_ms;    /* and when it was first made. */
    uint64_t nonce;       /* Brought by */
    uint32_t node_life;   /* this life. */
    uint64_t incarnation; /* Its. */
    uint64_t sequence;
    uint64_t heard_ms; /* When the monitor must have taken a beat; 0: never. */
    uint64_t progress;
    uint64_t progress_ms;
    bool knows_stopped;    /* The node was stopped on purpose, */
    uint32_t stopped_life; /* this life of it. */
};

struct watch_order {
    struct term term;
    enum order_kind kind;
    uint32_t node;
    uint64_t incarnation;
};

void watch_check_heard(struct watch_process *monitor, const struct watch_packet *packet,
                       const struct datagram *datagram);
void watch_check_stepped(struct watch_process *monitor);
/* Whether it was stopped, and the leader has not heard a later life of it: who leads may have
 * learned it from others, and others may know better than anybody who is left. */
bool watch_stop_may_stand(const struct watch_process *process, struct watch_process *leader);
void watch_check_effect(struct watch_process *monitor, const struct monitor_effect *effect);
void watch_check_answer(struct watch_process *process, const struct watch_packet *packet,
                        const struct datagram *datagram, enum beater_answer answer);
/* What a recording must not change. */
struct watch_opinion {
    struct watched nodes[WATCH_PROCESSES_MAX];
    struct election election;
};
void watch_opinion_take(const struct watch_process *monitor, struct watch_opinion *out);
void watch_opinion_compare(const struct watch_process *monitor, const struct watch_opinion *before,
                           const struct datagram *datagram);

#endif
