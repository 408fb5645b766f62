/* SPDX-License-Identifier: Apache-2.0 */
/* scenario.c - runs every scenario once in this process, and keeps its chunks and its answer. */
#include "cluster/sim/jobs/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/data/print_csv.h"
#include "engine/exec/fold/fold.h"
#include "engine/file/file.h"
#include "engine/local/audit.h"
#include "engine/local/chunk_reader.h"
#include "cluster/role/job_layout.h"
#include "cluster/sim/jobs/scenario_data.h"
#include "engine/sql/compile.h"
#include "engine/data/batch_codec.h"

enum {
    SHARDS = 8, /* As in one process. */
    FIELD_LIMIT_BYTES = 1 << 20,
    RECORD_LIMIT_BYTES = 1 << 20
};

/* ---- audit as text ---- */

static void put_lines(const char *title, const struct audit_line *lines, uint32_t count,
                      struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_format(out, "  %s %.*s %s %" PRIu64 " first %.*s:%" PRIu64 "\n", title,
                   TEXT_ARGS(lines[i].column), lines[i].reason, lines[i].count,
                   TEXT_ARGS(lines[i].first_file), lines[i].first_line);
    }
}

static void put_end(const char *title, const struct exchange_count *end, struct buf *out)
{
    buf_format(out, " %s %" PRIu64 " %" PRIu64 " %016" PRIx64, title, end->batch_count,
               end->row_count, end->hash_sum);
}

/* All of the audit but the history. */
static void put_audit(const struct audit *audit, struct buf *out)
{
    for (uint32_t i = 0; i < audit->table_count; i++) {
        const struct audit_table *table = &audit->tables[i];
        buf_format(out, "table %.*s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                   TEXT_ARGS(table->name), table->file_count, table->byte_count,
                   table->record_count, table->kept_count);
        put_lines("dropped", table->dropped, table->dropped_count, out);
        put_lines("nulled", table->nulled, table->nulled_count, out);
    }
    for (uint32_t i = 0; i < audit->stage_count; i++) {
        const struct audit_stage *stage = &audit->stages[i];
        buf_format(out, "%s %u of %.*s (%s) %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", stage->kind,
                   stage->id, TEXT_ARGS(stage->query), stage->label, stage->rows_in,
                   stage->rows_out, stage->malformed);
    }
    for (uint32_t i = 0; i < audit->exchange_count; i++) {
        const struct audit_exchange *exchange = &audit->exchanges[i];
        buf_format(out, "exchange %u to %u", exchange->from_stage, exchange->to_stage);
        put_end("sent", &exchange->sent, out);
        put_end("applied", &exchange->applied, out);
        buf_put_u8(out, '\n');
    }
}

status scenario_put_rows(const struct scenario *scenario, uint32_t query, const struct buf *bytes,
                         struct arena *arena, struct buf *out, struct error *err)
{
    const struct plan_query *asked = &scenario->plan->queries[query];
    const struct fold *fold = &scenario->plan->folds[asked->result_fold];
    struct batch batch;
    TRY(batch_decode(bytes->bytes, bytes->size, fold->output, arena, &batch, err));
    print_csv_rows(&asked->schema, &batch, out);
    return out->failed ? error_memory(err) : STATUS_OK;
}

status scenario_check_counters(const struct scenario *scenario, const struct counters *counters,
                               struct arena *arena, struct buf *out, struct error *err)
{
    uint32_t **lines = arena_array(arena, uint32_t *, scenario->plan->table_count + 1);
    if (lines == NULL) return error_memory(err);
    for (uint32_t i = 0; i < scenario->plan->table_count; i++) {
        lines[i] = scenario->tables[i].chunk_lines;
    }
    struct audit_source source = {
        .plan = scenario->plan,
        .counters = counters,
        .files = job_files(scenario->job),
        .chunk_lines = lines,
        .shard_counts = scenario->shard_counts,
    };
    struct audit audit = {0};
    TRY(audit_check(&source, err));
    TRY(audit_make(&source, arena, &audit, err));
    put_audit(&audit, out);
    return out->failed ? error_memory(err) : STATUS_OK;
}

/* ---- chunks ---- */

static status keep_chunk(const struct table *table, const struct chunk *chunk, uint32_t file,
                         uint64_t first_line, struct scenario_chunk *out, struct error *err)
{
    struct chunk_body body = {
        .file = file,
        .offset = chunk->offset,
        .first_line = first_line,
        .file_columns = chunk->file_columns,
        .column_map = chunk->column_map,
        .column_count = table->schema.count,
        .bytes = {chunk->bytes, (uint32_t)chunk->size},
    };
    chunk_body_encode(&body, &out->body);
    if (out->body.failed) return error_memory(err);
    out->checksum = hash_bytes(out->body.bytes, out->body.size);
    return STATUS_OK;
}

