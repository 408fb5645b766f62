/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c - libmicrohttpd speaks HTTP; here are its daemon, the thread, and the sweep.
 *
 * The library runs in external-polling mode, driven by one thread of ours. So everything about
 * connections happens in that thread: the library's callbacks (http_exchange.c), and between them
 * the sweep, which looks for clients that are too slow or have hung up.
 *
 * The thread waits for the library's epoll and for an eventfd of ours. The eventfd is for events
 * that the library notices only when it runs: resumed connections, and room below the connection
 * limit.
 */
#include "cluster/net/http_server.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "cluster/net/http_exchange.h"
#include "cluster/net/http_slot.h"
#include "cluster/store/secret_file.h"
#include "cluster/net/socket_linger.h"

enum {
    SWEEP_MS = 50,
    CLOSE_MS = 1000,
    BODY_READ_BYTES = 128 << 10, /* Of a body, at a time. */
    SLOTS_SPARE = 8, /* The library counts a connection a little longer than its slot is used. */
    SLOTS_MAX = 1 << 20
};

/* ---- the sweep ---- */

/* The library closes a connection without any byte after the idle timeout; one that is idle for
 * longer is sending a request line, slowly. With TLS, a client can send many bytes before its first
 * request line, so the handshake has a deadline of its own. */
static bool is_overdue(const struct http_server *server, const struct http_slot *slot, uint64_t now)
{
    uint64_t deadline_ms = server->options.deadline_ms;
    switch (slot->state) {
    case SLOT_IDLE:
        if (server->options.key != NULL && !slot->has_asked) {
            return now - slot->since_ms > deadline_ms;
        }
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
    http_slots_lock(server);
    uint64_t now = http_now_ms();
    for (uint32_t i = 0; i < server->slot_count; i++) {
        struct http_slot *slot = &server->slots[i];
        if (is_overdue(server, slot, now)) {
            (void)shutdown(slot->socket, SHUT_RDWR); /* Fails when it is shut already. */
        } else if (slot->state == SLOT_WAITING) {
            server->poll_slots[poll_count] = i;
            server->polls[poll_count++] = (struct pollfd){.fd = slot->socket, .events = POLLRDHUP};
        }
    }
    http_slots_unlock(server);
    socket_linger_sweep(&server->linger, now);
    if (poll_count == 0 || poll(server->polls, poll_count, 0) <= 0) return;
    for (nfds_t i = 0; i < poll_count; i++) {
        if (server->polls[i].revents == 0) continue;
        struct http_slot *slot = &server->slots[server->poll_slots[i]];
        uint64_t id = http_slot_id(server, slot);
        if (!http_slot_leave(server, slot, SLOT_WAITING, SLOT_LOST)) continue;
        http_slot_resume(server, slot);
        server->listener->gone(server->listener, id);
    }
}

/* ---- the thread ---- */

static void run_until(struct http_server *server, uint64_t until_ms)
{
    uint64_t now = http_now_ms();
    uint64_t wait_ms = until_ms > now ? until_ms - now : 0;
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES && timeout_ms < wait_ms) {
        wait_ms = timeout_ms;
    }
    struct pollfd fds[] = {{.fd = server->epoll_fd, .events = POLLIN},
                           {.fd = server->wake_fd, .events = POLLIN}};
    bool is_polled = poll(fds, 2, (int)wait_ms) >= 0;
    /* Emptied before the library runs: a connection resumed from here on wakes the next turn. */
    eventfd_t count;
    if (fds[1].revents != 0) (void)eventfd_read(server->wake_fd, &count); /* It is not empty. */
    if (MHD_run_wait(server->daemon, 0) == MHD_YES && is_polled) return;
    /* Polling failed, for want of memory for example, which may pass: no busy loop meanwhile. */
    (void)poll(NULL, 0, SWEEP_MS);
}

static bool is_any_replying(struct http_server *server)
{
    bool any = false;
    http_slots_lock(server);
    for (uint32_t i = 0; i < server->slot_count; i++) {
        enum http_slot_state state = server->slots[i].state;
        any = any || state == SLOT_ANSWERED || state == SLOT_LOST || state == SLOT_SENDING;
    }
    http_slots_unlock(server);
    return any;
}

/* MHD_stop_daemon must not find suspended connections. */
static void turn_away(struct http_server *server)
{
    for (uint32_t i = 0; i < server->slot_count; i++) {
        struct http_slot *slot = &server->slots[i];
        if (http_slot_state(server, slot) != SLOT_WAITING) continue;
        struct http_reply refusal;
        http_make_refusal(&refusal, MHD_HTTP_SERVICE_UNAVAILABLE);
        http_slots_lock(server);
        bool waits = slot->state == SLOT_WAITING;
        if (waits) {
            slot->reply = refusal;
            http_slot_move_locked(slot, SLOT_ANSWERED);
        }
        http_slots_unlock(server);
        if (waits) {
            http_slot_resume(server, slot);
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
        if (http_now_ms() < next_sweep_ms) continue;
        sweep(server);
        next_sweep_ms = http_now_ms() + server->options.sweep_ms;
    }
    uint64_t end_ms = http_now_ms() + CLOSE_MS;
    turn_away(server);
    while (is_any_replying(server) && http_now_ms() < end_ms) {
        run_until(server, http_now_ms() + SWEEP_MS);
        turn_away(server); /* Requests whose last byte came only now. */
    }
    /* In this thread, which blocks all signals: with TLS it writes to clients that may be gone,
     * which could raise SIGPIPE. */
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    return NULL;
}

/* Signals belong to the threads of the program. */
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
        return error_set(err, STATUS_IO, "cannot listen on %s: %s", options->address,
                         gai_strerror(failure));
    }
    int fd = -1;
    for (const struct addrinfo *each = found; each != NULL && fd < 0; each = each->ai_next) {
        fd = bind_socket(each);
    }
    int reason = errno;
    freeaddrinfo(found);
    if (fd < 0) {
        return error_set(err, STATUS_IO, "cannot listen on %s, port %s: %s", options->address, port,
                         strerror(reason));
    }
    *out_socket = fd;
    return STATUS_OK;
}

