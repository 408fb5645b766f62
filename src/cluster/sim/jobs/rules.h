/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - invariants of every moment of a run, under all faults; a breach fails the world.
 *
 *     in flight  a chunk is acknowledged only when all its outputs are confirmed; a message is
 *                logged before it is acknowledged
 *     slots      a worker has no more jobs than its limit, except those that it was ordered to
 *                hold; a refused or deleted job leaves nothing; one that has ended otherwise is
 *                gone after a while; while a slot is free, a client that waits gets it
 *     windows    no chunk is sent that is further than a window from what all workers report
 *     views      a job is reported as done only when every worker has said that it is complete
 *     jobs       only its client or an operator ends a job; in the profile of pauses no lease does
 *                either
 *
 * The simulated processes call these (sim_node.c, sim.c), before the role gets an event or after it
 * has decided. The rules see messages, logs and replies, never the state of a role: a mistake in a
 * role cannot hide itself. Memory: in the cluster and its nodes.
 */
#ifndef CLUSTER_SIM_JOBS_RULES_H
#define CLUSTER_SIM_JOBS_RULES_H

#include "engine/base/buf.h"
#include "cluster/wire/api.h"
#include "cluster/wire/message.h"

struct cluster;
struct event;
struct map_task;
struct sim_client;
struct sim_node;

enum { RULE_JOBS = 48, RULE_SCANS = 16, RULE_WORKERS = 4, RULE_FAREWELLS = 64 };

/* The progress of a scan: the most that each worker has reported. */
struct rule_scan {
    bool is_told[RULE_WORKERS]; /* By worker: it has reported this scan. */
    uint64_t contiguous[RULE_WORKERS];
};

/* A manifest that was heard of. */
struct rule_job {
    uint64_t manifest;
    uint32_t complete; /* A bit for each worker that has said so. */
    struct rule_scan scans[RULE_SCANS];
};

/* A job that was refused for want of a slot, or deleted: soon no worker has it. */
struct rule_farewell {
    uint32_t client;
    uint32_t submission;
    uint64_t incarnation; /* Of the client that was refused: in the next one it may ask again. */
    bool is_deleted;
};

/* Of a run. */
struct rules {
    struct rule_job jobs[RULE_JOBS]; /* Those beyond are not looked at. */
    uint32_t job_count;
    struct rule_farewell farewells[RULE_FAREWELLS]; /* A ring. */
    uint32_t next_farewell;
    bool is_free;     /* A client waits and no job runs, */
    uint64_t free_ms; /* since then. */
};

/* Of a node's incarnation: the chunks that it has from work queues. */
struct rule_in_flight {
    struct buf deliveries; /* Of struct rule_chunk: delivered and not acknowledged, */
    struct buf tasks;      /* being mapped, */
    struct buf tokens;     /* and outputs that are not confirmed. */
    uint64_t step;
    bool has_acknowledged; /* In this step. */
};

void rules_in_flight_done(struct rule_in_flight *in_flight);

/* ---- a node steps ---- */

void rules_event(struct sim_node *node, const struct event *event);
void rules_send(struct sim_node *node, const struct message *message, uint64_t token);
void rules_map(struct sim_node *node, const struct map_task *task);
void rules_acknowledge(struct sim_node *node, uint64_t delivery);
/* Before the record is on the disk. */
void rules_log(struct sim_node *node, const char *job, struct text record);
void rules_say(struct sim_node *node, struct text line);

/* ---- requests ---- */

/* A gateway answers client `number`, or another sender of sim_http.h. */
void rules_reply(struct cluster *cluster, uint32_t number, const struct api_request *request,
                 const struct api_reply *reply);
/* The answer has reached the client. */
void rules_heard(struct sim_client *client, enum api_kind kind, uint32_t code);
/* A worker removes the job of this name: no rule applies to the chunks that it still maps and sends
 * for it, nor to those of a later job of that name. */
void rules_removed(struct sim_node *node, const char *job);
/* Whether some worker has this very job of the client. */
bool rules_is_held(struct cluster *cluster, const struct sim_client *client);

/* ---- now and then ---- */

void rules_check(struct cluster *cluster);

#endif
