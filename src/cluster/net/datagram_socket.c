/* SPDX-License-Identifier: Apache-2.0 */
/* datagram_socket.c - a UDP socket, and an eventfd that wakes its receiver.
 *
 * A socket for all addresses is a dual-stack IPv6 socket where the system has IPv6. It shows IPv4
 * addresses as IPv4-mapped ones (RFC 4291 section 2.5.5.2); outside of this file they are IPv4, so
 * that a resolved address and the sender of a datagram compare equal.
 */
#include "cluster/net/datagram_socket.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "engine/file/clock.h"

/* The buffer holds the heartbeats that come while a monitor is stopped: a monitor that continues
 * reads them before it suspects a node. */
enum { RECEIVE_BUFFER_BYTES = 4 << 20, MAPPED_AT = 12 };

static_assert(sizeof(struct sockaddr_in6) == SOCKET_ADDRESS_BYTES, "the larger one just fits");
static_assert(sizeof(struct sockaddr_in) <= SOCKET_ADDRESS_BYTES, "the smaller one fits");

struct datagram_socket {
    int fd;
    int wake_fd;
    int family;
    uint16_t port;
    atomic_bool is_closing;
    pthread_mutex_t receiving; /* Held by the receiver, so that close can wait for it. */
};

/* ---- addresses ---- */

/* IPv4-mapped becomes IPv4; fields that are no part of the address are cleared. */
static void address_store(const struct sockaddr_storage *from, struct socket_address *out)
{
    struct socket_address address = {.size = 0};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6;
    memcpy(&v6, from, sizeof v6);
    if (from->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
        v6.sin6_flowinfo = 0;
        memcpy(address.bytes, &v6, sizeof v6);
        address.size = sizeof v6;
    } else if (from->ss_family == AF_INET6) {
        v4.sin_port = v6.sin6_port;
        memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + MAPPED_AT, sizeof v4.sin_addr);
    } else if (from->ss_family == AF_INET) {
        struct sockaddr_in found;
        memcpy(&found, from, sizeof found);
        v4.sin_port = found.sin_port;
        v4.sin_addr = found.sin_addr;
    }
    if (address.size == 0) {
        memcpy(address.bytes, &v4, sizeof v4);
        address.size = sizeof v4;
    }
    *out = address;
}

/* The address in the form of a socket of that family; false: such a socket cannot reach it. */
static bool address_load(const struct socket_address *address, int family,
                         struct sockaddr_storage *out, socklen_t *out_size)
{
    *out = (struct sockaddr_storage){0};
    if (address->size == 0 || address->size > sizeof address->bytes) return false;
    memcpy(out, address->bytes, address->size);
    *out_size = address->size;
    if (out->ss_family == family) return true;
    if (out->ss_family != AF_INET || family != AF_INET6) return false;
    struct sockaddr_in v4;
    memcpy(&v4, out, sizeof v4);
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = v4.sin_port};
    v6.sin6_addr.s6_addr[10] = 0xff;
    v6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(v6.sin6_addr.s6_addr + MAPPED_AT, &v4.sin_addr, sizeof v4.sin_addr);
    memcpy(out, &v6, sizeof v6);
    *out_size = sizeof v6;
    return true;
}

/* 0, or a problem of getaddrinfo's. */
static int ask_system(const char *host, uint16_t port, int flags, struct addrinfo **out)
{
    char service[8];
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM, .ai_flags = flags | AI_NUMERICSERV};
    (void)snprintf(service, sizeof service, "%u", (unsigned)port); /* Fits. */
    return getaddrinfo(host, service, &hints, out);
}

