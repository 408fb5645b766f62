/* http_server.c - libmicrohttpd speaks HTTP; here are the limits, and the waiting for replies.
 *
 * The library is driven from one thread of ours (it has no threads itself), so everything about
 * connections happens there: the library's callbacks, and between them the sweep, which looks for
 * clients that are too slow or have hung up. Only the step from waiting to answered is taken by
 * other threads; that is what the lock is for.
 *
 * Each connection has a slot, and goes round in it:
 *
 *     free -> idle -> reading -> waiting -> answered -> sending -> idle -> ... -> free
 *                        |          `-----> lost ------------------^
 *                        `-----------------------------> sending (refused by ourselves)
 *
 * While waiting, the connection is suspended: the library does not look at it, and so neither sees
 * that the client hangs up. The sweep does, and resumes it as lost.
 *
 * The thread waits for the library's epoll and for an eventfd of ours. The latter is for what the
 * library sees only when it is run: resumed connections, and room below the connection limit.
 */
#include "io/http_server.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/clock.h"
#include "io/socket_linger.h"

enum {
    SWEEP_MS = 50,
    CLOSE_MS = 1000,
    BUSY_RETRY_MS = 1000,
    SLOTS_SPARE = 8, /* The library counts a connection a little longer than its slot is used. */
    SLOTS_MAX = 1 << 20
};

enum slot_state {
    SLOT_FREE,
    SLOT_IDLE,     /* Connected, between requests; perhaps part of a request line has come. */
    SLOT_READING,  /* From the request line to the last byte of the body. */
    SLOT_WAITING,  /* The listener has the request; the connection is suspended. */
    SLOT_ANSWERED, /* The reply is there, the server's thread will take it. */
    SLOT_LOST,     /* The client is gone, the server's thread will close. */
    SLOT_SENDING,
    SLOT_STATES
};

#define TO(state) (1u << (state))
static const unsigned moves[SLOT_STATES] = {
    [SLOT_FREE] = TO(SLOT_IDLE),
    [SLOT_IDLE] = TO(SLOT_READING) | TO(SLOT_FREE),
    [SLOT_READING] = TO(SLOT_WAITING) | TO(SLOT_SENDING) | TO(SLOT_IDLE),
    [SLOT_WAITING] = TO(SLOT_ANSWERED) | TO(SLOT_LOST),
    [SLOT_ANSWERED] = TO(SLOT_SENDING) | TO(SLOT_IDLE),
    [SLOT_LOST] = TO(SLOT_IDLE),
    [SLOT_SENDING] = TO(SLOT_IDLE),
};

struct slot {
    enum slot_state state;
    struct MHD_Connection *connection;
    int socket;
    uint64_t since_ms; /* When it came into its state. */
    uint64_t serial;   /* Of the request that waits. */
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
    struct slot *slots;
    struct pollfd *polls; /* Room for all slots. */
    uint32_t *poll_slots; /* Which slot each is about. */
    struct socket_linger linger;
};

static uint64_t now_ms(void)
{
    return (uint64_t)(clock_seconds() * 1000.0);
}

static void wake(struct http_server *server)
{
    int failure = eventfd_write(server->wake_fd, 1);
    ASSERT(failure == 0 || errno == EAGAIN); /* Full: readable as well. */
}

/* ---- slots ---- */

static void lock(struct http_server *server)
{
    int failure = pthread_mutex_lock(&server->lock);
    ASSERT(failure == 0);
}

static void unlock(struct http_server *server)
{
    int failure = pthread_mutex_unlock(&server->lock);
    ASSERT(failure == 0);
}

static void slot_move_locked(struct slot *slot, enum slot_state state)
{
    ASSERT((moves[slot->state] & TO(state)) != 0);
    slot->state = state;
    slot->since_ms = now_ms();
}

static void slot_move(struct http_server *server, struct slot *slot, enum slot_state state)
{
    lock(server);
    slot_move_locked(slot, state);
    unlock(server);
}

static enum slot_state slot_state(struct http_server *server, const struct slot *slot)
{
    lock(server);
    enum slot_state state = slot->state;
    unlock(server);
    return state;
}

/* From one state to another if it is still in the first. */
static bool slot_leave(struct http_server *server, struct slot *slot, enum slot_state from,
                       enum slot_state to)
{
    lock(server);
    bool moved = slot->state == from;
    if (moved) slot_move_locked(slot, to);
    unlock(server);
    return moved;
}

