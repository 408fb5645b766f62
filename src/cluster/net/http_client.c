/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.c - libcurl's multi interface speaks HTTP; here are the limits and the list of calls.
 */
#include "cluster/net/http_client.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdio.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "cluster/net/curl_library.h"
#include "cluster/store/secret_file.h"

enum {
    LOW_SPEED_BYTES = 1,
    TRANSFER_BUFFER = 256 << 10,
    UPLOAD_BUFFER = 1 << 20 /* Larger than a socket takes at once: fewer calls per chunk. */
};

struct http_transfer {
    struct http_transfer *next;
    uint64_t id;
    CURL *easy;
    struct curl_slist *headers;
    struct buf answer;
    bool too_large;
    char reason[CURL_ERROR_SIZE];
};

struct http_client {
    struct http_client_options options;
    CURLM *multi;
    struct http_transfer *calls;
    uint32_t call_count;
};

/* ---- receiving ---- */

static size_t receive(char *bytes, size_t size, size_t count, void *context)
{
    struct http_transfer *call = context;
    size_t total = size * count; /* `size` is always 1. */
    struct buf *answer = &call->answer;
    curl_off_t length = -1;
    if (answer->size == 0 &&
        curl_easy_getinfo(call->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK &&
        length > 0 && (uint64_t)length <= answer->limit && !buf_reserve(answer, (size_t)length)) {
        return 0;
    }
    call->too_large = total > answer->limit - answer->size;
    buf_put(answer, bytes, total);
    return answer->failed ? 0 : total;
}

/* libcurl says what failed; this says what to try. */
static const char *hint(const struct http_client *client, CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return client->options.ca == NULL
                   ? "; a certificate that no public CA has signed needs its CA to be given"
                   : "; is this the CA that signed it, and the host that it names?";
    case CURLE_SSL_CONNECT_ERROR:
        return "; does it speak https, or http only?";
    case CURLE_GOT_NOTHING:
        return "; does it speak http, or https only?";
    default:
        return "";
    }
}

static void explain_failure(const struct http_client *client, const struct http_transfer *call,
                            CURLcode code, struct error *err)
{
    if (call->too_large || code == CURLE_FILESIZE_EXCEEDED) {
        (void)error_set(err, STATUS_LIMIT, "the answer is larger than %zu bytes",
                        client->options.body_limit);
    } else if (call->answer.failed || code == CURLE_OUT_OF_MEMORY) {
        (void)error_set(err, STATUS_MEMORY, "out of memory");
    } else {
        const char *reason = call->reason[0] != '\0' ? call->reason : curl_easy_strerror(code);
        (void)error_set(err, STATUS_IO, "%s%s", reason, hint(client, code));
    }
}

static void read_answer(struct http_transfer *call, struct http_done *done)
{
    long code = 0;
    curl_off_t retry_after_s = 0;
    char *type = NULL;
    /* A value that libcurl does not have stays zero. */
    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &code);
    (void)curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    (void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
    done->status = (uint32_t)code;
    if (retry_after_s > 0) {
        bool fits = retry_after_s <= UINT32_MAX / 1000;
        done->retry_after_ms = fits ? (uint32_t)retry_after_s * 1000 : UINT32_MAX;
    }
    if (type != NULL) {
        (void)snprintf(done->content_type, HTTP_TYPE_SIZE, "%s", type); /* May be cut. */
    }
    done->body = call->answer;
    call->answer = (struct buf){0};
}

/* ---- calls ---- */

static void call_destroy(struct http_client *client, struct http_transfer *call)
{
    if (call->easy != NULL) {
        /* Fails only for a handle that was never added. */
        (void)curl_multi_remove_handle(client->multi, call->easy);
        curl_easy_cleanup(call->easy);
    }
    curl_slist_free_all(call->headers);
    buf_done(&call->answer);
    memory_free(NULL, call, sizeof *call);
}

static struct http_transfer *call_unlink(struct http_client *client, const CURL *easy)
{
    for (struct http_transfer **link = &client->calls; *link != NULL; link = &(*link)->next) {
        struct http_transfer *call = *link;
        if (call->easy != easy) continue;
        *link = call->next;
        client->call_count--;
        return call;
    }
    return NULL;
}

static bool add_header(struct http_transfer *call, const char *line)
{
    struct curl_slist *longer = curl_slist_append(call->headers, line);
    if (longer == NULL) return false;
    call->headers = longer;
    return true;
}

