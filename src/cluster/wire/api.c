/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - one table of routes, walked in both directions.
 *
 * A path is split at its slashes before anything is decoded, so that an encoded slash is part of a
 * name (and refused with it) and never moves a request to another route (RFC 3986, 2.4 and 7.3).
 * Only names and values are decoded: fixed segments and numbers in a path have one spelling.
 */
#include "cluster/wire/api.h"

#include <inttypes.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "cluster/wire/api_json.h"
#include "cluster/wire/json_schema.h"

enum {
    PATH_MAX_BYTES = 1024,
    QUERY_MAX_BYTES = 32 << 10,
    TOKEN_MAX_BYTES = 4096,
    HEADERS_MAX = 4,
    HTTP_BAD_REQUEST = 400,
    HTTP_NOT_FOUND = 404,
    HTTP_WRONG_METHOD = 405,
    HTTP_TOO_LARGE = 413,
    HTTP_INTERNAL = 500,
    HTTP_UNAVAILABLE = 503
};

struct route {
    const char *method;
    const char *path;         /* A segment that begins with a brace is filled in. */
    const char *content_type; /* Of the request's body; NULL: it has none. */
};

static const char json_type[] = "application/json";
static const char bytes_type[] = "application/octet-stream";

static const struct route routes[API_KINDS] = {
    [API_PUT_JOB] = {"PUT", "/v1/jobs/{job}", json_type},
    [API_PUT_CHUNK] = {"PUT", "/v1/jobs/{job}/scans/{scan}/chunks/{number}", bytes_type},
    [API_PUT_END] = {"PUT", "/v1/jobs/{job}/scans/{scan}/end", json_type},
    [API_GET_JOB] = {"GET", "/v1/jobs/{job}", NULL},
    [API_GET_RESULT] = {"GET", "/v1/jobs/{job}/results/{query}", NULL},
    [API_TIMELINE] = {"GET", "/v1/jobs/{job}/timeline", NULL},
    [API_DELETE_JOB] = {"DELETE", "/v1/jobs/{job}", NULL},
    [API_LIST_JOBS] = {"GET", "/v1/jobs", NULL},
    [API_NODES] = {"GET", "/v1/nodes", NULL},
    [API_HEALTH] = {"GET", "/healthz", NULL},
    [API_METRICS] = {"GET", "/metrics", NULL},
};

/* ---- pieces of text ---- */

static bool text_is(struct text text, const char *string)
{
    return text_equal(text, text_of(string));
}

/* Takes the part before the separator, or all; false: nothing is left. */
static bool piece_take(struct text *rest, char separator, struct text *out)
{
    if (rest->bytes == NULL) return false;
    const char *end = rest->size > 0 ? memchr(rest->bytes, separator, rest->size) : NULL;
    if (end == NULL) {
        *out = *rest;
        *rest = (struct text){0};
        return true;
    }
    uint32_t size = (uint32_t)(end - rest->bytes);
    *out = (struct text){rest->bytes, size};
    *rest = (struct text){end + 1, rest->size - size - 1};
    return true;
}

/* For messages: a client's bytes, cut. */
#define SHOWN_ARGS(text)                                                                           \
    (int)((text).size < 80 ? (text).size : 80), ((text).bytes != NULL ? (text).bytes : "")

