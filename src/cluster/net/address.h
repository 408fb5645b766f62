/* SPDX-License-Identifier: Apache-2.0 */
/* address.h - whether this host can listen at an address, and whether only this host reaches it. */
#ifndef CLUSTER_NET_ADDRESS_H
#define CLUSTER_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

/* Binds the address for a moment. Port 0: only the host is checked. STATUS_IO says what is wrong:
 * the port is in use, the address is another host's, or the name cannot be resolved. */
MUST_USE status address_check(const char *host, uint16_t port, struct error *err);

/* Whether all addresses of the name are on loopback. STATUS_IO: it cannot be resolved. */
MUST_USE status address_is_loopback(const char *host, bool *out, struct error *err);

#endif