static bool is_typed(const struct http_call *what)
{
    static const struct text name = TEXT_INIT("Content-Type:");
    for (uint32_t i = 0; i < what->header_count; i++) {
        struct text line = text_of(what->headers[i]);
        if (line.size < name.size) continue;
        line.size = name.size;
        if (text_equal_ignoring_case(line, name)) return true;
    }
    return false;
}

static bool set_headers(struct http_transfer *call, const struct http_call *what)
{
    /* Without "Expect: 100-continue", which would cost a round trip, and without the type of forms
     * that libcurl adds to a POST. */
    if (!add_header(call, "Expect:")) return false;
    if (!is_typed(what) && !add_header(call, "Content-Type:")) return false;
    for (uint32_t i = 0; i < what->header_count; i++) {
        if (!add_header(call, what->headers[i])) return false;
    }
    return curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK;
}

static bool all_well(const CURLcode *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (codes[i] != CURLE_OK) return false;
    }
    return true;
}

static bool set_trust(const struct http_client *client, CURL *easy)
{
    const struct http_client_options *options = &client->options;
    CURLcode codes[] = {
        curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2),
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L),
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options->any_name ? 0L : 2L),
    };
    if (!all_well(codes, sizeof codes / sizeof codes[0])) return false;
    /* A given CA replaces those of the system. */
    return options->ca == NULL ||
           (curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK);
}

/* Strings are copied by libcurl; the body is not. */
static bool set_request(CURL *easy, const struct http_call *what, struct buf *scratch)
{
    buf_reset(scratch);
    buf_put_string(scratch, what->base);
    buf_put_text(scratch, what->target);
    buf_put_u8(scratch, 0);
    if (scratch->failed || curl_easy_setopt(easy, CURLOPT_URL, scratch->bytes) != CURLE_OK) {
        return false;
    }
    buf_reset(scratch);
    buf_put_text(scratch, what->method);
    buf_put_u8(scratch, 0);
    if (scratch->failed) return false;
    if (text_equal(what->method, TEXT_LITERAL("HEAD"))) {
        return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
    }
    bool sends = what->body.size > 0 || text_equal(what->method, TEXT_LITERAL("PUT")) ||
                 text_equal(what->method, TEXT_LITERAL("POST"));
    if (sends) {
        const char *bytes = what->body.size > 0 ? what->body.bytes : "";
        CURLcode codes[] = {
            curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)what->body.size),
            curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bytes),
        };
        if (!all_well(codes, sizeof codes / sizeof codes[0])) return false;
    }
    return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, scratch->bytes) == CURLE_OK;
}

static bool set_limits(const struct http_client *client, struct http_transfer *call,
                       uint32_t timeout_ms)
{
    const struct http_client_options *options = &client->options;
    CURL *easy = call->easy;
    uint64_t total_ms = (uint64_t)timeout_ms + options->timeout_margin_ms;
    CURLcode codes[] = {
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1),
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L),
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L),
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L),
        curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L),
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L),
        curl_easy_setopt(easy, CURLOPT_NOPROXY, options->use_proxy ? NULL : "*"),
        curl_easy_setopt(easy, CURLOPT_USERAGENT, options->user_agent),
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_timeout_ms),
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(total_ms < INT_MAX ? total_ms : INT_MAX)),
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT,
                         (long)(options->low_speed_s > 0 ? LOW_SPEED_BYTES : 0)),
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)options->low_speed_s),
        curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)options->body_limit),
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)TRANSFER_BUFFER),
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER),
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason),
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive),
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, call),
    };
    return all_well(codes, sizeof codes / sizeof codes[0]);
}

static struct http_transfer *call_create(const struct http_client *client, uint64_t id)
{
    struct http_transfer *call = memory_alloc(NULL, sizeof *call);
    if (call == NULL) return NULL;
    *call = (struct http_transfer){
        .id = id,
        .easy = curl_easy_init(),
        .answer = {.limit = client->options.body_limit},
    };
    if (call->easy != NULL) return call;
    memory_free(NULL, call, sizeof *call);
    return NULL;
}

