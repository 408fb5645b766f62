/* SPDX-License-Identifier: Apache-2.0 */
/* test_api_json.c - jobs and views survive as JSON, and what is not one is refused.
 *
 * Method: random values are encoded, decoded and encoded again; the same text means the same value,
 * as every member is in the text. One valid body is then spoilt in one place at a time: every
 * truncation, every member missing, of another type, twice, or beyond its bound. Every allocation,
 * also those of the JSON library, fails once.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/random.h"
#include "cluster/wire/api.h"

static struct text text_of_buf(const struct buf *buf)
{
    assert_false(buf->failed);
    return (struct text){(const char *)buf->bytes, (uint32_t)buf->size};
}

/* ---- random values ---- */

static struct text random_text(struct random *random, struct arena *arena)
{
    static const char *const pieces[] = {
        "SELECT",           "\"", "\\", "\n", "\t", "\x01", "\x7f", "/", "\xc3\xa4", "\xe2\x82\xac",
        "\xf0\x9f\x98\x80", "'",  " "};
    struct buf built = {0};
    uint32_t count = 1 + random_below(random, 12);
    for (uint32_t i = 0; i < count; i++) {
        buf_put_string(&built, pieces[random_below(random, sizeof pieces / sizeof pieces[0])]);
    }
    struct text text = text_of_buf(&built);
    text.bytes = arena_copy_string(arena, text);
    buf_done(&built);
    return text;
}

