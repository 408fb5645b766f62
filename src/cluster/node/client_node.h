/* SPDX-License-Identifier: Apache-2.0 */
/* client_node.h - a client as a process: files and HTTP around cluster/role/client/client.h.
 *
 * Threads: everything happens on the caller's thread.
 */
#ifndef CLUSTER_NODE_CLIENT_NODE_H
#define CLUSTER_NODE_CLIENT_NODE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/local/audit.h"
#include "engine/local/job.h"
#include "cluster/role/event.h"

struct client_node_options {
    struct job *job;             /* Opened with its data folder: queries and files. */
    const char *const *gateways; /* http://host:port, or https */
    uint32_t gateway_count;
    const char *id;                       /* The job's id. */
    const char *owner_key;                /* 32 hex digits. */
    const char *token;                    /* NULL: none. */
    const char *ca;                       /* As in http_client.h. */
    struct client_journal *journal;       /* NULL: the job can't be resumed. */
    const struct client_sent_chunk *sent; /* From the journal, when resuming. */
    uint64_t sent_count;
    uint64_t retry_for_ms;
    const atomic_bool *cancelled; /* Set by the user. */
    void *context;
    /* Rows of a query, in order; queries come in the order in which they are done. */
    status (*rows)(void *context, uint32_t query, const struct batch *batch, struct error *err);
    /* All rows of a query have been given. */
    status (*query_done)(void *context, uint32_t query, struct error *err);
    void (*progress)(void *context, const struct client_progress *progress, uint64_t sent_bytes,
                     uint64_t total_bytes);
};

/* STATUS_OK: all rows were given and the audit reconciles. STATUS_UNREACHABLE: no gateway accepted
 * the job. */
MUST_USE status client_node_run(const struct client_node_options *options, struct audit *out_audit,
                                struct error *err);

/* One call, for commands such as status, jobs and cancel. Tries all gateways. */
struct gateway_call {
    const char *const *gateways;
    uint32_t gateway_count;
    const char *token;
    const char *ca; /* This and the next as in http_client.h. */
    bool any_name;
    const char *method;
    const char *target; /* "/v1/jobs" */
    uint32_t timeout_ms;
};
/* The body is JSON, owned by the caller. An HTTP error is a failure with its message;
 * STATUS_IO: no gateway answered. STATUS_USAGE: no certificate can be verified, or the CA file
 * can't be used. */
MUST_USE status gateway_call(const struct gateway_call *call, struct buf *out_body,
                             struct error *err);

#endif
