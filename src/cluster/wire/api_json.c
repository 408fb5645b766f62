/* SPDX-License-Identifier: Apache-2.0 */
/* api_json.c - the schemas of the bodies that clients and gateways exchange.
 *
 * A gateway refuses keys that it does not know: a misspelt option must not be ignored. A client
 * skips them in views, so that a newer gateway can say more.
 */
#include "cluster/wire/api_json.h"

#include <inttypes.h>

#include "cluster/wire/json_schema.h"

enum {
    BUILD_MAX = 256,
    IDENTIFIER_MAX = 1024, /* Names of settings and tables. */
    PATH_BYTES_MAX = 4096, /* Names of files. */
    REREQUESTS_MAX = 1 << 16,
    ERROR_JSON_MAX = 1 << 16
};

_Static_assert(sizeof(enum job_state) == sizeof(uint32_t), "choices are stored in 32 bits");
_Static_assert(sizeof(status) == sizeof(uint32_t), "choices are stored in 32 bits");

const char *const job_state_names[JOB_STATES] = {
    [JOB_WAITING] = "waiting", [JOB_ACCEPTED] = "accepted", [JOB_RUNNING] = "running",
    [JOB_DONE] = "done",       [JOB_FAILED] = "failed",     [JOB_CANCELLED] = "cancelled",
    [JOB_EXPIRED] = "expired",
};

/* ---- PUT job ---- */

static const struct json_member query_members[] = {
    {"name", MEMBER_NAME, .offset = offsetof(struct manifest_query, name)},
    {"sql", MEMBER_TEXT, .offset = offsetof(struct manifest_query, sql), .is_optional = true,
     .limit = MANIFEST_TEXT_MAX},
};
static const struct json_schema query_schema = {JSON_SCHEMA(struct manifest_query, query_members)};

static const struct json_member setting_members[] = {
    {"name", MEMBER_TEXT, .offset = offsetof(struct manifest_setting, name), .is_filled = true,
     .limit = IDENTIFIER_MAX},
    {"value", MEMBER_TEXT, .offset = offsetof(struct manifest_setting, value),
     .limit = MANIFEST_TEXT_MAX},
};
static const struct json_schema setting_schema = {
    JSON_SCHEMA(struct manifest_setting, setting_members)};

static const struct json_member file_members[] = {
    {"name", MEMBER_TEXT, .offset = offsetof(struct manifest_file, name), .is_filled = true,
     .limit = PATH_BYTES_MAX},
    {"size", MEMBER_COUNT, .offset = offsetof(struct manifest_file, size)},
};
static const struct json_schema file_schema = {JSON_SCHEMA(struct manifest_file, file_members)};

static const struct json_member table_members[] = {
    {"name", MEMBER_TEXT, .offset = offsetof(struct manifest_table, name), .is_filled = true,
     .limit = IDENTIFIER_MAX},
    {"files", MEMBER_ARRAY, .offset = offsetof(struct manifest_table, files),
     .count_offset = offsetof(struct manifest_table, file_count), .limit = MANIFEST_FILES_MAX,
     .schema = &file_schema},
};
static const struct json_schema table_schema = {JSON_SCHEMA(struct manifest_table, table_members)};

