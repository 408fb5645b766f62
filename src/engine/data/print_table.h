/* SPDX-License-Identifier: Apache-2.0 */
/* print_table.h - an answer as a table for people, drawn with lines.
 *
 *     print_table_init -> print_table_add* -> print_table_finish -> print_table_done
 *
 * Widths depend on all rows, so rows are kept until the end; with a row limit only the first and
 * the last ones are, however many come. Control characters are spelled out and never reach a
 * terminal; long texts are cut, numbers never.
 *
 * Memory: the table owns its copies and borrows the schema; batches are borrowed for the call.
 * Failure: sticky, told by the buf given to print_table_finish.
 */
#ifndef ENGINE_DATA_PRINT_TABLE_H
#define ENGINE_DATA_PRINT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"

#define PRINT_TABLE_ALL_ROWS UINT64_MAX

struct print_table_options {
    uint32_t line_width;  /* Texts are cut so that lines fit into this many columns, */
    uint32_t text_width;  /* but never to fewer than these. */
    uint64_t row_limit;   /* PRINT_TABLE_ALL_ROWS, or how many to show. */
    const char *cut_note; /* For the footer when rows were left out; may be NULL. */
    bool color;
    bool plain; /* Neither types nor a footer: not an answer but a list of ours. */
};

/* Rows in the order they came; cells point into the bytes. */
struct print_table_rows {
    struct buf bytes;
    struct buf cells;
    uint64_t count;
};

struct print_table {
    const struct schema *schema; /* Borrowed. */
    struct print_table_options options;
    struct print_table_rows head;
    struct print_table_rows tail;
    struct buf scratch;
    uint64_t row_count;
};

void print_table_init(struct print_table *table, const struct schema *schema,
                      struct print_table_options options);
/* The batch may have more columns than the schema: they are left out. */
void print_table_add(struct print_table *table, const struct batch *batch);
/* Appends the whole drawing; an empty title is left out. */
void print_table_finish(struct print_table *table, struct text title, struct buf *out);
void print_table_done(struct print_table *table);

/* 1234567 as 1,234,567. */
void print_count(uint64_t count, struct buf *out);

#endif
