/* SPDX-License-Identifier: Apache-2.0 */
/* exposure.c - the resolver decides whether a name is on loopback, not its spelling. */
#include "cluster/node/exposure.h"

#include "cluster/net/address.h"
#include "cluster/store/secret_file.h"

enum { TOKEN_LIMIT = 256 };

/* A name that can't be resolved now may be any address later. */
static bool is_beyond_loopback(const char *host)
{
    struct error ignored;
    bool is_loopback = false;
    return address_is_loopback(host, &is_loopback, &ignored) != STATUS_OK || !is_loopback;
}

status exposure_check_broker(const struct cluster_config *config, struct error *err)
{
    if (!config->starts_broker || config->broker_host == NULL || config->is_insecure ||
        !is_beyond_loopback(config->broker_host)) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE,
                     "%.500s: with broker_host = %.200s other hosts can reach the private broker, "
                     "which speaks AMQP without TLS: use a broker with amqps:// instead, or say "
                     "insecure = yes if you trust all of them",
                     config->path, config->broker_host);
}

status cluster_config_check_exposure(const struct cluster_config *config, struct error *err)
{
    bool has_token = config->token != NULL || config->token_file != NULL;
    bool has_tls = config->tls_certificate != NULL;
    TRY(exposure_check_broker(config, err));
    if (config->is_insecure || (has_token && has_tls)) return STATUS_OK;
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        const struct config_endpoint *gateway = &config->gateways[i];
        if (!is_beyond_loopback(gateway->host)) continue;
        const char *missing = has_token ? "without TLS: give tls_certificate and tls_key"
                              : has_tls ? "without a token: give token_file"
                                        : "without a token and without TLS: give token_file, "
                                          "tls_certificate and tls_key";
        return error_set(
            err, STATUS_USAGE,
            "%.500s: gateway %s would listen on %.200s, where other hosts can reach it, %s; "
            "or say insecure = yes if you trust all of them",
            config->path, gateway->name, gateway->host, missing);
    }
    return STATUS_OK;
}

status exposure_token(const struct cluster_config *config, struct arena *arena, struct text *out,
                      struct error *err)
{
    if (config->token_file == NULL) {
        *out = config->token == NULL ? (struct text){"", 0} : text_of(config->token);
        return STATUS_OK;
    }
    struct text token;
    TRY(secret_file_read(config->token_file, TOKEN_LIMIT, arena, &token, err));
    while (token.size > 0 && (unsigned char)token.bytes[token.size - 1] <= ' ') {
        token.size--;
    }
    bool is_valid = token.size > 0;
    for (uint32_t i = 0; i < token.size; i++) {
        if (token.bytes[i] <= ' ' || token.bytes[i] > '~') is_valid = false;
    }
    if (!is_valid) {
        return error_set(err, STATUS_USAGE,
                         "%.500s must be one line of visible ASCII characters: the token",
                         config->token_file);
    }
    *out = token;
    return STATUS_OK;
}

status exposure_check_files(const struct cluster_config *config, struct error *err)
{
    struct arena arena = {0};
    struct text ignored;
    status result = exposure_token(config, &arena, &ignored, err);
    if (result == STATUS_OK && config->tls_certificate != NULL) {
        result = secret_file_read_certificates(config->tls_certificate, &arena, &ignored, err);
        if (result == STATUS_OK) {
            result = secret_file_read_key(config->tls_key, &arena, &ignored, err);
        }
    }
    arena_done(&arena);
    return result;
}

status exposure_call(const struct cluster_config *config, struct arena *arena,
                     struct gateway_call *call, struct error *err)
{
    struct text token;
    TRY(exposure_token(config, arena, &token, err));
    call->token = NULL;
    if (token.size > 0) {
        call->token = arena_copy_string(arena, token);
        if (call->token == NULL) return error_memory(err);
    }
    call->ca = config->tls_certificate;
    call->any_name = config->tls_certificate != NULL;
    return STATUS_OK;
}

uint32_t exposure_address_limit(const struct cluster_config *config,
                                const struct config_endpoint *gateway)
{
    if (config->http_connections_per_address != 0) return config->http_connections_per_address;
    return is_beyond_loopback(gateway->host) ? config->http_connections / 2 : 0;
}