static status cut_table(const struct table *table, struct table_files *files,
                        struct chunk_reader *reader, struct arena *arena,
                        struct scenario_table *out, struct error *err)
{
    out->chunk_count = files->chunk_count;
    out->chunks = arena_array(arena, struct scenario_chunk, files->chunk_count + 1);
    out->chunk_lines = arena_array(arena, uint32_t, files->chunk_count + 1);
    if (out->chunks == NULL || out->chunk_lines == NULL) return error_memory(err);
    uint32_t last_file = UINT32_MAX;
    uint64_t line = 0;
    uint64_t next_offset = 0;
    for (uint64_t i = 0; i < files->chunk_count; i++) {
        struct chunk chunk;
        chunk_reader_begin_at(reader, files, i, next_offset, RECORD_LIMIT_BYTES);
        TRY(chunk_reader_whole(reader, 0, &chunk, err));
        uint32_t file = chunk_reader_file(reader);
        if (chunk.size > 0) next_offset = chunk.offset + chunk.size;
        if (file != last_file) line = files->files[file].header_lines + 1;
        last_file = file;
        TRY(keep_chunk(table, &chunk, file, line, &out->chunks[i], err));
        for (size_t at = 0; at < chunk.size; at++) {
            out->chunk_lines[i] += chunk.bytes[at] == '\n';
        }
        line += out->chunk_lines[i];
    }
    return STATUS_OK;
}

static status cut_all(struct scenario *scenario, struct arena *arena, struct error *err)
{
    const struct plan *plan = scenario->plan;
    struct chunk_reader *reader;
    scenario->tables = arena_array(arena, struct scenario_table, plan->table_count + 1);
    if (scenario->tables == NULL) return error_memory(err);
    TRY(chunk_reader_create(NULL, &reader, err));
    status result = STATUS_OK;
    for (uint32_t i = 0; i < plan->table_count && result == STATUS_OK; i++) {
        result = cut_table(&plan->tables[i], &job_files(scenario->job)[i], reader, arena,
                           &scenario->tables[i], err);
    }
    chunk_reader_destroy(reader);
    for (uint32_t i = 0; i < plan->scan_count && result == STATUS_OK; i++) {
        scenario->chunk_count += scenario->tables[plan->scans[i].table].chunk_count;
    }
    return result;
}

/* ---- the request ---- */

static status make_request(struct scenario *scenario, uint32_t chunk_bytes, struct arena *arena,
                           struct error *err)
{
    const struct compile_input *source = job_source(scenario->job);
    const struct plan *plan = scenario->plan;
    struct manifest_query *queries =
        arena_array(arena, struct manifest_query, source->query_count + 1);
    struct manifest_table *tables =
        arena_array(arena, struct manifest_table, plan->table_count + 1);
    if (queries == NULL || tables == NULL) return error_memory(err);
    for (uint32_t i = 0; i < source->query_count; i++) {
        queries[i] = (struct manifest_query){source->queries[i].name, source->queries[i].sql};
    }
    for (uint32_t i = 0; i < plan->table_count; i++) {
        const struct table_files *files = &job_files(scenario->job)[i];
        struct manifest_file *list =
            arena_array(arena, struct manifest_file, files->file_count + 1);
        if (list == NULL) return error_memory(err);
        for (uint32_t j = 0; j < files->file_count; j++) {
            list[j] = (struct manifest_file){files->files[j].name, files->files[j].size};
        }
        tables[i] = (struct manifest_table){plan->tables[i].name, list, files->file_count};
    }
    scenario->request = (struct job_request){
        .build = text_of(job_layout_build),
        .tables_sql = source->tables_sql,
        .queries = queries,
        .query_count = source->query_count,
        .tables = tables,
        .table_count = plan->table_count,
        .chunk_bytes = chunk_bytes,
        .field_limit = FIELD_LIMIT_BYTES,
        .broadcast_limit = source->broadcast_limit,
    };
    return STATUS_OK;
}

/* ---- the answer ---- */

static status keep_rows(void *context, uint32_t query, const struct batch *batch, struct error *err)
{
    struct scenario *scenario = context;
    struct buf *answer = &scenario->answers[query];
    print_csv_rows(&scenario->plan->queries[query].schema, batch, answer);
    return answer->failed ? error_memory(err) : STATUS_OK;
}

