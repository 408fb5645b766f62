/* SPDX-License-Identifier: Apache-2.0 */
/* print_table.c - cells are made visible and cut to a generous width as they come; only at the end,
 * when all natural widths are known, the columns that can be cut share what room the line has.
 */
#include "engine/data/print_table.h"

#include "engine/base/assert.h"
#include "engine/data/print_text.h"
#include "engine/data/print_value.h"

enum {
    STORED_WIDTH = 400, /* No cell is ever wider, so that one huge field costs nothing. */
    NAME_WIDTH = 40,    /* Of a column that is not cut itself. */
    TAIL_SLACK = 64     /* Rows the tail may hold too many before it is tidied. */
};

struct table_cell {
    size_t offset;
    uint32_t size;
    uint32_t width;
    bool is_null;
};

#define STYLE_BOLD "\033[1m"
#define STYLE_DIM  "\033[2m"
#define STYLE_OFF  "\033[0m"

static bool type_is_cut(struct type type)
{
    return type.kind == TYPE_TEXT || type_is_list(type);
}

static struct table_cell *rows_cells(const struct print_table_rows *rows, uint64_t row,
                                     uint32_t columns)
{
    struct table_cell *cells = (struct table_cell *)(void *)rows->cells.bytes;
    return cells == NULL ? NULL : cells + row * columns;
}

static void rows_add(struct print_table_rows *rows, const struct print_table *table,
                     const struct batch *batch, uint32_t row, struct buf *scratch)
{
    for (uint32_t i = 0; i < table->schema->count; i++) {
        const struct column *column = &batch->columns[i];
        struct table_cell cell = {.offset = rows->bytes.size};
        cell.is_null = column->type.kind == TYPE_NULL || column_is_null(column, row);
        if (cell.is_null) {
            buf_put_string(&rows->bytes, "NULL");
            cell.width = 4;
        } else if (column->type.kind == TYPE_TEXT) {
            cell.width = print_visible(column->texts[row], STORED_WIDTH, &rows->bytes);
        } else {
            buf_reset(scratch);
            print_value(column, row, scratch);
            struct text text = {(const char *)scratch->bytes, (uint32_t)scratch->size};
            cell.width = print_visible(text, STORED_WIDTH, &rows->bytes);
            if (scratch->failed) rows->bytes.failed = true;
        }
        cell.size = (uint32_t)(rows->bytes.size - cell.offset);
        buf_put(&rows->cells, &cell, sizeof cell);
    }
    rows->count++;
}

/* Keeps only the last `keep` rows. */
static void rows_tidy(struct print_table_rows *rows, uint64_t keep, uint32_t columns)
{
    if (rows->bytes.failed || rows->cells.failed || rows->count <= keep) return;
    uint64_t gone = rows->count - keep;
    size_t first_byte = keep == 0 ? rows->bytes.size : rows_cells(rows, gone, columns)->offset;
    size_t cell_bytes = (size_t)keep * columns * sizeof(struct table_cell);
    if (cell_bytes > 0) {
        memmove(rows->cells.bytes, rows_cells(rows, gone, columns), cell_bytes);
        memmove(rows->bytes.bytes, rows->bytes.bytes + first_byte, rows->bytes.size - first_byte);
    }
    rows->cells.size = cell_bytes;
    rows->bytes.size -= first_byte;
    rows->count = keep;
    for (size_t i = 0; i < (size_t)keep * columns; i++) {
        rows_cells(rows, 0, columns)[i].offset -= first_byte;
    }
}

void print_table_init(struct print_table *table, const struct schema *schema,
                      struct print_table_options options)
{
    *table = (struct print_table){.schema = schema, .options = options};
}

void print_table_done(struct print_table *table)
{
    buf_done(&table->head.bytes);
    buf_done(&table->head.cells);
    buf_done(&table->tail.bytes);
    buf_done(&table->tail.cells);
    buf_done(&table->scratch);
}

static uint64_t head_limit(const struct print_table *table)
{
    uint64_t limit = table->options.row_limit;
    return limit == PRINT_TABLE_ALL_ROWS ? limit : limit - limit / 2;
}

static uint64_t tail_limit(const struct print_table *table)
{
    uint64_t limit = table->options.row_limit;
    return limit == PRINT_TABLE_ALL_ROWS ? 0 : limit / 2;
}

