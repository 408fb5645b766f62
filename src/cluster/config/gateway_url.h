/* gateway_url.h - where a gateway of this cluster can be asked. */
#ifndef CLUSTER_CONFIG_GATEWAY_URL_H
#define CLUSTER_CONFIG_GATEWAY_URL_H

#include <stdint.h>

#include "engine/base/arena.h"
#include "cluster/config/cluster_config.h"

/* From the host that it runs on: one that listens everywhere is asked on loopback. NULL: the arena
 * is full. */
char *gateway_url(const struct cluster_config *config, const char *host, uint16_t port,
                  struct arena *arena);

#endif
