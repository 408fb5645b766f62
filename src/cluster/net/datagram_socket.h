/* SPDX-License-Identifier: Apache-2.0 */
/* datagram_socket.h - UDP: sends to an address, receives with the sender's address.
 *
 * Threads: any may send and wake; one at a time receives. No call waits without a deadline. A
 * datagram that can't be sent at once is lost, as on any network: only opening can fail.
 */
#ifndef CLUSTER_NET_DATAGRAM_SOCKET_H
#define CLUSTER_NET_DATAGRAM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

enum { SOCKET_ADDRESS_BYTES = 28 };

/* A sockaddr_in or sockaddr_in6; size 0: none. Equal addresses have equal bytes. */
struct socket_address {
    uint8_t bytes[SOCKET_ADDRESS_BYTES];
    uint32_t size;
};

struct datagram_socket;

/* Bound to host:port; port 0: any free one. Host NULL: all addresses of this host, so that it
 * reaches IPv4 and IPv6; a socket with an address reaches only its own family. */
MUST_USE status datagram_socket_open(const char *host, uint16_t port, struct datagram_socket **out,
                                     struct error *err);
uint16_t datagram_socket_port(const struct datagram_socket *socket);
/* Of a numeric address; false: it is a name. Never waits. */
bool socket_address_parse(const char *host, uint16_t port, struct socket_address *out);
/* Resolves a name, which may take as long as the resolver takes. */
MUST_USE status socket_address_find(const char *host, uint16_t port, struct socket_address *out,
                                    struct error *err);
/* False: it was not sent. */
bool datagram_socket_send(struct datagram_socket *socket, const struct socket_address *to,
                          const void *bytes, size_t size);
/* Waits up to `timeout_ms` for a datagram; 0: none came, or datagram_socket_wake was called. A
 * datagram longer than `capacity` is cut. */
size_t datagram_socket_receive(struct datagram_socket *socket, uint32_t timeout_ms, void *out,
                               size_t capacity, struct socket_address *out_from);
/* Ends a receive, the current one or the next. */
void datagram_socket_wake(struct datagram_socket *socket);
/* Ends the current receive and waits for it; no thread may use the socket afterwards. Accepts NULL.
 */
void datagram_socket_close(struct datagram_socket *socket);

#endif
