/* SPDX-License-Identifier: Apache-2.0 */
/* http_world.h - an HTTP server and a client in one process, for the tests of both.
 *
 * The server's listener echoes bodies (any path), tells what it was asked (/tell), or holds
 * requests until the test replies (/hold).
 */
#ifndef UNIT_IO_HTTP_WORLD_H
#define UNIT_IO_HTTP_WORLD_H

#include "unit/test.h"

#include <errno.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "engine/file/clock.h"
#include "cluster/net/http_client.h"
#include "cluster/net/http_server.h"

enum {
    BODY_LIMIT = 1 << 20,
    BUDGET = 64 << 20,
    HEADER_LIMIT = 16 << 10,
    HELD_MAX = 256,
    LONG_MS = 10000,
    SWEEP_NEVER_MS = 24 * 3600 * 1000 /* So that nobody is helped by it. */
};

/* ---- both sides ---- */

/* PEM files; NULL: without TLS. */
struct world_tls {
    const char *certificate;
    const char *key;
    const char *ca;
};
static struct world_tls world_tls;

struct http_world {
    struct http_listener listener;
    struct http_server *server;
    struct http_client *client;
    struct budget bodies;
    uint64_t next_id;
    pthread_mutex_t lock;
    struct http_request held[HELD_MAX];
    uint32_t held_count;
    uint64_t gone[HELD_MAX];
    uint32_t gone_count;
    uint32_t request_count;
};

static inline bool starts_with(struct text text, const char *prefix)
{
    return text.size >= strlen(prefix) && memcmp(text.bytes, prefix, strlen(prefix)) == 0;
}

/* Runs in the server's thread: no assertions here. */
static inline void on_request(struct http_listener *listener, struct http_request *request)
{
    struct http_world *world = (struct http_world *)listener;
    struct http_reply reply = {.status = 200, .content_type = "text/plain"};
    pthread_mutex_lock(&world->lock);
    world->request_count++;
    bool hold = starts_with(request->path, "/hold") && world->held_count < HELD_MAX;
    if (hold) world->held[world->held_count++] = *request;
    pthread_mutex_unlock(&world->lock);
    if (hold) return;
    if (starts_with(request->path, "/tell")) {
        buf_format(&reply.body, "%.*s|%.*s|%.*s|%.*s|%.*s|%zu", TEXT_ARGS(request->method),
                   TEXT_ARGS(request->path), TEXT_ARGS(request->query),
                   TEXT_ARGS(request->headers[0]), TEXT_ARGS(request->headers[1]),
                   request->body.size);
    } else if (starts_with(request->path, "/nothing")) {
        reply.status = 204;
    } else if (starts_with(request->path, "/later")) {
        reply = (struct http_reply){.status = 429, .retry_after_ms = 1001};
    } else {
        reply.body = request->body;
        request->body = (struct buf){0};
    }
    http_server_reply(world->server, request->id, &reply);
    http_request_done(request);
}

static inline void on_gone(struct http_listener *listener, uint64_t id)
{
    struct http_world *world = (struct http_world *)listener;
    pthread_mutex_lock(&world->lock);
    if (world->gone_count < HELD_MAX) world->gone[world->gone_count++] = id;
    pthread_mutex_unlock(&world->lock);
}

static inline struct http_server_options server_options(struct http_world *world)
{
    return (struct http_server_options){
        .address = "127.0.0.1",
        .body_limit = BODY_LIMIT,
        .bodies = &world->bodies,
        .header_limit = HEADER_LIMIT,
        .connection_limit = 64,
        .idle_timeout_s = scaled_ms(30000) / 1000,
        .deadline_ms = scaled_ms(20000),
        .certificate = world_tls.certificate,
        .key = world_tls.key,
        .header_names = {"X-One", "x-two"},
    };
}

static inline struct http_client_options client_options(void)
{
    return (struct http_client_options){
        .connect_timeout_ms = scaled_ms(2000),
        .timeout_margin_ms = scaled_ms(100),
        .connections_per_host = 16,
        .call_limit = 256,
        .body_limit = 4 << 20,
        .user_agent = "test",
        .ca = world_tls.ca,
    };
}

static inline void world_open_client(struct http_world *world)
{
    struct error err;
    struct http_client_options options = client_options();
    assert_int_equal(http_client_open(&options, &world->client, &err), 0);
}

static inline void world_open(struct http_world *world, const struct http_server_options *options)
{
    struct error err;
    *world = (struct http_world){
        .listener = {.request = on_request, .gone = on_gone},
        .bodies = {.limit_bytes = BUDGET},
        .next_id = 1,
    };
    struct http_server_options for_server = options != NULL ? *options : server_options(world);
    assert_int_equal(pthread_mutex_init(&world->lock, NULL), 0);
    assert_int_equal(http_server_open(&for_server, &world->listener, &world->server, &err), 0);
    world_open_client(world);
}

static inline void world_close(struct http_world *world)
{
    http_server_close(world->server);
    http_client_close(world->client);
    for (uint32_t i = 0; i < world->held_count; i++) {
        http_request_done(&world->held[i]);
    }
    pthread_mutex_destroy(&world->lock);
    assert_int_equal(atomic_load(&world->bodies.used_bytes), 0);
}

static inline uint32_t counted(struct http_world *world, const uint32_t *counter)
{
    pthread_mutex_lock(&world->lock);
    uint32_t count = *counter;
    pthread_mutex_unlock(&world->lock);
    return count;
}

