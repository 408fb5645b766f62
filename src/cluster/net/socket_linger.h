/* socket_linger.h - connections that are closed while the other side still sends.
 *
 * A socket closed with unread bytes resets the connection, and the last words sent on it may never
 * be read. So it is closed for writing only, and what still comes is thrown away for a while: until
 * the other side closes too, or its time is over.
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

/* The socket is the caller's, who is about to close it. Does nothing when the other side has closed
 * already, or when there are too many. */
void socket_linger_add(struct socket_linger *linger, int socket, uint64_t now_ms);
/* To be called now and then. */
void socket_linger_sweep(struct socket_linger *linger, uint64_t now_ms);
/* Closes all of them. */
void socket_linger_done(struct socket_linger *linger);

#endif
