/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.h - many HTTP calls at once from one thread.
 *
 *     open -> (start | poll)* -> close
 *
 * Connections are kept and reused. The client retries only a call on a kept connection that turns
 * out to be closed; it does not follow redirects. HTTP/1.1, http and https only, the latter with
 * TLS 1.2 or later and a certificate that is verified.
 *
 * Threads: one owner.
 * Memory: a call is copied except its body, which is borrowed until the call is done or the client
 * closed.
 */
#ifndef CLUSTER_NET_HTTP_CLIENT_H
#define CLUSTER_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum { HTTP_TYPE_SIZE = 80 };

struct http_client_options {
    uint32_t connect_timeout_ms;
    uint32_t timeout_margin_ms;    /* Added to the timeout of each call. */
    uint32_t low_speed_s;          /* A call without a byte for so long fails; 0: never. Longer than
                                      the longest wait that a call asks of a server. */
    uint32_t connections_per_host; /* Further calls wait for a connection; that time counts. */
    uint32_t call_limit;           /* Calls in flight, waiting ones included. */
    size_t body_limit;             /* Of one answer. */
    const char *user_agent;        /* A literal. */
    bool use_proxy;                /* The one that the environment names. */
    const char *ca;                /* PEM file: the CA of https servers; borrowed. NULL: the CAs
                                      that the system trusts. */
    bool any_name;                 /* The certificate may be for another host: where `ca` is the
                                      server's own certificate. */
};

struct http_call {
    const char *base; /* "http://host:port", to which the target is appended. */
    struct text method;
    struct text target;         /* "/path?query", encoded. */
    const char *const *headers; /* "Name: value" */
    uint32_t header_count;
    struct text body;
    uint32_t timeout_ms; /* From start to the last byte of the answer. */
};

struct http_done {
    uint64_t id;
    bool failed;        /* There is no complete answer: `error` says why. */
    struct error error; /* STATUS_LIMIT, STATUS_MEMORY: the answer was too large. Else STATUS_IO. */
    bool is_distrusted; /* It failed because the server's certificate cannot be verified. */
    uint32_t status;
    uint32_t retry_after_ms; /* 0: no such header. */
    char content_type[HTTP_TYPE_SIZE];
    struct buf body; /* Owned by the holder of the struct; 8-byte aligned. */
};

struct http_client;

/* STATUS_USAGE: the CA file can't be used. */
MUST_USE status http_client_open(const struct http_client_options *options,
                                 struct http_client **out_client, struct error *err);
/* The caller chooses the id; no other call in flight may have it. */
MUST_USE status http_client_start(struct http_client *client, uint64_t id,
                                  const struct http_call *call, struct error *err);
/* Waits until one call ends or the timeout; may return earlier with nothing. A failed call
 * is a result, not a failure of this function. */
MUST_USE status http_client_poll(struct http_client *client, uint32_t timeout_ms,
                                 struct http_done *out_done, bool *out_any, struct error *err);
/* Cancels the calls in flight. Accepts NULL. */
void http_client_close(struct http_client *client);

#endif
