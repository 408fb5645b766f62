/* docker_call.h - one HTTP call over a Unix socket, as container engines take them.
 *
 * Threads: any. Failure: STATUS_IO names the socket. An answer of whatever status is no failure.
 */
#ifndef CLUSTER_NET_DOCKER_CALL_H
#define CLUSTER_NET_DOCKER_CALL_H

#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"

enum { DOCKER_BODY_LIMIT = 64 << 10 }; /* What an answer has beyond it is left out. */

struct docker_call {
    const char *socket; /* A path. */
    const char *target; /* "/containers/x/start", encoded. */
    uint32_t timeout_ms;
};

/* POST without a body. The answer's body is appended to `out_body`. */
MUST_USE status engine_post(const struct docker_call *call, uint32_t *out_status,
                            struct buf *out_body, struct error *err);

#endif
