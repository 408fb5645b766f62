/* SPDX-License-Identifier: Apache-2.0 */
/* operator.h - asks the monitors of a cluster on behalf of a command; needs the cluster's key.
 *
 *     operator_open -> (operator_view | operator_ask)* -> operator_close
 *
 * Threads: one owner. Failure: STATUS_UNREACHABLE when no monitor answered in time, or when they
 * have no leader.
 */
#ifndef CLUSTER_SUPERVISE_OPERATOR_H
#define CLUSTER_SUPERVISE_OPERATOR_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"
#include "cluster/wire/datagram.h"

struct operator_link; /* `operator` is a keyword of C++. */

/* The leader's view of the cluster; without a leader, that of the monitor with the highest term. */
struct cluster_view {
    struct term term;
    char leader[DATAGRAM_NAME_SIZE]; /* Empty: none. */
    const struct monitored *nodes;
    uint32_t node_count;
};

MUST_USE status operator_open(const struct cluster_config *config, struct operator_link **out,
                              struct error *err);
/* Prefers a leader's view; memory is the arena's. */
MUST_USE status operator_view(struct operator_link *link, uint32_t timeout_ms, struct arena *arena,
                              struct cluster_view *out, struct error *err);
/* ASK_STOP is repeated until the leader's view shows the node as HEALTH_STOPPED; STATUS_USAGE: no
 * such node. ASK_KILLED is sent once and takes a third of a second at most; it only speeds up the
 * detection. */
MUST_USE status operator_ask(struct operator_link *link, const struct ask *ask, uint32_t timeout_ms,
                             struct error *err);
/* Accepts NULL. */
void operator_close(struct operator_link *link);

#endif
