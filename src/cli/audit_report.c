/* SPDX-License-Identifier: Apache-2.0 */
/* audit_report.c - the tables of the long form are batches, drawn by the printer of answers. */
#include "cli/audit_report.h"

#include <inttypes.h>

#include "cli/grid.h"
#include "engine/data/print_table.h"
#include "engine/data/print_text.h"

enum { REASONS_SHOWN = 3, TABLE_TEXT_WIDTH = 40 };

/* --- JSON. --- */

static void json_member(const char *name, struct text value, struct buf *out)
{
    buf_format(out, "\"%s\":", name);
    print_json_string(value, out);
}

static void json_lines(const char *name, const struct audit_line *lines, uint32_t count,
                       struct buf *out)
{
    buf_format(out, "\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        const struct audit_line *line = &lines[i];
        buf_put_string(out, i > 0 ? ",{" : "{");
        json_member("column", line->column, out);
        buf_put_u8(out, ',');
        json_member("reason", text_of(line->reason), out);
        buf_format(out, ",\"count\":%" PRIu64 ",\"first\":", line->count);
        struct buf first = {0};
        buf_put_text(&first, line->first_file);
        buf_format(&first, ":%" PRIu64, line->first_line);
        print_json_string((struct text){(const char *)first.bytes, (uint32_t)first.size}, out);
        if (first.failed) out->failed = true;
        buf_done(&first);
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, ']');
}

static void json_tables(const struct audit *audit, struct buf *out)
{
    buf_put_string(out, "\"tables\":{");
    for (uint32_t i = 0; i < audit->table_count; i++) {
        const struct audit_table *table = &audit->tables[i];
        if (i > 0) buf_put_u8(out, ',');
        print_json_string(table->name, out);
        buf_format(out,
                   ":{\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"records\":%" PRIu64
                   ",\"kept\":%" PRIu64 ",",
                   table->file_count, table->byte_count, table->record_count, table->kept_count);
        json_lines("dropped", table->dropped, table->dropped_count, out);
        buf_put_u8(out, ',');
        json_lines("nulled", table->nulled, table->nulled_count, out);
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, '}');
}

static void json_end(const char *name, const struct exchange_count *end, struct buf *out)
{
    /* The sum is text: 64 bits are more than most readers of JSON keep exactly. */
    buf_format(out,
               "\"%s\":{\"batches\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"sum\":\"%016" PRIx64 "\"}",
               name, end->batch_count, end->row_count, end->hash_sum);
}

static void json_stages(const struct audit *audit, struct buf *out)
{
    buf_put_string(out, "\"stages\":[");
    for (uint32_t i = 0; i < audit->stage_count; i++) {
        const struct audit_stage *stage = &audit->stages[i];
        buf_put_string(out, i > 0 ? ",{" : "{");
        json_member("query", stage->query, out);
        buf_format(out, ",\"kind\":\"%s\",\"id\":%" PRIu32 ",", stage->kind, stage->id);
        json_member("label", text_of(stage->label), out);
        buf_format(out,
                   ",\"rows_in\":%" PRIu64 ",\"rows_out\":%" PRIu64 ",\"malformed\":%" PRIu64 "}",
                   stage->rows_in, stage->rows_out, stage->malformed);
    }
    buf_put_string(out, "],\"exchanges\":[");
    for (uint32_t i = 0; i < audit->exchange_count; i++) {
        const struct audit_exchange *exchange = &audit->exchanges[i];
        buf_put_string(out, i > 0 ? ",{" : "{");
        json_member("query", exchange->query, out);
        buf_format(out, ",\"from\":%" PRIu32 ",\"to\":%" PRIu32 ",", exchange->from_stage,
                   exchange->to_stage);
        json_end("sent", &exchange->sent, out);
        buf_put_u8(out, ',');
        json_end("applied", &exchange->applied, out);
        buf_format(out, ",\"balanced\":%s}", exchange->balanced ? "true" : "false");
    }
    buf_put_u8(out, ']');
}

static void json_facts(const struct audit *audit, struct buf *out)
{
    buf_format(out, "{\"balanced\":%s,", audit->balanced ? "true" : "false");
    json_tables(audit, out);
    buf_put_u8(out, ',');
    json_stages(audit, out);
}

void audit_facts(const struct audit *audit, struct buf *out)
{
    json_facts(audit, out);
    buf_put_u8(out, '}');
}

void audit_json(const struct audit *audit, struct buf *out)
{
    json_facts(audit, out);
    buf_format(out,
               ",\"history\":{\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"threads\":%" PRIu32
               ",\"peak_memory\":%" PRIu64 ",\"spilled\":%" PRIu64 "}}",
               audit->elapsed_seconds, audit->cpu_seconds, audit->thread_count,
               audit->peak_memory_bytes, audit->spilled_bytes);
}

/* --- The short form. --- */

static void put_place(const struct audit_line *line, struct buf *out)
{
    if (line->column.size > 0) {
        (void)print_visible(line->column, TABLE_TEXT_WIDTH, out); /* Not aligned. */
        buf_put_u8(out, ' ');
    }
    buf_put_string(out, line->reason);
}

