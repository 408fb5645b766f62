/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_tls.h - TLS for amqps: the broker's certificate, and perhaps the node's.
 *
 * The CA must have signed the broker's certificate, which must name the host of the URI.
 * librabbitmq 0.11 compares DNS names only, so the certificate must list a numeric address as a DNS
 * name.
 *
 * Threads: any; librabbitmq guards the set-up of OpenSSL by a lock of its own, and OpenSSL 1.1 and
 * later allows that libcurl sets it up as well.
 */
#ifndef CLUSTER_BUS_RABBIT_TLS_H
#define CLUSTER_BUS_RABBIT_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include <amqp.h>

#include "engine/base/error.h"

/* PEM files. */
struct rabbit_tls {
    const char *ca;          /* NULL: the CAs that the system trusts. */
    const char *certificate; /* The node's, for brokers that ask for one; NULL: none. */
    const char *key;         /* Its key, which only its owner may read. */
};

/* Before the first connection: STATUS_USAGE or STATUS_IO names the file that can't be used. */
MUST_USE status rabbit_tls_check(const struct rabbit_tls *tls, struct error *err);

/* A socket of the connection, not open yet. */
MUST_USE status rabbit_tls_socket(amqp_connection_state_t state, const struct rabbit_tls *tls,
                                  amqp_socket_t **out, struct error *err);

/* What to check when such a socket fails with this code of librabbitmq; NULL: no advice. */
const char *rabbit_tls_reason(int code);

/* Whether a TLS handshake succeeds there, with any certificate. */
bool rabbit_tls_probe(const char *host, int port, uint32_t timeout_ms);

#endif
