/* SPDX-License-Identifier: Apache-2.0 */
/* gateway.h - the role of a gateway: it plans jobs, publishes chunks, and asks the workers for
 * progress while a client waits.
 *
 * A gateway keeps nothing that it cannot ask for again: it learns a job from the client's PUT or
 * from the workers. So any gateway can answer any request, and a client may change gateways.
 *
 *     gateway_create -> gateway_step* -> gateway_destroy
 *
 * Pure: see event.h. Memory: owned, bounded by the limits below.
 */
#ifndef CLUSTER_ROLE_GATEWAY_GATEWAY_H
#define CLUSTER_ROLE_GATEWAY_GATEWAY_H

#include "cluster/role/event.h"
#include "cluster/wire/manifest.h"

struct gateway_analysis {
    struct text name;
    struct text tables_sql;
    const struct manifest_query *queries;
    uint32_t query_count;
};

struct gateway_config {
    struct text name;
    const struct sentiment_model *sentiment; /* Borrowed; NULL: the program's. */
    const struct manifest_worker *workers;
    uint32_t worker_count;
    const struct gateway_analysis *analyses; /* Clients may name them instead of SQL. */
    uint32_t analysis_count;
    uint32_t work_queue_count;
    uint32_t shard_count; /* 8, as in one process. */
    uint32_t window;      /* Chunks of one scan beyond the last one that all have applied. */
    uint64_t broadcast_limit;
    uint64_t memory_limit;
    uint64_t log_limit;
    uint64_t max_message;
    uint32_t sync_period_ms;    /* Between two rounds of asking, while a client waits. */
    uint32_t sync_deadline_ms;  /* A worker that has not answered a round by then is not live. */
    uint32_t reply_deadline_ms; /* Of a request that waits for anything but progress; then 503. */
    uint32_t node_timeout_ms; /* A worker of a job that is silent for so long fails it; 0: never. */
    uint32_t client_timeout_ms; /* A job that no client asks for is forgotten after this. */
    uint32_t job_limit; /* Jobs known at once; the least recently asked for is forgotten first. */
    uint32_t request_limit; /* Requests that wait at once; 503 beyond. */
    bool measures_queues;   /* EFFECT_MEASURE is answered by BUS_MEASURED. */
    struct text token;      /* Empty: none needed. */
    uint64_t seed;
};

struct gateway;

/* Texts and arrays of the configuration are borrowed for as long as the gateway lives. */
MUST_USE status gateway_create(const struct gateway_config *config, struct gateway **out,
                               struct error *err);
void gateway_destroy(struct gateway *gateway);
void gateway_step(struct gateway *gateway, struct event *event, struct effects *effects);

#endif
