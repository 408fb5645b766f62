/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_api.c - any bytes that a client or a gateway sends are understood exactly, or refused.
 *
 * Goal: parsing reads nothing past the bytes and keeps to its bounds, and what was understood, once
 * written down, is understood the same way again. The first byte picks what is parsed:
 *     0 a request: lines with method, path, query, owner, checksum, token; the rest is the body
 *     1 a job's description    2 a view of a job    3 a page of results    4 an error's body
 *     5 a timeline    6 a list of nodes    7 a list of jobs
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "cluster/wire/api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct text owner_key = TEXT_INIT("0123456789abcdef0123456789abcdef");

static struct text take_line(struct text *rest)
{
    struct text line = *rest;
    const char *end = rest->size > 0 ? memchr(rest->bytes, '\n', rest->size) : NULL;
    if (end == NULL) {
        *rest = (struct text){0};
        return line;
    }
    line.size = (uint32_t)(end - line.bytes);
    *rest = (struct text){end + 1, rest->size - line.size - 1};
    return line;
}

static void check_refusal(status code, status refusal, const struct error *err)
{
    ASSERT(code == refusal || code == STATUS_LIMIT);
    ASSERT(err->code == code);
    ASSERT(err->text[0] != '\0');
    ASSERT(strnlen(err->text, sizeof err->text) < sizeof err->text);
}

static void check_same(const struct api_request *a, const struct api_request *b)
{
    ASSERT(a->kind == b->kind);
    ASSERT(text_equal(a->job, b->job));
    ASSERT(a->scan == b->scan);
    ASSERT(a->number == b->number);
    ASSERT(text_equal(a->query, b->query));
    ASSERT(a->wait_ms == b->wait_ms);
    ASSERT(a->sent_count == b->sent_count);
    for (uint32_t i = 0; i < a->sent_count; i++) {
        ASSERT(a->sent[i].scan == b->sent[i].scan);
        ASSERT(a->sent[i].count == b->sent[i].count);
    }
    ASSERT(a->end_count == b->end_count);
    ASSERT(a->end_sum == b->end_sum);
}

static void check_again(struct api_request request, struct arena *arena)
{
    struct api_line line;
    struct api_request again;
    struct error err;
    uint32_t code;
    request.owner_key = owner_key;
    request.token =
        (struct text){0}; /* Parsing leaves it to others to say which bytes it may have. */
    status formatted = api_request_format(&request, arena, &line, &err);
    ASSERT(formatted == STATUS_OK);
    struct api_http http = {.method = line.method, .path = line.target, .body = line.body};
    const char *mark = memchr(line.target.bytes, '?', line.target.size);
    if (mark != NULL) {
        http.path.size = (uint32_t)(mark - line.target.bytes);
        http.query = (struct text){mark + 1, line.target.size - http.path.size - 1};
    }
    status parsed = api_request_parse(&http, arena, &again, &code, &err);
    ASSERT(parsed == STATUS_OK);
    check_same(&again, &request);
}

static void fuzz_request(struct text bytes, struct arena *arena)
{
    struct api_http http = {.method = take_line(&bytes)};
    struct api_request request;
    struct error err = {.text = ""};
    uint32_t http_code = 0;
    http.path = take_line(&bytes);
    http.query = take_line(&bytes);
    http.owner = take_line(&bytes);
    http.checksum = take_line(&bytes);
    http.token = take_line(&bytes);
    http.body = bytes;
    status code = api_request_parse(&http, arena, &request, &http_code, &err);
    if (code == STATUS_OK) {
        ASSERT(http_code == 0);
        check_again(request, arena);
        return;
    }
    check_refusal(code, code == STATUS_USAGE ? STATUS_USAGE : STATUS_INPUT, &err);
    ASSERT(http_code >= 400);
    ASSERT((http_code == 404 || http_code == 405) == (code == STATUS_USAGE));
}

static struct text text_of_buf(const struct buf *buf)
{
    ASSERT(!buf->failed);
    return (struct text){(const char *)buf->bytes, (uint32_t)buf->size};
}