static status look_up(const char *host, uint16_t port, struct addrinfo **out, struct error *err)
{
    int problem = ask_system(host, port, 0, out);
    if (problem == 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot resolve %.200s: %s", host, gai_strerror(problem));
}

/* The first IPv4 or IPv6 address; frees the list. */
static bool take_first(struct addrinfo *found, struct socket_address *out)
{
    const struct addrinfo *at = found;
    while (at != NULL && at->ai_family != AF_INET && at->ai_family != AF_INET6) {
        at = at->ai_next;
    }
    if (at != NULL) {
        struct sockaddr_storage address = {0};
        memcpy(&address, at->ai_addr, at->ai_addrlen);
        address_store(&address, out);
    }
    freeaddrinfo(found);
    return at != NULL;
}

bool socket_address_parse(const char *host, uint16_t port, struct socket_address *out)
{
    struct addrinfo *found = NULL;
    if (ask_system(host, port, AI_NUMERICHOST, &found) != 0) return false;
    return take_first(found, out);
}

status socket_address_find(const char *host, uint16_t port, struct socket_address *out,
                           struct error *err)
{
    struct addrinfo *found = NULL;
    TRY(look_up(host, port, &found, err));
    if (take_first(found, out)) return STATUS_OK;
    return error_set(err, STATUS_IO, "%.200s has neither an IPv4 nor an IPv6 address", host);
}

/* ---- opening ---- */

/* 0, or errno. */
static int bind_once(struct datagram_socket *udp, const struct sockaddr *address,
                     socklen_t address_size)
{
    int family = address->sa_family;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    int no = 0;
    int size = RECEIVE_BUFFER_BYTES;
    if (family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    /* The system gives less if it must. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    struct sockaddr_storage bound = {0};
    socklen_t bound_size = sizeof bound;
    if (bind(fd, address, address_size) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &bound_size) != 0) {
        int number = errno;
        (void)close(fd); /* Nothing was sent. */
        return number;
    }
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;
    memcpy(&v6, &bound, sizeof v6);
    memcpy(&v4, &bound, sizeof v4);
    udp->port = ntohs(family == AF_INET6 ? v6.sin6_port : v4.sin_port);
    udp->family = family;
    udp->fd = fd;
    return 0;
}

static int bind_all(struct datagram_socket *udp, uint16_t port)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    int number = bind_once(udp, (const struct sockaddr *)&v6, sizeof v6);
    if (number == 0 || number == EADDRINUSE) return number;
    return bind_once(udp, (const struct sockaddr *)&v4, sizeof v4); /* A host without IPv6. */
}

static status bind_host(struct datagram_socket *udp, const char *host, uint16_t port,
                        struct error *err)
{
    int number = EADDRNOTAVAIL;
    char reason[128];
    if (host == NULL) {
        number = bind_all(udp, port);
    } else {
        struct addrinfo *found = NULL;
        TRY(look_up(host, port, &found, err));
        for (const struct addrinfo *at = found; at != NULL && number != 0; at = at->ai_next) {
            if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
            number = bind_once(udp, at->ai_addr, at->ai_addrlen);
            if (number == EADDRINUSE) break;
        }
        freeaddrinfo(found);
    }
    if (host == NULL) host = "this host";
    switch (number) {
    case 0:
        return STATUS_OK;
    case EADDRINUSE:
        return error_set(err, STATUS_IO, "UDP port %u of %.200s is in use by another process",
                         (unsigned)port, host);
    case EADDRNOTAVAIL:
        return error_set(err, STATUS_IO, "%.200s is no address of this host", host);
    default:
        return error_set(err, STATUS_IO, "cannot bind UDP %.200s:%u: %s", host, (unsigned)port,
                         strerror_r(number, reason, sizeof reason));
    }
}