/* Names differ by their number. */
static struct text numbered_name(struct arena *arena, const char *prefix, uint32_t number)
{
    char name[MANIFEST_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s-%u", prefix, number);
    return text_of(arena_copy_string(arena, text_of(name)));
}

static uint64_t random_count(struct random *random)
{
    static const uint64_t extremes[] = {0, 1, UINT32_MAX, API_NUMBER_MAX - 1, API_NUMBER_MAX};
    uint32_t extreme = random_below(random, 6);
    return extreme < 5 ? extremes[extreme] : random_u64(random) % API_NUMBER_MAX;
}

static const struct manifest_table *random_tables(struct random *random, struct arena *arena,
                                                  uint32_t count)
{
    struct manifest_table *tables = arena_array(arena, struct manifest_table, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t file_count = random_below(random, 4);
        struct manifest_file *files = arena_array(arena, struct manifest_file, file_count + 1);
        for (uint32_t j = 0; j < file_count; j++) {
            files[j].name = random_text(random, arena);
            files[j].size = random_count(random);
        }
        tables[i].name = numbered_name(arena, "table", i);
        tables[i].files = files;
        tables[i].file_count = file_count;
    }
    return tables;
}

static struct job_request random_job(struct random *random, struct arena *arena)
{
    bool has_analysis = random_below(random, 2) == 0;
    uint32_t query_count = random_below(random, 5) + (has_analysis ? 0 : 1);
    uint32_t setting_count = random_below(random, 4);
    uint32_t table_count = random_below(random, 4);
    struct manifest_query *queries = arena_array(arena, struct manifest_query, query_count + 1);
    struct manifest_setting *settings =
        arena_array(arena, struct manifest_setting, setting_count + 1);
    for (uint32_t i = 0; i < query_count; i++) {
        queries[i].name = numbered_name(arena, "q", i);
        if (!has_analysis) queries[i].sql = random_text(random, arena);
    }
    for (uint32_t i = 0; i < setting_count; i++) {
        settings[i].name = numbered_name(arena, "setting", i);
        if (random_below(random, 2) == 0) settings[i].value = random_text(random, arena);
    }
    return (struct job_request){
        .build = random_text(random, arena),
        .analysis = has_analysis ? TEXT_LITERAL("movies") : (struct text){0},
        .tables_sql = has_analysis ? (struct text){0} : random_text(random, arena),
        .queries = queries,
        .query_count = query_count,
        .settings = settings,
        .setting_count = setting_count,
        .tables = random_tables(random, arena, table_count),
        .table_count = table_count,
        .chunk_bytes = (uint32_t)random_u64(random),
        .field_limit = random_below(random, 3),
    };
}

static void random_rerequests(struct random *random, struct arena *arena, struct job_view *view)
{
    uint32_t count = random_below(random, 4);
    struct view_rerequest *rerequests = arena_array(arena, struct view_rerequest, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number_count = random_below(random, 5);
        uint64_t *numbers = arena_array(arena, uint64_t, number_count + 1);
        for (uint32_t j = 0; j < number_count; j++) {
            numbers[j] = random_count(random);
        }
        rerequests[i].worker = numbered_name(arena, "worker", i);
        rerequests[i].rerequest.scan = (uint32_t)random_u64(random);
        rerequests[i].rerequest.attempt = random_u64(random);
        rerequests[i].rerequest.numbers = numbers;
        rerequests[i].rerequest.number_count = number_count;
    }
    view->rerequests = rerequests;
    view->rerequest_count = count;
}

static struct job_view random_view(struct random *random, struct arena *arena)
{
    uint32_t scan_count = random_below(random, 4);
    uint32_t query_count = random_below(random, 4);
    struct view_scan *scans = arena_array(arena, struct view_scan, scan_count + 1);
    struct view_query *queries = arena_array(arena, struct view_query, query_count + 1);
    for (uint32_t i = 0; i < scan_count; i++) {
        scans[i] = (struct view_scan){
            .scan = i,
            .table = random_text(random, arena),
            .phase = random_below(random, 4),
            .open = random_below(random, 2) == 0,
            .ended = random_below(random, 2) == 0,
            .sent = random_count(random),
            .applied = random_count(random),
            .contiguous = random_count(random),
            .limit = random_count(random),
        };
    }
    for (uint32_t i = 0; i < query_count; i++) {
        queries[i].name = numbered_name(arena, "q", i);
        queries[i].done = random_below(random, 2) == 0;
        queries[i].batch_count = random_count(random);
    }
    struct job_view view = {
        .job = numbered_name(arena, "job", 1),
        .state = (enum job_state)random_below(random, JOB_STATES),
        .manifest = random_u64(random),
        .phase = random_below(random, 4),
        .phase_count = (uint32_t)random_u64(random),
        .scans = scans,
        .scan_count = scan_count,
        .queries = queries,
        .query_count = query_count,
        .worker_count = random_below(random, 9),
        .workers_answering = random_below(random, 9),
        .failure = (status)random_below(random, STATUS_NAMES),
    };
    if (random_below(random, 2) == 0) view.silent = random_text(random, arena);
    if (random_below(random, 2) == 0) view.text = random_text(random, arena);
    random_rerequests(random, arena, &view);
    return view;
}

/* ---- round trips ---- */

static void check_job(const struct job_request *seen, const struct job_request *expected)
{
    assert_true(text_equal(seen->build, expected->build));
    assert_true(text_equal(seen->analysis, expected->analysis));
    assert_true(text_equal(seen->tables_sql, expected->tables_sql));
    assert_int_equal(seen->query_count, expected->query_count);
    for (uint32_t i = 0; i < seen->query_count; i++) {
        assert_true(text_equal(seen->queries[i].name, expected->queries[i].name));
        assert_true(text_equal(seen->queries[i].sql, expected->queries[i].sql));
    }
    assert_int_equal(seen->setting_count, expected->setting_count);
    for (uint32_t i = 0; i < seen->setting_count; i++) {
        assert_true(text_equal(seen->settings[i].name, expected->settings[i].name));
        assert_true(text_equal(seen->settings[i].value, expected->settings[i].value));
    }
    assert_int_equal(seen->table_count, expected->table_count);
    for (uint32_t i = 0; i < seen->table_count; i++) {
        const struct manifest_table *table = &seen->tables[i];
        assert_true(text_equal(table->name, expected->tables[i].name));
        assert_int_equal(table->file_count, expected->tables[i].file_count);
        for (uint32_t j = 0; j < table->file_count; j++) {
            assert_true(text_equal(table->files[j].name, expected->tables[i].files[j].name));
            assert_int_equal(table->files[j].size, expected->tables[i].files[j].size);
        }
    }
    assert_int_equal(seen->chunk_bytes, expected->chunk_bytes);
    assert_int_equal(seen->field_limit, expected->field_limit);
}

static void a_job_decoded_is_the_one_encoded(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t round = 0; round < 200; round++) {
        struct arena arena = {0};
        struct buf json = {0};
        struct job_request job = random_job(&random, &arena);
        struct job_request decoded;
        struct error err;
        assert_int_equal(job_request_encode(&job, &json, &err), STATUS_OK);
        assert_int_equal(job_request_decode(text_of_buf(&json), &arena, &decoded, &err), STATUS_OK);
        buf_done(&json); /* Nothing is borrowed from it. */
        check_job(&decoded, &job);
        arena_done(&arena);
    }
}