void print_table_add(struct print_table *table, const struct batch *batch)
{
    ASSERT(batch->column_count >= table->schema->count);
    uint32_t columns = table->schema->count;
    uint64_t keep = tail_limit(table);
    for (uint32_t row = 0; row < batch->row_count; row++) {
        if (table->head.count < head_limit(table)) {
            rows_add(&table->head, table, batch, row, &table->scratch);
        } else if (batch->row_count - row <= keep) {
            rows_add(&table->tail, table, batch, row, &table->scratch);
            if (table->tail.count / 2 > keep + TAIL_SLACK) rows_tidy(&table->tail, keep, columns);
        }
    }
    table->row_count += batch->row_count;
}

/* --- Widths. --- */

static void widths_widen(uint32_t *widths, const struct print_table_rows *rows, uint32_t columns)
{
    for (uint64_t row = 0; row < rows->count; row++) {
        const struct table_cell *cells = rows_cells(rows, row, columns);
        for (uint32_t i = 0; i < columns; i++) {
            if (cells[i].width > widths[i]) widths[i] = cells[i].width;
        }
    }
}

/* Columns a name or a type takes; the drawing goes nowhere. */
static uint32_t text_width(struct text text, uint32_t limit, struct buf *scratch)
{
    buf_reset(scratch);
    return print_visible(text, limit, scratch);
}

static uint64_t line_width_of(const uint32_t *widths, const struct schema *schema, uint32_t cut)
{
    uint64_t total = 1;
    for (uint32_t i = 0; i < schema->count; i++) {
        bool is_cut = type_is_cut(schema->fields[i].type) && widths[i] > cut;
        total += 3 + (uint64_t)(is_cut ? cut : widths[i]);
    }
    return total;
}

static void widths_find(struct print_table *table, uint32_t *widths)
{
    const struct schema *schema = table->schema;
    for (uint32_t i = 0; i < schema->count; i++) {
        widths[i] = 1;
    }
    widths_widen(widths, &table->head, schema->count);
    widths_widen(widths, &table->tail, schema->count);
    for (uint32_t i = 0; i < schema->count; i++) {
        char type[TYPE_NAME_SIZE];
        uint32_t name = text_width(schema->fields[i].name, NAME_WIDTH, &table->scratch);
        uint32_t below = (uint32_t)strlen(type_name(schema->fields[i].type, type));
        if (name > widths[i]) widths[i] = name;
        if (below > widths[i] && !table->options.plain) widths[i] = below;
    }
    uint32_t cut = STORED_WIDTH;
    while (cut > table->options.text_width &&
           line_width_of(widths, schema, cut) > table->options.line_width) {
        cut--;
    }
    for (uint32_t i = 0; i < schema->count; i++) {
        if (type_is_cut(schema->fields[i].type) && widths[i] > cut) widths[i] = cut;
    }
}

/* --- Drawing. --- */

struct rule {
    const char *left;
    const char *middle;
    const char *right;
};

static void put_times(struct buf *out, const char *string, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_put_string(out, string);
    }
}

static void put_rule(struct buf *out, struct rule rule, const uint32_t *widths, uint32_t columns)
{
    buf_put_string(out, rule.left);
    for (uint32_t i = 0; i < columns; i++) {
        if (i > 0) buf_put_string(out, rule.middle);
        put_times(out, "─", widths[i] + 2);
    }
    buf_put_string(out, rule.right);
    buf_put_u8(out, '\n');
}

struct piece {
    struct text text;
    uint32_t width; /* Of the column. */
    bool to_right;
    const char *style; /* NULL: none. */
};

static void put_piece(struct buf *out, struct piece piece, struct buf *scratch)
{
    buf_reset(scratch);
    uint32_t used = print_visible(piece.text, piece.width, scratch);
    uint32_t space = piece.width - used;
    buf_put_u8(out, ' ');
    if (piece.to_right) put_times(out, " ", space);
    if (piece.style != NULL) buf_put_string(out, piece.style);
    buf_put(out, scratch->bytes, scratch->size);
    if (piece.style != NULL) buf_put_string(out, STYLE_OFF);
    if (!piece.to_right) put_times(out, " ", space);
    buf_put_string(out, " │");
    if (scratch->failed) out->failed = true;
}

static void put_rows(struct print_table *table, const struct print_table_rows *rows,
                     const uint32_t *widths, struct buf *out)
{
    uint32_t columns = table->schema->count;
    if (rows->bytes.failed || rows->cells.failed) {
        out->failed = true;
        return;
    }
    for (uint64_t row = 0; row < rows->count && !out->failed; row++) {
        const struct table_cell *cells = rows_cells(rows, row, columns);
        buf_put_string(out, "│");
        for (uint32_t i = 0; i < columns; i++) {
            const char *bytes = (const char *)rows->bytes.bytes;
            struct piece piece = {
                .text = {cells[i].size > 0 ? bytes + cells[i].offset : NULL, cells[i].size},
                .width = widths[i],
                .to_right = type_is_number(table->schema->fields[i].type),
                .style = cells[i].is_null && table->options.color ? STYLE_DIM : NULL,
            };
            put_piece(out, piece, &table->scratch);
        }
        buf_put_u8(out, '\n');
    }
}

