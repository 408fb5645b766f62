/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - the role of a client: which chunk to send where and when, until the answer is here.
 *
 * The client's files are the only copy of the input that must survive: it sends their chunks,
 * numbered, through any gateway, and again on request. It ends with all answers, or with an error.
 *
 *     client_create -> CLIENT_STARTED -> client_step* until EFFECT_DONE -> client_destroy
 *
 * Pure: see event.h. Memory: a few bytes per chunk of the files, and the chunks in flight.
 */
#ifndef CLUSTER_ROLE_CLIENT_CLIENT_H
#define CLUSTER_ROLE_CLIENT_CLIENT_H

#include "engine/plan/plan.h"
#include "cluster/role/event.h"
#include "cluster/wire/api.h"

/* A chunk that an earlier incarnation of this client has sent, from its journal. */
struct client_sent_chunk {
    uint32_t scan;
    uint64_t number;
    uint64_t checksum;
};

struct client_config {
    struct text job;
    struct text owner_key;             /* 32 hex digits. */
    struct text token;                 /* Empty: none needed. */
    const struct job_request *request; /* What is asked. */
    const struct plan *plan;           /* The same question, planned here. */
    uint32_t gateway_count;
    uint32_t put_limit;          /* Requests with chunks in flight at once. */
    uint32_t wait_ms;            /* Of a GET for progress. */
    uint32_t request_timeout_ms; /* A request not answered by then (and its wait) has failed. */
    uint32_t retry_first_ms;     /* Back-off after failures: first, */
    uint32_t retry_max_ms;       /* and longest wait; with jitter. */
    uint64_t retry_for_ms;       /* Give up when no gateway has answered for so long. */
    const struct client_sent_chunk *sent; /* Ordered by scan and number. */
    uint64_t sent_count;
    uint64_t seed;
};

struct client;

/* What the configuration points to is borrowed for the client's incarnation. STATUS_LIMIT: the plan
 * has more scans than a gateway can report on. */
MUST_USE status client_create(const struct client_config *config, struct client **out,
                              struct error *err);
void client_destroy(struct client *client);
void client_step(struct client *client, struct client_event *event, struct effects *effects);

/* Records of EFFECT_JOURNAL. */
enum { CLIENT_JOURNAL_RECORD = 24 }; /* Three u64: scan, number, checksum; written when accepted. */

#endif
