/* SPDX-License-Identifier: Apache-2.0 */
/* docker_call.c - libcurl speaks HTTP; the host of the URL is only the Host header. */
#include "cluster/net/docker_call.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>

#include "cluster/net/curl_library.h"

enum { URL_SIZE = 512 };

static size_t receive(char *bytes, size_t size, size_t count, void *context)
{
    struct buf *body = context;
    size_t total = size * count;
    size_t room = body->size < DOCKER_BODY_LIMIT ? DOCKER_BODY_LIMIT - body->size : 0;
    buf_put(body, bytes, total < room ? total : room);
    return body->failed ? 0 : total;
}

static bool configure(CURL *curl, const struct docker_call *call, const char *url, struct buf *body,
                      char *reason)
{
    CURLcode codes[] = {
        curl_easy_setopt(curl, CURLOPT_URL, url),
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http"),
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call->socket),
        curl_easy_setopt(curl, CURLOPT_POST, 1L),
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, ""),
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L),
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms),
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L),
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "millrace/" MILLRACE_VERSION),
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason),
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive),
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, body),
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] != CURLE_OK) return false;
    }
    return true;
}

status docker_post(const struct docker_call *call, uint32_t *out_status, struct buf *out_body,
                   struct error *err)
{
    char url[URL_SIZE];
    char reason[CURL_ERROR_SIZE] = "";
    int size = snprintf(url, sizeof url, "http://localhost%s", call->target);
    if (size < 0 || (size_t)size >= sizeof url) {
        return error_set(err, STATUS_USAGE, "docker: the path %.100s... is too long", call->target);
    }
    TRY(curl_library_prepare(err));
    CURL *curl = curl_easy_init();
    if (curl == NULL) return error_memory(err);
    CURLcode code = CURLE_FAILED_INIT;
    if (configure(curl, call, url, out_body, reason)) code = curl_easy_perform(curl);
    long found = 0;
    if (code == CURLE_OK) code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &found);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK) {
        return error_set(err, STATUS_IO, "%s: %s", call->socket,
                         reason[0] != '\0' ? reason : curl_easy_strerror(code));
    }
    *out_status = (uint32_t)found;
    return STATUS_OK;
}