static void fuzz_job(struct text bytes, struct arena *arena)
{
    struct job_request job;
    struct buf first = {0};
    struct buf second = {0};
    struct error err = {.text = ""};
    status code = job_request_decode(bytes, arena, &job, &err);
    if (code != STATUS_OK) {
        check_refusal(code, STATUS_INPUT, &err);
        return;
    }
    code = job_request_encode(&job, &first, &err);
    ASSERT(code == STATUS_OK);
    code = job_request_decode(text_of_buf(&first), arena, &job, &err);
    ASSERT(code == STATUS_OK);
    code = job_request_encode(&job, &second, &err);
    ASSERT(code == STATUS_OK);
    ASSERT(text_equal(text_of_buf(&first), text_of_buf(&second)));
    buf_done(&first);
    buf_done(&second);
}

static void fuzz_view(struct text bytes, struct arena *arena)
{
    struct job_view view;
    struct buf first = {0};
    struct buf second = {0};
    struct error err = {.text = ""};
    status code = job_view_decode(bytes, arena, &view, &err);
    if (code != STATUS_OK) {
        check_refusal(code, STATUS_CORRUPT, &err);
        return;
    }
    job_view_encode(&view, &first);
    code = job_view_decode(text_of_buf(&first), arena, &view, &err);
    ASSERT(code == STATUS_OK);
    job_view_encode(&view, &second);
    ASSERT(text_equal(text_of_buf(&first), text_of_buf(&second)));
    buf_done(&first);
    buf_done(&second);
}

/* What was read, once written down, is read the same way again. */
#define FUZZ_LIST(name, type)                                                                      \
    static void fuzz_##name(struct text bytes, struct arena *arena)                                \
    {                                                                                              \
        struct type list;                                                                          \
        struct buf first = {0};                                                                    \
        struct buf second = {0};                                                                   \
        struct error err = {.text = ""};                                                           \
        status code = type##_decode(bytes, arena, &list, &err);                                    \
        if (code != STATUS_OK) {                                                                   \
            check_refusal(code, STATUS_CORRUPT, &err);                                             \
            return;                                                                                \
        }                                                                                          \
        type##_encode(&list, &first);                                                              \
        code = type##_decode(text_of_buf(&first), arena, &list, &err);                             \
        ASSERT(code == STATUS_OK);                                                                 \
        type##_encode(&list, &second);                                                             \
        ASSERT(text_equal(text_of_buf(&first), text_of_buf(&second)));                             \
        buf_done(&first);                                                                          \
        buf_done(&second);                                                                         \
    }

FUZZ_LIST(timeline, timeline)
FUZZ_LIST(nodes, node_list)
FUZZ_LIST(jobs, job_list)

/* A fuzzer does not find checksums: the bytes get the right one. */
static void fuzz_page(struct text bytes, struct arena *arena)
{
    struct result_page page;
    struct buf sealed = {0};
    struct buf again = {0};
    struct error err = {.text = ""};
    buf_put_text(&sealed, bytes);
    buf_put_u64(&sealed, hash_bytes(bytes.bytes, bytes.size));
    status code = result_page_decode(text_of_buf(&sealed), arena, &page, &err);
    if (code == STATUS_OK) {
        result_page_encode(&page, &again);
        ASSERT(text_equal(text_of_buf(&sealed), text_of_buf(&again)));
    } else {
        check_refusal(code, STATUS_CORRUPT, &err);
    }
    buf_done(&sealed);
    buf_done(&again);
}

static void fuzz_error(struct text bytes)
{
    struct api_reply reply = {.status = 503};
    struct error err = {.text = ""};
    struct error again = {.text = ""};
    buf_put_text(&reply.body, bytes);
    api_reply_error_text(&reply, &err);
    ASSERT(err.code != STATUS_OK);
    ASSERT(err.text[0] != '\0');
    api_reply_error(&reply, 0, &err);
    api_reply_error_text(&reply, &again);
    ASSERT(again.code == err.code);
    ASSERT(again.text[0] != '\0');
    buf_done(&reply.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > UINT32_MAX) return 0;
    struct text bytes = {(const char *)data + 1, (uint32_t)size - 1};
    struct arena arena = {0};
    switch (data[0] % 8) {
    case 0:
        fuzz_request(bytes, &arena);
        break;
    case 1:
        fuzz_job(bytes, &arena);
        break;
    case 2:
        fuzz_view(bytes, &arena);
        break;
    case 3:
        fuzz_page(bytes, &arena);
        break;
    case 5:
        fuzz_timeline(bytes, &arena);
        break;
    case 6:
        fuzz_nodes(bytes, &arena);
        break;
    case 7:
        fuzz_jobs(bytes, &arena);
        break;
    default:
        fuzz_error(bytes);
    }
    arena_done(&arena);
    return 0;
}
