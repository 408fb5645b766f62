/* rules.h - what must hold at every moment of a run, whatever goes wrong; breaking it fails the
 * world.
 *
 *     hands    a chunk is acknowledged only when all that it gave is confirmed; what is applied is
 *              logged before its message is acknowledged
 *     slots    a worker has no more jobs than it may, but for those that it was ordered to hold;
 *              who is refused or deletes his job leaves nothing; what has ended otherwise is gone
 *              after a while; while a slot is free, somebody who waits gets in
 *     windows  no chunk is handed on that is further than a window from what all have told
 *     views    a job is told as done only when every worker has said that it is complete
 *     jobs     nobody but its client, or an operator, ends a job; in the profile of pauses no lease
 *              does either
 *
 * The simulated world calls these where things happen (sim_node.c, sim_http.c), before the role
 * hears of them or after it has decided. They look at messages, logs and replies, never into a
 * role. Memory: in the cluster and its nodes.
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

/* How far a scan is, as the workers have told at the most. */
struct rule_scan {
    bool is_told[RULE_WORKERS]; /* By worker: it concerns him. */
    uint64_t contiguous[RULE_WORKERS];
};

/* A manifest that was heard of. */
struct rule_job {
    uint64_t manifest;
    uint32_t complete; /* A bit for each worker that has said so. */
    struct rule_scan scans[RULE_SCANS];
};

/* A job that was refused for want of a slot, or deleted: soon nobody has it. */
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
    bool is_free;     /* Somebody waits and no job runs, */
    uint64_t free_ms; /* since then. */
};

/* Of a node's incarnation: what it has of work queues. */
struct rule_hands {
    struct buf deliveries; /* Of struct rule_chunk: delivered and not acknowledged, */
    struct buf tasks;      /* being mapped, */
    struct buf tokens;     /* and outputs that are not confirmed. */
    uint64_t step;
    bool has_acknowledged; /* In this step. */
};

void rules_hands_done(struct rule_hands *hands);

/* ---- a node steps ---- */

void rules_event(struct sim_node *node, const struct event *event);
void rules_send(struct sim_node *node, const struct message *message, uint64_t token);
void rules_map(struct sim_node *node, const struct map_task *task);
void rules_acknowledge(struct sim_node *node, uint64_t delivery);
/* Before the record is there. */
void rules_log(struct sim_node *node, const char *job, struct text record);
void rules_say(struct sim_node *node, struct text line);

/* ---- requests ---- */

/* A gateway answers client `number`, or somebody else. */
void rules_reply(struct cluster *cluster, uint32_t number, const struct api_request *request,
                 const struct api_reply *reply);
/* The client has it. */
void rules_heard(struct sim_client *client, enum api_kind kind, uint32_t code);
/* A worker removes the job of this name: nothing hangs on what it still maps and sends for it, also
 * when a job of that name comes again. */
void rules_removed(struct sim_node *node, const char *job);
/* Whether some worker has this very job of the client. */
bool rules_is_held(struct cluster *cluster, const struct sim_client *client);

/* ---- now and then ---- */

void rules_check(struct cluster *cluster);

#endif
