/* http_server.h - HTTP/1.1 requests in, replies out, with or without TLS, and with a bound on
 * everything a client can use up.
 *
 *     open -> (listener.request -> reply)* -> (stop_taking -> reply*)? -> close
 *
 * A request is given to the listener when its last byte has come. Its connection then sleeps until
 * somebody replies; how long that takes is the owner's business. The server refuses by itself what
 * is malformed (400), too large (413, 414, 431), and everything while the budget of bodies is used
 * up or after stop_taking (503). Who takes too long over a request or over reading the reply is
 * disconnected; and so is who has not agreed on a TLS session and sent a request line by then.
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
    struct text path;                      /* As it came; without the query. */
    struct text query;                     /* After the `?`, as it came. */
    struct text headers[HTTP_HEADERS_MAX]; /* In the order of the options; empty: absent. */
    struct buf head;                       /* What the texts point into. */
    struct buf body;                       /* 8-byte aligned; charged to the budget of bodies. */
};

/* Frees what was not moved away. */
void http_request_done(struct http_request *request);

struct http_reply {
    uint32_t status;
    uint32_t retry_after_ms;  /* 0: no such header. Sent as whole seconds, rounded up. */
    const char *content_type; /* A literal; NULL: application/octet-stream. */
    struct buf body;
};

struct http_listener {
    /* Moves the request away by copying the struct. */
    void (*request)(struct http_listener *listener, struct http_request *request);
    /* Whoever made this request has hung up; a reply would be thrown away. A client that closes its
     * half of the connection and still wants to read counts as gone. */
    void (*gone)(struct http_listener *listener, uint64_t id);
};

struct http_server_options {
    const char *address;   /* Name or number. */
    uint16_t port;         /* 0: any that is free. */
    size_t body_limit;     /* Of one request. */
    size_t body_room;      /* Bytes that are free behind a body whose size was told before. */
    struct budget *bodies; /* Of all requests together, until their bodies are freed. Borrowed; must
                              outlive the server and every body that was moved out of it. */
    size_t header_limit;   /* Of one request: its first line and its headers. */
    uint32_t connection_limit; /* Further clients wait to be accepted. */
    uint32_t address_limit;    /* Connections from one address, further ones are closed; 0: none. */
    uint32_t idle_timeout_s;   /* Without a byte, between requests and inside one; at least 1. */
    uint32_t deadline_ms;    /* Of one request, and again of its reply: from first byte to last. */
    uint32_t sweep_ms;       /* How often those are looked for who are late or gone; 0: 50. */
    const char *certificate; /* PEM file, ours first and then who vouches for it; NULL: no TLS. */
    const char *key;         /* PEM file, which nobody but its owner may read. */
    const char *header_names[HTTP_HEADERS_MAX]; /* What listeners want to see; literals, or NULL. */
};

struct http_server;

/* The listener is borrowed until close. STATUS_USAGE: certificate and key are of no use. */
MUST_USE status http_server_open(const struct http_server_options *options,
                                 struct http_listener *listener, struct http_server **out_server,
                                 struct error *err);
uint16_t http_server_port(const struct http_server *server);

/* The body is moved. A reply to a request that nobody waits for any more is thrown away. */
void http_server_reply(struct http_server *server, uint64_t id, struct http_reply *reply);
/* From now on new requests are answered with 503; those in flight go on. */
void http_server_stop_taking(struct http_server *server);
/* Requests that still wait are answered with 503, and `gone` is not called for them. Gives replies
 * under way a second to arrive. Nobody may be about to reply any more. NULL is fine. */
void http_server_close(struct http_server *server);

#endif
