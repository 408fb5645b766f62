/* SPDX-License-Identifier: Apache-2.0 */
/* http_slot.h - the state of an HTTP server and of each of its connections, called a slot.
 *
 * Only for the parts of http_server.h. A connection takes a slot and cycles through its states:
 *
 *     free -> idle -> reading -> waiting -> answered -> sending -> idle -> ... -> free
 *                        |          `-----> lost ------------------^
 *                        `-----------------------------> sending (refused by ourselves)
 *
 * While waiting, the connection is suspended: the library does not poll it, so it does not notice
 * that the client hangs up. The sweep does, and resumes the connection as lost.
 *
 * Threads: everything about connections happens in the server's thread, except the step from
 * waiting to answered, which any thread may take; the lock guards that step.
 */
#ifndef CLUSTER_NET_HTTP_SLOT_H
#define CLUSTER_NET_HTTP_SLOT_H

#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "cluster/net/http_server.h"
#include "cluster/net/socket_linger.h"

enum http_slot_state {
    SLOT_FREE,
    SLOT_IDLE,     /* Connected, between requests; perhaps part of a request line has come. */
    SLOT_READING,  /* From the request line to the last byte of the body. */
    SLOT_WAITING,  /* The listener has the request; the connection is suspended. */
    SLOT_ANSWERED, /* The reply is there; the server's thread will send it. */
    SLOT_LOST,     /* The client is gone; the server's thread will close the connection. */
    SLOT_SENDING,
    SLOT_STATES
};

struct http_slot {
    enum http_slot_state state;
    struct MHD_Connection *connection;
    int socket;
    uint64_t since_ms; /* When it entered its state. */
    uint64_t serial;   /* Of the request that waits. */
    bool has_asked;    /* The connection has sent a request line, of this request or an earlier. */
    bool begun;        /* The headers have been checked. */
    uint32_t refusal;  /* Status of the reply, while the body is thrown away; 0: none. */
    size_t discarded;  /* Bytes of a refused body. */
    struct buf uri;    /* Not decoded; its memory is reused by the next request. */
    struct http_request request; /* Until the listener gets it. */
    struct http_reply reply;
};

struct http_server {
    struct http_server_options options;
    struct http_listener *listener;
    struct MHD_Daemon *daemon;
    bool is_starting; /* `words` takes the library's last message. */
    char words[256];
    int epoll_fd; /* The library's, borrowed. */
    int wake_fd;  /* An eventfd, readable when the thread has to run the library at once. */
    uint16_t port;
    pthread_t thread;
    bool has_thread;
    bool has_lock;
    pthread_mutex_t lock; /* Of the slots' states, serials and replies. */
    atomic_bool stopping;
    atomic_bool closing;
    uint64_t next_serial;
    uint32_t slot_count;
    uint32_t next_slot; /* Where the search for a free one starts. */
    struct http_slot *slots;
    struct pollfd *polls; /* Scratch of the sweep, one for each slot. */
    uint32_t *poll_slots; /* The slot of each. */
    struct socket_linger linger;
};

uint64_t http_now_ms(void);
/* The server's thread runs the library at once. */
void http_server_wake(struct http_server *server);

/* The lock of the slots' states, serials and replies. */
void http_slots_lock(struct http_server *server);
void http_slots_unlock(struct http_server *server);

void http_slot_move(struct http_server *server, struct http_slot *slot, enum http_slot_state state);
void http_slot_move_locked(struct http_slot *slot, enum http_slot_state state);
/* From one state to another if it is still in the first. */
bool http_slot_leave(struct http_server *server, struct http_slot *slot, enum http_slot_state from,
                     enum http_slot_state to);
enum http_slot_state http_slot_state(struct http_server *server, const struct http_slot *slot);
/* Of the request that waits in it. */
uint64_t http_slot_id(const struct http_server *server, const struct http_slot *slot);

/* A free one, now idle; or NULL. */
struct http_slot *http_slot_take(struct http_server *server);
/* Only for the thread that moved the slot out of SLOT_WAITING: the connection then still exists. */
void http_slot_resume(struct http_server *server, struct http_slot *slot);
/* The request has ended, answered or not. */
void http_slot_end_request(struct http_server *server, struct http_slot *slot);

#endif
