/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - the only sure check whether an address can be bound is to bind it. */
#include "cluster/net/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* 0, or errno. */
static int bind_once(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    /* As servers do: a port with connections in TIME_WAIT counts as free. */
    int yes = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    int number = bind(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    /* Two may bind one port with SO_REUSEADDR; only one may listen. */
    if (number == 0 && listen(fd, 1) != 0) number = errno;
    (void)close(fd); /* It was only a check. */
    return number;
}

static status look_up(const char *host, const char *service, struct addrinfo **out,
                      struct error *err)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int problem = getaddrinfo(host, service, &hints, out);
    if (problem == 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot resolve %.200s: %s", host, gai_strerror(problem));
}

status address_check(const char *host, uint16_t port, struct error *err)
{
    char service[8];
    struct addrinfo *found = NULL;
    (void)snprintf(service, sizeof service, "%u", (unsigned)port); /* Fits. */
    TRY(look_up(host, service, &found, err));
    int number = EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at != NULL && number != 0; at = at->ai_next) {
        number = bind_once(at);
        if (number == EADDRINUSE) break;
    }
    freeaddrinfo(found);
    char reason[128];
    switch (number) {
    case 0:
        return STATUS_OK;
    case EADDRINUSE:
        return error_set(err, STATUS_IO, "port %u of %.200s is in use by another process",
                         (unsigned)port, host);
    case EADDRNOTAVAIL:
        return error_set(err, STATUS_IO, "%.200s is no address of this host", host);
    default:
        return error_set(err, STATUS_IO, "cannot listen on %.200s:%u: %s", host, (unsigned)port,
                         strerror_r(number, reason, sizeof reason));
    }
}

static bool is_loopback(const struct sockaddr *address)
{
    enum { LOOPBACK_NET = 127 };
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == LOOPBACK_NET;
    }
    if (address->sa_family != AF_INET6) return false;
    struct sockaddr_in6 v6;
    memcpy(&v6, address, sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return v6.sin6_addr.s6_addr[12] == LOOPBACK_NET;
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

status address_is_loopback(const char *host, bool *out, struct error *err)
{
    struct addrinfo *found = NULL;
    TRY(look_up(host, NULL, &found, err));
    bool all = true;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        all = all && is_loopback(at->ai_addr);
    }
    freeaddrinfo(found);
    *out = all;
    return STATUS_OK;
}
