/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - one printer at a time: queries come one after the other, each is begun, filled and
 * ended, also when it has no rows. The only thing that differs between stdout and a folder is where
 * a query's bytes begin and end.
 */
#include "cli/output.h"

#include <unistd.h>

#include "engine/base/assert.h"
#include "cli/audit_report.h"
#include "engine/data/print_csv.h"
#include "engine/data/print_json.h"
#include "engine/data/print_text.h"
#include "engine/file/file.h"

enum { PENDING_MAX = 256 * 1024 };

const char *const output_format_names[OUTPUT_FORMATS] = {
    [OUTPUT_TABLE] = "table",
    [OUTPUT_CSV] = "csv",
    [OUTPUT_JSON] = "json",
    [OUTPUT_NDJSON] = "ndjson",
};

static const char *const suffixes[OUTPUT_FORMATS] = {
    [OUTPUT_TABLE] = "txt",
    [OUTPUT_CSV] = "csv",
    [OUTPUT_JSON] = "json",
    [OUTPUT_NDJSON] = "ndjson",
};

/* --- Writing. --- */

status output_to_stdout(const struct buf *bytes, const atomic_bool *cancelled, struct error *err)
{
    if (bytes->failed) return error_set(err, STATUS_MEMORY, "no memory left to print");
    return file_write(STDOUT_FILENO, "to stdout", bytes->bytes, bytes->size, cancelled, err);
}

static status output_to_file(struct output *output, struct output_file *file, struct error *err)
{
    const struct buf *bytes = &output->pending;
    if (bytes->failed) return error_set(err, STATUS_MEMORY, "%.500s: out of memory", file->path);
    return output_file_write(file, bytes->bytes, bytes->size, output->options.cancelled, err);
}

static status flush(struct output *output, struct error *err)
{
    if (output->options.directory != NULL) {
        TRY(output_to_file(output, &output->files[output->query], err));
    } else {
        if (output->options.before_write != NULL) {
            output->options.before_write(output->options.context);
        }
        if (output->pending.size > 0) output->started = true;
        TRY(output_to_stdout(&output->pending, output->options.cancelled, err));
    }
    buf_reset(&output->pending);
    return STATUS_OK;
}

static status file_begin(struct output *output, uint32_t index, struct text name,
                         const char *suffix, struct error *err)
{
    struct buf full = {0};
    buf_put_text(&full, name);
    buf_format(&full, ".%s", suffix);
    struct text full_name = {(const char *)full.bytes, (uint32_t)full.size};
    const char *path =
        full.failed ? NULL : file_path(output->options.directory, full_name, &output->arena);
    buf_done(&full);
    if (path == NULL) return error_memory(err);
    return output_file_create(&output->files[index], path, &output->arena, err);
}

/* --- A query's bytes. --- */

static const struct plan_query *current_query(const struct output *output)
{
    return &output->options.plan->queries[output->query];
}

static status query_begin(struct output *output, struct error *err)
{
    output->query++;
    output->ended = false;
    output->query_rows = 0;
    const struct plan_query *query = current_query(output);
    bool to_stdout = output->options.directory == NULL;
    bool is_first = output->query == 0;
    enum output_format format = output->options.format;
    struct buf *out = &output->pending;
    if (!to_stdout) {
        TRY(file_begin(output, (uint32_t)output->query, query->name, suffixes[format], err));
    }
    if (to_stdout && !is_first && (format == OUTPUT_CSV || format == OUTPUT_TABLE)) {
        buf_put_u8(out, '\n');
    }
    if (format == OUTPUT_TABLE) {
        print_table_init(&output->table, &query->schema, output->options.table);
    } else if (format == OUTPUT_CSV) {
        if (to_stdout && output->options.plan->query_count > 1) {
            buf_format(out, "# %.*s\n", TEXT_ARGS(query->name));
        }
        print_csv_header(&query->schema, out);
    } else if (format == OUTPUT_JSON) {
        if (to_stdout) {
            buf_put_string(out, is_first ? "{\"queries\":{\n" : ",\n");
            print_json_string(query->name, out);
            buf_put_u8(out, ':');
        }
        buf_put_string(out, "{\"columns\":");
        print_json_columns(&query->schema, out);
        buf_put_string(out, ",\"rows\":[");
    }
    return STATUS_OK;
}

static status query_end(struct output *output, struct error *err)
{
    enum output_format format = output->options.format;
    if (output->ended) return STATUS_OK;
    output->ended = true;
    if (format == OUTPUT_TABLE) {
        print_table_finish(&output->table, current_query(output)->name, &output->pending);
        print_table_done(&output->table);
    } else if (format == OUTPUT_JSON) {
        buf_put_string(&output->pending, output->query_rows > 0 ? "\n]}" : "]}");
        if (output->options.directory != NULL) buf_put_u8(&output->pending, '\n');
    }
    if (output->options.directory != NULL || output->pending.size > PENDING_MAX) {
        TRY(flush(output, err));
    }
    if (output->options.directory != NULL)
        TRY(output_file_seal(&output->files[output->query], err));
    return STATUS_OK;
}

