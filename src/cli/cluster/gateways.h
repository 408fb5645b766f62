/* SPDX-License-Identifier: Apache-2.0 */
/* gateways.h - the gateways that a command calls: -g URL[,URL]. */
#ifndef CLI_CLUSTER_GATEWAYS_H
#define CLI_CLUSTER_GATEWAYS_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "cli/options.h"

struct gateways {
    const char *const *urls; /* http://host:port, without a slash at the end. */
    uint32_t count;
    const char *token; /* From the environment; NULL: none. */
    const char *ca; /* PEM file: the CA of https gateways; NULL: the CAs that the system trusts. */
};

#define GATEWAYS_OPTION_SPEC                                                                       \
    {                                                                                              \
        "gateway", "URL[,URL]", "where to ask, such as 127.0.0.1:7101; tried in turn", false, 'g'  \
    }

#define GATEWAYS_CA_OPTION_SPEC                                                                    \
    {                                                                                              \
        "ca", "FILE", "trust https gateways whose certificate this CA has signed", false, 0        \
    }

/* `command` is for the message when the option was not given. Without a scheme there must be a
 * port. Memory from the arena. */
MUST_USE status gateways_read(const char *command, const char *value, struct arena *arena,
                              struct gateways *out, struct error *err);

/* --ca FILE; NULL keeps the environment's. */
void gateways_trust(struct gateways *gateways, const char *ca);

/* One call; the body is JSON, owned by the caller. STATUS_UNREACHABLE: no gateway answered. */
MUST_USE status gateways_call(const struct gateways *gateways, const char *method,
                              const char *target, struct buf *out_body, struct error *err);
/* The same; the error is the reason alone, for a list of gateways. */
MUST_USE status gateways_try(const struct gateways *gateways, const char *method,
                             const char *target, struct buf *out_body, struct error *err);

#endif
