/* http_client.h - many HTTP calls at once from one thread.
 *
 *     open -> (start | cancel | poll)* -> close
 *
 * Connections are kept and used again. Nothing is tried a second time here but a call on a kept
 * connection that turns out to be closed; redirects are not followed. HTTP/1.1, http and https
 * only, the latter with TLS 1.2 or later and a certificate that is checked.
 *
 * Threads: one owner; only wake may be called by others.
 * Memory: what is in a call is copied but for the body, which is borrowed until the call is done,
 * cancelled, or the client closed.
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
    uint32_t timeout_margin_ms;    /* What every call may take beyond its own timeout. */
    uint32_t low_speed_s;          /* A call without any bytes for so long is given up; 0: never.
                                      Longer than servers are asked to wait. */
    uint32_t connections_per_host; /* Further calls wait for a connection; the time counts. */
    uint32_t call_limit;           /* Calls under way, waiting ones included. */
    size_t body_limit;             /* Of one answer. */
    const char *user_agent;        /* A literal. */
    bool use_proxy;                /* As the environment says; else never one. */
    const char *ca;                /* PEM file: who vouches for https servers; borrowed. NULL: those
                                      that the system trusts. */
    bool any_name;                 /* The certificate may be for another host: for those who know
                                      it, and have it as `ca`. */
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
    bool failed;        /* There is no answer, or not all of it: `error` says why. */
    struct error error; /* STATUS_LIMIT, STATUS_MEMORY: the answer was too large. Else STATUS_IO. */
    bool is_distrusted; /* It failed since the server's certificate is not to be trusted. */
    uint32_t status;
    uint32_t retry_after_ms; /* 0: not said. */
    char content_type[HTTP_TYPE_SIZE];
    struct buf body; /* Owned by whoever holds the struct; 8-byte aligned. */
};

struct http_client;

/* STATUS_USAGE: the CA file is of no use. */
MUST_USE status http_client_open(const struct http_client_options *options,
                                 struct http_client **out_client, struct error *err);
/* The id is the caller's, and not that of another call under way. */
MUST_USE status http_client_start(struct http_client *client, uint64_t id,
                                  const struct http_call *call, struct error *err);
/* Waits for one call to end, for a wake, or for the time to pass; may come back earlier with
 * nothing. A failed call is a result and not a failure of this. */
MUST_USE status http_client_poll(struct http_client *client, uint32_t timeout_ms,
                                 struct http_done *out_done, bool *out_any, struct error *err);
/* Ends a poll, the one under way or the next. */
void http_client_wake(struct http_client *client);
/* The call will not be heard of again; unknown ids are ignored. */
void http_client_cancel(struct http_client *client, uint64_t id);
/* Cancels what is under way. NULL is fine. */
void http_client_close(struct http_client *client);

#endif
