/* SPDX-License-Identifier: Apache-2.0 */
/* chaos.h - the decisions of `millrace chaos`: which nodes to disturb, and when they are back.
 *
 * No I/O: random numbers come from a seed, and the same seed draws the same nodes in the same
 * order, whatever happens in the cluster.
 *
 * Memory: from the given arena.
 */
#ifndef CLI_CLUSTER_CHAOS_H
#define CLI_CLUSTER_CHAOS_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "cluster/config/cluster_nodes.h"
#include "cluster/wire/datagram.h"

struct chaos_wish {
    const char *kill; /* Names and patterns, separated by commas; NULL: all nodes, but no broker. */
    const char *except; /* Nodes to leave alone; may be NULL. */
    uint32_t count;     /* How many at a time; 0: all of them. */
};

/* The nodes that may be disturbed, as indexes in the list of nodes. */
struct chaos_pool {
    uint32_t *nodes;
    uint32_t count;
    uint32_t at_a_time; /* 1..count */
};

/* STATUS_USAGE: a name that no node has, or no node is left. */
MUST_USE status chaos_pool_make(const struct cluster_nodes *nodes, const struct chaos_wish *wish,
                                struct arena *arena, struct chaos_pool *out, struct error *err);
/* Moves the next `at_a_time` victims to the front of the pool. */
void chaos_draw(struct chaos_pool *pool, struct random *random);

/* Whether the list of names and patterns has the name. */
bool chaos_is_named(const char *list, const char *name);
/* Whether it has the name itself, not only a pattern that matches it. */
bool chaos_is_spelled(const char *list, const char *name);
/* STATUS_USAGE: a word of the list matches no node. */
MUST_USE status chaos_check_names(const struct cluster_nodes *nodes, const char *list,
                                  struct arena *arena, struct error *err);

/* The last known incarnation of a node that was killed, and when that was done by our clock. */
struct chaos_death {
    uint64_t incarnation;
    uint64_t ended_ms;
};
/* Whether the node is back, by the monitors' answer to a question at `asked_ms`: another
 * incarnation sent heartbeats after the kill. A node may have been restarted between the last view
 * and the kill: that incarnation is dead too, although it is not the known one. */
bool chaos_is_reborn(struct chaos_death death, const struct monitored *seen, uint64_t asked_ms);

/* Sorts the times: median, 99th percentile and the longest; zeros of none. */
struct chaos_times {
    uint64_t median_ms;
    uint64_t late_ms;
    uint64_t longest_ms;
};
struct chaos_times chaos_times_of(uint64_t *times_ms, uint32_t count);

#endif
