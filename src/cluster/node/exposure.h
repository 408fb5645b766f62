/* exposure.h - what a gateway or broker needs before others than its own host may reach it.
 *
 * Failure: STATUS_USAGE says what is missing and how to do without.
 */
#ifndef CLUSTER_NODE_EXPOSURE_H
#define CLUSTER_NODE_EXPOSURE_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/node/client_node.h"
#include "cluster/config/cluster_config.h"

/* Refuses gateways that listen beyond loopback without a token or without TLS, and such a private
 * broker, unless the file says insecure = yes. A name that can't be looked up counts as beyond. */
MUST_USE status cluster_config_check_exposure(const struct cluster_config *config,
                                              struct error *err);

/* The broker alone, for who runs it. */
MUST_USE status exposure_check_broker(const struct cluster_config *config, struct error *err);

/* Whether a gateway could use its certificate, key and token, for who starts gateways. */
MUST_USE status exposure_check_files(const struct cluster_config *config, struct error *err);

/* The token that calls have to bring, from the cluster file or from the token_file; empty: none. */
MUST_USE status exposure_token(const struct cluster_config *config, struct arena *arena,
                               struct text *out, struct error *err);

/* Lets a call reach gateways of this very cluster, from where their files are: with the token, over
 * TLS if they have it, and with their own certificate as the one to trust, whatever host it is for.
 */
MUST_USE status exposure_call(const struct cluster_config *config, struct arena *arena,
                              struct gateway_call *call, struct error *err);

/* How many connections one address may have at a gateway; 0: all. */
uint32_t exposure_address_limit(const struct cluster_config *config,
                                const struct config_endpoint *gateway);

#endif
