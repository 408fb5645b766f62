/* SPDX-License-Identifier: Apache-2.0 */
/* test_api.c - what a client formats is what a gateway parses, and nothing else is taken.
 *
 * Method: random requests of every kind go through both directions and are compared field by field.
 * Every path meets every method. Bytes, numbers and lists that a client may send are tried at and
 * beyond their extremes, and every allocation fails once.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/random.h"
#include "cluster/wire/api.h"

#define OWNER_KEY "0123456789abcdef0123456789abcdef"

/* The line as a server sees it; the target is cut at its question mark. */
static struct api_http http_of_line(const char *method, const char *target)
{
    const char *mark = strchr(target, '?');
    struct api_http http = {.method = text_of(method), .path = text_of(target)};
    if (mark != NULL) {
        http.path.size = (uint32_t)(mark - target);
        http.query = text_of(mark + 1);
    }
    return http;
}

/* The HTTP code of the failure, or 200. */
static uint32_t parse(struct api_http http, struct arena *arena, struct api_request *out)
{
    struct error err = {.text = ""};
    uint32_t code = 0;
    status parsed = api_request_parse(&http, arena, out, &code, &err);
    if (parsed == STATUS_OK) {
        assert_int_equal(code, 0);
        return 200;
    }
    assert_int_equal(parsed, err.code);
    assert_true(err.text[0] != '\0');
    return code;
}

static uint32_t parse_code(const char *method, const char *target)
{
    struct arena arena = {0};
    struct api_request request;
    uint32_t code = parse(http_of_line(method, target), &arena, &request);
    arena_done(&arena);
    return code;
}

/* ---- round trips ---- */

static struct text random_name(struct random *random, struct arena *arena)
{
    static const char letters[] = "abcXYZ019._-";
    uint32_t size = 1 + random_below(random, MANIFEST_NAME_MAX);
    char *bytes = arena_array(arena, char, size);
    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = letters[i == 0 ? random_below(random, 9) : random_below(random, 12)];
    }
    return (struct text){bytes, size};
}

static uint64_t random_number(struct random *random)
{
    static const uint64_t extremes[] = {
        0, 1, 9, 10, UINT32_MAX, API_NUMBER_MAX - 1, API_NUMBER_MAX};
    uint32_t extreme = random_below(random, 8);
    return extreme < 7 ? extremes[extreme] : random_u64(random) % API_NUMBER_MAX;
}

static void random_sent(struct random *random, struct arena *arena, struct api_request *request)
{
    uint32_t count = random_below(random, 3) == 0 ? API_SENT_MAX : random_below(random, 4);
    struct scan_sent *sent = arena_array(arena, struct scan_sent, API_SENT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        sent[i].scan = i * 16000000 + random_below(random, 16000000);
        sent[i].count = random_number(random);
    }
    request->sent = sent;
    request->sent_count = count;
}

static struct api_request random_request(struct random *random, struct arena *arena,
                                         enum api_kind kind)
{
    struct api_request request = {.kind = kind};
    if (kind <= API_DELETE_JOB) request.job = random_name(random, arena);
    if (kind == API_PUT_CHUNK || kind == API_PUT_END) request.scan = (uint32_t)random_u64(random);
    if (kind == API_PUT_CHUNK || kind == API_GET_RESULT) request.number = random_number(random);
    if (kind == API_PUT_JOB || kind == API_PUT_CHUNK) request.body = TEXT_LITERAL("{a body}");
    if (kind == API_GET_RESULT) {
        bool is_audit = random_below(random, 4) == 0;
        request.query = is_audit ? TEXT_LITERAL(API_AUDIT) : random_name(random, arena);
    }
    if (kind == API_GET_JOB) {
        request.wait_ms = random_below(random, API_WAIT_MAX_S + 1) * 1000;
        random_sent(random, arena, &request);
        request.has_seen = random_below(random, 2) == 0;
        if (request.has_seen) request.seen = random_u64(random);
    }
    if (kind == API_PUT_END) {
        request.end_count = random_number(random);
        request.end_sum = random_u64(random);
    }
    if (random_below(random, 2) == 0) request.owner_key = TEXT_LITERAL(OWNER_KEY);
    if (random_below(random, 2) == 0) request.token = TEXT_LITERAL("s3cret~!");
    if (random_below(random, 2) == 0) {
        request.has_checksum = true;
        request.checksum = random_u64(random);
    }
    return request;
}

