/* SPDX-License-Identifier: Apache-2.0 */
/* sim_adversary.h - an adversary at the HTTP interface, who attacks the jobs of others.
 *
 * Its requests are well-formed, and wrong: another key than the owner's or none, other queries
 * under the name of a job, numbers that no file has, ends that differ, DELETE. It may have a job of
 * its own, which it treats the same way and then leaves behind. The promise: gateways refuse what
 * would change jobs of others, and the clients get the same answers as without it.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_ADVERSARY_H
#define CLUSTER_SIM_JOBS_SIM_ADVERSARY_H

#include "cluster/wire/api.h"

struct cluster;

struct sim_adversary {
    struct cluster *cluster;
    char owner_key[API_OWNER_KEY_SIZE + 1];
    uint64_t until_ms;     /* It does nothing later. */
    uint64_t own_until_ms; /* To its own job. */
};

void sim_adversary_begin(struct cluster *cluster);
/* The answer as the gateway gave it; `attempt` came with the request. */
void sim_adversary_reply(struct sim_adversary *adversary, uint64_t attempt,
                         const struct api_request *request, uint32_t code);

#endif
