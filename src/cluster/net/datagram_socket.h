/* datagram_socket.h - UDP: bytes out to an address, bytes in with where they came from.
 *
 * Threads: any may send and wake; one at a time receives. Nothing waits without a deadline. A
 * datagram that can't be sent just now is lost, as on any network: only a socket that can't be
 * opened is an error.
 */
#ifndef CLUSTER_NET_DATAGRAM_SOCKET_H
#define CLUSTER_NET_DATAGRAM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

enum { SOCKET_ADDRESS_BYTES = 28 };

/* A socket address as the system writes it; size 0: none. The same address is the same bytes. */
struct socket_address {
    uint8_t bytes[SOCKET_ADDRESS_BYTES];
    uint32_t size;
};

struct datagram_socket;

/* Bound to host:port; port 0: one that is free. Host NULL: all addresses of this host, and what is
 * sent reaches IPv4 and IPv6; a host's own address reaches only others of its family. */
MUST_USE status datagram_socket_open(const char *host, uint16_t port, struct datagram_socket **out,
                                     struct error *err);
uint16_t datagram_socket_port(const struct datagram_socket *socket);
/* Of an address in digits; false: it is a name. Never waits. */
bool socket_address_parse(const char *host, uint16_t port, struct socket_address *out);
/* Looks a name up; may take as long as the resolver does: not for threads that must not wait. */
MUST_USE status socket_address_find(const char *host, uint16_t port, struct socket_address *out,
                                    struct error *err);
/* False: it was not sent. */
bool datagram_socket_send(struct datagram_socket *socket, const struct socket_address *to,
                          const void *bytes, size_t size);
/* Waits up to `timeout_ms` for a datagram; 0: none came, or somebody said wake. What is longer than
 * `capacity` is cut. */
size_t datagram_socket_receive(struct datagram_socket *socket, uint32_t timeout_ms, void *out,
                               size_t capacity, struct socket_address *out_from);
/* Whoever waits to receive returns soon; if nobody does, the next one who would wait. */
void datagram_socket_wake(struct datagram_socket *socket);
/* Whoever waits to receive returns first; nobody may come back afterwards. Accepts NULL. */
void datagram_socket_close(struct datagram_socket *socket);

#endif
