/* rabbit_tls.h - what makes a connection to a broker amqps: its certificate, and perhaps ours.
 *
 * The broker's certificate has to be signed by the CA, and made out for the name in its address:
 * librabbitmq 0.11 looks at names only, and so an address in numbers has to stand there as a name.
 *
 * Threads: any; librabbitmq guards the set-up of OpenSSL by a lock of its own, and OpenSSL 1.1 and
 * later does not mind that libcurl sets it up as well.
 */
#ifndef CLUSTER_BUS_RABBIT_TLS_H
#define CLUSTER_BUS_RABBIT_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include <amqp.h>

#include "engine/base/error.h"

/* PEM files. */
struct rabbit_tls {
    const char *ca;          /* NULL: those that the system trusts. */
    const char *certificate; /* Ours, for brokers that ask for one; NULL: none. */
    const char *key;         /* Its key; nobody but its owner may read it. */
};

/* Before the first connection: STATUS_USAGE or STATUS_IO names the file that is of no use. */
MUST_USE status rabbit_tls_check(const struct rabbit_tls *tls, struct error *err);

/* A socket of the connection, not open yet. */
MUST_USE status rabbit_tls_socket(amqp_connection_state_t state, const struct rabbit_tls *tls,
                                  amqp_socket_t **out, struct error *err);

/* What a code of librabbitmq means when such a socket is opened; NULL: nothing but what it says. */
const char *rabbit_tls_reason(int code);

/* Whether a TLS session comes about there, whoever it is. */
bool rabbit_tls_probe(const char *host, int port, uint32_t timeout_ms);

#endif
