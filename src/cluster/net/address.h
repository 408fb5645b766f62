/* address.h - whether a server could listen somewhere on this host, and who could reach it. */
#ifndef CLUSTER_NET_ADDRESS_H
#define CLUSTER_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

/* Takes the address for a moment. Port 0: any; then only the host is looked at. STATUS_IO says what
 * is in the way: the port is taken, the host is another one, or its name is not known. */
MUST_USE status address_check(const char *host, uint16_t port, struct error *err);

/* Whether all addresses of that name can be reached from this host only. STATUS_IO: the name is not
 * known. */
MUST_USE status address_is_loopback(const char *host, bool *out, struct error *err);

#endif