/* The largest line that comes after `last` in the order of counts, then of places. */
static const struct audit_line *next_largest(const struct audit_table *table,
                                             const struct audit_line *last)
{
    const struct audit_line *best = NULL;
    for (uint32_t i = 0; i < table->dropped_count; i++) {
        const struct audit_line *line = &table->dropped[i];
        bool is_later = last == NULL || line->count < last->count ||
                        (line->count == last->count && line > last);
        if (is_later && (best == NULL || line->count > best->count)) best = line;
    }
    return best;
}

static void put_dropped(const struct audit_table *table, struct buf *out)
{
    uint64_t dropped = 0;
    for (uint32_t i = 0; i < table->dropped_count; i++) {
        dropped += table->dropped[i].count;
    }
    if (dropped == 0) {
        buf_put_string(out, "none dropped");
        return;
    }
    print_count(dropped, out);
    buf_put_string(out, " dropped: ");
    const struct audit_line *line = NULL;
    for (uint32_t i = 0; i < REASONS_SHOWN; i++) {
        line = next_largest(table, line);
        if (line == NULL) return;
        if (i > 0) buf_put_string(out, ", ");
        print_count(line->count, out);
        buf_put_u8(out, ' ');
        put_place(line, out);
    }
    if (table->dropped_count > REASONS_SHOWN) buf_put_string(out, ", …");
}

static void put_nulled(const struct audit_table *table, struct buf *out)
{
    uint64_t nulled = 0;
    for (uint32_t i = 0; i < table->nulled_count; i++) {
        nulled += table->nulled[i].count;
    }
    if (nulled == 0) return;
    buf_put_string(out, "; ");
    print_count(nulled, out);
    buf_put_string(out, nulled == 1 ? " value unreadable, taken as NULL"
                                    : " values unreadable, taken as NULL");
}

static uint64_t total_malformed(const struct audit *audit)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < audit->stage_count; i++) {
        total += audit->stages[i].malformed;
    }
    return total;
}

static void put_run(const struct audit *audit, struct buf *out)
{
    uint64_t records = 0;
    for (uint32_t i = 0; i < audit->table_count; i++) {
        records += audit->tables[i].record_count;
    }
    double seconds = audit->elapsed_seconds > 0 ? audit->elapsed_seconds : 1e-9;
    uint64_t malformed = total_malformed(audit);
    if (malformed > 0) {
        print_count(malformed, out);
        buf_put_string(out, malformed == 1 ? " list did not parse and counts as empty\n"
                                           : " lists did not parse and count as empty\n");
    }
    buf_format(out, "balanced: %s; ", audit->balanced ? "yes" : "NO");
    terminal_put_seconds(audit->elapsed_seconds, out);
    buf_format(out, ", %.0f MB/s, ", (double)audit->bytes_read / seconds / 1e6);
    print_count((uint64_t)((double)records / seconds), out);
    buf_put_string(out, " rows/s");
    if (audit->thread_count > 0) { /* Of a cluster it is not known here. */
        buf_format(out, ", %" PRIu32 " thread%s, ", audit->thread_count,
                   audit->thread_count == 1 ? "" : "s");
        terminal_put_bytes(audit->peak_memory_bytes, out);
        buf_put_string(out, " of memory");
    }
    if (audit->spilled_bytes > 0) {
        buf_put_string(out, ", ");
        terminal_put_bytes(audit->spilled_bytes, out);
        buf_put_string(out, " in temporary files");
    }
    buf_put_u8(out, '\n');
}

void audit_short(const struct audit *audit, struct buf *out)
{
    for (uint32_t i = 0; i < audit->table_count; i++) {
        const struct audit_table *table = &audit->tables[i];
        (void)print_visible(table->name, TABLE_TEXT_WIDTH, out); /* Not aligned. */
        buf_put_string(out, ": ");
        print_count(table->file_count, out);
        buf_put_string(out, table->file_count == 1 ? " file, " : " files, ");
        terminal_put_bytes(table->byte_count, out);
        buf_put_string(out, ", ");
        print_count(table->record_count, out);
        buf_put_string(out, table->record_count == 1 ? " record, " : " records, ");
        put_dropped(table, out);
        put_nulled(table, out);
        buf_put_u8(out, '\n');
    }
    put_run(audit, out);
}

/* --- The long form. --- */

static void full_tables(const struct audit *audit, struct terminal terminal, struct arena *arena,
                        struct buf *out)
{
    static const struct field fields[] = {GRID_FIELD("table", TEXT), GRID_FIELD("files", INT),
                                          GRID_FIELD("bytes", INT), GRID_FIELD("records", INT),
                                          GRID_FIELD("kept", INT)};
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], audit->table_count, arena);
    for (uint32_t i = 0; i < audit->table_count; i++) {
        const struct audit_table *table = &audit->tables[i];
        grid_text(&grid, 0, table->name);
        grid_count(&grid, 1, table->file_count);
        grid_count(&grid, 2, table->byte_count);
        grid_count(&grid, 3, table->record_count);
        grid_count(&grid, 4, table->kept_count);
        grid_row(&grid);
    }
    grid_draw(&grid, "tables", terminal, out);
}