static struct text header_value(const struct api_line *line, const char *name)
{
    for (uint32_t i = 0; i < line->header_count; i++) {
        size_t size = strlen(name);
        if (strncmp(line->headers[i], name, size) != 0) continue;
        assert_memory_equal(line->headers[i] + size, ": ", 2);
        return text_of(line->headers[i] + size + 2);
    }
    return (struct text){0};
}

static struct api_http http_of_api_line(const struct api_line *line, struct arena *arena)
{
    struct api_http http = http_of_line(arena_copy_string(arena, line->method), line->target.bytes);
    http.owner = header_value(line, API_HEADER_OWNER);
    http.checksum = header_value(line, API_HEADER_CHECKSUM);
    http.token = header_value(line, API_HEADER_TOKEN);
    http.body = line->body;
    return http;
}

static void check_equal(const struct api_request *seen, const struct api_request *expected)
{
    assert_int_equal(seen->kind, expected->kind);
    assert_true(text_equal(seen->job, expected->job));
    assert_int_equal(seen->scan, expected->scan);
    assert_int_equal(seen->number, expected->number);
    assert_true(text_equal(seen->query, expected->query));
    assert_int_equal(seen->wait_ms, expected->wait_ms);
    assert_int_equal(seen->has_seen, expected->has_seen);
    assert_int_equal(seen->seen, expected->seen);
    assert_int_equal(seen->has_owner, expected->owner_key.size > 0);
    if (seen->has_owner) {
        assert_int_equal(seen->owner, hash_bytes(OWNER_KEY, API_OWNER_KEY_SIZE));
    }
    assert_int_equal(seen->owner_key.size, 0);
    assert_int_equal(seen->has_checksum, expected->has_checksum);
    assert_int_equal(seen->checksum, expected->checksum);
    assert_true(text_equal(seen->token, expected->token));
    assert_int_equal(seen->sent_count, expected->sent_count);
    for (uint32_t i = 0; i < seen->sent_count; i++) {
        assert_int_equal(seen->sent[i].scan, expected->sent[i].scan);
        assert_int_equal(seen->sent[i].count, expected->sent[i].count);
    }
    assert_int_equal(seen->end_count, expected->end_count);
    assert_int_equal(seen->end_sum, expected->end_sum);
    if (seen->kind != API_PUT_END) assert_true(text_equal(seen->body, expected->body));
}

static void a_request_parsed_is_the_one_formatted(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t round = 0; round < 100 * API_KINDS; round++) {
        struct arena arena = {0};
        struct api_request request =
            random_request(&random, &arena, (enum api_kind)(round % API_KINDS));
        struct api_line line;
        struct api_request parsed;
        struct error err;
        assert_int_equal(api_request_format(&request, &arena, &line, &err), STATUS_OK);
        assert_int_equal(line.target.bytes[line.target.size], '\0');
        assert_int_equal(parse(http_of_api_line(&line, &arena), &arena, &parsed), 200);
        check_equal(&parsed, &request);
        arena_done(&arena);
    }
}

static void a_wait_is_rounded_up_to_whole_seconds(void **state)
{
    (void)state;
    static const uint32_t waits[][2] = {{1, 1}, {999, 1}, {1000, 1}, {1001, 2}, {59001, 60}};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct arena arena = {0};
        struct api_request request = {
            .kind = API_GET_JOB, .job = TEXT_LITERAL("j"), .wait_ms = waits[i][0]};
        struct api_line line;
        struct error err;
        char expected[40];
        (void)snprintf(expected, sizeof expected, "/v1/jobs/j?wait=%u", waits[i][1]);
        assert_int_equal(api_request_format(&request, &arena, &line, &err), STATUS_OK);
        assert_string_equal(line.target.bytes, expected);
        arena_done(&arena);
    }
}

/* ---- what is not taken ---- */