static status open_wake(struct http_server *server, struct error *err)
{
    server->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (server->wake_fd >= 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot make an eventfd: %s", strerror(errno));
}

/* ---- the library ---- */

static void note_words(void *context, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static void note_words(void *context, const char *format, va_list arguments)
{
    struct http_server *server = context;
    if (!server->is_starting) return;
    (void)vsnprintf(server->words, sizeof server->words, format, arguments); /* May be cut. */
    server->words[strcspn(server->words, "\n")] = '\0';
}

/* PEM texts, each followed by a zero; empty: no TLS. */
struct tls_files {
    struct arena arena;
    struct text certificate;
    struct text key;
};

static status tls_files_read(const struct http_server_options *options, struct tls_files *out,
                             struct error *err)
{
    if (options->certificate == NULL) return STATUS_OK;
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        return error_set(err, STATUS_USAGE, "this libmicrohttpd was built without TLS");
    }
    TRY(secret_file_read_certificates(options->certificate, &out->arena, &out->certificate, err));
    return secret_file_read_key(options->key, &out->arena, &out->key, err);
}

static void tls_files_done(struct tls_files *files)
{
    if (files->key.size > 0) explicit_bzero((void *)(uintptr_t)files->key.bytes, files->key.size);
    arena_done(&files->arena);
}

/* The library reads into half of it, and itself refuses a head that is longer. */
static size_t connection_memory(const struct http_server_options *options)
{
    size_t read = options->header_limit > BODY_READ_BYTES ? options->header_limit : BODY_READ_BYTES;
    return 2 * read;
}

/* The library owns the socket from the call on, also if it fails. */
static bool start_daemon(struct http_server *server, const struct tls_files *files, int fd)
{
    /* TLS 1.2 or later, with forward secrecy: a key stolen later opens no recorded session. */
    static const char priorities[] = "PFS:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    const struct http_server_options *options = &server->options;
    bool is_tls = options->certificate != NULL;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)files->certificate.bytes},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)files->key.bytes},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    server->is_starting = true;
    server->daemon = MHD_start_daemon(
        flags | (is_tls ? MHD_USE_TLS : 0u), 0, NULL, NULL, http_exchange_request, server,
        MHD_OPTION_EXTERNAL_LOGGER, note_words, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory(options), MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)options->connection_limit, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)options->address_limit, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)options->idle_timeout_s, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_COMPLETED, http_exchange_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        http_exchange_connection, server, MHD_OPTION_URI_LOG_CALLBACK, http_exchange_request_line,
        server, MHD_OPTION_ARRAY, is_tls ? tls : plain, MHD_OPTION_END);
    server->is_starting = false;
    if (server->daemon == NULL) return false;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->epoll_fd = info != NULL ? info->epoll_fd : -1;
    return server->epoll_fd >= 0;
}

static status daemon_fail(const struct http_server *server, struct error *err)
{
    const char *words = server->words[0] != '\0' ? server->words : "it gives no reason";
    if (server->options.certificate == NULL) {
        return error_set(err, STATUS_IO, "cannot start libmicrohttpd: %s", words);
    }
    return error_set(err, STATUS_USAGE,
                     "the certificate %.500s can't be used with the key %.500s: %s",
                     server->options.certificate, server->options.key, words);
}

static status start(struct http_server *server, struct error *err)
{
    struct tls_files files = {0};
    int fd = -1;
    status result = tls_files_read(&server->options, &files, err);
    if (result == STATUS_OK) result = open_wake(server, err);
    if (result == STATUS_OK) result = open_socket(&server->options, &fd, err);
    if (result == STATUS_OK) {
        server->port = bound_port(fd);
        if (!start_daemon(server, &files, fd)) {
            result = daemon_fail(server, err);
        } else if (start_thread(server) != 0) {
            result = error_set(err, STATUS_IO, "cannot start a thread for the HTTP server");
        }
    }
    tls_files_done(&files);
    return result;
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
    if (options->sweep_ms == 0) server->options.sweep_ms = SWEEP_MS;
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
    ASSERT((options->certificate == NULL) == (options->key == NULL));
    struct http_server *server = NULL;
    TRY(create_server(options, listener, &server, err));
    status result = start(server, err);
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
    struct http_slot *slot = &server->slots[id % server->slot_count];
    http_slots_lock(server);
    bool waits = slot->state == SLOT_WAITING && http_slot_id(server, slot) == id;
    if (waits) {
        slot->reply = *reply;
        http_slot_move_locked(slot, SLOT_ANSWERED);
    }
    http_slots_unlock(server);
    if (waits) {
        http_slot_resume(server, slot);
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
        http_server_wake(server);
        int failure = pthread_join(server->thread, NULL);
        ASSERT(failure == 0);
    }
    if (server->daemon != NULL) MHD_stop_daemon(server->daemon);
    if (server->wake_fd >= 0) (void)close(server->wake_fd); /* Nothing is lost with it. */
    socket_linger_done(&server->linger);
    if (server->has_lock) (void)pthread_mutex_destroy(&server->lock); /* No thread holds it. */
    memory_free(NULL, server->slots, server->slot_count * sizeof *server->slots);
    memory_free(NULL, server->polls, server->slot_count * sizeof *server->polls);
    memory_free(NULL, server->poll_slots, server->slot_count * sizeof *server->poll_slots);
    memory_free(NULL, server, sizeof *server);
}
