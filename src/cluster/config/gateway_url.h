/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_url.h - the URL of a gateway of this cluster. */
#ifndef CLUSTER_CONFIG_GATEWAY_URL_H
#define CLUSTER_CONFIG_GATEWAY_URL_H

#include <stdint.h>

#include "engine/base/arena.h"
#include "cluster/config/cluster_config.h"

/* For a client on the gateway's host: one that listens on all addresses is called on loopback.
 * NULL: the arena is full. */
char *gateway_url(const struct cluster_config *config, const char *host, uint16_t port,
                  struct arena *arena);

#endif
