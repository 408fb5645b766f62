/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_tls.c - checks files before librabbitmq opens them, which only reports a failure. */
#include "cluster/bus/rabbit_tls.h"

#include <sys/time.h>

#include <amqp_ssl_socket.h>
#include <curl/curl.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "cluster/store/secret_file.h"

/* The system's CA bundle, as libcurl was built to use it; NULL: it has none. librabbitmq has no
 * default. */
static const char *system_ca(void)
{
    return curl_version_info(CURLVERSION_NOW)->cainfo;
}

static status check_files(const struct rabbit_tls *tls, struct arena *arena, struct error *err)
{
    struct text ignored;
    const char *ca = tls->ca != NULL ? tls->ca : system_ca();
    if (ca == NULL) {
        return error_set(err, STATUS_USAGE,
                         "this system has no CA bundle that libcurl knows: amqps needs broker_ca");
    }
    TRY(secret_file_read_certificates(ca, arena, &ignored, err));
    if (tls->certificate == NULL) return STATUS_OK;
    TRY(secret_file_read_certificates(tls->certificate, arena, &ignored, err));
    return secret_file_read_key(tls->key, arena, &ignored, err);
}

status rabbit_tls_check(const struct rabbit_tls *tls, struct error *err)
{
    ASSERT((tls->certificate == NULL) == (tls->key == NULL));
    struct arena arena = {0};
    status result = check_files(tls, &arena, err);
    arena_done(&arena);
    return result;
}

status rabbit_tls_socket(amqp_connection_state_t state, const struct rabbit_tls *tls,
                         amqp_socket_t **out, struct error *err)
{
    amqp_socket_t *socket = amqp_ssl_socket_new(state);
    if (socket == NULL) return error_memory(err);
    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 1);
    if (amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST) != AMQP_STATUS_OK) {
        return error_set(err, STATUS_IO, "librabbitmq cannot use TLS 1.2 or later");
    }
    const char *ca = tls->ca != NULL ? tls->ca : system_ca();
    if (ca == NULL || amqp_ssl_socket_set_cacert(socket, ca) != AMQP_STATUS_OK) {
        return error_set(err, STATUS_IO, "the CA file %.500s can't be used", ca == NULL ? "" : ca);
    }
    if (tls->certificate != NULL &&
        amqp_ssl_socket_set_key(socket, tls->certificate, tls->key) != AMQP_STATUS_OK) {
        return error_set(err, STATUS_IO, "the certificate %.500s can't be used with the key %.500s",
                         tls->certificate, tls->key);
    }
    *out = socket;
    return STATUS_OK;
}

const char *rabbit_tls_reason(int code)
{
    switch (code) {
    case AMQP_STATUS_SSL_PEER_VERIFY_FAILED:
        return "its certificate is not signed by the CA in use, or has expired";
    case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED:
        return "its certificate does not name that host (numeric addresses are not compared)";
    case AMQP_STATUS_SSL_CONNECTION_FAILED:
        return "the TLS handshake failed: it may speak amqp only, or TLS before 1.2";
    case AMQP_STATUS_SSL_ERROR:
        return "the TLS session was aborted: it may require a client certificate, or another one";
    default:
        return NULL;
    }
}

bool rabbit_tls_probe(const char *host, int port, uint32_t timeout_ms)
{
    struct timeval timeout = {.tv_sec = timeout_ms / 1000,
                              .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};
    amqp_connection_state_t state = amqp_new_connection();
    amqp_socket_t *socket = state == NULL ? NULL : amqp_ssl_socket_new(state);
    bool found = false;
    if (socket != NULL) {
        amqp_ssl_socket_set_verify_peer(socket, 0);
        amqp_ssl_socket_set_verify_hostname(socket, 0);
        found = amqp_socket_open_noblock(socket, host, port, &timeout) == AMQP_STATUS_OK;
    }
    if (state != NULL) (void)amqp_destroy_connection(state); /* Nothing depends on how it ends. */
    return found;
}
