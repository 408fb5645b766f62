/* SPDX-License-Identifier: Apache-2.0 */
/* make_grouping.h - groupings as the planner lays them out, and their answer worked out plainly.
 *
 * The batches that are grouped have the columns of random_rows_keys twice: keys are taken from the
 * first seven, values from the next. The model looks at the rows of one group at a time.
 */
#ifndef UNIT_EXEC_MAKE_GROUPING_H
#define UNIT_EXEC_MAKE_GROUPING_H

#include "engine/base/int128.h"
#include "unit/engine/data/random_rows.h"
#include "unit/engine/exec/fold/naive_order.h"

enum {
    GROUPED_TYPES = 7,
    GROUPED_COLUMNS = 14,
    GROUPED_AGGREGATES = 40,
    GROUPED_FIELDS = GROUPED_TYPES + 3 * GROUPED_AGGREGATES
};

enum { GROUPED_INT = 8, GROUPED_DECIMAL = 9, GROUPED_DOUBLE = 10 }; /* Columns to be summed. */

struct made_grouping {
    struct grouping grouping;
    uint32_t keys[GROUPED_TYPES];
    struct aggregate aggregates[GROUPED_AGGREGATES];
    struct field partial[GROUPED_FIELDS];
    struct field result[GROUPED_FIELDS];
};

static inline struct type grouped_type(uint32_t column)
{
    return random_rows_fields[column % GROUPED_TYPES].type;
}

static inline void grouped_field(struct made_grouping *made, struct type type)
{
    made->partial[made->grouping.partial.count++].type = type;
}

static inline void grouped_aggregate(struct made_grouping *made, enum aggregate_kind kind,
                                     uint32_t input, uint32_t by)
{
    struct grouping *grouping = &made->grouping;
    struct aggregate *aggregate = &made->aggregates[grouping->aggregate_count++];
    *aggregate = (struct aggregate){.kind = kind,
                                    .input_type = grouped_type(input),
                                    .by_type = grouped_type(by),
                                    .result_type = grouped_type(input),
                                    .input_column = input,
                                    .by_column = by,
                                    .state_column = grouping->partial.count};
    switch (kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        aggregate->result_type = TYPE(INT);
        grouped_field(made, TYPE(INT));
        break;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        if (kind == AGGREGATE_AVG) aggregate->result_type = TYPE(DOUBLE);
        for (int i = 0; i < 3; i++) {
            grouped_field(made, TYPE(INT));
        }
        if (aggregate->input_type.kind == TYPE_DOUBLE) grouped_field(made, TYPE(TEXT));
        break;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        grouped_field(made, aggregate->input_type);
        break;
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        grouped_field(made, aggregate->input_type);
        grouped_field(made, aggregate->by_type);
        break;
    }
    aggregate->state_width = grouping->partial.count - aggregate->state_column;
    made->result[grouping->result.count++].type = aggregate->result_type;
}

/* `mask` says which of the seven types are keys. Aggregates are added by grouped_aggregate. */
static inline void grouped_keys(struct made_grouping *made, uint32_t mask)
{
    *made = (struct made_grouping){0};
    struct grouping *grouping = &made->grouping;
    for (uint32_t i = 0; i < GROUPED_TYPES; i++) {
        if ((mask >> i & 1) == 0) continue;
        made->keys[grouping->key_count++] = i;
        grouped_field(made, grouped_type(i));
        made->result[grouping->result.count++].type = grouped_type(i);
    }
    grouping->key_columns = made->keys;
    grouping->aggregates = made->aggregates;
    grouping->partial.fields = made->partial;
    grouping->result.fields = made->result;
}

/* Every aggregate over every type it takes. */
static inline void grouped_every_aggregate(struct made_grouping *made)
{
    grouped_aggregate(made, AGGREGATE_COUNT_ROWS, 0, 0);
    for (uint32_t column = GROUPED_DOUBLE; column >= GROUPED_INT; column--) {
        grouped_aggregate(made, AGGREGATE_SUM, column, 0);
        grouped_aggregate(made, AGGREGATE_AVG, column, 0);
    }
    for (uint32_t column = GROUPED_TYPES; column < GROUPED_COLUMNS; column++) {
        uint32_t by = GROUPED_TYPES + (column * 3 + 1) % GROUPED_TYPES;
        grouped_aggregate(made, AGGREGATE_COUNT, column, 0);
        grouped_aggregate(made, AGGREGATE_MIN, column, 0);
        grouped_aggregate(made, AGGREGATE_MAX, column, 0);
        grouped_aggregate(made, column % 2 == 0 ? AGGREGATE_ARG_MIN : AGGREGATE_ARG_MAX, column,
                          by);
    }
}

