/* SPDX-License-Identifier: Apache-2.0 */
/* docker_call.h - one call of the Docker Engine API: HTTP over a Unix socket.
 *
 * Threads: any. Failure: STATUS_IO names the socket. An answer of any HTTP status is a result.
 */
#ifndef CLUSTER_NET_DOCKER_CALL_H
#define CLUSTER_NET_DOCKER_CALL_H

#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"

enum { DOCKER_BODY_LIMIT = 64 << 10 }; /* The rest of a longer answer is left out. */

struct docker_call {
    const char *socket; /* A path. */
    const char *target; /* "/containers/x/start", encoded. */
    uint32_t timeout_ms;
};

/* POST without a body. The answer's body is appended to `out_body`. */
MUST_USE status docker_post(const struct docker_call *call, uint32_t *out_status,
                            struct buf *out_body, struct error *err);

#endif
