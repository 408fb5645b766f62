/* SPDX-License-Identifier: Apache-2.0 */
/* random_rows.h - batches of random values of every type, and a row as one line of text.
 *
 * Values come from small sets full of extremes, so that equal ones are frequent. Two rows have the
 * same line exactly if they hold the same values, doubles bit by bit; so a test can keep, sort and
 * compare lines and need not know about columns.
 */
#ifndef UNIT_DATA_RANDOM_ROWS_H
#define UNIT_DATA_RANDOM_ROWS_H

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/array.h"
#include "engine/base/buf.h"
#include "engine/base/random.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"

struct random_rows {
    struct random *random;
    struct arena *arena;
    uint32_t domain;       /* So many different values per column, about; 0: a few. */
    uint32_t null_percent; /* Under a NULL stands any value. */
    bool plain_doubles;    /* Without -0.0 and NaNs other than the usual one. */
};

static const struct field random_rows_fields[] = {
    {.name = {"truth", 5}, .type = {.kind = TYPE_BOOL}},
    {.name = {"integer", 7}, .type = {.kind = TYPE_INT}},
    {.name = {"decimal", 7}, .type = {TYPE_DECIMAL, 18, 3}},
    {.name = {"number", 6}, .type = {.kind = TYPE_DOUBLE}},
    {.name = {"text", 4}, .type = {.kind = TYPE_TEXT}},
    {.name = {"date", 4}, .type = {.kind = TYPE_DATE}},
    {.name = {"time", 4}, .type = {.kind = TYPE_TIMESTAMP}},
    {.name = {"texts", 5}, .type = {.kind = TYPE_LIST_TEXT}},
    {.name = {"integers", 8}, .type = {.kind = TYPE_LIST_INT}},
    {.name = {"nothing", 7}, .type = {.kind = TYPE_NULL}},
};

/* Every type there is, and every type that may be a key. */
static const struct schema random_rows_every = {random_rows_fields, 10};
static const struct schema random_rows_keys = {random_rows_fields, 7};

static inline void *random_rows_need(void *pointer)
{
    if (pointer == NULL) {
        (void)fprintf(stderr, "no memory for the rows of a test\n");
        abort();
    }
    return pointer;
}

static inline int64_t random_rows_int(const struct random_rows *rows)
{
    static const int64_t extremes[] = {0, 1, -1, INT64_MAX, INT64_MIN, 255, 256, (int64_t)1 << 32};
    uint32_t domain = rows->domain == 0 ? 8 : rows->domain;
    uint32_t chosen = random_below(rows->random, domain);
    return chosen < 8 ? extremes[chosen] : (int64_t)chosen * 7919 - 100000;
}

static inline double random_rows_double(const struct random_rows *rows)
{
    static const double extremes[] = {0.0, 1.5, -1.5, 5e-324, 1.7976931348623157e308, -3.25, 0.1};
    uint32_t domain = rows->domain == 0 ? 12 : rows->domain;
    uint32_t chosen = random_below(rows->random, domain);
    if (chosen < 7) return extremes[chosen];
    if (chosen == 7) return __builtin_nan("");
    if (chosen == 8) return -__builtin_inf();
    if (chosen == 9) return rows->plain_doubles ? 7.0 : -0.0;
    if (chosen == 10) return rows->plain_doubles ? 8.0 : -__builtin_nan("7");
    return (double)chosen / 8.0 - 50.0;
}

static inline struct text random_rows_text(const struct random_rows *rows)
{
    static const struct text extremes[] = {{"", 0},         {"a", 1},          {"a\0", 2},
                                           {"abcdefgh", 8}, {"abcdefgh\0", 9}, {"abcdefghi", 9},
                                           {"\0", 1},       {"\xff\xfe", 2}};
    uint32_t domain = rows->domain == 0 ? 8 : rows->domain;
    uint32_t chosen = random_below(rows->random, domain);
    if (chosen < 8) return extremes[chosen];
    char made[64];
    int size = snprintf(made, sizeof made, "%u and some more letters", chosen);
    struct text text = {made, (uint32_t)size};
    text.bytes = random_rows_need(arena_copy_string(rows->arena, text));
    return text;
}

/* Lists overlap in the child, and some of it belongs to none. */
static inline void random_rows_lists(const struct random_rows *rows, struct column *column,
                                     uint32_t row_count)
{
    enum { ELEMENTS = 40, LENGTH = 5 };
    column->child = random_rows_need(arena_new(rows->arena, struct column));
    random_rows_need(column_init(column->child, type_element(column->type), ELEMENTS, rows->arena)
                         ? column
                         : NULL);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        if (column->type.kind == TYPE_LIST_TEXT) {
            column->child->texts[i] = random_rows_text(rows);
        } else {
            column->child->ints[i] = random_rows_int(rows);
        }
    }
    for (uint32_t i = 0; i < row_count; i++) {
        column->lists[i] = (struct list){random_below(rows->random, ELEMENTS - LENGTH),
                                         random_below(rows->random, LENGTH)};
    }
}