static status answer_it(struct scenario *scenario, struct arena *arena, struct error *err)
{
    const struct plan *plan = scenario->plan;
    scenario->answers = arena_array(arena, struct buf, plan->query_count + 1);
    scenario->shard_counts = arena_array(arena, uint32_t, plan->fold_count + 1);
    if (scenario->answers == NULL || scenario->shard_counts == NULL) return error_memory(err);
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        scenario->shard_counts[i] = fold_shard_count(&plan->folds[i], SHARDS);
    }
    struct job_events events = {
        .context = scenario, .rows = keep_rows, .stream_query = JOB_STREAM_NONE};
    TRY(job_run(scenario->job, &events, err));
    put_audit(job_audit(scenario->job), &scenario->audit);
    return scenario->audit.failed ? error_memory(err) : STATUS_OK;
}

static status scenario_init(struct scenario *scenario, const struct scenario_spec *spec,
                            const char *folder, struct arena *arena, struct error *err)
{
    struct text names[SCENARIO_QUERIES_MAX];
    uint32_t count = 0;
    while (count < SCENARIO_QUERIES_MAX && spec->queries[count] != NULL) {
        names[count] = text_of(spec->queries[count]);
        count++;
    }
    struct job_options options = {
        .analysis_dir = folder,
        .data_dir = folder,
        .queries = names,
        .query_count = count,
        .thread_count = 1,
        .chunk_bytes = spec->chunk_bytes,
        .field_limit = FIELD_LIMIT_BYTES,
        .broadcast_limit = spec->broadcast_limit,
    };
    scenario->name = spec->name;
    scenario->is_poisoned = spec->is_poisoned;
    TRY(job_open(&options, &scenario->job, err));
    scenario->plan = job_plan(scenario->job);
    TRY(make_request(scenario, spec->chunk_bytes, arena, err));
    TRY(answer_it(scenario, arena, err));
    return cut_all(scenario, arena, err);
}

static status scenarios_fill(struct scenarios *scenarios, const char *folder, struct error *err)
{
    TRY(scenario_data_write(folder, &scenarios->arena, err));
    scenarios->items = arena_array(&scenarios->arena, struct scenario, scenario_spec_count);
    if (scenarios->items == NULL) return error_memory(err);
    for (uint32_t i = 0; i < scenario_spec_count; i++) {
        scenarios->count = i + 1;
        status result =
            scenario_init(&scenarios->items[i], &scenario_specs[i], folder, &scenarios->arena, err);
        if (result != STATUS_OK) return error_prefix(err, "scenario %s", scenario_specs[i].name);
        if (!scenario_specs[i].is_poisoned) scenarios->healthy_count++;
    }
    return STATUS_OK;
}

status scenarios_create(struct scenarios **out, struct error *err)
{
    struct scenarios *scenarios = memory_alloc(NULL, sizeof *scenarios);
    if (scenarios == NULL) return error_memory(err);
    *scenarios = (struct scenarios){0};
    const char *base = getenv("TMPDIR");
    char folder[4096];
    int size = snprintf(folder, sizeof folder, "%s/millrace-sim-XXXXXX",
                        base != NULL && base[0] != '\0' ? base : "/tmp");
    if (size < 0 || (size_t)size >= sizeof folder || mkdtemp(folder) == NULL) {
        scenarios_destroy(scenarios);
        return error_set(err, STATUS_IO, "cannot make a temporary folder in %s",
                         base != NULL ? base : "/tmp");
    }
    status result = scenarios_fill(scenarios, folder, err);
    scenario_data_remove(folder, &scenarios->arena);
    if (result != STATUS_OK) {
        scenarios_destroy(scenarios);
        return result;
    }
    *out = scenarios;
    return STATUS_OK;
}

static void scenario_done(struct scenario *scenario)
{
    for (uint32_t i = 0; scenario->tables != NULL && i < scenario->plan->table_count; i++) {
        const struct scenario_table *table = &scenario->tables[i];
        for (uint64_t j = 0; table->chunks != NULL && j < table->chunk_count; j++) {
            buf_done(&table->chunks[j].body);
        }
    }
    for (uint32_t i = 0; scenario->answers != NULL && i < scenario->plan->query_count; i++) {
        buf_done(&scenario->answers[i]);
    }
    buf_done(&scenario->audit);
    job_close(scenario->job);
}

void scenarios_destroy(struct scenarios *scenarios)
{
    if (scenarios == NULL) return;
    for (uint32_t i = 0; i < scenarios->count; i++) {
        scenario_done(&scenarios->items[i]);
    }
    arena_done(&scenarios->arena);
    memory_free(NULL, scenarios, sizeof *scenarios);
}
