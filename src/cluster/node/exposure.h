/* SPDX-License-Identifier: Apache-2.0 */
/* exposure.h - token and TLS, which a gateway or broker needs to listen beyond loopback.
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
 * broker, unless the file says insecure = yes. A name that can't be resolved counts as beyond. */
MUST_USE status cluster_config_check_exposure(const struct cluster_config *config,
                                              struct error *err);

/* The broker alone, for the process that runs it. */
MUST_USE status exposure_check_broker(const struct cluster_config *config, struct error *err);

/* Whether a gateway can use its certificate, key and token; for processes that start gateways. */
MUST_USE status exposure_check_files(const struct cluster_config *config, struct error *err);

/* The bearer token of the cluster, from `token` or `token_file`; empty: none. */
MUST_USE status exposure_token(const struct cluster_config *config, struct arena *arena,
                               struct text *out, struct error *err);

/* Prepares a call of this cluster's gateways by a process that can read their files: with the
 * token, and over TLS with the gateways' own certificate as the CA, whichever host it names. */
MUST_USE status exposure_call(const struct cluster_config *config, struct arena *arena,
                              struct gateway_call *call, struct error *err);

/* How many connections of a gateway one address may use; 0: all. */
uint32_t exposure_address_limit(const struct cluster_config *config,
                                const struct config_endpoint *gateway);

#endif
