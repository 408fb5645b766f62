/* sim_http.h - requests between clients and gateways, and what the network does to them.
 *
 * Call order: a client's request arrives at a gateway as EVENT_REQUEST, whose number is that of the
 * call; the gateway's reply goes back to the client. Whoever dies in between is told here.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_HTTP_H
#define CLUSTER_SIM_JOBS_SIM_HTTP_H

#include "cluster/wire/api.h"

struct cluster;

/* Instead of a client's number. */
enum { SIM_HTTP_OBSERVER = 1000, SIM_HTTP_ADVERSARY };

/* From client `client`, or somebody else. */
void sim_http_request(struct cluster *cluster, uint32_t client, uint32_t gateway,
                      uint64_t request_id, const struct api_request *request);
void sim_http_reply(struct cluster *cluster, uint64_t call, struct api_reply *reply);
/* Parsed, for the step of EVENT_REQUEST; NULL: nobody waits any more. */
const struct api_request *sim_http_arrived(struct cluster *cluster, uint64_t call);
void sim_http_gateway_died(struct cluster *cluster, uint32_t gateway);
void sim_http_client_died(struct cluster *cluster, uint32_t client);
void sim_http_done(struct cluster *cluster);

#endif
