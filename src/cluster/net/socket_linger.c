/* SPDX-License-Identifier: Apache-2.0 */
/* socket_linger.c - keeps a duplicate descriptor, so that the owner may close its own. */
#include "cluster/net/socket_linger.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READS_PER_SWEEP = 64, READ_BYTES = 16 * 1024 };

/* False: the peer has closed. */
static bool throw_away(int fd)
{
    char bytes[READ_BYTES];
    for (int i = 0; i < READS_PER_SWEEP; i++) {
        ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    return true;
}

void socket_linger_sweep(struct socket_linger *linger, uint64_t now_ms)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < linger->count; i++) {
        if (now_ms < linger->items[i].end_ms && throw_away(linger->items[i].socket)) {
            linger->items[kept++] = linger->items[i];
        } else {
            (void)close(linger->items[i].socket); /* Everything was said before. */
        }
    }
    linger->count = kept;
}

void socket_linger_add(struct socket_linger *linger, int fd, uint64_t now_ms)
{
    struct pollfd other = {.fd = fd, .events = POLLRDHUP};
    if (linger->count == SOCKET_LINGER_MAX) socket_linger_sweep(linger, now_ms);
    if (linger->count == SOCKET_LINGER_MAX || poll(&other, 1, 0) != 0) return;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return;
    (void)shutdown(copy, SHUT_WR); /* Fails when it is shut already. */
    linger->items[linger->count].socket = copy;
    linger->items[linger->count++].end_ms = now_ms + SOCKET_LINGER_MS;
}

void socket_linger_done(struct socket_linger *linger)
{
    for (uint32_t i = 0; i < linger->count; i++) {
        (void)close(linger->items[i].socket); /* Everything was said before. */
    }
    linger->count = 0;
}