static void check_view(const struct job_view *seen, const struct job_view *expected)
{
    assert_true(text_equal(seen->job, expected->job));
    assert_int_equal(seen->state, expected->state);
    assert_int_equal(seen->manifest, expected->manifest);
    assert_int_equal(seen->phase, expected->phase);
    assert_int_equal(seen->phase_count, expected->phase_count);
    assert_int_equal(seen->worker_count, expected->worker_count);
    assert_int_equal(seen->workers_answering, expected->workers_answering);
    assert_true(text_equal(seen->silent, expected->silent));
    assert_int_equal(seen->failure, expected->failure);
    assert_true(text_equal(seen->text, expected->text));
    assert_int_equal(seen->scan_count, expected->scan_count);
    for (uint32_t i = 0; i < seen->scan_count; i++) {
        const struct view_scan *scan = &seen->scans[i], *other = &expected->scans[i];
        assert_int_equal(scan->scan, other->scan);
        assert_true(text_equal(scan->table, other->table));
        assert_int_equal(scan->phase, other->phase);
        assert_int_equal(scan->open, other->open);
        assert_int_equal(scan->ended, other->ended);
        assert_int_equal(scan->sent, other->sent);
        assert_int_equal(scan->applied, other->applied);
        assert_int_equal(scan->contiguous, other->contiguous);
        assert_int_equal(scan->limit, other->limit);
    }
    assert_int_equal(seen->query_count, expected->query_count);
    for (uint32_t i = 0; i < seen->query_count; i++) {
        assert_true(text_equal(seen->queries[i].name, expected->queries[i].name));
        assert_int_equal(seen->queries[i].done, expected->queries[i].done);
        assert_int_equal(seen->queries[i].batch_count, expected->queries[i].batch_count);
    }
    assert_int_equal(seen->rerequest_count, expected->rerequest_count);
    for (uint32_t i = 0; i < seen->rerequest_count; i++) {
        const struct rerequest *rerequest = &seen->rerequests[i].rerequest,
                               *other = &expected->rerequests[i].rerequest;
        assert_true(text_equal(seen->rerequests[i].worker, expected->rerequests[i].worker));
        assert_int_equal(rerequest->scan, other->scan);
        assert_int_equal(rerequest->attempt, other->attempt);
        assert_int_equal(rerequest->number_count, other->number_count);
        for (uint32_t j = 0; j < rerequest->number_count; j++) {
            assert_int_equal(rerequest->numbers[j], other->numbers[j]);
        }
    }
}

static void a_view_decoded_is_the_one_encoded(void **state)
{
    (void)state;
    struct random random = {2};
    for (uint32_t round = 0; round < 200; round++) {
        struct arena arena = {0};
        struct buf json = {0};
        struct job_view view = random_view(&random, &arena);
        struct job_view decoded;
        struct error err;
        job_view_encode(&view, &json);
        assert_int_equal(job_view_decode(text_of_buf(&json), &arena, &decoded, &err), STATUS_OK);
        buf_done(&json);
        check_view(&decoded, &view);
        arena_done(&arena);
    }
}

static void a_view_is_cut_and_mended_where_json_cannot_hold_it(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct buf json = {0};
    struct view_scan scan = {.limit = UINT64_MAX};
    struct job_view view = {.job = TEXT_LITERAL("j"),
                            .scans = &scan,
                            .scan_count = 1,
                            .manifest = UINT64_MAX,
                            .text = TEXT_LITERAL("a\xff")};
    struct job_view decoded;
    struct error err;
    job_view_encode(&view, &json);
    assert_int_equal(job_view_decode(text_of_buf(&json), &arena, &decoded, &err), STATUS_OK);
    assert_int_equal(decoded.scans[0].limit, API_NUMBER_MAX);
    assert_int_equal(decoded.manifest, UINT64_MAX);
    assert_true(text_equal(decoded.text, TEXT_LITERAL("a\xEF\xBF\xBD")));
    buf_done(&json);
    arena_done(&arena);
}