static void every_path_takes_its_methods_only(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *methods;
    } paths[] = {
        {"/v1/jobs/j", "PUT GET DELETE"},
        {"/v1/jobs/j/scans/0/chunks/7", "PUT"},
        {"/v1/jobs/j/results/q1", "GET"},
        {"/v1/jobs/j/results/.audit", "GET"},
        {"/v1/jobs", "GET"},
        {"/v1/nodes", "GET"},
        {"/healthz", "GET"},
        {"/metrics", "GET"},
        {"", ""},
        {"/", ""},
        {"//", ""},
        {"v1/jobs", ""},
        {"/v1", ""},
        {"/v1/", ""},
        {"/v2/jobs", ""},
        {"/V1/jobs", ""},
        {"/v1/job%73", ""},
        {"/v1//jobs", ""},
        {"/v1/jobs/j/", ""},
        {"/v1/jobs/j/scans", ""},
        {"/v1/jobs/j/scans/0", ""},
        {"/v1/jobs/j/scans/0/chunks", ""},
        {"/v1/jobs/j/scans/0/chunks/7/8", ""},
        {"/v1/jobs/j/scans/0/end/", ""},
        {"/v1/jobs/j/results", ""},
        {"/v1/nodes/", ""},
        {"/healthz/x", ""},
        {"*", ""},
    };
    static const char *const methods[] = {"PUT",     "GET",   "DELETE", "POST", "HEAD",
                                          "OPTIONS", "PATCH", "get",    "GE",   ""};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        for (size_t j = 0; j < sizeof methods / sizeof methods[0]; j++) {
            bool is_taken = j < 3 && strstr(paths[i].methods, methods[j]) != NULL;
            uint32_t otherwise = paths[i].methods[0] == '\0' ? 404 : 405;
            assert_int_equal(parse_code(methods[j], paths[i].path), is_taken ? 200 : otherwise);
        }
    }
    assert_int_equal(parse_code("GET", "/v1/jobs/j/scans/0/end"), 405);
}

static void a_name_may_be_encoded_but_must_be_one(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char job[40], query[60];
        char name[2] = {'a', (char)byte};
        struct arena arena = {0};
        struct api_request request;
        bool is_valid = manifest_name_valid((struct text){name, 2});
        (void)snprintf(job, sizeof job, byte % 2 == 0 ? "/v1/jobs/a%%%02X" : "/v1/jobs/a%%%02x",
                       byte);
        (void)snprintf(query, sizeof query, "/v1/jobs/j/results/%%61%%%02x", byte);
        assert_int_equal(parse(http_of_line("GET", job), &arena, &request), is_valid ? 200 : 400);
        if (is_valid) assert_true(text_equal(request.job, (struct text){name, 2}));
        assert_int_equal(parse(http_of_line("GET", query), &arena, &request), is_valid ? 200 : 400);
        if (is_valid) assert_true(text_equal(request.query, (struct text){name, 2}));
        arena_done(&arena);
    }
    static const char *const wrong[] = {
        "/v1/jobs/",
        "/v1/jobs/%",
        "/v1/jobs/a%4",
        "/v1/jobs/a%4g",
        "/v1/jobs/a%g4",
        "/v1/jobs/%%41",
        "/v1/jobs/.",
        "/v1/jobs/%2e%2E",
        "/v1/jobs/a%2Fb",
        "/v1/jobs/a+b",
        "/v1/jobs/j/results/",
        "/v1/jobs/j/results/.b",
        "/v1/jobs/j/results/.",
        "/v1/jobs/j/results/..",
        "/v1/jobs/j/results/.audits",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse_code("GET", wrong[i]), 400);
    }
    char longest[200] = "/v1/jobs/";
    memset(longest + strlen(longest), 'x', MANIFEST_NAME_MAX);
    assert_int_equal(parse_code("GET", longest), 200);
    longest[strlen(longest)] = 'x';
    assert_int_equal(parse_code("GET", longest), 400);
}

static void numbers_are_plain_decimals_within_their_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *digits;
        bool is_scan, is_number, is_wait;
    } cases[] = {
        {"0", true, true, true},
        {"60", true, true, true},
        {"61", true, true, false},
        {"4294967295", true, true, false},
        {"4294967296", false, true, false},
        {"9007199254740992", false, true, false},
        {"9007199254740993", false, false, false},
        {"18446744073709551615", false, false, false},
        {"18446744073709551616", false, false, false},
        {"36893488147419103232", false, false, false},
        {"99999999999999999999999999999999", false, false, false},
        {"", false, false, false},
        {"00", false, false, false},
        {"07", false, false, false},
        {"-1", false, false, false},
        {"+1", false, false, false},
        {"1.0", false, false, false},
        {"1e1", false, false, false},
        {"0x1", false, false, false},
        {"1_", false, false, false},
        {":", false, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char target[120];
        const char *digits = cases[i].digits;
        (void)snprintf(target, sizeof target, "/v1/jobs/j/scans/%s/chunks/1", digits);
        assert_int_equal(parse_code("PUT", target), cases[i].is_scan ? 200 : 400);
        (void)snprintf(target, sizeof target, "/v1/jobs/j/scans/1/chunks/%s", digits);
        assert_int_equal(parse_code("PUT", target), cases[i].is_number ? 200 : 400);
        (void)snprintf(target, sizeof target, "/v1/jobs/j/results/q?from=%s", digits);
        assert_int_equal(parse_code("GET", target), cases[i].is_number ? 200 : 400);
        (void)snprintf(target, sizeof target, "/v1/jobs/j?wait=%s", digits);
        assert_int_equal(parse_code("GET", target), cases[i].is_wait ? 200 : 400);
        (void)snprintf(target, sizeof target, "/v1/jobs/j?sent=%s:1", digits);
        assert_int_equal(parse_code("GET", target), cases[i].is_scan ? 200 : 400);
        (void)snprintf(target, sizeof target, "/v1/jobs/j?sent=1:%s", digits);
        assert_int_equal(parse_code("GET", target), cases[i].is_number ? 200 : 400);
    }
}

