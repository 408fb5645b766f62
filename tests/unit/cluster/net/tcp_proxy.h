/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_proxy.h - a network between a test and a server that can be cut and held.
 *
 *     tcp_proxy_open -> (tcp_proxy_cut | tcp_proxy_hold)* -> tcp_proxy_close
 *
 * A thread takes connections on a port of loopback and carries bytes to and from the server. Cut:
 * all connections end at once. Held: they stay, and nothing is carried, as with a server that
 * hangs.
 */
#ifndef UNIT_IO_TCP_PROXY_H
#define UNIT_IO_TCP_PROXY_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TCP_PROXY_PAIRS = 64 };

/* Bytes on their way from one socket to the other. */
struct tcp_proxy_way {
    unsigned char bytes[65536];
    size_t begin;
    size_t end;
};

struct tcp_proxy_pair {
    int fds[2]; /* The client's and the server's; -1: free. */
    struct tcp_proxy_way ways[2];
};

struct tcp_proxy {
    int listen_fd;
    uint16_t port;
    uint16_t server_port;
    pthread_t thread;
    atomic_bool is_held;
    atomic_bool is_ending;
    atomic_uint cuts_wanted;
    atomic_uint cuts_done;
    struct tcp_proxy_pair pairs[TCP_PROXY_PAIRS];
};

static struct sockaddr_in tcp_proxy_address(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

static void tcp_proxy_end_pair(struct tcp_proxy_pair *pair)
{
    (void)close(pair->fds[0]);
    (void)close(pair->fds[1]);
    pair->fds[0] = pair->fds[1] = -1;
}

static void tcp_proxy_accept(struct tcp_proxy *proxy)
{
    int client = accept(proxy->listen_fd, NULL, NULL);
    if (client < 0) return;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = tcp_proxy_address(proxy->server_port);
    struct tcp_proxy_pair *pair = proxy->pairs;
    while (pair < proxy->pairs + TCP_PROXY_PAIRS && pair->fds[0] >= 0) {
        pair++;
    }
    if (pair == proxy->pairs + TCP_PROXY_PAIRS ||
        connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(client);
        (void)close(server);
        return;
    }
    pair->fds[0] = client;
    pair->fds[1] = server;
    for (int i = 0; i < 2; i++) {
        pair->ways[i].begin = pair->ways[i].end = 0;
    }
}

/* False: one end is closed. */
static bool tcp_proxy_carry(struct tcp_proxy_pair *pair, int from)
{
    struct tcp_proxy_way *way = &pair->ways[from];
    if (way->begin == way->end) {
        way->begin = way->end = 0;
        ssize_t got = recv(pair->fds[from], way->bytes, sizeof way->bytes, MSG_DONTWAIT);
        if (got == 0) return false;
        if (got > 0) way->end = (size_t)got;
    }
    if (way->begin < way->end) {
        ssize_t put = send(pair->fds[1 - from], way->bytes + way->begin, way->end - way->begin,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put > 0) way->begin += (size_t)put;
    }
    return true;
}

static void tcp_proxy_step(struct tcp_proxy *proxy)
{
    struct pollfd fds[1 + 2 * TCP_PROXY_PAIRS];
    nfds_t count = 0;
    fds[count++] = (struct pollfd){.fd = proxy->listen_fd, .events = POLLIN};
    for (int i = 0; i < TCP_PROXY_PAIRS; i++) {
        const struct tcp_proxy_pair *pair = &proxy->pairs[i];
        if (pair->fds[0] < 0 || atomic_load(&proxy->is_held)) continue;
        for (int side = 0; side < 2; side++) {
            const struct tcp_proxy_way *out = &pair->ways[1 - side];
            const struct tcp_proxy_way *in = &pair->ways[side];
            short events = 0;
            if (in->begin == in->end) events = (short)(events | POLLIN);
            if (out->begin != out->end) events = (short)(events | POLLOUT);
            fds[count++] = (struct pollfd){.fd = pair->fds[side], .events = events};
        }
    }
    (void)poll(fds, count, 20);
    if ((fds[0].revents & POLLIN) != 0) tcp_proxy_accept(proxy);
    if (atomic_load(&proxy->is_held)) return;
    for (int i = 0; i < TCP_PROXY_PAIRS; i++) {
        struct tcp_proxy_pair *pair = &proxy->pairs[i];
        if (pair->fds[0] < 0) continue;
        if (!tcp_proxy_carry(pair, 0) || !tcp_proxy_carry(pair, 1)) tcp_proxy_end_pair(pair);
    }
}

static void *tcp_proxy_run(void *argument)
{
    struct tcp_proxy *proxy = argument;
    while (!atomic_load(&proxy->is_ending)) {
        if (atomic_load(&proxy->cuts_wanted) != atomic_load(&proxy->cuts_done)) {
            for (int i = 0; i < TCP_PROXY_PAIRS; i++) {
                if (proxy->pairs[i].fds[0] >= 0) tcp_proxy_end_pair(&proxy->pairs[i]);
            }
            atomic_fetch_add(&proxy->cuts_done, 1);
        }
        tcp_proxy_step(proxy);
    }
    return NULL;
}

/* False: the system refuses. */
static bool tcp_proxy_open(struct tcp_proxy *proxy, uint16_t server_port)
{
    for (int i = 0; i < TCP_PROXY_PAIRS; i++) {
        proxy->pairs[i].fds[0] = proxy->pairs[i].fds[1] = -1;
    }
    proxy->server_port = server_port;
    proxy->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = tcp_proxy_address(0);
    socklen_t size = sizeof address;
    if (bind(proxy->listen_fd, (struct sockaddr *)&address, sizeof address) != 0) return false;
    if (listen(proxy->listen_fd, 16) != 0) return false;
    if (getsockname(proxy->listen_fd, (struct sockaddr *)&address, &size) != 0) return false;
    proxy->port = ntohs(address.sin_port);
    return pthread_create(&proxy->thread, NULL, tcp_proxy_run, proxy) == 0;
}

static void tcp_proxy_close(struct tcp_proxy *proxy)
{
    atomic_store(&proxy->is_ending, true);
    (void)pthread_join(proxy->thread, NULL);
    for (int i = 0; i < TCP_PROXY_PAIRS; i++) {
        if (proxy->pairs[i].fds[0] >= 0) tcp_proxy_end_pair(&proxy->pairs[i]);
    }
    (void)close(proxy->listen_fd);
}

static void tcp_proxy_cut(struct tcp_proxy *proxy)
{
    unsigned wanted = atomic_fetch_add(&proxy->cuts_wanted, 1) + 1;
    while (atomic_load(&proxy->cuts_done) < wanted) {
        (void)poll(NULL, 0, 1);
    }
}

static void tcp_proxy_hold(struct tcp_proxy *proxy, bool is_held)
{
    atomic_store(&proxy->is_held, is_held);
}

#endif