static inline void random_rows_values(const struct random_rows *rows, struct column *column,
                                      uint32_t row_count)
{
    if (type_is_list(column->type)) {
        random_rows_lists(rows, column, row_count);
        return;
    }
    for (uint32_t i = 0; i < row_count; i++) {
        switch ((enum type_kind)column->type.kind) {
        case TYPE_NULL:
        case TYPE_BOOL:
            column->bools[i] = (uint8_t)random_below(rows->random, 2);
            break;
        case TYPE_DOUBLE:
            column->doubles[i] = random_rows_double(rows);
            break;
        case TYPE_TEXT:
            column->texts[i] = random_rows_text(rows);
            break;
        default:
            column->ints[i] = random_rows_int(rows);
            break;
        }
    }
}

static inline struct batch random_rows_batch(const struct random_rows *rows, struct schema schema,
                                             uint32_t row_count)
{
    struct column *columns =
        random_rows_need(arena_array(rows->arena, struct column, schema.count + 1));
    for (uint32_t i = 0; i < schema.count; i++) {
        struct column *column = &columns[i];
        bool is_nothing = schema.fields[i].type.kind == TYPE_NULL;
        random_rows_need(column_init(column, schema.fields[i].type, row_count, rows->arena) ? column
                                                                                            : NULL);
        random_rows_values(rows, column, row_count);
        /* Now and then an array of nulls in which none is. */
        bool with_nulls = is_nothing || random_below(rows->random, 4) == 0;
        for (uint32_t j = 0; j < row_count; j++) {
            bool is_null = is_nothing || random_below(rows->random, 100) < rows->null_percent;
            if (!is_null && !with_nulls) continue;
            random_rows_need(column_need_nulls(column, row_count, rows->arena) ? column : NULL);
            column->nulls[j] = is_null;
        }
    }
    return (struct batch){.row_count = row_count, .column_count = schema.count, .columns = columns};
}

/* ---- lines ---- */

/* By hand: printf would be most of the time that a test takes. */
static inline void row_line_hex(struct buf *out, uint64_t value, uint32_t digit_count)
{
    char digits[16];
    for (uint32_t i = 0; i < digit_count; i++) {
        digits[i] = "0123456789abcdef"[value >> 4 * (digit_count - 1 - i) & 15];
    }
    buf_put(out, digits, digit_count);
}

static inline void row_line_text(struct buf *out, struct text text)
{
    buf_put_string(out, "'");
    for (uint32_t i = 0; i < text.size; i++) {
        row_line_hex(out, (unsigned char)text.bytes[i], 2);
    }
}

static inline void row_line_value(struct buf *out, const struct column *column, uint32_t row)
{
    if (column_is_null(column, row)) {
        buf_put_string(out, "NULL");
        return;
    }
    switch ((enum type_kind)column->type.kind) {
    case TYPE_NULL:
    case TYPE_BOOL:
        row_line_hex(out, column->bools[row], 2);
        return;
    case TYPE_TEXT:
        row_line_text(out, column->texts[row]);
        return;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        buf_put_string(out, "[");
        for (uint32_t i = 0; i < column->lists[row].count; i++) {
            uint32_t element = column->lists[row].first + i;
            if (i > 0) buf_put_string(out, ",");
            row_line_value(out, column->child, element);
        }
        buf_put_string(out, "]");
        return;
    default:
        row_line_hex(out, (uint64_t)column->ints[row], 16); /* Doubles too: the bits. */
    }
}

/* The first `column_count` values; in the arena. */
static inline const char *row_line(const struct batch *batch, uint32_t row, uint32_t column_count,
                                   struct arena *arena)
{
    struct buf line = {0};
    for (uint32_t i = 0; i < column_count; i++) {
        if (i > 0) buf_put_string(&line, "|");
        row_line_value(&line, &batch->columns[i], row);
    }
    random_rows_need(line.failed ? NULL : arena);
    const char *copy = random_rows_need(
        arena_copy_string(arena, (struct text){(const char *)line.bytes, (uint32_t)line.size}));
    buf_done(&line);
    return copy;
}

/* Lines that are collected and compared. */
struct row_lines {
    struct arena *arena;
    const char **items;
    uint32_t count;
    uint32_t capacity;
};

static inline void row_lines_put(struct row_lines *lines, const char *line)
{
    const char **added = random_rows_need(array_add_in(lines, lines->arena));
    *added = line;
}

static inline void row_lines_add(struct row_lines *lines, const struct batch *batch,
                                 struct selection selection)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        row_lines_put(
            lines, row_line(batch, selection_row(selection, i), batch->column_count, lines->arena));
    }
}

static inline int row_lines_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void row_lines_sort(struct row_lines *lines)
{
    if (lines->count > 1) {
        qsort((void *)lines->items, lines->count, sizeof *lines->items, row_lines_order);
    }
}

static inline bool row_lines_equal(const struct row_lines *a, const struct row_lines *b)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->items[i], b->items[i]) != 0) return false;
    }
    return true;
}

/* Numbers 0 .. count-1 in some order. */
static inline uint32_t *random_rows_shuffle(struct random *random, uint32_t count,
                                            struct arena *arena)
{
    uint32_t *order = random_rows_need(arena_array(arena, uint32_t, (size_t)count + 1));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = random_below(random, i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    return order;
}

#endif