static uint64_t slot_id(const struct http_server *server, const struct slot *slot)
{
    return slot->serial * server->slot_count + (uint64_t)(slot - server->slots);
}

/* A free one, now idle; or NULL. */
static struct slot *slot_take(struct http_server *server)
{
    struct slot *taken = NULL;
    lock(server);
    for (uint32_t i = 0; i < server->slot_count && taken == NULL; i++) {
        uint32_t index = (server->next_slot + i) % server->slot_count;
        if (server->slots[index].state != SLOT_FREE) continue;
        server->next_slot = index + 1;
        taken = &server->slots[index];
        slot_move_locked(taken, SLOT_IDLE);
    }
    unlock(server);
    return taken;
}

/* Whoever has moved it out of its waiting, and nobody else: so the connection is there. */
static void slot_resume(struct http_server *server, struct slot *slot)
{
    MHD_resume_connection(slot->connection);
    wake(server);
}

/* The end of a request, however it went. */
static void slot_end_request(struct http_server *server, struct slot *slot)
{
    slot_move(server, slot, SLOT_IDLE);
    http_request_done(&slot->request);
    buf_done(&slot->reply.body);
    slot->reply = (struct http_reply){0};
    slot->begun = false;
    slot->refusal = 0;
    slot->discarded = 0;
    buf_reset(&slot->uri);
}

/* ---- replies ---- */

/* MHD_NO: the connection is closed without one. */
static enum MHD_Result queue_reply(struct http_server *server, struct slot *slot)
{
    const struct http_reply *reply = &slot->reply;
    /* The body stays in the slot until the request has ended, and the response does not live
     * longer than that. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body.size, reply->body.bytes, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;

    const char *type = reply->content_type;
    if (type == NULL) type = "application/octet-stream";
    bool whole = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES;
    if (reply->retry_after_ms != 0) {
        char seconds[16];
        (void)snprintf(seconds, sizeof seconds, "%" PRIu32, (reply->retry_after_ms - 1) / 1000 + 1);
        whole = whole &&
                MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds) == MHD_YES;
    }
    if (atomic_load(&server->stopping)) {
        whole = whole &&
                MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
    }
    enum MHD_Result result = MHD_NO;
    if (whole) result = MHD_queue_response(slot->connection, reply->status, response);
    MHD_destroy_response(response);
    if (result == MHD_YES) slot_move(server, slot, SLOT_SENDING);
    return result;
}

static const char *refusal_body(uint32_t code)
{
    switch (code) {
    case MHD_HTTP_BAD_REQUEST:
        return "{\"error\":{\"code\":\"input\",\"message\":\"the request is malformed\"}}\n";
    case MHD_HTTP_CONTENT_TOO_LARGE:
        return "{\"error\":{\"code\":\"limit\",\"message\":\"the body is too large\"}}\n";
    default:
        return "{\"error\":{\"code\":\"limit\","
               "\"message\":\"the server takes no requests at the moment\"}}\n";
    }
}

/* Answers by ourselves. A body that can't be written for want of memory is left out. */
static void make_refusal(struct http_reply *reply, uint32_t code)
{
    *reply = (struct http_reply){.status = code, .content_type = "application/json"};
    if (code == MHD_HTTP_SERVICE_UNAVAILABLE) reply->retry_after_ms = BUSY_RETRY_MS;
    buf_put_string(&reply->body, refusal_body(code));
}

static enum MHD_Result queue_refusal(struct http_server *server, struct slot *slot)
{
    make_refusal(&slot->reply, slot->refusal);
    return queue_reply(server, slot);
}

/* ---- requests ---- */

/* What decides where a body ends. Two such headers are two opinions, and somebody between us and
 * the client may have the other one. */
struct framing {
    uint32_t length_count;
    uint32_t encoding_count;
    bool is_unknown;
};

static enum MHD_Result look_at_framing(void *context, enum MHD_ValueKind kind, const char *key,
                                       const char *value)
{
    struct framing *framing = context;
    (void)kind;
    if (strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        framing->length_count++;
    } else if (strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->encoding_count++;
        if (value == NULL || strcasecmp(value, "chunked") != 0) framing->is_unknown = true;
    }
    return MHD_YES;
}

static bool is_framed_well(struct MHD_Connection *connection)
{
    struct framing framing = {0};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, look_at_framing, &framing);
    return framing.length_count + framing.encoding_count <= 1 && !framing.is_unknown;
}