static const struct json_member request_members[] = {
    {"build", MEMBER_TEXT, .offset = offsetof(struct job_request, build), .limit = BUILD_MAX},
    {"analysis", MEMBER_NAME, .offset = offsetof(struct job_request, analysis),
     .is_optional = true},
    {"tables_sql", MEMBER_TEXT, .offset = offsetof(struct job_request, tables_sql),
     .is_optional = true, .limit = MANIFEST_TEXT_MAX},
    {"queries", MEMBER_ARRAY, .offset = offsetof(struct job_request, queries),
     .count_offset = offsetof(struct job_request, query_count), .is_optional = true,
     .limit = MANIFEST_QUERIES_MAX, .schema = &query_schema},
    {"settings", MEMBER_ARRAY, .offset = offsetof(struct job_request, settings),
     .count_offset = offsetof(struct job_request, setting_count), .is_optional = true,
     .limit = MANIFEST_SETTINGS_MAX, .schema = &setting_schema},
    {"tables", MEMBER_ARRAY, .offset = offsetof(struct job_request, tables),
     .count_offset = offsetof(struct job_request, table_count), .limit = MANIFEST_TABLES_MAX,
     .schema = &table_schema},
    {"chunk_bytes", MEMBER_U32, .offset = offsetof(struct job_request, chunk_bytes),
     .is_optional = true},
    {"field_limit", MEMBER_U32, .offset = offsetof(struct job_request, field_limit),
     .is_optional = true},
    {"broadcast_limit", MEMBER_COUNT, .offset = offsetof(struct job_request, broadcast_limit),
     .is_optional = true},
};
static const struct json_schema request_schema = {JSON_SCHEMA(struct job_request, request_members)};

status job_request_encode(const struct job_request *request, struct buf *out, struct error *err)
{
    bool is_faithful = json_schema_encode(&request_schema, request, out);
    if (out->failed) return error_memory(err);
    if (!is_faithful) {
        return error_set(err, STATUS_INPUT,
                         "a query, a setting or the name of a file is not UTF-8, or has a zero byte"
                         " in it; a gateway takes UTF-8 only");
    }
    return STATUS_OK;
}

/* The names are the first member of structs of `stride` bytes. */
static status names_check(const void *items, uint32_t count, size_t stride, const char *what,
                          struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct text name;
        memcpy(&name, (const char *)items + i * stride, sizeof name);
        for (uint32_t j = 0; j < i; j++) {
            struct text other;
            memcpy(&other, (const char *)items + j * stride, sizeof other);
            if (!text_equal(name, other)) continue;
            return error_set(err, STATUS_INPUT, "%s: \"%.*s\" is there twice", what,
                             TEXT_ARGS(name));
        }
    }
    return STATUS_OK;
}

_Static_assert(offsetof(struct manifest_query, name) == 0, "see names_check");
_Static_assert(offsetof(struct manifest_setting, name) == 0, "see names_check");
_Static_assert(offsetof(struct manifest_table, name) == 0, "see names_check");

static status queries_check(const struct job_request *request, struct error *err)
{
    bool has_analysis = request->analysis.size > 0;
    if (has_analysis && request->tables_sql.size > 0) {
        return error_set(err, STATUS_INPUT,
                         "\"analysis\" names one that the gateway has: leave out \"tables_sql\"");
    }
    if (!has_analysis && request->query_count == 0) {
        return error_set(err, STATUS_INPUT, "neither \"analysis\" nor \"queries\" is given");
    }
    for (uint32_t i = 0; i < request->query_count; i++) {
        const struct manifest_query *query = &request->queries[i];
        if (query->name.bytes[0] == '.') {
            return error_set(err, STATUS_INPUT, "queries[%" PRIu32 "]: no name begins with a point",
                             i);
        }
        if (has_analysis != (query->sql.size == 0)) {
            return error_set(err, STATUS_INPUT, "queries[%" PRIu32 "]: \"sql\" %s", i,
                             has_analysis ? "must be left out when \"analysis\" is given"
                                          : "is missing");
        }
    }
    return STATUS_OK;
}

static status request_check(const struct job_request *request, struct error *err)
{
    TRY(queries_check(request, err));
    TRY(names_check(request->queries, request->query_count, sizeof *request->queries, "queries",
                    err));
    TRY(names_check(request->settings, request->setting_count, sizeof *request->settings,
                    "settings", err));
    TRY(names_check(request->tables, request->table_count, sizeof *request->tables, "tables", err));
    uint64_t file_count = 0;
    for (uint32_t i = 0; i < request->table_count; i++) {
        file_count += request->tables[i].file_count;
    }
    if (file_count > MANIFEST_FILES_MAX) {
        return error_set(err, STATUS_INPUT, "tables: %" PRIu64 " files, more than the limit of %d",
                         file_count, MANIFEST_FILES_MAX);
    }
    return STATUS_OK;
}

