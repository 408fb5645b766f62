/* http_slot.h - what an HTTP server holds: one slot per connection, and who may move it on.
 *
 * Only for the parts of http_server.h. Each connection has a slot, and goes round in it:
 *
 *     free -> idle -> reading -> waiting -> answered -> sending -> idle -> ... -> free
 *                        |          `-----> lost ------------------^
 *                        `-----------------------------> sending (refused by ourselves)
 *
 * While waiting, the connection is suspended: the library does not look at it, and so neither sees
 * that the client hangs up. The sweep does, and resumes it as lost.
 *
 * Threads: everything about connections happens in the server's own thread; only the step from
 * waiting to answered is taken by others, and that is what the lock is for.
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
    SLOT_ANSWERED, /* The reply is there, the server's thread will take it. */
    SLOT_LOST,     /* The client is gone, the server's thread will close. */
    SLOT_SENDING,
    SLOT_STATES
};

struct http_slot {
    enum http_slot_state state;
    struct MHD_Connection *connection;
    int socket;
    uint64_t since_ms; /* When it came into its state. */
    uint64_t serial;   /* Of the request that waits. */
    bool has_asked;    /* There has been a request line, this time or before. */
    bool begun;        /* The headers have been looked at. */
    uint32_t refusal;  /* This status will be the answer, the body is thrown away; 0: none. */
    size_t discarded;  /* Bytes of a refused body. */
    struct buf uri;    /* Raw; kept from request to request. */
    struct http_request request; /* Until the listener gets it. */
    struct http_reply reply;
};

struct http_server {
    struct http_server_options options;
    struct http_listener *listener;
    struct MHD_Daemon *daemon;
    bool is_starting; /* The library tells why it does not start. */
    char words[256];
    int epoll_fd; /* The library's, borrowed. */
    int wake_fd;  /* An eventfd, readable when the thread has to look round at once. */
    uint16_t port;
    pthread_t thread;
    bool has_thread;
    bool has_lock;
    pthread_mutex_t lock; /* Of the slots' states, serials and replies. */
    atomic_bool stopping;
    atomic_bool closing;
    uint64_t next_serial;
    uint32_t slot_count;
    uint32_t next_slot; /* Where to look for a free one. */
    struct http_slot *slots;
    struct pollfd *polls; /* Room for all slots. */
    uint32_t *poll_slots; /* Which slot each is about. */
    struct socket_linger linger;
};

uint64_t http_now_ms(void);
/* The server's thread looks round at once. */
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
/* For whoever has moved it out of its waiting, and nobody else: so the connection is there. */
void http_slot_resume(struct http_server *server, struct http_slot *slot);
/* The end of a request, however it went. */
void http_slot_end_request(struct http_server *server, struct http_slot *slot);

#endif
