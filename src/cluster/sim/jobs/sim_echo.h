/* SPDX-License-Identifier: Apache-2.0 */
/* sim_echo.h - messages of an earlier job, which arrive again when another job has its name.
 *
 *     sim_echo_keep* -> sim_echo_begin -> (they come) -> sim_echo_done
 *
 * A connection that is lost late, or a queue that is read late, does this seldom; here it is
 * frequent. Such messages must have no effect: the new job has another manifest.
 *
 * Memory: a few are kept, in the cluster.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_ECHO_H
#define CLUSTER_SIM_JOBS_SIM_ECHO_H

#include "engine/base/buf.h"
#include "cluster/role/event.h"
#include "cluster/wire/message.h"

struct cluster;
struct sim_node;

enum { SIM_ECHOES = 48 };

struct sim_echo {
    struct buf bytes;
    char to[ROLE_NAME_SIZE]; /* Empty: a work queue. */
    uint32_t work;
    uint32_t sender;
    uint32_t submission; /* Of the client, when it was sent. */
};

struct sim_echoes {
    struct sim_echo kept[SIM_ECHOES]; /* A ring: the last ones. */
    uint64_t kept_count;
    uint32_t sent_count;
};

/* Copies a message of the client that uses a name again, if the settings say so. */
void sim_echo_keep(struct sim_node *node, const struct effect_send *sent,
                   const struct message *message);
void sim_echo_begin(struct cluster *cluster);
void sim_echo_done(struct cluster *cluster);

#endif