status job_request_decode(struct text json, struct arena *arena, struct job_request *out,
                          struct error *err)
{
    struct job_request request = {0};
    if (json_schema_decode(&request_schema, json, arena, STATUS_INPUT, &request, err) !=
            STATUS_OK ||
        request_check(&request, err) != STATUS_OK) {
        return error_prefix(err, "the job's description");
    }
    *out = request;
    return STATUS_OK;
}

/* ---- GET job ---- */

static const struct json_member scan_members[] = {
    {"scan", MEMBER_U32, .offset = offsetof(struct view_scan, scan)},
    {"table", MEMBER_TEXT, .offset = offsetof(struct view_scan, table), .limit = IDENTIFIER_MAX},
    {"phase", MEMBER_U32, .offset = offsetof(struct view_scan, phase)},
    {"open", MEMBER_BOOL, .offset = offsetof(struct view_scan, open)},
    {"ended", MEMBER_BOOL, .offset = offsetof(struct view_scan, ended)},
    {"sent", MEMBER_COUNT, .offset = offsetof(struct view_scan, sent)},
    {"applied", MEMBER_COUNT, .offset = offsetof(struct view_scan, applied)},
    {"contiguous", MEMBER_COUNT, .offset = offsetof(struct view_scan, contiguous)},
    {"limit", MEMBER_COUNT, .offset = offsetof(struct view_scan, limit)},
};
static const struct json_schema scan_schema = {JSON_SCHEMA(struct view_scan, scan_members),
                                               .is_open = true};

static const struct json_member answer_members[] = {
    {"name", MEMBER_NAME, .offset = offsetof(struct view_query, name)},
    {"done", MEMBER_BOOL, .offset = offsetof(struct view_query, done)},
    {"batch_count", MEMBER_COUNT, .offset = offsetof(struct view_query, batch_count)},
};
static const struct json_schema answer_schema = {JSON_SCHEMA(struct view_query, answer_members),
                                                 .is_open = true};

static const struct json_member rerequest_members[] = {
    {"worker", MEMBER_NAME, .offset = offsetof(struct view_rerequest, worker)},
    {"scan", MEMBER_U32, .offset = offsetof(struct view_rerequest, rerequest.scan)},
    {"attempt", MEMBER_HEX, .offset = offsetof(struct view_rerequest, rerequest.attempt)},
    {"numbers", MEMBER_COUNTS, .offset = offsetof(struct view_rerequest, rerequest.numbers),
     .count_offset = offsetof(struct view_rerequest, rerequest.number_count), .limit = UINT32_MAX},
};
static const struct json_schema want_schema = {
    JSON_SCHEMA(struct view_rerequest, rerequest_members), .is_open = true};

static const struct json_member view_members[] = {
    {"job", MEMBER_NAME, .offset = offsetof(struct job_view, job)},
    {"state", MEMBER_CHOICE, .offset = offsetof(struct job_view, state), .limit = JOB_STATES,
     .names = job_state_names},
    {"manifest", MEMBER_HEX, .offset = offsetof(struct job_view, manifest)},
    {"phase", MEMBER_U32, .offset = offsetof(struct job_view, phase)},
    {"phase_count", MEMBER_U32, .offset = offsetof(struct job_view, phase_count)},
    {"scans", MEMBER_ARRAY, .offset = offsetof(struct job_view, scans),
     .count_offset = offsetof(struct job_view, scan_count), .limit = API_SENT_MAX,
     .schema = &scan_schema},
    {"queries", MEMBER_ARRAY, .offset = offsetof(struct job_view, queries),
     .count_offset = offsetof(struct job_view, query_count), .limit = MANIFEST_QUERIES_MAX,
     .schema = &answer_schema},
    {"rerequests", MEMBER_ARRAY, .offset = offsetof(struct job_view, rerequests),
     .count_offset = offsetof(struct job_view, rerequest_count), .is_optional = true,
     .limit = REREQUESTS_MAX, .schema = &want_schema},
    {"worker_count", MEMBER_U32, .offset = offsetof(struct job_view, worker_count)},
    {"workers_answering", MEMBER_U32, .offset = offsetof(struct job_view, workers_answering)},
    {"silent", MEMBER_TEXT, .offset = offsetof(struct job_view, silent), .is_optional = true,
     .limit = MANIFEST_TEXT_MAX},
    {"failure", MEMBER_CHOICE, .offset = offsetof(struct job_view, failure), .is_optional = true,
     .limit = STATUS_NAMES, .names = status_names},
    {"text", MEMBER_TEXT, .offset = offsetof(struct job_view, text), .is_optional = true,
     .limit = MANIFEST_TEXT_MAX},
};
static const struct json_schema view_schema = {JSON_SCHEMA(struct job_view, view_members),
                                               .is_open = true};