static inline void wait_for(struct http_world *world, const uint32_t *counter, uint32_t wanted)
{
    uint64_t end_ms = clock_ms() + scaled_ms(LONG_MS);
    while (counted(world, counter) < wanted && clock_ms() < end_ms) {
        usleep(1000);
    }
    assert_true(counted(world, counter) >= wanted);
}

/* Until bodies take up so much, and no more. */
static inline void wait_until_bodies_take(struct http_world *world, size_t bytes)
{
    uint64_t end_ms = clock_ms() + scaled_ms(LONG_MS);
    while (atomic_load(&world->bodies.used_bytes) != bytes && clock_ms() < end_ms) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&world->bodies.used_bytes), bytes);
}

/* The client works until the server holds so many requests; none is answered meanwhile. */
static inline void wait_until_held(struct http_world *world, uint32_t wanted)
{
    struct http_done done;
    struct error err;
    bool any = false;
    uint64_t end_ms = clock_ms() + scaled_ms(LONG_MS);
    while (counted(world, &world->held_count) < wanted && clock_ms() < end_ms) {
        assert_int_equal(http_client_poll(world->client, 1, &done, &any, &err), STATUS_OK);
        assert_false(any);
    }
    assert_int_equal(counted(world, &world->held_count), wanted);
}

static inline void start(struct http_world *world, uint64_t id, const char *method,
                         const char *target, struct text body)
{
    static const char *const headers[] = {"X-One: first", "X-Two: second, third"};
    char base[64];
    struct error err;
    (void)snprintf(base, sizeof base, "%s://127.0.0.1:%u",
                   world_tls.certificate != NULL ? "https" : "http",
                   http_server_port(world->server));
    struct http_call call = {
        .base = base,
        .method = text_of(method),
        .target = text_of(target),
        .headers = headers,
        .header_count = 2,
        .body = body,
        .timeout_ms = scaled_ms(LONG_MS),
    };
    assert_int_equal(http_client_start(world->client, id, &call, &err), STATUS_OK);
}

static inline void finish(struct http_client *client, struct http_done *done)
{
    struct error err;
    bool any = false;
    uint64_t end_ms = clock_ms() + scaled_ms(LONG_MS);
    while (!any && clock_ms() < end_ms) {
        assert_int_equal(http_client_poll(client, 100, done, &any, &err), STATUS_OK);
    }
    assert_true(any);
}

static inline struct http_done call(struct http_world *world, const char *method,
                                    const char *target, struct text body)
{
    struct http_done done;
    uint64_t id = world->next_id++;
    start(world, id, method, target, body);
    finish(world->client, &done);
    assert_int_equal(done.id, id);
    return done;
}

static inline void expect_status(struct http_world *world, const char *method, const char *target,
                                 struct text body, uint32_t expected)
{
    struct http_done done = call(world, method, target, body);
    assert_string_equal(done.error.text, "");
    assert_int_equal(done.status, expected);
    buf_done(&done.body);
}

static inline struct buf make_bytes(size_t size)
{
    struct buf buf = {0};
    assert_true(buf_reserve(&buf, size + 1));
    for (size_t i = 0; i < size; i++) {
        buf.bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    buf.size = size;
    return buf;
}

static inline struct text buf_text(const struct buf *buf)
{
    return (struct text){(const char *)buf->bytes, (uint32_t)buf->size};
}

static const struct text nothing = TEXT_INIT("");

/* Replies from a thread of its own, last request first, each with its own body. */
static inline void *reply_in_reverse(void *context)
{
    struct http_world *world = context;
    pthread_mutex_lock(&world->lock);
    while (world->held_count > 0) {
        struct http_request request = world->held[--world->held_count];
        struct http_reply reply = {.status = 200, .body = request.body};
        request.body = (struct buf){0};
        pthread_mutex_unlock(&world->lock);
        http_server_reply(world->server, request.id, &reply);
        http_request_done(&request);
        pthread_mutex_lock(&world->lock);
    }
    pthread_mutex_unlock(&world->lock);
    return NULL;
}

/* ---- a plain socket ---- */

static inline int raw_open(const struct http_world *world)
{
    struct timeval limit = {.tv_sec = scaled_ms(LONG_MS) / 1000};
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(http_server_port(world->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* False when the other side has closed. */
static inline bool raw_send(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static inline void raw_say(int fd, const char *text)
{
    assert_true(raw_send(fd, text, strlen(text)));
}

/* Until `wanted` stands in what has come, or (NULL) the other side has closed. */
static inline bool raw_read(int fd, const char *wanted, char *out, size_t out_size)
{
    size_t size = 0;
    out[0] = '\0';
    while (size + 1 < out_size) {
        ssize_t got = recv(fd, out + size, out_size - size - 1, 0);
        if (got <= 0) return wanted == NULL && (got == 0 || errno == ECONNRESET);
        size += (size_t)got;
        out[size] = '\0';
        if (wanted != NULL && strstr(out, wanted) != NULL) return true;
    }
    return false;
}

static inline bool raw_is_closed_within(int fd, uint32_t ms)
{
    char text[4096];
    uint64_t begin_ms = clock_ms();
    return raw_read(fd, NULL, text, sizeof text) && clock_ms() - begin_ms <= ms;
}

#endif