static void a_job_that_json_would_change_is_not_sent(void **state)
{
    (void)state;
    static const struct text wrong[] = {TEXT_INIT("\xff"), TEXT_INIT("a\xc3"), TEXT_INIT("a\0b"),
                                        TEXT_INIT("\xed\xa0\x80")};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct buf json = {0};
        struct manifest_query query = {TEXT_INIT("q"), wrong[i]};
        struct job_request job = {.queries = &query, .query_count = 1};
        struct error err;
        assert_int_equal(job_request_encode(&job, &json, &err), STATUS_INPUT);
        buf_done(&json);
    }
}

/* ---- what is refused ---- */

static status decode_job(struct text json)
{
    struct arena arena = {0};
    struct job_request job;
    struct error err = {.text = ""};
    /* A block of its own, so that a step past its end is noticed. */
    char *block = memory_alloc(NULL, (size_t)json.size + 1);
    assert_non_null(block);
    memcpy(block + 1, json.bytes, json.size);
    status code = job_request_decode((struct text){block + 1, json.size}, &arena, &job, &err);
    if (code != STATUS_OK) assert_true(err.text[0] != '\0');
    memory_free(NULL, block, (size_t)json.size + 1);
    arena_done(&arena);
    return code;
}

static status decode_view(struct text json)
{
    struct arena arena = {0};
    struct job_view view;
    struct error err = {.text = ""};
    status code = job_view_decode(json, &arena, &view, &err);
    if (code != STATUS_OK) assert_true(err.text[0] != '\0');
    arena_done(&arena);
    return code;
}

/* The pattern with each mark ~ replaced by the member. */
static void replace_mark(const char *pattern, const char *with, struct buf *out)
{
    buf_reset(out);
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at == '~') {
            buf_put_string(out, with);
        } else {
            buf_put_u8(out, (uint8_t)*at);
        }
    }
}

static const char job_json[] =
    "{\"build\":\"1\",\"tables_sql\":\"t\",\"queries\":[{\"name\":\"q\",\"sql\":\"s\"}],"
    "\"settings\":[{\"name\":\"n\",\"value\":\"v\"}],"
    "\"tables\":[{\"name\":\"t\",\"files\":[{\"name\":\"f\",\"size\":1}]}],"
    "\"chunk_bytes\":1,\"field_limit\":2}";

static const char view_json[] =
    "{\"job\":\"j\",\"state\":\"running\",\"manifest\":\"0123456789abcdef\",\"phase\":1,"
    "\"phase_count\":2,\"scans\":[{\"scan\":0,\"table\":\"t\",\"phase\":1,\"open\":true,"
    "\"ended\":false,\"sent\":1,\"applied\":1,\"contiguous\":1,\"limit\":9}],"
    "\"queries\":[{\"name\":\"q\",\"done\":false,\"batch_count\":0}],"
    "\"rerequests\":[{\"worker\":\"w\",\"scan\":0,\"attempt\":\"0000000000000001\",\"numbers\":[1]}"
    "],"
    "\"worker_count\":1,\"workers_answering\":1,\"silent\":\"x\",\"failure\":\"io\","
    "\"text\":\"x\"}";

static void every_truncation_is_refused(void **state)
{
    (void)state;
    assert_int_equal(decode_job(text_of(job_json)), STATUS_OK);
    for (uint32_t size = 0; size < sizeof job_json - 1; size++) {
        assert_int_equal(decode_job((struct text){job_json, size}), STATUS_INPUT);
    }
    assert_int_equal(decode_view(text_of(view_json)), STATUS_OK);
    for (uint32_t size = 0; size < sizeof view_json - 1; size++) {
        assert_int_equal(decode_view((struct text){view_json, size}), STATUS_CORRUPT);
    }
}

