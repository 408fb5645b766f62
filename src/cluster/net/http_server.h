/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.h - HTTP/1.1 requests in, replies out, with or without TLS, and with a bound on
 * everything a client can use up.
 *
 *     open -> (listener.request -> reply)* -> (stop_taking -> reply*)? -> close
 *
 * The listener gets a request when its last byte has come. Its connection is then suspended until
 * the owner replies, however long that takes. The server itself refuses requests that are malformed
 * (400) or too large (413, 414, 431), and all requests while the budget of bodies is used up or
 * after stop_taking (503). It disconnects a client that takes too long to send a request, to read
 * the reply, or to finish the TLS handshake and send its first request line: a client that sends a
 * byte now and then (Slowloris) must not hold a connection for ever.
 *
 * Parts: http_server.c (thread, sweep) calls http_exchange.c (one request and its reply), and both
 * call http_slot.c (states of connections); calls go in that direction only.
 *
 * Threads: the server has one of its own, which calls the listener; the listener must not block,
 * and must not call close. Reply and stop_taking may be called from any thread, also by the
 * listener. Memory: a request is moved to the listener, a reply to the server.
 */
#ifndef CLUSTER_NET_HTTP_SERVER_H
#define CLUSTER_NET_HTTP_SERVER_H

#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

enum { HTTP_HEADERS_MAX = 4 };

struct http_request {
    uint64_t id; /* Never 0, never used twice. */
    struct text method;
    struct text path;                      /* Not decoded; without the query. */
    struct text query;                     /* After the `?`, not decoded. */
    struct text headers[HTTP_HEADERS_MAX]; /* In the order of the options; empty: absent. */
    struct buf head;                       /* Holds the texts. */
    struct buf body;                       /* 8-byte aligned; charged to the budget of bodies. */
};

/* Frees what was not moved away. */
static inline void http_request_done(struct http_request *request)
{
    buf_done(&request->head);
    buf_done(&request->body);
    *request = (struct http_request){0};
}

struct http_reply {
    uint32_t status;
    uint32_t retry_after_ms;  /* Retry-After, in whole seconds, rounded up; 0: no such header. */
    const char *content_type; /* A literal; NULL: application/octet-stream. */
    struct buf body;
};

struct http_listener {
    /* Moves the request away by copying the struct. */
    void (*request)(struct http_listener *listener, struct http_request *request);
    /* The client has hung up; a reply would be thrown away. A client that shuts down its sending
     * half counts as gone, too: the server could not tell it from one that has closed. */
    void (*gone)(struct http_listener *listener, uint64_t id);
};

struct http_server_options {
    const char *address;   /* Name or number. */
    uint16_t port;         /* 0: any that is free. */
    size_t body_limit;     /* Of one request. */
    size_t body_room;      /* Free bytes behind a body with a Content-Length. */
    struct budget *bodies; /* Of all requests together, until their bodies are freed. Borrowed; must
                              outlive the server and every body that was moved out of it. */
    size_t header_limit;   /* Of one request: its first line and its headers. */
    uint32_t connection_limit; /* Further clients wait to be accepted. */
    uint32_t address_limit;    /* Connections from one address, further ones are closed; 0: none. */
    uint32_t idle_timeout_s;   /* Without a byte, between requests and inside one; at least 1. */
    uint32_t deadline_ms;    /* Of one request, and again of its reply: from first byte to last. */
    uint32_t sweep_ms;       /* How often it looks for clients that are late or gone; 0: 50. */
    const char *certificate; /* PEM file: the server's certificate, then its chain; NULL: no TLS. */
    const char *key;         /* PEM file that only its owner may read. */
    const char *header_names[HTTP_HEADERS_MAX]; /* For the listener; literals, or NULL. */
};

struct http_server;

/* The listener is borrowed until close. STATUS_USAGE: certificate and key can't be used. */
MUST_USE status http_server_open(const struct http_server_options *options,
                                 struct http_listener *listener, struct http_server **out_server,
                                 struct error *err);
uint16_t http_server_port(const struct http_server *server);

/* The body is moved. A reply to a client that is gone is thrown away. */
void http_server_reply(struct http_server *server, uint64_t id, struct http_reply *reply);
/* From now on new requests are answered with 503; those in flight continue. */
void http_server_stop_taking(struct http_server *server);
/* Answers waiting requests with 503, without calling `gone` for them, and gives replies that are
 * being sent a second. No thread may still call http_server_reply. Accepts NULL. */
void http_server_close(struct http_server *server);

#endif
