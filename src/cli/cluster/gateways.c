/* SPDX-License-Identifier: Apache-2.0 */
/* gateways.c - addresses as people write them, made into URLs. */
#include "cli/cluster/gateways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "cluster/node/client_node.h"
#include "cluster/config/cluster_config.h"

enum { CALL_TIMEOUT_MS = 15000 };

static bool has_prefix(struct text text, const char *prefix)
{
    struct text wanted = text_of(prefix);
    return text.size > wanted.size && memcmp(text.bytes, wanted.bytes, wanted.size) == 0;
}

/* The digits after the host, which may be in brackets; empty: there are none. */
static struct text port_of(struct text authority)
{
    uint32_t start = authority.size;
    while (start > 0 && authority.bytes[start - 1] != ':' && authority.bytes[start - 1] != ']') {
        start--;
    }
    bool has_port = start > 0 && authority.bytes[start - 1] == ':';
    if (!has_port) return (struct text){"", 0};
    return (struct text){authority.bytes + start, authority.size - start};
}

static bool is_port(struct text text)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9' || number > UINT16_MAX) return false;
        number = number * 10 + (uint32_t)(text.bytes[i] - '0');
    }
    return number >= 1 && number <= UINT16_MAX;
}

static status check_port(struct text given, bool is_url, struct error *err)
{
    struct text authority = given;
    if (is_url) {
        const char *host = (const char *)memchr(given.bytes, ':', given.size) + strlen("://");
        uint32_t left = given.size - (uint32_t)(host - given.bytes);
        const char *path = memchr(host, '/', left);
        authority = (struct text){host, path == NULL ? left : (uint32_t)(path - host)};
    }
    struct text port = port_of(authority);
    int shown = (int)(given.size < 100 ? given.size : 100);
    if (port.size == 0 && is_url) return STATUS_OK;
    if (port.size == 0) {
        return error_set(err, STATUS_USAGE,
                         "--gateway: `%.*s` has no port; write host:port, such "
                         "as 127.0.0.1:7101",
                         shown, given.bytes);
    }
    if (is_port(port)) return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "--gateway: the port of `%.*s` is no number from 1 to 65535", shown,
                     given.bytes);
}

static status read_one(struct text given, struct arena *arena, const char **out, struct error *err)
{
    while (given.size > 0 && given.bytes[given.size - 1] == '/') {
        given.size--;
    }
    bool is_url = has_prefix(given, "http://") || has_prefix(given, "https://");
    bool is_address = !is_url && given.size > 0 && given.bytes[0] != ':' &&
                      given.bytes[given.size - 1] != ':' &&
                      memchr(given.bytes, '/', given.size) == NULL;
    bool has_space = given.size > 0 && memchr(given.bytes, ' ', given.size) != NULL;
    if ((!is_url && !is_address) || has_space) {
        return error_set(err, STATUS_USAGE,
                         "--gateway: `%.*s` is no address; write 127.0.0.1:7101 or "
                         "http://host:port, several with commas",
                         (int)(given.size < 100 ? given.size : 100), given.bytes);
    }
    TRY(check_port(given, is_url, err));
    struct buf url = {0};
    if (is_address) buf_put_string(&url, "http://");
    buf_put_text(&url, given);
    struct text whole = {(const char *)url.bytes, (uint32_t)url.size};
    *out = url.failed ? NULL : arena_copy_string(arena, whole);
    buf_done(&url);
    return *out != NULL ? STATUS_OK : error_memory(err);
}

status gateways_read(const char *command, const char *value, struct arena *arena,
                     struct gateways *out, struct error *err)
{
    if (value == NULL) {
        return error_set(err, STATUS_USAGE,
                         "%s needs a gateway: -g 127.0.0.1:7101, several with commas", command);
    }
    const char **urls = arena_array(arena, const char *, CONFIG_GATEWAYS_MAX);
    if (urls == NULL) return error_memory(err);
    uint32_t count = 0;
    for (const char *at = value; at != NULL;) {
        struct text given = {at, (uint32_t)strcspn(at, ",")};
        at = at[given.size] == ',' ? at + given.size + 1 : NULL;
        if (count == CONFIG_GATEWAYS_MAX) {
            return error_set(err, STATUS_USAGE, "--gateway: more than %d addresses",
                             CONFIG_GATEWAYS_MAX);
        }
        TRY(read_one(given, arena, &urls[count++], err));
    }
    const char *token = getenv("MILLRACE_CLUSTER_TOKEN");
    const char *ca = getenv("MILLRACE_CLUSTER_CA");
    *out = (struct gateways){
        .urls = urls,
        .count = count,
        .token = token != NULL && token[0] != '\0' ? token : NULL,
        .ca = ca != NULL && ca[0] != '\0' ? ca : NULL,
    };
    return STATUS_OK;
}

void gateways_trust(struct gateways *gateways, const char *ca)
{
    if (ca != NULL) gateways->ca = ca;
}

status gateways_try(const struct gateways *gateways, const char *method, const char *target,
                    struct buf *out_body, struct error *err)
{
    struct gateway_call call = {
        .gateways = gateways->urls,
        .gateway_count = gateways->count,
        .token = gateways->token,
        .ca = gateways->ca,
        .method = method,
        .target = target,
        .timeout_ms = CALL_TIMEOUT_MS,
    };
    status result = gateway_call(&call, out_body, err);
    if (result != STATUS_IO) return result;
    err->code = STATUS_UNREACHABLE;
    return STATUS_UNREACHABLE;
}

status gateways_call(const struct gateways *gateways, const char *method, const char *target,
                     struct buf *out_body, struct error *err)
{
    struct error reason;
    status result = gateways_try(gateways, method, target, out_body, &reason);
    if (result == STATUS_OK) return STATUS_OK;
    *err = reason;
    if (result != STATUS_UNREACHABLE) return result;
    char who[64] = "the gateway could not be reached";
    if (gateways->count > 1) {
        (void)snprintf(who, sizeof who, "none of the %u gateways could be reached",
                       gateways->count); /* Fits. */
    }
    return error_set(err, STATUS_UNREACHABLE, "%s: %.1500s; does the cluster run?", who,
                     reason.text);
}