status datagram_socket_open(const char *host, uint16_t port, struct datagram_socket **out,
                            struct error *err)
{
    struct datagram_socket *udp = memory_alloc(NULL, sizeof *udp);
    if (udp == NULL) return error_memory(err);
    *udp = (struct datagram_socket){.fd = -1, .wake_fd = -1};
    int problem = pthread_mutex_init(&udp->receiving, NULL);
    ASSERT(problem == 0); /* A plain mutex allocates nothing. */
    status result = bind_host(udp, host, port, err);
    if (result == STATUS_OK) {
        udp->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (udp->wake_fd < 0) {
            result = error_set(err, STATUS_IO, "cannot make an eventfd: %s", strerror(errno));
        }
    }
    if (result != STATUS_OK) {
        datagram_socket_close(udp);
        return result;
    }
    *out = udp;
    return STATUS_OK;
}

uint16_t datagram_socket_port(const struct datagram_socket *udp)
{
    return udp->port;
}

/* ---- use ---- */

bool datagram_socket_send(struct datagram_socket *udp, const struct socket_address *to,
                          const void *bytes, size_t size)
{
    struct sockaddr_storage address;
    socklen_t address_size = 0;
    if (!address_load(to, udp->family, &address, &address_size)) return false;
    ssize_t sent;
    do {
        sent = sendto(udp->fd, bytes, size, MSG_DONTWAIT, (const struct sockaddr *)&address,
                      address_size);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0 && (size_t)sent == size;
}

/* A datagram that has arrived; 0: none. Empty datagrams are ignored. */
static size_t receive_now(struct datagram_socket *udp, void *out, size_t capacity,
                          struct socket_address *out_from)
{
    struct sockaddr_storage from = {0};
    socklen_t from_size = sizeof from;
    ssize_t size =
        recvfrom(udp->fd, out, capacity, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
    if (size <= 0) return 0;
    address_store(&from, out_from);
    return (size_t)size;
}

/* True: woken; the wake is used up. */
static bool take_wake(struct datagram_socket *udp)
{
    uint64_t count;
    return read(udp->wake_fd, &count, sizeof count) == (ssize_t)sizeof count;
}

static size_t receive_until(struct datagram_socket *udp, uint64_t deadline_ms, void *out,
                            size_t capacity, struct socket_address *out_from)
{
    for (;;) {
        if (atomic_load(&udp->is_closing)) return 0;
        uint64_t now_ms = clock_ms();
        uint64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
        struct pollfd polls[2] = {{.fd = udp->fd, .events = POLLIN},
                                  {.fd = udp->wake_fd, .events = POLLIN}};
        int ready = poll(polls, 2, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
        if (ready > 0 && polls[0].revents != 0) {
            size_t size = receive_now(udp, out, capacity, out_from);
            if (size > 0) return size;
        }
        if (ready > 0 && polls[1].revents != 0 && take_wake(udp)) return 0;
        if (left_ms == 0) return 0;
    }
}

size_t datagram_socket_receive(struct datagram_socket *udp, uint32_t timeout_ms, void *out,
                               size_t capacity, struct socket_address *out_from)
{
    (void)pthread_mutex_lock(&udp->receiving); /* Fails for misuse only, as unlocking does. */
    size_t size = receive_until(udp, clock_ms() + timeout_ms, out, capacity, out_from);
    (void)pthread_mutex_unlock(&udp->receiving);
    return size;
}

void datagram_socket_wake(struct datagram_socket *udp)
{
    uint64_t one = 1;
    /* A full counter is readable, and so wakes as well. */
    if (write(udp->wake_fd, &one, sizeof one) < 0) return;
}

void datagram_socket_close(struct datagram_socket *udp)
{
    if (udp == NULL) return;
    atomic_store(&udp->is_closing, true);
    if (udp->wake_fd >= 0) datagram_socket_wake(udp);
    (void)pthread_mutex_lock(&udp->receiving);
    (void)pthread_mutex_unlock(&udp->receiving);
    (void)pthread_mutex_destroy(&udp->receiving); /* No thread holds it. */
    if (udp->fd >= 0) (void)close(udp->fd);       /* Sent datagrams have left. */
    if (udp->wake_fd >= 0) (void)close(udp->wake_fd);
    memory_free(NULL, udp, sizeof *udp);
}
