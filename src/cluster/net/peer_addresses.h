/* SPDX-License-Identifier: Apache-2.0 */
/* peer_addresses.h - addresses of peers, resolved in the background.
 *
 *     peer_addresses_open -> peer_addresses_find* -> peer_addresses_close
 *
 * Resolving a name may take seconds, and a node that sends four heartbeats a second can't wait for
 * that. So a thread resolves all names again and again, since the address of a container changes
 * with each start; meanwhile the last address found is used. Numeric addresses need no thread.
 *
 * Threads: any. Close does not wait for the resolver: the thread ends by itself.
 */
#ifndef CLUSTER_NET_PEER_ADDRESSES_H
#define CLUSTER_NET_PEER_ADDRESSES_H

#include "cluster/net/datagram_socket.h"

/* Less than the shortest failure timeout that makes sense with names. */
enum { PEER_ADDRESSES_AGAIN_MS = 1000 };

struct peer_addresses;

struct peer_addresses_entry {
    const char *host; /* NULL: no peer. */
    uint16_t port;
};

/* Entries are copied. */
MUST_USE status peer_addresses_open(const struct peer_addresses_entry *entries, uint32_t count,
                                    struct peer_addresses **out, struct error *err);
/* The last address found; false: none so far, and the thread keeps trying. */
bool peer_addresses_find(struct peer_addresses *addresses, uint32_t index,
                         struct socket_address *out);
/* Accepts NULL. */
void peer_addresses_close(struct peer_addresses *addresses);

#endif