static void parameters_are_known_and_given_once(void **state)
{
    (void)state;
    static const char *const right[] = {
        "/v1/jobs/j?",         "/v1/jobs/j?wait=1&sent=0:1",    "/v1/jobs/j?sent=0:1&wait=1",
        "/v1/jobs/j?wait=%31", "/v1/jobs/j?sent=0%3A1%2c5%3a2", "/v1/jobs/j/results/q?from=%30",
    };
    static const char *const wrong[] = {
        "/v1/jobs/j?wait",
        "/v1/jobs/j?wait=",
        "/v1/jobs/j?wait=1&",
        "/v1/jobs/j?&wait=1",
        "/v1/jobs/j?wait=1&&sent=0:1",
        "/v1/jobs/j?wait=1&wait=1",
        "/v1/jobs/j?wait=1=1",
        "/v1/jobs/j?Wait=1",
        "/v1/jobs/j?%77ait=1",
        "/v1/jobs/j?=1",
        "/v1/jobs/j?=",
        "/v1/jobs/j?wait=1;sent=0:1",
        "/v1/jobs/j?wait=%",
        "/v1/jobs/j?wait=1%00",
        "/v1/jobs/j?from=1",
        "/v1/jobs/j/results/q?wait=1",
        "/v1/jobs/j/results/q?from=1&from=2",
        "/v1/jobs?wait=1",
        "/v1/nodes?x=1",
        "/healthz?x",
        "/v1/jobs/j?sent=",
        "/v1/jobs/j?sent=1",
        "/v1/jobs/j?sent=:",
        "/v1/jobs/j?sent=1:",
        "/v1/jobs/j?sent=:1",
        "/v1/jobs/j?sent=1:2:3",
        "/v1/jobs/j?sent=1:2,",
        "/v1/jobs/j?sent=,1:2",
        "/v1/jobs/j?sent=1:2,,2:3",
        "/v1/jobs/j?sent=1:2,1:2",
        "/v1/jobs/j?sent=1:2,0:2",
        "/v1/jobs/j?sent=1:2&sent=2:2",
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(parse_code("GET", right[i]), 200);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse_code("GET", wrong[i]), 400);
    }
}

static void lists_and_addresses_have_a_limit(void **state)
{
    (void)state;
    for (uint32_t count = API_SENT_MAX; count <= API_SENT_MAX + 1; count++) {
        struct buf target = {0};
        buf_put_string(&target, "/v1/jobs/j?sent=");
        for (uint32_t i = 0; i < count; i++) {
            buf_format(&target, "%s%u:1", i > 0 ? "," : "", i);
        }
        buf_put_u8(&target, 0);
        assert_int_equal(parse_code("GET", (char *)target.bytes),
                         count <= API_SENT_MAX ? 200 : 400);
        buf_done(&target);
    }
    enum { LONG = 40000 };
    static char target[LONG + 1];
    memset(target, '/', LONG);
    assert_int_equal(parse_code("GET", target), 413);
    memcpy(target, "/healthz?", 9);
    assert_int_equal(parse_code("GET", target), 413);
}

static void headers_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *owner, *checksum;
        uint32_t code;
    } cases[] = {
        {"", "", 200},
        {OWNER_KEY, "0123456789abcdef", 200},
        {OWNER_KEY "0", "", 400},
        {"0123456789abcdef0123456789abcde", "", 400},
        {"0123456789abcdef0123456789abcdeF", "", 400},
        {"0123456789abcdef0123456789abcde ", "", 400},
        {"0123456789abcdef0123456789abcdeg", "", 400},
        {"", "0123456789abcde", 400},
        {"", "0123456789abcdef0", 400},
        {"", "0123456789ABCDEF", 400},
        {"", "0x23456789abcdef", 400},
        {"", "-123456789abcdef", 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct api_request request;
        struct api_http http = http_of_line("GET", "/v1/jobs");
        http.owner = text_of(cases[i].owner);
        http.checksum = text_of(cases[i].checksum);
        assert_int_equal(parse(http, &arena, &request), cases[i].code);
        arena_done(&arena);
    }
}

