/* SPDX-License-Identifier: Apache-2.0 */
/* crash_point.h - moments at which a process can be told to kill itself.
 *
 * Every promise about crashes is a promise about moments: after the input log and before the
 * acknowledgement, for example. CRASH_POINT names such a moment. Where FAULT_INJECTION is 1, it
 * costs one branch that is not taken while nothing is armed; where it is 0, no code of it is left,
 * and a node refuses to start with MILLRACE_CRASH, rather than to let a test pass that never
 * crashed anything.
 *
 *     NAME[@NODE_OR_ROLE][:COUNT | :pPROBABILITY[:SEED]], several separated by commas
 *
 *     before-log                 at the first hit
 *     after-log@w2:100           in node w2, at the 100th hit
 *     before-publish@worker:p0.001:7   in workers, at each hit with this probability; seed 7
 *
 * A restarted process with the same words reaches a point with a count or a seed again and would
 * crash for ever; later_environment.h removes those. Without a seed, each process draws its own
 * random numbers.
 *
 * Threads: arm before any is started; all may hit points.
 */
#ifndef CLUSTER_NODE_CRASH_POINT_H
#define CLUSTER_NODE_CRASH_POINT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/base/fault_injection.h"
#include "engine/base/text.h"

struct crash_owner {
    const char *node; /* The name of this node, */
    const char *role; /* and its role. */
};

#if FAULT_INJECTION

/* `name` is one of crash_points_known. */
#define CRASH_POINT(name)                                                                          \
    do {                                                                                           \
        if (UNLIKELY(crash_points_armed)) crash_point_hit(name);                                   \
    } while (0)

extern bool crash_points_armed;

/* before-log, after-log, and so on. */
extern const struct text crash_points_known[];
extern const size_t crash_points_known_count;

/* Arms the points that the words name for this process; NULL and "" arm nothing. STATUS_USAGE: the
 * words are wrong, for this process or another, and nothing is armed. */
MUST_USE status crash_points_arm(const char *words, struct crash_owner owner, struct error *err);
void crash_points_disarm(void);

void crash_point_hit(const char *name);

/* For tests: called instead of killing this process; NULL: kill it. */
void crash_points_replace_kill(void (*kill_process)(const char *name));

#else

#define CRASH_POINT(name)                                                                          \
    do {                                                                                           \
    } while (0)

MUST_USE static inline status crash_points_arm(const char *words, struct crash_owner owner,
                                               struct error *err)
{
    (void)owner;
    if (words == NULL || words[0] == '\0') return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "MILLRACE_CRASH: this program is built without crash points; unset it, or "
                     "configure with -Dfault_injection=true");
}

#endif

#endif
