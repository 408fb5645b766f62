/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_url.c - an IPv6 address stands in brackets, RFC 3986 section 3.2.2. */
#include "cluster/config/gateway_url.h"

#include <string.h>

#include "engine/base/buf.h"

char *gateway_url(const struct cluster_config *config, const char *host, uint16_t port,
                  struct arena *arena)
{
    if (strcmp(host, "0.0.0.0") == 0) host = "127.0.0.1";
    if (strcmp(host, "::") == 0) host = "::1";
    bool is_v6 = strchr(host, ':') != NULL;
    struct buf url = {0};
    buf_format(&url, "%s://%s%s%s:%u", config->tls_certificate != NULL ? "https" : "http",
               is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    struct text text = {(const char *)url.bytes, (uint32_t)url.size};
    char *copy = url.failed ? NULL : arena_copy_string(arena, text);
    buf_done(&url);
    return copy;
}
