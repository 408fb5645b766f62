/* crash_point.h - places where a process can be told to kill itself, to test what comes after.
 *
 * Every promise about crashes is a promise about moments: after the log and before the
 * acknowledgement, for example. CRASH_POINT names such a moment. It is in every build, so that what
 * is tested is what is used, and costs one branch that is never taken while nothing is armed.
 *
 *     NAME[@NODE_OR_ROLE][:COUNT | :pPROBABILITY[:SEED]], several separated by commas
 *
 *     before-log                 at the first time
 *     after-log@w2:100           in node w2, at the 100th time
 *     before-publish@worker:p0.001:7   in workers, each time with this chance, the same for seed 7
 *
 * A point with a count is hit again by a process that is started again with the same words, and so
 * is one with a seed: whoever restarts it takes them away, or has a loop. Without a seed, each
 * process throws its own dice.
 *
 * Threads: arm before there are any; points may be hit from all.
 */
#ifndef CLUSTER_NODE_CRASH_POINT_H
#define CLUSTER_NODE_CRASH_POINT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

/* `name` is one of crash_points_known. */
#define CRASH_POINT(name)                                                                          \
    do {                                                                                           \
        if (UNLIKELY(crash_points_armed)) crash_point_hit(name);                                   \
    } while (0)

extern bool crash_points_armed;

/* before-log, after-log, and so on. */
extern const struct text crash_points_known[];
extern const size_t crash_points_known_count;

struct crash_owner {
    const char *node; /* The name of this node, */
    const char *role; /* and what it is. */
};

/* Arms what the words say for this process; NULL and "" arm nothing. STATUS_USAGE: they are wrong,
 * for this process or another, and nothing is armed. */
MUST_USE status crash_points_arm(const char *words, struct crash_owner owner, struct error *err);
void crash_points_disarm(void);

void crash_point_hit(const char *name);

/* For tests: what is called instead of killing this process; NULL: kill it. */
void crash_points_replace_kill(void (*kill_process)(const char *name));

#endif