static void put_header(struct print_table *table, const uint32_t *widths, struct buf *out)
{
    const struct schema *schema = table->schema;
    bool color = table->options.color;
    buf_put_string(out, "│");
    for (uint32_t i = 0; i < schema->count; i++) {
        struct piece piece = {
            .text = schema->fields[i].name,
            .width = widths[i],
            .to_right = type_is_number(schema->fields[i].type),
            .style = color ? STYLE_BOLD : NULL,
        };
        put_piece(out, piece, &table->scratch);
    }
    buf_put_u8(out, '\n');
    if (table->options.plain) return;
    buf_put_string(out, "│");
    for (uint32_t i = 0; i < schema->count; i++) {
        char type[TYPE_NAME_SIZE];
        struct piece piece = {
            .text = text_of(type_name(schema->fields[i].type, type)),
            .width = widths[i],
            .to_right = type_is_number(schema->fields[i].type),
            .style = color ? STYLE_DIM : NULL,
        };
        put_piece(out, piece, &table->scratch);
    }
    buf_put_u8(out, '\n');
}

static void put_gap(const struct print_table *table, const uint32_t *widths, struct buf *out)
{
    buf_put_string(out, "│");
    for (uint32_t i = 0; i < table->schema->count; i++) {
        bool to_right = type_is_number(table->schema->fields[i].type);
        if (to_right) put_times(out, " ", widths[i] - 1);
        buf_put_string(out, " … ");
        if (!to_right) put_times(out, " ", widths[i] - 1);
        buf_put_string(out, "│");
    }
    buf_put_u8(out, '\n');
}

void print_count(uint64_t count, struct buf *out)
{
    char digits[32];
    size_t next = sizeof digits;
    uint32_t written = 0;
    do {
        if (written > 0 && written % 3 == 0) digits[--next] = ',';
        digits[--next] = (char)('0' + count % 10);
        count /= 10;
        written++;
    } while (count > 0);
    buf_put(out, digits + next, sizeof digits - next);
}

static void put_footer(const struct print_table *table, uint64_t shown, struct buf *out)
{
    print_count(table->row_count, out);
    buf_put_string(out, table->row_count == 1 ? " row" : " rows");
    if (shown < table->row_count) {
        buf_put_string(out, " (");
        print_count(shown, out);
        buf_put_string(out, " shown");
        if (table->options.cut_note != NULL) buf_format(out, "; %s", table->options.cut_note);
        buf_put_u8(out, ')');
    }
    buf_put_u8(out, '\n');
}

void print_table_finish(struct print_table *table, struct text title, struct buf *out)
{
    uint32_t columns = table->schema->count;
    rows_tidy(&table->tail, tail_limit(table), columns);
    struct buf storage = {0};
    if (!buf_reserve(&storage, (columns + 1) * sizeof(uint32_t))) {
        out->failed = true;
        return;
    }
    uint32_t *widths = (uint32_t *)(void *)storage.bytes;
    uint64_t shown = table->head.count + table->tail.count;
    if (!table->head.cells.failed && !table->tail.cells.failed) widths_find(table, widths);

    if (title.size > 0) {
        if (table->options.color) buf_put_string(out, STYLE_BOLD);
        (void)print_visible(title, STORED_WIDTH, out); /* A line of its own: no width to keep. */
        if (table->options.color) buf_put_string(out, STYLE_OFF);
        buf_put_u8(out, '\n');
    }
    if (table->head.cells.failed || table->tail.cells.failed) {
        out->failed = true;
    } else {
        put_rule(out, (struct rule){"┌", "┬", "┐"}, widths, columns);
        put_header(table, widths, out);
        put_rule(out, (struct rule){"├", "┼", "┤"}, widths, columns);
        put_rows(table, &table->head, widths, out);
        if (shown < table->row_count) put_gap(table, widths, out);
        put_rows(table, &table->tail, widths, out);
        put_rule(out, (struct rule){"└", "┴", "┘"}, widths, columns);
        if (!table->options.plain) put_footer(table, shown, out);
    }
    buf_done(&storage);
}