void job_view_encode(const struct job_view *view, struct buf *out)
{
    /* Texts that were changed are still legible. */
    (void)json_schema_encode(&view_schema, view, out);
}

status job_view_decode(struct text json, struct arena *arena, struct job_view *out,
                       struct error *err)
{
    struct job_view view = {0};
    if (json_schema_decode(&view_schema, json, arena, STATUS_CORRUPT, &view, err) != STATUS_OK) {
        return error_prefix(err, "the gateway's answer");
    }
    *out = view;
    return STATUS_OK;
}

/* ---- small bodies ---- */

static const struct json_member end_members[] = {
    {"count", MEMBER_COUNT, .offset = offsetof(struct api_request, end_count)},
    {"sum", MEMBER_HEX, .offset = offsetof(struct api_request, end_sum)},
};
static const struct json_schema end_schema = {JSON_SCHEMA(struct api_request, end_members)};

void api_end_encode(const struct api_request *request, struct buf *out)
{
    (void)json_schema_encode(&end_schema, request, out); /* There is no text in it. */
}

status api_end_decode(struct text json, struct arena *arena, struct api_request *out,
                      struct error *err)
{
    if (json_schema_decode(&end_schema, json, arena, STATUS_INPUT, out, err) != STATUS_OK) {
        return error_prefix(err, "the scan's end");
    }
    return STATUS_OK;
}

struct error_body {
    status code;
    struct text message;
};

static const struct json_member error_members[] = {
    {"code", MEMBER_CHOICE, .offset = offsetof(struct error_body, code), .limit = STATUS_NAMES,
     .names = status_names},
    {"message", MEMBER_TEXT, .offset = offsetof(struct error_body, message),
     .limit = ERROR_JSON_MAX},
};
static const struct json_schema error_schema = {JSON_SCHEMA(struct error_body, error_members),
                                                .is_open = true};
static const struct json_member reply_members[] = {
    {"error", MEMBER_OBJECT, .schema = &error_schema},
};
static const struct json_schema reply_schema = {JSON_SCHEMA(struct error_body, reply_members),
                                                .is_open = true};

void api_error_encode(const struct error *reported, struct buf *out)
{
    struct error_body body = {.code = reported->code, .message = text_of(reported->text)};
    /* Texts that were changed are still legible. */
    (void)json_schema_encode(&reply_schema, &body, out);
    buf_put_u8(out, '\n');
}

bool api_error_decode(struct text json, struct error *out)
{
    if (json.size > ERROR_JSON_MAX) return false;
    struct arena arena = {0};
    struct error_body body = {0};
    struct error ignored;
    bool is_error = json_schema_decode(&reply_schema, json, &arena, STATUS_CORRUPT, &body,
                                       &ignored) == STATUS_OK &&
                    body.code != STATUS_OK && body.message.size > 0;
    if (is_error) error_write(out, body.code, "%.*s", TEXT_ARGS(body.message));
    arena_done(&arena);
    return is_error;
}