static const char *header_value(struct MHD_Connection *connection, const char *name)
{
    const char *value = NULL;
    if (name != NULL) value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value != NULL ? value : "";
}

/* Room for it has been reserved, so that texts stay where they are. */
static struct text put_head(struct buf *head, struct text text)
{
    struct text copy = {(const char *)head->bytes + head->size, text.size};
    buf_put_text(head, text);
    return copy;
}

/* The path is taken from the request line: the library's is decoded, and what is decoded twice is
 * something else. */
static bool build_head(struct http_server *server, struct slot *slot, struct text method)
{
    struct text values[HTTP_HEADERS_MAX];
    struct text path = {(const char *)slot->uri.bytes, (uint32_t)slot->uri.size};
    struct text query = {"", 0};
    const char *mark = path.size > 0 ? memchr(path.bytes, '?', path.size) : NULL;
    if (mark != NULL) {
        query = (struct text){mark + 1, (uint32_t)(path.bytes + path.size - mark - 1)};
        path.size = (uint32_t)(mark - path.bytes);
    }
    size_t size = (size_t)method.size + path.size + query.size + 1;
    for (uint32_t i = 0; i < HTTP_HEADERS_MAX; i++) {
        values[i] = text_of(header_value(slot->connection, server->options.header_names[i]));
        size += values[i].size;
    }
    struct http_request *request = &slot->request;
    if (!buf_reserve(&request->head, size)) return false;
    request->method = put_head(&request->head, method);
    request->path = put_head(&request->head, path);
    request->query = put_head(&request->head, query);
    for (uint32_t i = 0; i < HTTP_HEADERS_MAX; i++) {
        request->headers[i] = put_head(&request->head, values[i]);
    }
    return true;
}

/* A path with an encoded zero byte looks shorter than it is once it is decoded. */
static bool has_encoded_zero(const struct buf *uri)
{
    if (uri->size == 0) return false;
    const char *mark = memchr(uri->bytes, '?', uri->size);
    size_t size = mark != NULL ? (size_t)(mark - (const char *)uri->bytes) : uri->size;
    return memmem(uri->bytes, size, "%00", 3) != NULL;
}

/* The library has checked that it is a number. */
static uint64_t declared_length(struct MHD_Connection *connection)
{
    return strtoull(header_value(connection, MHD_HTTP_HEADER_CONTENT_LENGTH), NULL, 10);
}

/* All headers are there: decides whether the body is wanted. A refusal of a body of decent size is
 * sent after it, so that the connection can be kept. */
static enum MHD_Result begin_request(struct http_server *server, struct slot *slot,
                                     struct text method)
{
    struct MHD_Connection *connection = slot->connection;
    uint64_t length = declared_length(connection);
    struct buf *body = &slot->request.body;
    *body = (struct buf){.limit = server->options.body_limit, .budget = server->options.bodies};
    slot->begun = true;
    bool at_once = header_value(connection, MHD_HTTP_HEADER_EXPECT)[0] != '\0';
    if (!is_framed_well(connection) || has_encoded_zero(&slot->uri)) {
        slot->refusal = MHD_HTTP_BAD_REQUEST;
        at_once = true;
    } else if (length > server->options.body_limit) {
        slot->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
        at_once = true;
    } else if (atomic_load(&server->stopping) || slot->uri.failed ||
               !build_head(server, slot, method) ||
               (length > 0 && !buf_reserve(body, (size_t)length))) {
        slot->refusal = MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    if (slot->refusal != 0) http_request_done(&slot->request);
    return slot->refusal != 0 && at_once ? queue_refusal(server, slot) : MHD_YES;
}

static enum MHD_Result take_body(struct http_server *server, struct slot *slot, const char *bytes,
                                 size_t size)
{
    struct buf *body = &slot->request.body;
    if (slot->refusal == 0) {
        bool fits = size <= server->options.body_limit - body->size;
        buf_put(body, bytes, size);
        if (!body->failed) return MHD_YES;
        slot->refusal = fits ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_CONTENT_TOO_LARGE;
        http_request_done(&slot->request);
    }
    slot->discarded += size;
    if (slot->discarded <= server->options.body_limit) return MHD_YES;
    /* Only a body sent in chunks gets here. Who does not end is not worth a last word. */
    (void)shutdown(slot->socket, SHUT_RDWR); /* Fails when it is shut already. */
    return MHD_NO;
}

static enum MHD_Result hand_over(struct http_server *server, struct slot *slot)
{
    struct http_request request = slot->request;
    slot->request = (struct http_request){0};
    /* Before anybody can reply. */
    MHD_suspend_connection(slot->connection);
    lock(server);
    slot->serial = server->next_serial++;
    request.id = slot_id(server, slot);
    slot_move_locked(slot, SLOT_WAITING);
    unlock(server);
    server->listener->request(server->listener, &request);
    return MHD_YES;
}

/* ---- what the library calls ---- */

static struct slot *slot_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    struct slot *slot = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        wake(server); /* For the clients that wait to be accepted. */
        if (slot == NULL) return;
        if (slot->state != SLOT_IDLE) slot_end_request(server, slot);
        buf_done(&slot->uri);
        slot->connection = NULL;
        socket_linger_add(&server->linger, slot->socket, now_ms());
        slot_move(server, slot, SLOT_FREE);
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    slot = info != NULL ? slot_take(server) : NULL;
    if (slot == NULL) return; /* Its first request is its end. */
    slot->connection = connection;
    slot->socket = info->connect_fd;
    slot->uri = (struct buf){.limit = server->options.header_limit};
    *socket_context = slot;
}