/* Rows to be grouped: keys of any value, values whose sums a double holds exactly. */
static inline struct batch grouped_rows(const struct random_rows *rows, uint32_t row_count)
{
    struct field fields[GROUPED_COLUMNS];
    for (uint32_t i = 0; i < GROUPED_COLUMNS; i++) {
        fields[i] = random_rows_fields[i % GROUPED_TYPES];
    }
    struct batch keys = random_rows_batch(rows, (struct schema){fields, GROUPED_TYPES}, row_count);
    struct random_rows plain = *rows;
    plain.plain_doubles = true;
    struct batch values =
        random_rows_batch(&plain, (struct schema){fields, GROUPED_TYPES}, row_count);
    struct column *columns =
        random_rows_need(arena_array(rows->arena, struct column, GROUPED_COLUMNS));
    memcpy(columns, keys.columns, GROUPED_TYPES * sizeof *columns);
    memcpy(columns + GROUPED_TYPES, values.columns, GROUPED_TYPES * sizeof *columns);
    for (uint32_t i = 0; i < row_count; i++) {
        columns[GROUPED_INT].ints[i] = (int64_t)random_below(rows->random, 200001) - 100000;
        columns[GROUPED_DECIMAL].ints[i] = (int64_t)random_below(rows->random, 200) * 125;
        columns[GROUPED_DOUBLE].doubles[i] = (double)random_below(rows->random, 999) / 8.0 - 50.0;
    }
    return (struct batch){
        .row_count = row_count, .column_count = GROUPED_COLUMNS, .columns = columns};
}

/* ---- the model ---- */

static inline void naive_sum(const struct aggregate *aggregate, const struct column *column,
                             const uint32_t *rows, uint32_t count, struct column *out)
{
    int128 sum = 0;
    double number = 0;
    uint32_t value_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (column_is_null(column, rows[i])) continue;
        if (column->type.kind == TYPE_DOUBLE) {
            number += column->doubles[rows[i]];
        } else {
            sum += column->ints[rows[i]];
        }
        value_count++;
    }
    out->nulls[0] = value_count == 0;
    if (column->type.kind != TYPE_DOUBLE) number = (double)sum;
    if (column->type.kind == TYPE_DECIMAL) number /= 1000.0;
    if (aggregate->kind == AGGREGATE_AVG) {
        /* One rounding: the sums are small enough to be divided in one step. */
        out->doubles[0] = column->type.kind == TYPE_DECIMAL
                              ? (double)sum / (1000.0 * (double)value_count)
                              : number / (double)value_count;
        if (value_count == 0 || out->doubles[0] == 0) out->doubles[0] = 0;
    } else if (column->type.kind == TYPE_DOUBLE) {
        out->doubles[0] = number;
    } else {
        out->ints[0] = (int64_t)sum;
    }
}

/* The row whose value it is, or ROW_NONE. */
static inline uint32_t naive_extreme(const struct aggregate *aggregate, const struct batch *batch,
                                     const uint32_t *rows, uint32_t count)
{
    const struct column *values = &batch->columns[aggregate->input_column];
    const struct column *bys = &batch->columns[aggregate->by_column];
    bool has_by = aggregate->kind == AGGREGATE_ARG_MIN || aggregate->kind == AGGREGATE_ARG_MAX;
    bool greatest = aggregate->kind == AGGREGATE_MAX || aggregate->kind == AGGREGATE_ARG_MAX;
    uint32_t best = ROW_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = rows[i];
        if (column_is_null(values, row) || (has_by && column_is_null(bys, row))) continue;
        if (best == ROW_NONE) {
            best = row;
            continue;
        }
        const struct column *deciding = has_by ? bys : values;
        int order = naive_value_order(deciding, row, deciding, best);
        if (greatest) order = -order;
        /* Among equals the smallest value. */
        if (order == 0) order = naive_value_order(values, row, values, best);
        if (order < 0) best = row;
    }
    return best;
}