static void put_title(const char *title, struct terminal terminal, struct buf *out)
{
    buf_format(out, "\n%s%s%s\n", terminal.color ? "\033[1m" : "", title,
               terminal.color ? "\033[0m" : "");
}

/* Lines and not a table: the place of the first one is what people look for, and it is too long to
 * stand in a column of a narrow terminal. */
static void put_lines(struct text table, const struct audit_line *lines, uint32_t count,
                      struct buf *out)
{
    if (count == 0) return;
    (void)print_visible(table, UINT32_MAX, out); /* Not aligned. */
    buf_put_string(out, ":\n");
    for (uint32_t i = 0; i < count; i++) {
        struct buf number = {0};
        print_count(lines[i].count, &number);
        buf_format(out, "%10.*s ", (int)number.size, (const char *)number.bytes);
        if (number.failed) out->failed = true;
        buf_done(&number);
        put_place(&lines[i], out);
        buf_put_string(out, ", first at ");
        (void)print_visible(lines[i].first_file, UINT32_MAX, out); /* Not aligned. */
        buf_format(out, ":%" PRIu64 "\n", lines[i].first_line);
    }
}

static void full_lines(const struct audit *audit, struct terminal terminal, struct buf *out)
{
    uint32_t dropped = 0;
    uint32_t nulled = 0;
    for (uint32_t i = 0; i < audit->table_count; i++) {
        dropped += audit->tables[i].dropped_count;
        nulled += audit->tables[i].nulled_count;
    }
    put_title(dropped > 0 ? "records dropped" : "no records dropped", terminal, out);
    for (uint32_t i = 0; i < audit->table_count; i++) {
        const struct audit_table *table = &audit->tables[i];
        put_lines(table->name, table->dropped, table->dropped_count, out);
    }
    if (nulled > 0) put_title("values taken as NULL", terminal, out);
    for (uint32_t i = 0; i < audit->table_count; i++) {
        const struct audit_table *table = &audit->tables[i];
        put_lines(table->name, table->nulled, table->nulled_count, out);
    }
}

static void full_stages(const struct audit *audit, struct terminal terminal, struct arena *arena,
                        struct buf *out)
{
    static const struct field fields[] = {GRID_FIELD("query", TEXT),   GRID_FIELD("stage", TEXT),
                                          GRID_FIELD("#", INT),        GRID_FIELD("what", TEXT),
                                          GRID_FIELD("rows in", INT),  GRID_FIELD("rows out", INT),
                                          GRID_FIELD("malformed", INT)};
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], audit->stage_count, arena);
    for (uint32_t i = 0; i < audit->stage_count; i++) {
        const struct audit_stage *stage = &audit->stages[i];
        grid_text(&grid, 0, stage->query);
        grid_text(&grid, 1, text_of(stage->kind));
        grid_count(&grid, 2, stage->id);
        grid_text(&grid, 3, text_of(stage->label));
        grid_count(&grid, 4, stage->rows_in);
        grid_count(&grid, 5, stage->rows_out);
        grid_count(&grid, 6, stage->malformed);
        grid_row(&grid);
    }
    grid_draw(&grid, "stages", terminal, out);
}

static void full_exchanges(const struct audit *audit, struct terminal terminal, struct arena *arena,
                           struct buf *out)
{
    static const struct field fields[] = {
        GRID_FIELD("query", TEXT),       GRID_FIELD("from", INT),      GRID_FIELD("to", INT),
        GRID_FIELD("batches sent", INT), GRID_FIELD("applied", INT),   GRID_FIELD("rows sent", INT),
        GRID_FIELD("rows applied", INT), GRID_FIELD("balanced", TEXT),
    };
    struct grid grid;
    grid_init(&grid, fields, sizeof fields / sizeof fields[0], audit->exchange_count, arena);
    for (uint32_t i = 0; i < audit->exchange_count; i++) {
        const struct audit_exchange *exchange = &audit->exchanges[i];
        grid_text(&grid, 0, exchange->query);
        grid_count(&grid, 1, exchange->from_stage);
        grid_count(&grid, 2, exchange->to_stage);
        grid_count(&grid, 3, exchange->sent.batch_count);
        grid_count(&grid, 4, exchange->applied.batch_count);
        grid_count(&grid, 5, exchange->sent.row_count);
        grid_count(&grid, 6, exchange->applied.row_count);
        grid_text(&grid, 7, exchange->balanced ? TEXT_LITERAL("yes") : TEXT_LITERAL("NO"));
        grid_row(&grid);
    }
    grid_draw(&grid, "exchanges", terminal, out);
}

void audit_full(const struct audit *audit, struct terminal terminal, struct arena *arena,
                struct buf *out)
{
    full_tables(audit, terminal, arena, out);
    full_lines(audit, terminal, out);
    buf_put_u8(out, '\n');
    full_stages(audit, terminal, arena, out);
    buf_put_u8(out, '\n');
    full_exchanges(audit, terminal, arena, out);
    buf_put_u8(out, '\n');
    put_run(audit, out);
}