/* The request line is there. What this returns is what `on_request` finds as its own. */
static void *on_request_line(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct slot *slot = slot_of(connection);
    if (slot == NULL) return NULL;
    slot_move(context, slot, SLOT_READING);
    buf_put_string(&slot->uri, uri);
    return slot;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *size, void **request_context)
{
    struct http_server *server = context;
    struct slot *slot = *request_context;
    (void)connection, (void)url, (void)version;
    if (slot == NULL) return MHD_NO;
    switch (slot_state(server, slot)) {
    case SLOT_READING:
        if (!slot->begun) return begin_request(server, slot, text_of(method));
        if (*size > 0) {
            size_t given = *size;
            *size = 0;
            return take_body(server, slot, bytes, given);
        }
        if (slot->refusal != 0) return queue_refusal(server, slot);
        return hand_over(server, slot);
    case SLOT_ANSWERED:
        return queue_reply(server, slot);
    default:
        return MHD_NO;
    }
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    struct slot *slot = *request_context;
    (void)connection, (void)code;
    if (slot != NULL) slot_end_request(context, slot);
}

/* ---- the sweep ---- */

/* A connection that really is idle is closed by the library after the idle timeout; one that is
 * idle for longer is sending a request line, slowly. */
static bool is_overdue(const struct http_server *server, const struct slot *slot, uint64_t now)
{
    uint64_t deadline_ms = server->options.deadline_ms;
    switch (slot->state) {
    case SLOT_IDLE:
        deadline_ms += (uint64_t)server->options.idle_timeout_s * 1000;
        return now - slot->since_ms > deadline_ms;
    case SLOT_READING:
    case SLOT_SENDING:
        return now - slot->since_ms > deadline_ms;
    default:
        return false;
    }
}

/* Sockets are closed in this very thread, so those of slots in use are valid. */
static void sweep(struct http_server *server)
{
    nfds_t poll_count = 0;
    lock(server);
    uint64_t now = now_ms();
    for (uint32_t i = 0; i < server->slot_count; i++) {
        struct slot *slot = &server->slots[i];
        if (is_overdue(server, slot, now)) {
            (void)shutdown(slot->socket, SHUT_RDWR); /* Fails when it is shut already. */
        } else if (slot->state == SLOT_WAITING) {
            server->poll_slots[poll_count] = i;
            server->polls[poll_count++] = (struct pollfd){.fd = slot->socket, .events = POLLRDHUP};
        }
    }
    unlock(server);
    socket_linger_sweep(&server->linger, now);
    if (poll_count == 0 || poll(server->polls, poll_count, 0) <= 0) return;
    for (nfds_t i = 0; i < poll_count; i++) {
        if (server->polls[i].revents == 0) continue;
        struct slot *slot = &server->slots[server->poll_slots[i]];
        uint64_t id = slot_id(server, slot);
        if (!slot_leave(server, slot, SLOT_WAITING, SLOT_LOST)) continue;
        slot_resume(server, slot);
        server->listener->gone(server->listener, id);
    }
}

/* ---- the thread ---- */

