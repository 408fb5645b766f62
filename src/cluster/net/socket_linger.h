/* SPDX-License-Identifier: Apache-2.0 */
/* socket_linger.h - connections that are closed while the peer still sends.
 *
 * Closing a socket with unread bytes resets the connection, and the peer may lose the end of the
 * reply (RFC 9112 section 9.6). So only the sending half is shut down, and incoming bytes are
 * thrown away until the peer closes too, or SOCKET_LINGER_MS have passed.
 *
 *     (add | sweep)* -> done
 *
 * A zeroed list is empty. Threads: one owner.
 */
#ifndef CLUSTER_NET_SOCKET_LINGER_H
#define CLUSTER_NET_SOCKET_LINGER_H

#include <stdint.h>

enum { SOCKET_LINGER_MAX = 32, SOCKET_LINGER_MS = 1000 };

struct socket_linger {
    struct {
        int socket;
        uint64_t end_ms;
    } items[SOCKET_LINGER_MAX];
    uint32_t count;
};

/* The caller keeps the socket and closes it. Does nothing if the peer has closed already, or if the
 * list is full. */
void socket_linger_add(struct socket_linger *linger, int socket, uint64_t now_ms);
/* Called periodically: reads, and closes those that are over. */
void socket_linger_sweep(struct socket_linger *linger, uint64_t now_ms);
/* Closes all of them. */
void socket_linger_done(struct socket_linger *linger);

#endif