static void only_optional_members_may_be_missing(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        status code;
    } cases[] = {
        {"{\"build\":\"\",\"analysis\":\"movies\",\"tables\":[]}", STATUS_OK},
        {"{\"build\":\"\",\"analysis\":\"movies\",\"tables\":[],\"queries\":[{\"name\":\"a\"}]}",
         STATUS_OK},
        {"{\"build\":\"\",\"queries\":[{\"name\":\"a\",\"sql\":\"s\"}],\"tables\":[]}", STATUS_OK},
        {"{\"analysis\":\"movies\",\"tables\":[]}", STATUS_INPUT},
        {"{\"build\":\"\",\"analysis\":\"movies\"}", STATUS_INPUT},
        {"{\"build\":\"\",\"tables\":[]}", STATUS_INPUT},
        {"{\"build\":\"\",\"tables\":[],\"queries\":[]}", STATUS_INPUT},
        {"{\"build\":\"\",\"tables\":[],\"queries\":[{\"name\":\"a\"}]}", STATUS_INPUT},
        {"{\"build\":\"\",\"analysis\":\"movies\",\"tables\":[],\"tables_sql\":\"x\"}",
         STATUS_INPUT},
        {"{\"build\":\"\",\"analysis\":\"movies\",\"tables\":[],"
         "\"queries\":[{\"name\":\"a\",\"sql\":\"s\"}]}",
         STATUS_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(decode_job(text_of(cases[i].json)), cases[i].code);
    }
}

/* Values of every type, and those that look like another. */
static const char *const values[] = {
    "null",
    "true",
    "0",
    "-1",
    "1.0",
    "1e1",
    "\"1\"",
    "\"\"",
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "[{}]",
    "[0]",
    "[\"a\"]",
    "\"..\"",
    "\"a b\"",
    "9e99",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "\"0123456789ABCDEF\"",
    "\"\\u0000\"",
    "\"\xff\"",
};

static void check_values(const char *pattern, const char *accepted, status refusal,
                         status (*decode)(struct text))
{
    struct buf json = {0};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char quoted[64];
        (void)snprintf(quoted, sizeof quoted, " %s ", values[i]);
        bool is_accepted = strstr(accepted, quoted) != NULL;
        replace_mark(pattern, values[i], &json);
        assert_int_equal(decode(text_of_buf(&json)), is_accepted ? STATUS_OK : refusal);
    }
    buf_done(&json);
}

#define TEXTS  " \"1\" \"\" \"..\" \"a b\" \"0123456789ABCDEF\" "
#define FILLED " \"1\" \"..\" \"a b\" \"0123456789ABCDEF\" "
#define NAMES  " \"1\" \"0123456789ABCDEF\" "
#define COUNTS " 0 4294967296 "

static void a_member_of_a_job_has_one_type(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"build\":~,\"analysis\":\"a\",\"tables\":[]}", TEXTS},
        {"{\"build\":\"\",\"analysis\":~,\"tables\":[]}", NAMES},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":~}", " [] "},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[~]}", " "},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[{\"name\":~,\"files\":[]}]}", FILLED},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[{\"name\":\"t\",\"files\":~}]}", " [] "},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[{\"name\":\"t\",\"files\":[{\"name\":~,"
         "\"size\":1}]}]}",
         FILLED},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[{\"name\":\"t\",\"files\":[{\"name\":"
         "\"f\",\"size\":~}]}]}",
         COUNTS},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"queries\":~}", " [] "},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"queries\":[{\"name\":~}]}", NAMES},
        {"{\"build\":\"\",\"tables\":[],\"queries\":[{\"name\":\"q\",\"sql\":~}]}", FILLED},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"settings\":~}", " [] "},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"settings\":[{\"name\":~,\"value\":"
         "\"\"}]}",
         FILLED},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"settings\":[{\"name\":\"s\",\"value\":"
         "~}]}",
         TEXTS},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"chunk_bytes\":~}", " 0 "},
        {"{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"field_limit\":~}", " 0 "},
        {"~", " "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_values(cases[i][0], cases[i][1], STATUS_INPUT, decode_job);
    }
}

/* Replaces the value after a key of the whole view. */
static void check_view_member(const char *key, const char *value, const char *accepted)
{
    struct buf pattern = {0};
    char member[80];
    (void)snprintf(member, sizeof member, "\"%s\":%s", key, value);
    const char *at = strstr(view_json, member);
    assert_non_null(at);
    buf_put(&pattern, view_json, (size_t)(at - view_json));
    buf_format(&pattern, "\"%s\":~", key);
    buf_put_string(&pattern, at + strlen(member));
    buf_put_u8(&pattern, 0);
    assert_false(pattern.failed);
    check_values((char *)pattern.bytes, accepted, STATUS_CORRUPT, decode_view);
    buf_done(&pattern);
}