static void run_until(struct http_server *server, uint64_t until_ms)
{
    uint64_t now = now_ms();
    uint64_t wait_ms = until_ms > now ? until_ms - now : 0;
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES && timeout_ms < wait_ms) {
        wait_ms = timeout_ms;
    }
    struct pollfd fds[] = {{.fd = server->epoll_fd, .events = POLLIN},
                           {.fd = server->wake_fd, .events = POLLIN}};
    bool is_polled = poll(fds, 2, (int)wait_ms) >= 0;
    /* Emptied before the library runs: what is resumed from here on wakes the next turn. */
    eventfd_t count;
    if (fds[1].revents != 0) (void)eventfd_read(server->wake_fd, &count); /* It is not empty. */
    if (MHD_run_wait(server->daemon, 0) == MHD_YES && is_polled) return;
    /* The system has no memory for polling, or the like: it may pass. */
    (void)poll(NULL, 0, SWEEP_MS);
}

static bool is_any_replying(struct http_server *server)
{
    bool any = false;
    lock(server);
    for (uint32_t i = 0; i < server->slot_count; i++) {
        enum slot_state state = server->slots[i].state;
        any = any || state == SLOT_ANSWERED || state == SLOT_LOST || state == SLOT_SENDING;
    }
    unlock(server);
    return any;
}

/* The library must not be stopped with suspended connections. */
static void turn_away(struct http_server *server)
{
    for (uint32_t i = 0; i < server->slot_count; i++) {
        struct slot *slot = &server->slots[i];
        if (slot_state(server, slot) != SLOT_WAITING) continue;
        struct http_reply refusal;
        make_refusal(&refusal, MHD_HTTP_SERVICE_UNAVAILABLE);
        lock(server);
        bool waits = slot->state == SLOT_WAITING;
        if (waits) {
            slot->reply = refusal;
            slot_move_locked(slot, SLOT_ANSWERED);
        }
        unlock(server);
        if (waits) {
            slot_resume(server, slot);
        } else {
            buf_done(&refusal.body);
        }
    }
}

static void *serve(void *context)
{
    struct http_server *server = context;
    uint64_t next_sweep_ms = 0;
    while (!atomic_load(&server->closing)) {
        run_until(server, next_sweep_ms);
        if (now_ms() < next_sweep_ms) continue;
        sweep(server);
        next_sweep_ms = now_ms() + SWEEP_MS;
    }
    turn_away(server);
    uint64_t end_ms = now_ms() + CLOSE_MS;
    while (is_any_replying(server) && now_ms() < end_ms) {
        run_until(server, now_ms() + SWEEP_MS);
    }
    return NULL;
}

/* Signals are for the threads of the program. */
static int start_thread(struct http_server *server)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all); /* Cannot fail. */
    int failure = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (failure != 0) return failure;
    failure = pthread_create(&server->thread, NULL, serve, server);
    server->has_thread = failure == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* It was valid a moment ago. */
    return failure;
}

/* ---- opening and closing ---- */

static int bind_socket(const struct addrinfo *found)
{
    int yes = 1;
    int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    found->ai_protocol);
    if (fd < 0) return -1;
    /* A restarted server must not wait until the kernel has forgotten its old connections. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
        return fd;
    }
    int reason = errno;
    (void)close(fd); /* Nothing was written to it. */
    errno = reason;
    return -1;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return 0;
    return address.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port)
                                         : ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static status open_socket(const struct http_server_options *options, int *out_socket,
                          struct error *err)
{
    char port[8];
    (void)snprintf(port, sizeof port, "%" PRIu16, options->port);
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(options->address, port, &hints, &found);
    if (failure != 0) {
        return error_set(err, STATUS_IO, "no address to listen on is known for '%s': %s",
                         options->address, gai_strerror(failure));
    }
    int fd = -1;
    for (const struct addrinfo *each = found; each != NULL && fd < 0; each = each->ai_next) {
        fd = bind_socket(each);
    }
    int reason = errno;
    freeaddrinfo(found);
    if (fd < 0) {
        return error_set(err, STATUS_IO, "can't listen on %s, port %s: %s", options->address, port,
                         strerror(reason));
    }
    *out_socket = fd;
    return STATUS_OK;
}

static status open_wake(struct http_server *server, struct error *err)
{
    server->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (server->wake_fd >= 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "can't make an eventfd: %s", strerror(errno));
}

