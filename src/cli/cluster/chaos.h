/* chaos.h - whom to disturb, and how long they took to come back: what `millrace chaos` decides.
 *
 * Pure: chance comes from a seed, and the same seed draws the same nodes in the same order, however
 * the cluster fares meanwhile.
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
    const char *except; /* Those never; may be NULL. */
    uint32_t count;     /* How many at a time; 0: all of them. */
};

/* Who may be disturbed, as numbers in the list of nodes. */
struct chaos_pool {
    uint32_t *nodes;
    uint32_t count;
    uint32_t at_a_time; /* 1..count */
};

/* STATUS_USAGE: a name that no node has, or nobody is left. */
MUST_USE status chaos_pool_make(const struct cluster_nodes *nodes, const struct chaos_wish *wish,
                                struct arena *arena, struct chaos_pool *out, struct error *err);
/* Moves the next `at_a_time` victims to the front of the pool. */
void chaos_draw(struct chaos_pool *pool, struct random *random);

/* Whether the list of names and patterns has the name. */
bool chaos_is_named(const char *list, const char *name);
/* Whether it has the name itself, not only a pattern that happens to stand for it. */
bool chaos_is_spelled(const char *list, const char *name);
/* STATUS_USAGE when some word of the list stands for no node. */
MUST_USE status chaos_check_names(const struct cluster_nodes *nodes, const char *list,
                                  struct arena *arena, struct error *err);

/* An incarnation that was ended: the last that was known of, and when it was over by our clock. */
struct chaos_death {
    uint64_t incarnation;
    uint64_t ended_ms;
};
/* Whether the node lives again, by what monitors say who were asked at `asked_ms`: as another than
 * the one before, and heard of since. One that was started again between the last look and the kill
 * is as dead, and not the one that was known. */
bool chaos_is_reborn(struct chaos_death death, const struct monitored *seen, uint64_t asked_ms);

/* Of times that it sorts: median, 99 % and the longest; zeros of none. */
struct chaos_times {
    uint64_t median_ms;
    uint64_t late_ms;
    uint64_t longest_ms;
};
struct chaos_times chaos_times_of(uint64_t *times_ms, uint32_t count);

#endif