/* Ends the query at hand and begins those after it, up to `query`. */
static status advance(struct output *output, uint32_t query, struct error *err)
{
    while (output->query < (int64_t)query) {
        if (output->query >= 0) TRY(query_end(output, err));
        TRY(query_begin(output, err));
    }
    return STATUS_OK;
}

static void put_batch(struct output *output, const struct batch *batch)
{
    const struct plan_query *query = current_query(output);
    switch (output->options.format) {
    case OUTPUT_TABLE:
        print_table_add(&output->table, batch);
        break;
    case OUTPUT_CSV:
        print_csv_rows(&query->schema, batch, &output->pending);
        break;
    case OUTPUT_JSON:
        print_json_rows(&query->schema, batch, output->query_rows, &output->pending);
        break;
    case OUTPUT_NDJSON:
        print_ndjson_rows(query->name, &query->schema, batch, &output->pending);
        break;
    case OUTPUT_FORMATS:
        ASSERT(false);
    }
    output->query_rows += batch->row_count;
}

static status note_failure(struct output *output, status result, const struct error *err)
{
    if (result != STATUS_OK && output->failure.code == STATUS_OK) output->failure = *err;
    return result;
}

static status rows_put(struct output *output, uint32_t query, const struct batch *batch,
                       struct error *err)
{
    TRY(advance(output, query, err));
    put_batch(output, batch);
    if (output->pending.failed || output->pending.size > PENDING_MAX) TRY(flush(output, err));
    return STATUS_OK;
}

/* --- The calls of the header. --- */

static status open_in_directory(struct output *output, struct error *err)
{
    TRY(file_make_folder(output->options.directory, &output->made_directory, err));
    /* The audit' file is made first: a folder that cannot be written to is told before the work. */
    return file_begin(output, output->options.plan->query_count, TEXT_LITERAL("audit"), "json",
                      err);
}

status output_open(struct output *output, const struct output_options *options, struct error *err)
{
    *output = (struct output){.options = *options, .query = -1};
    uint32_t count = options->plan->query_count + 1;
    output->files = arena_array(&output->arena, struct output_file, count);
    if (output->files == NULL) return error_memory(err);
    output->file_count = count;
    return options->directory == NULL ? STATUS_OK : open_in_directory(output, err);
}

status output_rows(struct output *output, uint32_t query, const struct batch *batch,
                   struct error *err)
{
    ASSERT((int64_t)query >= output->query);
    ASSERT(query < output->options.plan->query_count);
    return note_failure(output, rows_put(output, query, batch, err), err);
}

static status query_end_now(struct output *output, uint32_t query, struct error *err)
{
    TRY(advance(output, query, err));
    TRY(query_end(output, err));
    /* JSON is one object: a part of it is no JSON. */
    bool is_wanted = output->options.directory == NULL && output->options.format != OUTPUT_JSON;
    return is_wanted ? flush(output, err) : STATUS_OK;
}

status output_query_end(struct output *output, uint32_t query, struct error *err)
{
    ASSERT((int64_t)query >= output->query);
    ASSERT(query < output->options.plan->query_count);
    return note_failure(output, query_end_now(output, query, err), err);
}

static status finish_directory(struct output *output, const struct audit *audit, struct error *err)
{
    struct output_file *audit_file = &output->files[output->options.plan->query_count];
    audit_json(audit, &output->pending);
    buf_put_u8(&output->pending, '\n');
    TRY(output_to_file(output, audit_file, err));
    TRY(output_file_seal(audit_file, err));
    for (uint32_t i = 0; i < output->file_count; i++) {
        TRY(output_file_publish(&output->files[i], err));
    }
    file_sync_folder(output->options.directory);
    return STATUS_OK;
}

static status finish(struct output *output, const struct audit *audit, struct error *err)
{
    uint32_t count = output->options.plan->query_count;
    if (count > 0) {
        TRY(advance(output, count - 1, err));
        TRY(query_end(output, err));
    }
    if (output->options.directory != NULL) return finish_directory(output, audit, err);
    if (output->options.format == OUTPUT_JSON) {
        buf_put_string(&output->pending,
                       count > 0 ? "\n},\n\"audit\":" : "{\"queries\":{},\"audit\":");
        audit_json(audit, &output->pending);
        buf_put_string(&output->pending, "}\n");
    }
    return flush(output, err);
}

status output_finish(struct output *output, const struct audit *audit, struct error *err)
{
    return note_failure(output, finish(output, audit, err), err);
}

void output_discard(struct output *output)
{
    for (uint32_t i = 0; i < output->file_count; i++) {
        output_file_discard(&output->files[i]);
    }
    if (output->made_directory) file_remove_folder(output->options.directory);
    output->made_directory = false;
}

void output_close(struct output *output)
{
    print_table_done(&output->table);
    buf_done(&output->pending);
    arena_done(&output->arena);
}