static void only_a_bearer_token_is_one(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},          {"Bearer abc", "abc"}, {"bEARER abc", "abc"},
        {"Bearer", ""},    {"Bearer ", ""},       {"Basic abc", ""},
        {"Bearerabc", ""}, {"abc", ""},           {"Bearer  a", " a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct api_request request;
        struct api_http http = http_of_line("GET", "/v1/jobs");
        http.token = text_of(cases[i][0]);
        assert_int_equal(parse(http, &arena, &request), 200);
        assert_true(text_equal(request.token, text_of(cases[i][1])));
        arena_done(&arena);
    }
}

static void bodies_come_where_they_belong(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *body;
        uint32_t code;
    } cases[] = {
        {"GET", "/v1/jobs/j", "x", 400},
        {"DELETE", "/v1/jobs/j", "x", 400},
        {"GET", "/healthz", "x", 400},
        {"PUT", "/v1/jobs/j", "x", 200},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":3,\"sum\":\"00000000000000ff\"}", 200},
        {"PUT", "/v1/jobs/j/scans/0/end", "", 400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":3}", 400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"sum\":\"00000000000000ff\"}", 400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":3,\"sum\":255}", 400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":3,\"sum\":\"ff\"}", 400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":-1,\"sum\":\"00000000000000ff\"}", 400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":3.0,\"sum\":\"00000000000000ff\"}", 400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":3,\"sum\":\"00000000000000ff\",\"x\":0}",
         400},
        {"PUT", "/v1/jobs/j/scans/0/end", "{\"count\":3,\"sum\":\"00000000000000ff\"} x", 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct api_request request;
        struct api_http http = http_of_line(cases[i].method, cases[i].path);
        http.body = text_of(cases[i].body);
        assert_int_equal(parse(http, &arena, &request), cases[i].code);
        arena_done(&arena);
    }
}

static void what_people_type_is_checked_before_it_is_sent(void **state)
{
    (void)state;
    const struct api_request wrong[] = {
        {.kind = API_GET_JOB, .job = TEXT_LITERAL("a/b")},
        {.kind = API_GET_JOB, .job = TEXT_LITERAL("")},
        {.kind = API_GET_RESULT, .job = TEXT_LITERAL("j"), .query = TEXT_LITERAL(".x")},
        {.kind = API_GET_RESULT, .job = TEXT_LITERAL("j"), .query = TEXT_LITERAL("x y")},
        {.kind = API_NODES, .token = TEXT_LITERAL("a\r\nX: y")},
        {.kind = API_NODES, .token = TEXT_LITERAL("a b")},
        {.kind = API_NODES, .token = TEXT_LITERAL("\xc3\xa4")},
        {.kind = API_NODES, .owner_key = TEXT_LITERAL("abc")},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct arena arena = {0};
        struct api_line line;
        struct error err;
        assert_int_equal(api_request_format(&wrong[i], &arena, &line, &err), STATUS_USAGE);
        arena_done(&arena);
    }
}

static void memory_that_runs_out_is_said(void **state)
{
    (void)state;
    struct random random = {3};
    for (uint32_t kind = 0; kind < API_KINDS; kind++) {
        struct arena source = {0};
        struct api_request request = random_request(&random, &source, (enum api_kind)kind);
        bool was_refused = true;
        for (size_t allowed = 0; was_refused; allowed++) {
            struct arena arena = {0};
            struct api_line line;
            struct api_request parsed;
            struct error err;
            uint32_t code = 200;
            memory_fail_after(allowed);
            status done = api_request_format(&request, &arena, &line, &err);
            if (done == STATUS_OK) {
                struct api_http http = http_of_line("GET", line.target.bytes);
                http.method = line.method;
                http.body = line.body;
                done = api_request_parse(&http, &arena, &parsed, &code, &err);
                assert_int_equal(code, done == STATUS_OK ? 200 : 503);
            }
            was_refused = memory_was_refused();
            memory_fail_never();
            assert_int_equal(done, was_refused ? STATUS_MEMORY : STATUS_OK);
            arena_done(&arena);
        }
        arena_done(&source);
    }
}