static inline void naive_aggregate(const struct aggregate *aggregate, const struct batch *batch,
                                   const uint32_t *rows, uint32_t count, struct buf *line,
                                   struct arena *arena)
{
    struct column out;
    const struct column *column = &batch->columns[aggregate->input_column];
    random_rows_need(column_init(&out, aggregate->result_type, 1, arena) ? arena : NULL);
    random_rows_need(column_need_nulls(&out, 1, arena) ? arena : NULL);
    if (aggregate->kind == AGGREGATE_COUNT_ROWS) {
        out.ints[0] = count;
    } else if (aggregate->kind == AGGREGATE_COUNT) {
        out.ints[0] = 0;
        for (uint32_t i = 0; i < count; i++) {
            out.ints[0] += !column_is_null(column, rows[i]);
        }
    } else if (aggregate->kind == AGGREGATE_SUM || aggregate->kind == AGGREGATE_AVG) {
        naive_sum(aggregate, column, rows, count, &out);
    } else {
        uint32_t best = naive_extreme(aggregate, batch, rows, count);
        out.nulls[0] = best == ROW_NONE;
        if (best != ROW_NONE) {
            row_line_value(line, column, best);
            return;
        }
    }
    row_line_value(line, &out, 0);
}

/* Equal keys have one form: one zero, one NaN. */
static inline void naive_key(const struct column *column, uint32_t row, struct buf *line)
{
    double value = 0;
    struct column normal = {.type = TYPE(DOUBLE), .doubles = &value};
    if (column->type.kind != TYPE_DOUBLE || column_is_null(column, row)) {
        row_line_value(line, column, row);
        return;
    }
    value = column->doubles[row];
    if (value == 0) value = 0.0;
    if (value != value) value = __builtin_nan("");
    row_line_value(line, &normal, 0);
}

struct naive_group {
    const char *key;
    uint32_t row;
};

static inline int naive_group_order(const void *a, const void *b)
{
    const struct naive_group *left = a;
    const struct naive_group *right = b;
    int order = strcmp(left->key, right->key);
    return order != 0 ? order : (left->row > right->row) - (left->row < right->row);
}

static inline const char *naive_line(struct buf *line, struct arena *arena)
{
    struct text text = {(const char *)line->bytes, (uint32_t)line->size};
    return random_rows_need(line->failed ? NULL : arena_copy_string(arena, text));
}

/* One line per group, in no particular order. */
static inline void naive_groups(const struct made_grouping *made, const struct batch *batch,
                                struct row_lines *lines)
{
    const struct grouping *grouping = &made->grouping;
    struct arena *arena = lines->arena;
    struct buf line = {0};
    uint32_t count = batch->row_count;
    struct naive_group *groups =
        random_rows_need(arena_array(arena, struct naive_group, (size_t)count + 1));
    uint32_t *rows = random_rows_need(arena_array(arena, uint32_t, (size_t)count + 1));
    for (uint32_t row = 0; row < count; row++) {
        buf_reset(&line);
        for (uint32_t i = 0; i < grouping->key_count; i++) {
            if (i > 0) buf_put_string(&line, "|");
            naive_key(&batch->columns[made->keys[i]], row, &line);
        }
        groups[row] = (struct naive_group){naive_line(&line, arena), row};
    }
    qsort(groups, count, sizeof *groups, naive_group_order);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = groups[i].row;
    }
    bool empty_group = count == 0 && grouping->key_count == 0;
    for (uint32_t first = 0, end; first < count || empty_group; first = end) {
        end = first;
        while (end < count && strcmp(groups[end].key, groups[first].key) == 0) {
            end++;
        }
        struct buf value = {0};
        buf_reset(&line);
        if (!empty_group) buf_put_string(&line, groups[first].key);
        for (uint32_t i = 0; i < grouping->aggregate_count; i++) {
            buf_reset(&value);
            naive_aggregate(&made->aggregates[i], batch, rows + first, end - first, &value, arena);
            if (i > 0 || grouping->key_count > 0) buf_put_string(&line, "|");
            buf_put(&line, value.bytes, value.size);
        }
        row_lines_put(lines, naive_line(&line, arena));
        buf_done(&value);
        empty_group = false;
    }
    buf_done(&line);
}

#endif
