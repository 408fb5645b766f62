/* SPDX-License-Identifier: Apache-2.0 */
/* sim_client.h - a client as a process: its role, its journal, and the answers that it received.
 *
 *     sim_client_init -> (sim_client_start -> killed)* -> ended or gone -> sim_client_done
 */
#ifndef CLUSTER_SIM_JOBS_SIM_CLIENT_H
#define CLUSTER_SIM_JOBS_SIM_CLIENT_H

#include "cluster/role/client/client.h"
#include "cluster/sim/jobs/scenario.h"
#include "engine/plan/counters.h"

struct cluster;
struct message;

enum { SIM_CLIENT_JOB_SIZE = 32, SIM_CLIENT_QUERIES_MAX = 8 };

struct sim_answer {
    uint64_t next;
    uint64_t total;
    struct buf rows;
};

struct sim_client {
    struct cluster *cluster;
    uint32_t number;
    const struct scenario *scenario;
    char job[SIM_CLIENT_JOB_SIZE];
    char owner_key[API_OWNER_KEY_SIZE + 1];
    uint32_t submission; /* How many jobs it has asked for. */
    bool is_up;
    bool has_begun;
    bool has_ended; /* With `outcome`, */
    bool has_gone;  /* or for ever. */
    struct error outcome;
    uint64_t ended_ms; /* Or gone. */
    bool waits_for_slot;
    bool is_accepted;
    bool is_leaving;    /* Has sent DELETE. */
    uint64_t freed_ms;  /* When a worker last removed a job of its name. */
    bool name_is_taken; /* Another process took its job's name while it was free. */
    bool is_reused;     /* It had another job of this name. */
    uint64_t manifest;  /* Of its job, as the workers have it; 0: none has yet. */
    uint64_t incarnation;
    uint32_t crash_after;
    struct client *role;
    struct effects effects;
    struct sim_answer answers[SIM_CLIENT_QUERIES_MAX];
    struct arena arena; /* Of the counters. */
    struct counters counters;
    uint32_t audit_next;
    struct buf journal; /* struct client_sent_chunk, as they came. */
    struct buf resumed; /* The same, ordered, for a new incarnation: */
    const struct client_sent_chunk *sent;
    uint64_t sent_count;
    unsigned char *seen; /* By scan and chunk: PUT before. */
    uint64_t put_count;
    uint64_t again_count;
};

void sim_client_init(struct cluster *cluster, struct sim_client *client, uint32_t number,
                     const struct scenario *scenario);
void sim_client_done(struct sim_client *client);
void sim_client_start(struct sim_client *client);
enum sim_kill {
    SIM_KILL_AND_RESUME,
    SIM_KILL_AND_BEGIN_ANEW,
    SIM_KILL_AND_REUSE, /* The job is deleted, and another one asked for under its name. */
    SIM_KILL_FOR_EVER
};
void sim_client_kill(struct sim_client *client, enum sim_kill how);
void sim_client_reply(struct sim_client *client, uint64_t request_id, struct api_reply *reply);
/* A gateway sends a chunk to the work queues. */
void sim_client_sent(struct cluster *cluster, const struct message *message);

#endif