/* The socket belongs to the library as soon as it has been told of it. */
static bool start_daemon(struct http_server *server, int fd)
{
    const struct http_server_options *options = &server->options;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->header_limit,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->connection_limit,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)options->address_limit,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)options->idle_timeout_s,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, server, MHD_OPTION_END);
    if (server->daemon == NULL) return false;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->epoll_fd = info != NULL ? info->epoll_fd : -1;
    return server->epoll_fd >= 0;
}

static void *alloc_zeroed(size_t count, size_t size)
{
    void *block = memory_alloc(NULL, count * size); /* Counts are bounded by SLOTS_MAX. */
    if (block != NULL) memset(block, 0, count * size);
    return block;
}

static status create_server(const struct http_server_options *options,
                            struct http_listener *listener, struct http_server **out_server,
                            struct error *err)
{
    struct http_server *server = alloc_zeroed(1, sizeof *server);
    if (server == NULL) return error_memory(err);
    server->options = *options;
    server->listener = listener;
    server->next_serial = 1;
    server->wake_fd = -1;
    server->slot_count = options->connection_limit + SLOTS_SPARE;
    server->slots = alloc_zeroed(server->slot_count, sizeof *server->slots);
    server->polls = alloc_zeroed(server->slot_count, sizeof *server->polls);
    server->poll_slots = alloc_zeroed(server->slot_count, sizeof *server->poll_slots);
    server->has_lock = pthread_mutex_init(&server->lock, NULL) == 0;
    if (server->slots == NULL || server->polls == NULL || server->poll_slots == NULL ||
        !server->has_lock) {
        http_server_close(server);
        return error_memory(err);
    }
    *out_server = server;
    return STATUS_OK;
}

status http_server_open(const struct http_server_options *options, struct http_listener *listener,
                        struct http_server **out_server, struct error *err)
{
    ASSERT(options->idle_timeout_s > 0);
    ASSERT(options->deadline_ms > 0);
    ASSERT(options->connection_limit > 0);
    ASSERT(options->connection_limit <= SLOTS_MAX);
    ASSERT(options->body_limit > 0);
    ASSERT(options->bodies != NULL);
    struct http_server *server = NULL;
    int fd = -1;
    TRY(create_server(options, listener, &server, err));
    status result = open_wake(server, err);
    if (result == STATUS_OK) result = open_socket(options, &fd, err);
    if (result == STATUS_OK) {
        server->port = bound_port(fd);
        if (!start_daemon(server, fd)) {
            result = error_set(err, STATUS_IO, "libmicrohttpd can't be started");
        } else if (start_thread(server) != 0) {
            result = error_set(err, STATUS_IO, "no thread can be started for the HTTP server");
        }
    }
    if (result != STATUS_OK) {
        http_server_close(server);
        return result;
    }
    *out_server = server;
    return STATUS_OK;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_reply(struct http_server *server, uint64_t id, struct http_reply *reply)
{
    ASSERT(reply->status >= 200 && reply->status <= 599);
    struct slot *slot = &server->slots[id % server->slot_count];
    lock(server);
    bool waits = slot->state == SLOT_WAITING && slot_id(server, slot) == id;
    if (waits) {
        slot->reply = *reply;
        slot_move_locked(slot, SLOT_ANSWERED);
    }
    unlock(server);
    if (waits) {
        slot_resume(server, slot);
        reply->body = (struct buf){0};
    } else {
        buf_done(&reply->body);
    }
}

void http_server_stop_taking(struct http_server *server)
{
    atomic_store(&server->stopping, true);
}

void http_server_close(struct http_server *server)
{
    if (server == NULL) return;
    atomic_store(&server->stopping, true);
    atomic_store(&server->closing, true);
    if (server->has_thread) {
        wake(server);
        int failure = pthread_join(server->thread, NULL);
        ASSERT(failure == 0);
    }
    if (server->daemon != NULL) MHD_stop_daemon(server->daemon);
    if (server->wake_fd >= 0) (void)close(server->wake_fd); /* Nothing is lost with it. */
    socket_linger_done(&server->linger);
    if (server->has_lock) (void)pthread_mutex_destroy(&server->lock); /* Nobody holds it. */
    memory_free(NULL, server->slots, server->slot_count * sizeof *server->slots);
    memory_free(NULL, server->polls, server->slot_count * sizeof *server->polls);
    memory_free(NULL, server->poll_slots, server->slot_count * sizeof *server->poll_slots);
    memory_free(NULL, server, sizeof *server);
}

void http_request_done(struct http_request *request)
{
    buf_done(&request->head);
    buf_done(&request->body);
    *request = (struct http_request){0};
}