static bool take_done(struct http_client *client, struct http_done *out_done)
{
    CURLMsg *message;
    int left = 0;
    do {
        message = curl_multi_info_read(client->multi, &left);
    } while (message != NULL && message->msg != CURLMSG_DONE);
    if (message == NULL) return false;
    /* The message lives only while the handle is in the multi. */
    CURLcode code = message->data.result;
    struct http_transfer *call = call_unlink(client, message->easy_handle);
    ASSERT(call != NULL);
    *out_done = (struct http_done){.id = call->id};
    if (code == CURLE_OK) {
        read_answer(call, out_done);
    } else {
        out_done->failed = true;
        out_done->is_distrusted = code == CURLE_PEER_FAILED_VERIFICATION;
        explain_failure(client, call, code, &out_done->error);
    }
    call_destroy(client, call);
    return true;
}

static status check_multi(CURLMcode code, struct error *err)
{
    if (code == CURLM_OK) return STATUS_OK;
    status kind = code == CURLM_OUT_OF_MEMORY ? STATUS_MEMORY : STATUS_IO;
    return error_set(err, kind, "libcurl: %s", curl_multi_strerror(code));
}

/* ---- interface ---- */

/* At open, since the first call would report a broken file less clearly. */
static status check_ca(const char *path, struct error *err)
{
    struct arena arena = {0};
    struct text ignored;
    status result = secret_file_read_certificates(path, &arena, &ignored, err);
    arena_done(&arena);
    /* Not STATUS_IO, which callers retry. */
    if (result == STATUS_IO) result = err->code = STATUS_USAGE;
    return result;
}

status http_client_open(const struct http_client_options *options, struct http_client **out_client,
                        struct error *err)
{
    ASSERT(options->call_limit > 0);
    ASSERT(options->body_limit > 0);
    TRY(curl_library_prepare(err));
    if (options->ca != NULL) TRY(check_ca(options->ca, err));
    struct http_client *client = memory_alloc(NULL, sizeof *client);
    if (client == NULL) return error_memory(err);
    *client = (struct http_client){.options = *options, .multi = curl_multi_init()};
    if (client->multi == NULL) {
        http_client_close(client);
        return error_memory(err);
    }
    CURLMcode code = curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                                       (long)options->connections_per_host);
    if (code == CURLM_OK) {
        code = curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    }
    status result = check_multi(code, err);
    if (result != STATUS_OK) {
        http_client_close(client);
        return result;
    }
    *out_client = client;
    return STATUS_OK;
}

status http_client_start(struct http_client *client, uint64_t id, const struct http_call *what,
                         struct error *err)
{
    if (client->call_count >= client->options.call_limit) {
        return error_set(err, STATUS_LIMIT, "%u calls are in flight already", client->call_count);
    }
    struct http_transfer *call = call_create(client, id);
    if (call == NULL) return error_memory(err);
    struct buf scratch = {0};
    status result = STATUS_OK;
    if (!set_limits(client, call, what->timeout_ms) || !set_trust(client, call->easy) ||
        !set_request(call->easy, what, &scratch) || !set_headers(call, what)) {
        result = error_memory(err);
    }
    buf_done(&scratch);
    if (result == STATUS_OK) {
        result = check_multi(curl_multi_add_handle(client->multi, call->easy), err);
    }
    if (result != STATUS_OK) {
        call_destroy(client, call);
        return result;
    }
    call->next = client->calls;
    client->calls = call;
    client->call_count++;
    return STATUS_OK;
}

status http_client_poll(struct http_client *client, uint32_t timeout_ms, struct http_done *out_done,
                        bool *out_any, struct error *err)
{
    int running = 0;
    TRY(check_multi(curl_multi_perform(client->multi, &running), err));
    bool any = take_done(client, out_done);
    if (!any && timeout_ms > 0) {
        int wait_ms = timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX;
        TRY(check_multi(curl_multi_poll(client->multi, NULL, 0, wait_ms, NULL), err));
        TRY(check_multi(curl_multi_perform(client->multi, &running), err));
        any = take_done(client, out_done);
    }
    *out_any = any;
    return STATUS_OK;
}

void http_client_close(struct http_client *client)
{
    if (client == NULL) return;
    while (client->calls != NULL) {
        struct http_transfer *call = client->calls;
        client->calls = call->next;
        call_destroy(client, call);
    }
    if (client->multi != NULL) (void)curl_multi_cleanup(client->multi); /* No handles are left. */
    memory_free(NULL, client, sizeof *client);
}