static status number_parse(struct text digits, uint64_t max, const char *what, uint64_t *out,
                           struct error *err)
{
    uint64_t value = 0;
    bool is_number = digits.size > 0 && (digits.bytes[0] != '0' || digits.size == 1);
    for (uint32_t i = 0; is_number && i < digits.size; i++) {
        unsigned digit = (unsigned)(digits.bytes[i] - '0');
        is_number = digit <= 9 && !__builtin_mul_overflow(value, 10u, &value) &&
                    !__builtin_add_overflow(value, digit, &value);
    }
    if (!is_number || value > max) {
        return error_set(err, STATUS_INPUT, "%s: `%.*s` is not a number from 0 to %" PRIu64, what,
                         SHOWN_ARGS(digits), max);
    }
    *out = value;
    return STATUS_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Borrows a value that has no percent sign (RFC 3986, 2.1). */
static status percent_decode(struct text encoded, struct arena *arena, struct text *out,
                             struct error *err)
{
    if (encoded.size == 0 || memchr(encoded.bytes, '%', encoded.size) == NULL) {
        *out = encoded;
        return STATUS_OK;
    }
    char *bytes = arena_alloc(arena, encoded.size, 1);
    if (bytes == NULL) return error_memory(err);
    uint32_t size = 0;
    for (uint32_t i = 0; i < encoded.size; i++) {
        if (encoded.bytes[i] != '%') {
            bytes[size++] = encoded.bytes[i];
            continue;
        }
        int high = encoded.size - i > 2 ? hex_digit(encoded.bytes[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(encoded.bytes[i + 2]) : -1;
        if (low < 0) {
            return error_set(err, STATUS_INPUT, "`%.*s`: %% must be followed by two hex digits",
                             SHOWN_ARGS(encoded));
        }
        bytes[size++] = (char)(high << 4 | low);
        i += 2;
    }
    *out = (struct text){bytes, size};
    return STATUS_OK;
}

static status job_check(struct text job, status refusal, struct error *err)
{
    if (manifest_name_valid(job)) return STATUS_OK;
    return error_set(err, refusal,
                     "`%.*s` is no job's name: those are 1 to %d of A-Z a-z 0-9 . _ -",
                     SHOWN_ARGS(job), MANIFEST_NAME_MAX);
}

static status query_check(struct text query, status refusal, struct error *err)
{
    if (text_is(query, API_AUDIT) || (manifest_name_valid(query) && query.bytes[0] != '.')) {
        return STATUS_OK;
    }
    return error_set(err, refusal,
                     "`%.*s` is no query's name: those are 1 to %d of A-Z a-z 0-9 . _ - and don't "
                     "begin with a point",
                     SHOWN_ARGS(query), MANIFEST_NAME_MAX);
}

static bool is_owner_key(struct text key)
{
    if (key.size != API_OWNER_KEY_SIZE) return false;
    for (uint32_t i = 0; i < key.size; i++) {
        if (hex_digit(key.bytes[i]) < 0 || (key.bytes[i] >= 'A' && key.bytes[i] <= 'F')) {
            return false;
        }
    }
    return true;
}

/* ---- parsing ---- */

static bool route_matches(const struct route *route, struct text path)
{
    struct text pattern = text_of(route->path);
    struct text expected, segment;
    while (piece_take(&pattern, '/', &expected)) {
        if (!piece_take(&path, '/', &segment)) return false;
        bool is_filled_in = expected.size > 0 && expected.bytes[0] == '{';
        if (!is_filled_in && !text_equal(expected, segment)) return false;
    }
    return path.bytes == NULL;
}

static status route_find(const struct api_http *http, enum api_kind *out, uint32_t *out_http,
                         struct error *err)
{
    const char *other_method = NULL;
    for (uint32_t kind = 0; kind < API_KINDS; kind++) {
        if (!route_matches(&routes[kind], http->path)) continue;
        if (text_is(http->method, routes[kind].method)) {
            *out = (enum api_kind)kind;
            return STATUS_OK;
        }
        other_method = routes[kind].method;
    }
    if (other_method != NULL) {
        *out_http = HTTP_WRONG_METHOD;
        return error_set(err, STATUS_USAGE, "`%.*s` does not take `%.*s`, but %s",
                         SHOWN_ARGS(http->path), SHOWN_ARGS(http->method), other_method);
    }
    *out_http = HTTP_NOT_FOUND;
    return error_set(err, STATUS_USAGE, "there is nothing at `%.*s`", SHOWN_ARGS(http->path));
}

static status segment_parse(struct text place, struct text segment, struct arena *arena,
                            struct api_request *out, struct error *err)
{
    uint64_t number;
    if (text_is(place, "{job}")) {
        TRY(percent_decode(segment, arena, &out->job, err));
        return job_check(out->job, STATUS_INPUT, err);
    }
    if (text_is(place, "{query}")) {
        TRY(percent_decode(segment, arena, &out->query, err));
        return query_check(out->query, STATUS_INPUT, err);
    }
    if (text_is(place, "{scan}")) {
        TRY(number_parse(segment, UINT32_MAX, "scan", &number, err));
        out->scan = (uint32_t)number;
        return STATUS_OK;
    }
    ASSERT(text_is(place, "{number}"));
    return number_parse(segment, API_NUMBER_MAX, "chunk", &out->number, err);
}

static status path_parse(struct text path, struct arena *arena, struct api_request *out,
                         struct error *err)
{
    struct text pattern = text_of(routes[out->kind].path);
    struct text place, segment;
    while (piece_take(&pattern, '/', &place) && piece_take(&path, '/', &segment)) {
        if (place.size > 0 && place.bytes[0] == '{') {
            TRY(segment_parse(place, segment, arena, out, err));
        }
    }
    return STATUS_OK;
}

/* SCAN:COUNT,SCAN:COUNT with ascending scans. */
static status sent_parse(struct text list, struct arena *arena, struct api_request *out,
                         struct error *err)
{
    uint32_t capacity = 1;
    for (uint32_t i = 0; i < list.size; i++) {
        capacity += list.bytes[i] == ',';
    }
    if (capacity > API_SENT_MAX) {
        return error_set(err, STATUS_INPUT, "sent: more than %d scans", API_SENT_MAX);
    }
    struct scan_sent *sent = arena_array(arena, struct scan_sent, capacity);
    if (sent == NULL) return error_memory(err);
    struct text pair;
    uint32_t count = 0;
    while (piece_take(&list, ',', &pair)) {
        struct text scan;
        uint64_t number;
        (void)piece_take(&pair, ':', &scan); /* There is at least an empty piece. */
        TRY(number_parse(scan, UINT32_MAX, "sent: scan", &number, err));
        TRY(number_parse(pair, API_NUMBER_MAX, "sent: count", &sent[count].count, err));
        sent[count].scan = (uint32_t)number;
        if (count > 0 && sent[count].scan <= sent[count - 1].scan) {
            return error_set(err, STATUS_INPUT, "sent: scans must ascend");
        }
        count++;
    }
    out->sent = sent;
    out->sent_count = count;
    return STATUS_OK;
}

enum parameter { PARAMETER_WAIT, PARAMETER_SENT, PARAMETER_SEEN, PARAMETER_FROM, PARAMETERS };

static const struct {
    const char *name;
    enum api_kind kind;
} parameters[PARAMETERS] = {
    [PARAMETER_WAIT] = {"wait", API_GET_JOB},
    [PARAMETER_SENT] = {"sent", API_GET_JOB},
    [PARAMETER_SEEN] = {"seen", API_GET_JOB},
    [PARAMETER_FROM] = {"from", API_GET_RESULT},
};

static status parameter_parse(uint32_t parameter, struct text value, struct arena *arena,
                              struct api_request *out, struct error *err)
{
    uint64_t number;
    switch (parameter) {
    case PARAMETER_WAIT:
        TRY(number_parse(value, API_WAIT_MAX_S, "wait", &number, err));
        out->wait_ms = (uint32_t)number * 1000;
        return STATUS_OK;
    case PARAMETER_SENT:
        return sent_parse(value, arena, out, err);
    case PARAMETER_SEEN:
        out->has_seen = json_hex_parse(value, &out->seen);
        if (out->has_seen) return STATUS_OK;
        return error_set(err, STATUS_INPUT, "seen must be 16 lower-case hex digits");
    default:
        return number_parse(value, API_NUMBER_MAX, "from", &out->number, err);
    }
}

static status query_parse(struct text query, struct arena *arena, struct api_request *out,
                          struct error *err)
{
    bool seen[PARAMETERS] = {false};
    struct text value, name, decoded;
    if (query.size == 0) return STATUS_OK;
    while (piece_take(&query, '&', &value)) {
        (void)piece_take(&value, '=', &name); /* There is at least an empty piece. */
        uint32_t found = 0;
        while (found < PARAMETERS &&
               (parameters[found].kind != out->kind || !text_is(name, parameters[found].name))) {
            found++;
        }
        if (found == PARAMETERS || value.bytes == NULL) {
            return error_set(err, STATUS_INPUT, "`%.*s` is no parameter here, or has no value",
                             SHOWN_ARGS(name));
        }
        if (seen[found]) {
            return error_set(err, STATUS_INPUT, "%s is given twice", parameters[found].name);
        }
        seen[found] = true;
        TRY(percent_decode(value, arena, &decoded, err));
        TRY(parameter_parse(found, decoded, arena, out, err));
    }
    return STATUS_OK;
}

static status headers_parse(const struct api_http *http, struct api_request *out, struct error *err)
{
    if (http->owner.size > 0) {
        /* The key is a secret: it is not repeated. */
        if (!is_owner_key(http->owner)) {
            return error_set(err, STATUS_INPUT,
                             API_HEADER_OWNER " must be %d lower-case hex digits",
                             API_OWNER_KEY_SIZE);
        }
        out->has_owner = true;
        out->owner = hash_bytes(http->owner.bytes, http->owner.size);
    }
    if (http->checksum.size > 0) {
        if (!json_hex_parse(http->checksum, &out->checksum)) {
            return error_set(err, STATUS_INPUT,
                             API_HEADER_CHECKSUM " must be 16 lower-case hex digits");
        }
        out->has_checksum = true;
    }
    /* Another scheme is as good as no token (RFC 9110, 11.1: schemes ignore case). */
    const struct text scheme = TEXT_LITERAL("Bearer ");
    if (http->token.size > scheme.size && http->token.size <= TOKEN_MAX_BYTES &&
        text_equal_ignoring_case((struct text){http->token.bytes, scheme.size}, scheme)) {
        out->token = (struct text){http->token.bytes + scheme.size, http->token.size - scheme.size};
    }
    return STATUS_OK;
}

static status request_parse(const struct api_http *http, struct arena *arena,
                            struct api_request *out, uint32_t *out_http, struct error *err)
{
    if (http->path.size > PATH_MAX_BYTES || http->query.size > QUERY_MAX_BYTES) {
        return error_set(err, STATUS_LIMIT, "the address is longer than any that is in use here");
    }
    TRY(route_find(http, &out->kind, out_http, err));
    TRY(path_parse(http->path, arena, out, err));
    TRY(query_parse(http->query, arena, out, err));
    TRY(headers_parse(http, out, err));
    if (routes[out->kind].content_type == NULL && http->body.size > 0) {
        return error_set(err, STATUS_INPUT, "no body belongs to this request");
    }
    out->body = http->body;
    if (out->kind == API_PUT_END) return api_end_decode(http->body, arena, out, err);
    return STATUS_OK;
}

static uint32_t http_of(status code)
{
    switch (code) {
    case STATUS_INPUT:
    case STATUS_SQL:
    case STATUS_OVERFLOW:
    case STATUS_CORRUPT:
    case STATUS_USAGE:
        return HTTP_BAD_REQUEST;
    case STATUS_LIMIT:
        return HTTP_TOO_LARGE;
    case STATUS_MEMORY:
    case STATUS_IO:
    case STATUS_CANCELLED:
    case STATUS_UNREACHABLE:
        return HTTP_UNAVAILABLE;
    case STATUS_OK:
    case STATUS_INTERNAL:
        break;
    }
    return HTTP_INTERNAL;
}

status api_request_parse(const struct api_http *http, struct arena *arena, struct api_request *out,
                         uint32_t *out_http, struct error *err)
{
    struct api_request request = {0};
    uint32_t chosen = 0;
    status code = request_parse(http, arena, &request, &chosen, err);
    if (code != STATUS_OK) {
        *out_http = chosen != 0 ? chosen : http_of(code);
        return code;
    }
    *out = request;
    return STATUS_OK;
}

/* ---- formatting ---- */

/* Checks values that people type or configure; the rest is made by programs, and asserted. */
static status request_check(const struct api_request *request, struct error *err)
{
    const char *path = routes[request->kind].path;
    if (strstr(path, "{job}") != NULL) TRY(job_check(request->job, STATUS_USAGE, err));
    if (strstr(path, "{query}") != NULL) TRY(query_check(request->query, STATUS_USAGE, err));
    if (request->owner_key.size > 0 && !is_owner_key(request->owner_key)) {
        return error_set(err, STATUS_USAGE, "the owner key must be %d lower-case hex digits",
                         API_OWNER_KEY_SIZE);
    }
    if (request->token.size > TOKEN_MAX_BYTES - sizeof "Bearer ") {
        return error_set(err, STATUS_USAGE, "the token is too long");
    }
    for (uint32_t i = 0; i < request->token.size; i++) {
        if (request->token.bytes[i] <= ' ' || request->token.bytes[i] > '~') {
            return error_set(err, STATUS_USAGE,
                             "the token has a byte that is no visible ASCII character");
        }
    }
    ASSERT(request->number <= API_NUMBER_MAX);
    ASSERT(request->end_count <= API_NUMBER_MAX);
    ASSERT(request->wait_ms <= API_WAIT_MAX_S * 1000);
    ASSERT(request->sent_count <= API_SENT_MAX);
    return STATUS_OK;
}

static void path_format(const struct api_request *request, struct buf *out)
{
    struct text pattern = text_of(routes[request->kind].path + 1);
    struct text place;
    while (piece_take(&pattern, '/', &place)) {
        buf_put_u8(out, '/');
        if (text_is(place, "{job}")) {
            buf_put_text(out, request->job);
        } else if (text_is(place, "{query}")) {
            buf_put_text(out, request->query);
        } else if (text_is(place, "{scan}")) {
            buf_format(out, "%" PRIu32, request->scan);
        } else if (text_is(place, "{number}")) {
            buf_format(out, "%" PRIu64, request->number);
        } else {
            buf_put_text(out, place);
        }
    }
}

static void query_format(const struct api_request *request, struct buf *out)
{
    char before = '?';
    if (request->kind == API_GET_RESULT && request->number > 0) {
        buf_format(out, "?from=%" PRIu64, request->number);
    }
    if (request->kind != API_GET_JOB) return;
    if (request->wait_ms > 0) {
        buf_format(out, "?wait=%" PRIu32, (request->wait_ms + 999) / 1000);
        before = '&';
    }
    if (request->sent_count > 0) buf_format(out, "%csent=", before);
    for (uint32_t i = 0; i < request->sent_count; i++) {
        const struct scan_sent *sent = &request->sent[i];
        ASSERT(sent->count <= API_NUMBER_MAX);
        ASSERT(i == 0 || sent->scan > request->sent[i - 1].scan);
        buf_format(out, "%s%" PRIu32 ":%" PRIu64, i > 0 ? "," : "", sent->scan, sent->count);
    }
    if (request->sent_count > 0) before = '&';
    if (request->has_seen) buf_format(out, "%cseen=%016" PRIx64, before, request->seen);
}

/* Moves a finished text into the arena. */
static status built_take(struct buf *built, struct arena *arena, struct text *out,
                         struct error *err)
{
    struct text text = {(const char *)built->bytes, (uint32_t)built->size};
    text.bytes = built->failed ? NULL : arena_copy_string(arena, text);
    buf_done(built);
    if (text.bytes == NULL) return error_memory(err);
    *out = text;
    return STATUS_OK;
}

static status headers_format(const struct api_request *request, struct arena *arena,
                             struct api_line *out, struct error *err)
{
    struct buf built[HEADERS_MAX] = {{0}};
    uint32_t count = 0;
    if (request->owner_key.size > 0) {
        buf_format(&built[count++], API_HEADER_OWNER ": %.*s", TEXT_ARGS(request->owner_key));
    }
    if (request->has_checksum) {
        buf_format(&built[count++], API_HEADER_CHECKSUM ": %016" PRIx64, request->checksum);
    }
    if (request->token.size > 0) {
        buf_format(&built[count++], API_HEADER_TOKEN ": Bearer %.*s", TEXT_ARGS(request->token));
    }
    if (routes[request->kind].content_type != NULL) {
        buf_format(&built[count++], "Content-Type: %s", routes[request->kind].content_type);
    }
    const char **headers = arena_array(arena, const char *, HEADERS_MAX);
    status code = headers != NULL ? STATUS_OK : error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        struct text header;
        status taken = built_take(&built[i], arena, &header, err);
        if (taken == STATUS_OK && headers != NULL) headers[i] = header.bytes;
        if (code == STATUS_OK) code = taken;
    }
    out->headers = headers;
    out->header_count = count;
    return code;
}

status api_request_format(const struct api_request *request, struct arena *arena,
                          struct api_line *out, struct error *err)
{
    ASSERT(request->kind < API_KINDS);
    TRY(request_check(request, err));
    struct api_line line = {
        .method = text_of(routes[request->kind].method),
        .body = request->body,
    };
    struct buf target = {0};
    path_format(request, &target);
    query_format(request, &target);
    TRY(built_take(&target, arena, &line.target, err));
    TRY(headers_format(request, arena, &line, err));
    if (request->kind == API_PUT_END) {
        struct buf body = {0};
        api_end_encode(request, &body);
        TRY(built_take(&body, arena, &line.body, err));
    }
    *out = line;
    return STATUS_OK;
}

/* ---- replies ---- */

void api_reply_error(struct api_reply *reply, uint32_t http, const struct error *err)
{
    reply->status = http != 0 ? http : http_of(err->code);
    reply->content_type = json_type;
    buf_reset(&reply->body);
    api_error_encode(err, &reply->body);
    /* Without memory the status code is the whole answer. */
    if (reply->body.failed) buf_reset(&reply->body);
}

void api_reply_error_text(const struct api_reply *reply, struct error *err)
{
    const struct buf *body = &reply->body;
    if (body->size <= UINT32_MAX &&
        api_error_decode((struct text){(const char *)body->bytes, (uint32_t)body->size}, err)) {
        return;
    }
    status code = STATUS_IO;
    if (reply->status >= 400 && reply->status < 500) code = STATUS_INPUT;
    if (reply->status == HTTP_TOO_LARGE) code = STATUS_LIMIT;
    error_write(err, code, "the gateway answered with HTTP status %" PRIu32 " and gave no reason",
                reply->status);
}
