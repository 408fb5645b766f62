/* peer_addresses.h - where some peers are, looked up without anybody waiting for it.
 *
 *     peer_addresses_open -> peer_addresses_find* -> peer_addresses_close
 *
 * Asking for a name may take as long as the resolver likes, and whoever has to heartbeat four times
 * a second can't wait for that. So names are looked up by a thread of the book's, again and again,
 * since what a name means changes when containers come and go; what was found last is used
 * meanwhile. Addresses in digits are known at once, and a book of these has no thread.
 *
 * Threads: any. Close does not wait for a look-up that is under way: its thread ends by itself.
 */
#ifndef CLUSTER_NET_PEER_ADDRESSES_H
#define CLUSTER_NET_PEER_ADDRESSES_H

#include "cluster/net/datagram_socket.h"

/* Less than the shortest the failure timeout that makes sense with names. */
enum { PEER_ADDRESSES_AGAIN_MS = 1000 };

struct peer_addresses;

struct peer_addresses_entry {
    const char *host; /* NULL: nobody. */
    uint16_t port;
};

/* Entries are copied. */
MUST_USE status peer_addresses_open(const struct peer_addresses_entry *entries, uint32_t count,
                                    struct peer_addresses **out, struct error *err);
/* What was found last; false: nothing so far, and it is tried further. */
bool peer_addresses_find(struct peer_addresses *addresses, uint32_t index,
                         struct socket_address *out);
/* Accepts NULL. */
void peer_addresses_close(struct peer_addresses *addresses);

#endif