static void a_member_of_a_view_has_one_type(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"job", "\"j\"", NAMES},
        {"state", "\"running\"", " "},
        {"manifest", "\"0123456789abcdef\"", " "},
        {"phase", "1", " 0 "},
        {"phase_count", "2", " 0 "},
        {"scan", "0", " 0 "},
        {"table", "\"t\"", TEXTS},
        {"open", "true", " true "},
        {"ended", "false", " true "},
        {"sent", "1", COUNTS},
        {"applied", "1", COUNTS},
        {"contiguous", "1", COUNTS},
        {"limit", "9", COUNTS},
        {"name", "\"q\"", NAMES},
        {"done", "false", " true "},
        {"batch_count", "0", COUNTS},
        {"worker", "\"w\"", NAMES},
        {"attempt", "\"0000000000000001\"", " "},
        {"numbers", "[1]", " [] [0] "},
        {"worker_count", "1", " 0 "},
        {"workers_answering", "1", " 0 "},
        {"silent", "\"x\"", TEXTS},
        {"failure", "\"io\"", " "},
        {"text", "\"x\"", TEXTS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_view_member(cases[i][0], cases[i][1], cases[i][2]);
    }
}

static void unknown_keys_are_refused_in_jobs_and_skipped_in_views(void **state)
{
    (void)state;
    struct buf json = {0};
    /* After every opening brace in turn; the first pass is over the braces that exist. */
    for (const char *at = strchr(job_json, '{'); at != NULL; at = strchr(at + 1, '{')) {
        buf_reset(&json);
        buf_put(&json, job_json, (size_t)(at - job_json) + 1);
        buf_put_string(&json, "\"new\":[{}],");
        buf_put_string(&json, at + 1);
        assert_int_equal(decode_job(text_of_buf(&json)), STATUS_INPUT);
    }
    for (const char *at = strchr(view_json, '{'); at != NULL; at = strchr(at + 1, '{')) {
        buf_reset(&json);
        buf_put(&json, view_json, (size_t)(at - view_json) + 1);
        buf_put_string(&json, "\"new\":[{}],");
        buf_put_string(&json, at + 1);
        assert_int_equal(decode_view(text_of_buf(&json)), STATUS_OK);
    }
    buf_done(&json);
}

static void nothing_may_be_there_twice(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{\"build\":\"\",\"build\":\"\",\"analysis\":\"a\",\"tables\":[]}",
        "{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"queries\":[{\"name\":\"q\"},{\"name\":"
        "\"r\"},{\"name\":\"q\"}]}",
        "{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"settings\":[{\"name\":\"s\",\"value\":"
        "\"1\"},{\"name\":\"s\",\"value\":\"2\"}]}",
        "{\"build\":\"\",\"analysis\":\"a\",\"tables\":[{\"name\":\"t\",\"files\":[]},{\"name\":"
        "\"t\",\"files\":[]}]}",
        "{\"build\":\"\",\"analysis\":\"a\",\"tables\":[],\"queries\":[{\"name\":\".q\"}]}",
        "{\"build\":\"\",\"analysis\":\"a\",\"tables\":[]}{}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(decode_job(text_of(wrong[i])), STATUS_INPUT);
    }
}

static void repeat(struct buf *out, uint32_t count, const char *item)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) buf_put_u8(out, ',');
        buf_format(out, "{\"name\":\"n%u\"%s}", i, item);
    }
}

static void arrays_are_taken_up_to_their_limit(void **state)
{
    (void)state;
    static const struct {
        const char *key, *item;
        uint32_t limit;
    } cases[] = {
        {"\"tables\":[],\"queries\"", "", MANIFEST_QUERIES_MAX},
        {"\"tables\":[],\"settings\"", ",\"value\":\"\"", MANIFEST_SETTINGS_MAX},
        {"\"tables\"", ",\"files\":[]", MANIFEST_TABLES_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t more = 0; more < 2; more++) {
            struct buf json = {0};
            buf_format(&json, "{\"build\":\"\",\"analysis\":\"a\",%s:[", cases[i].key);
            repeat(&json, cases[i].limit + more, cases[i].item);
            buf_put_string(&json, "]}");
            assert_int_equal(decode_job(text_of_buf(&json)), more == 0 ? STATUS_OK : STATUS_INPUT);
            buf_done(&json);
        }
    }
}

