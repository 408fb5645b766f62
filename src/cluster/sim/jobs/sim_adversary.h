/* sim_adversary.h - somebody who asks for what is not his, and for what can't be meant.
 *
 * His requests are well-formed, and wrong: another key than the owner's or none, jobs of others
 * asked for otherwise, numbers that no file has, ends that differ, DELETE. He may have a job of his
 * own, which he treats the same way and then leaves behind. Nobody else may notice: what is done to
 * jobs of others is refused, and their clients have the answers that they always have.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_ADVERSARY_H
#define CLUSTER_SIM_JOBS_SIM_ADVERSARY_H

#include "cluster/wire/api.h"

struct cluster;

struct sim_adversary {
    struct cluster *cluster;
    char owner_key[API_OWNER_KEY_SIZE + 1];
    uint64_t until_ms;     /* He does nothing later. */
    uint64_t own_until_ms; /* To his own job. */
};

void sim_adversary_begin(struct cluster *cluster);
/* The answer as the gateway gave it; `attempt` is what was given with the request. */
void sim_adversary_reply(struct sim_adversary *adversary, uint64_t attempt,
                         const struct api_request *request, uint32_t code);

#endif