/* ---- replies ---- */

static void an_error_has_its_status_and_comes_back(void **state)
{
    (void)state;
    static const uint32_t expected[STATUS_NAMES] = {
        [STATUS_OK] = 500,        [STATUS_MEMORY] = 503,      [STATUS_LIMIT] = 413,
        [STATUS_INPUT] = 400,     [STATUS_SQL] = 400,         [STATUS_OVERFLOW] = 400,
        [STATUS_USAGE] = 400,     [STATUS_IO] = 503,          [STATUS_CORRUPT] = 400,
        [STATUS_CANCELLED] = 503, [STATUS_UNREACHABLE] = 503, [STATUS_INTERNAL] = 500,
    };
    for (unsigned code = STATUS_MEMORY; code < STATUS_NAMES; code++) {
        struct api_reply reply = {.status = 200, .retry_after_ms = 7};
        struct error err, back;
        error_write(&err, (status)code, "line 1:\n  SELECT \"x\\\xc3\xa4\t^");
        buf_put_string(&reply.body, "what was there");
        api_reply_error(&reply, 0, &err);
        assert_int_equal(reply.status, expected[code]);
        assert_int_equal(reply.retry_after_ms, 7);
        assert_string_equal(reply.content_type, "application/json");
        api_reply_error_text(&reply, &back);
        assert_int_equal(back.code, code);
        assert_string_equal(back.text, err.text);
        api_reply_error(&reply, 409, &err);
        assert_int_equal(reply.status, 409);
        buf_done(&reply.body);
    }
}

static void an_error_is_json_as_documented(void **state)
{
    (void)state;
    struct api_reply reply = {0};
    struct error err;
    static const char expected[] =
        "{\"error\":{\"code\":\"input\",\"message\":\"no \xEF\xBF\xBD\"}}\n";
    error_write(&err, STATUS_INPUT, "no \xff");
    api_reply_error(&reply, 0, &err);
    assert_int_equal(reply.body.size, sizeof expected - 1);
    assert_memory_equal(reply.body.bytes, expected, sizeof expected - 1);
    buf_done(&reply.body);
}

static void a_reply_of_somebody_else_is_an_error_too(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "<html>Bad Gateway</html>",
        "{}",
        "[]",
        "{\"error\":3}",
        "{\"error\":{}}",
        "{\"error\":{\"code\":\"ok\",\"message\":\"fine\"}}",
        "{\"error\":{\"code\":\"new\",\"message\":\"fine\"}}",
        "{\"error\":{\"code\":\"input\",\"message\":\"\"}}",
        "{\"error\":{\"code\":\"input\",\"message\":7}}",
    };
    static const struct {
        uint32_t status;
        status code;
    } statuses[] = {{400, STATUS_INPUT}, {404, STATUS_INPUT}, {413, STATUS_LIMIT},
                    {502, STATUS_IO},    {200, STATUS_IO},    {0, STATUS_IO}};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        for (size_t j = 0; j < sizeof statuses / sizeof statuses[0]; j++) {
            struct api_reply reply = {.status = statuses[j].status};
            struct error err;
            char number[16];
            buf_put_string(&reply.body, bodies[i]);
            api_reply_error_text(&reply, &err);
            assert_int_equal(err.code, statuses[j].code);
            (void)snprintf(number, sizeof number, "%u", reply.status);
            assert_non_null(strstr(err.text, number));
            buf_done(&reply.body);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_parsed_is_the_one_formatted),
        cmocka_unit_test(a_wait_is_rounded_up_to_whole_seconds),
        cmocka_unit_test(every_path_takes_its_methods_only),
        cmocka_unit_test(a_name_may_be_encoded_but_must_be_one),
        cmocka_unit_test(numbers_are_plain_decimals_within_their_bounds),
        cmocka_unit_test(parameters_are_known_and_given_once),
        cmocka_unit_test(lists_and_addresses_have_a_limit),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(only_a_bearer_token_is_one),
        cmocka_unit_test(bodies_come_where_they_belong),
        cmocka_unit_test(what_people_type_is_checked_before_it_is_sent),
        cmocka_unit_test(memory_that_runs_out_is_said),
        cmocka_unit_test(an_error_has_its_status_and_comes_back),
        cmocka_unit_test(an_error_is_json_as_documented),
        cmocka_unit_test(a_reply_of_somebody_else_is_an_error_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