static void files_are_counted_over_all_tables(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        struct buf json = {0};
        buf_put_string(&json, "{\"build\":\"\",\"analysis\":\"a\",\"tables\":["
                              "{\"name\":\"a\",\"files\":[");
        repeat(&json, MANIFEST_FILES_MAX - 1, ",\"size\":1");
        buf_put_string(&json, "]},{\"name\":\"b\",\"files\":[");
        repeat(&json, 1 + more, ",\"size\":1");
        buf_put_string(&json, "]}]}");
        assert_int_equal(decode_job(text_of_buf(&json)), more == 0 ? STATUS_OK : STATUS_INPUT);
        buf_done(&json);
    }
}

static void texts_are_taken_up_to_their_limit(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        struct buf json = {0};
        buf_put_string(&json,
                       "{\"build\":\"\",\"tables\":[],\"queries\":[{\"name\":\"q\",\"sql\":\"");
        assert_true(buf_reserve(&json, MANIFEST_TEXT_MAX + 100));
        memset(json.bytes + json.size, 'x', MANIFEST_TEXT_MAX + more);
        json.size += MANIFEST_TEXT_MAX + more;
        buf_put_string(&json, "\"}]}");
        assert_int_equal(decode_job(text_of_buf(&json)), more == 0 ? STATUS_OK : STATUS_INPUT);
        buf_done(&json);
    }
}

/* Small in text, large in memory: neither the stack nor the heap may suffer. */
static void a_bomb_does_not_go_off(void **state)
{
    (void)state;
    static const char *const bombs[][2] = {
        {"[", ""}, {"{\"a\":", ""}, {"{},", "["}, {"[],", "["}, {"0,", "["}};
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        struct buf json = {0};
        size_t size = strlen(bombs[i][0]);
        buf_put_string(&json, bombs[i][1]);
        while (json.size + size + 2 < API_JSON_MAX) {
            buf_put(&json, bombs[i][0], size);
        }
        buf_put_string(&json, "0]");
        status code = decode_job(text_of_buf(&json));
        assert_true(code == STATUS_LIMIT || code == STATUS_INPUT);
        while (json.size <= API_JSON_MAX) {
            buf_put_u8(&json, ' ');
        }
        assert_int_equal(decode_job(text_of_buf(&json)), STATUS_LIMIT);
        buf_done(&json);
    }
    assert_int_equal(decode_job(text_of(job_json)), STATUS_OK);
}

/* ---- memory ---- */

static void memory_that_runs_out_is_said(void **state)
{
    (void)state;
    bool was_refused = true;
    for (size_t allowed = 0; was_refused; allowed++) {
        struct arena arena = {0};
        struct buf json = {0};
        struct job_request job;
        struct job_view view;
        struct error err;
        memory_fail_after(allowed);
        status code = job_request_decode(text_of(job_json), &arena, &job, &err);
        if (code == STATUS_OK) code = job_view_decode(text_of(view_json), &arena, &view, &err);
        if (code == STATUS_OK) code = job_request_encode(&job, &json, &err);
        if (code == STATUS_OK) job_view_encode(&view, &json);
        if (code == STATUS_OK && json.failed) code = STATUS_MEMORY;
        was_refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, was_refused ? STATUS_MEMORY : STATUS_OK);
        buf_done(&json);
        arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_decoded_is_the_one_encoded),
        cmocka_unit_test(a_view_decoded_is_the_one_encoded),
        cmocka_unit_test(a_view_is_cut_and_mended_where_json_cannot_hold_it),
        cmocka_unit_test(a_job_that_json_would_change_is_not_sent),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(only_optional_members_may_be_missing),
        cmocka_unit_test(a_member_of_a_job_has_one_type),
        cmocka_unit_test(a_member_of_a_view_has_one_type),
        cmocka_unit_test(unknown_keys_are_refused_in_jobs_and_skipped_in_views),
        cmocka_unit_test(nothing_may_be_there_twice),
        cmocka_unit_test(arrays_are_taken_up_to_their_limit),
        cmocka_unit_test(files_are_counted_over_all_tables),
        cmocka_unit_test(texts_are_taken_up_to_their_limit),
        cmocka_unit_test(a_bomb_does_not_go_off),
        cmocka_unit_test(memory_that_runs_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
