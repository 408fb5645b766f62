/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate_state.c - a few words per kind of state, and loops over many of them.
 *
 * The loops of the common kinds are given structs by value: nothing they write can be taken for
 * what they read, and so it stays in registers.
 */
#include "engine/exec/fold/aggregate_state.h"

#include <stddef.h>

#include "engine/base/assert.h"
#include "engine/base/exact_sum.h"
#include "engine/base/int128.h"
#include "engine/base/number.h"

/* A value of any type but lists. A text that is kept has room of its own, which is used again. */
union slot {
    int64_t integer;
    double number;
    struct text text;
    struct {
        char *bytes;
        uint32_t size;
        uint32_t capacity;
    } kept;
};

_Static_assert(offsetof(struct text, size) == sizeof(char *), "a kept text is a text");

struct sum_state {
    int64_t count;
    uint64_t low; /* 128 bits in halves: records are aligned to 8 bytes only. */
    uint64_t high;
};

struct exact_state {
    int64_t count;
    struct exact_sum sum;
};

/* Extremes: a word that is 1 when there is a value, the value, and what it was chosen by. Values
 * that are no texts take a word each. */
static size_t slot_size(struct type type)
{
    return type.kind == TYPE_TEXT ? sizeof(struct text) : sizeof(int64_t);
}

static bool is_exact(const struct aggregate *aggregate)
{
    return aggregate->input_type.kind == TYPE_DOUBLE;
}

/* Sums and averages know how many values there were, and begin with it. */
static int state_rank(const struct aggregate *aggregate)
{
    if (aggregate->kind == AGGREGATE_SUM || aggregate->kind == AGGREGATE_AVG) return 2;
    return aggregate->kind == AGGREGATE_COUNT ? 1 : 0;
}

uint32_t aggregate_state_owner(const struct aggregate *aggregates, uint32_t count, uint32_t index)
{
    uint32_t owner = index;
    if (state_rank(&aggregates[index]) == 0) return index;
    for (uint32_t i = count; i > 0; i--) {
        const struct aggregate *other = &aggregates[i - 1];
        if (other->input_column == aggregates[index].input_column &&
            state_rank(other) >= state_rank(&aggregates[owner])) {
            owner = i - 1;
        }
    }
    return owner;
}

size_t aggregate_state_size(const struct aggregate *aggregate)
{
    switch (aggregate->kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        return sizeof(int64_t);
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        return is_exact(aggregate) ? sizeof(struct exact_state) : sizeof(struct sum_state);
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        return sizeof(uint64_t) + slot_size(aggregate->input_type);
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        break;
    }
    return sizeof(uint64_t) + slot_size(aggregate->input_type) + slot_size(aggregate->by_type);
}

static void *state_at(const struct state_list *states, uint32_t i)
{
    return states->records[i] + states->offset;
}

/* ---- sums ---- */

static int128 sum_get(const struct sum_state *state)
{
    return (int128)((uint128)state->high << 64 | state->low);
}

static void sum_set(struct sum_state *state, int128 sum)
{
    state->low = (uint64_t)sum;
    state->high = (uint64_t)((uint128)sum >> 64);
}

static void sum_add(struct sum_state *state, int64_t value)
{
    state->count++;
    sum_set(state, sum_get(state) + value);
}

static void add_sums(struct state_list states, struct column column, struct selection selection)
{
    if (column.nulls == NULL && selection.rows == NULL) {
        for (uint32_t i = 0; i < selection.count; i++) {
            sum_add(state_at(&states, i), column.ints[i]);
        }
        return;
    }
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        if (column_is_null(&column, row)) continue;
        sum_add(state_at(&states, i), column.ints[row]);
    }
}

static bool add_exact(struct state_list states, struct column column, struct selection selection)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        if (column_is_null(&column, row)) continue;
        struct exact_state *state = state_at(&states, i);
        state->count++;
        if (!exact_sum_add(&state->sum, column.doubles[row], states.arena)) return false;
    }
    return true;
}

/* ---- extremes ---- */

static union slot slot_read(const struct column *column, uint32_t row)
{
    union slot slot = {0};
    switch ((enum type_kind)column->type.kind) {
    case TYPE_NULL:
    case TYPE_BOOL:
        slot.integer = column->bools[row];
        break;
    case TYPE_DOUBLE:
        slot.number = column->doubles[row];
        break;
    case TYPE_TEXT:
        slot.text = column->texts[row];
        break;
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        slot.integer = column->ints[row];
        break;
    case TYPE_LIST_TEXT:
    case TYPE_LIST_INT:
        ASSERT(false); /* The binder refuses them. */
    }
    return slot;
}

static void slot_write(struct column *column, uint32_t row, union slot slot)
{
    if (column->type.kind == TYPE_BOOL || column->type.kind == TYPE_NULL) {
        column->bools[row] = (uint8_t)slot.integer;
    } else if (column->type.kind == TYPE_TEXT) {
        column->texts[row] =
            (struct text){slot.text.size > 0 ? slot.text.bytes : "", slot.text.size};
    } else {
        column->ints[row] = slot.integer; /* Doubles too: the bits. */
    }
}

static int slot_compare(struct type type, union slot a, union slot b)
{
    if (type.kind == TYPE_TEXT) return text_compare(a.text, b.text);
    if (type.kind != TYPE_DOUBLE) return (a.integer > b.integer) - (a.integer < b.integer);
    bool a_nan = a.number != a.number;
    bool b_nan = b.number != b.number;
    if (a_nan || b_nan) return (int)a_nan - (int)b_nan;
    return (a.number > b.number) - (a.number < b.number);
}

/* Puts a value in the place of another one. A better text overwrites the old one where it fits,
 * else the room doubles: a maximum that rises with every row does not keep every row. */
static bool slot_store(struct type type, void *place, union slot value, struct arena *arena)
{
    union slot kept;
    if (type.kind != TYPE_TEXT) {
        memcpy(place, &value.integer, sizeof value.integer); /* Doubles too: the bits. */
        return true;
    }
    memcpy(&kept, place, sizeof kept);
    uint32_t size = value.text.size;
    if (size > kept.kept.capacity) {
        uint64_t capacity = (uint64_t)kept.kept.capacity * 2;
        if (capacity < size) capacity = size;
        if (capacity > UINT32_MAX) capacity = UINT32_MAX;
        char *bytes = arena_alloc(arena, capacity, 1);
        if (bytes == NULL) return false;
        kept.kept.bytes = bytes;
        kept.kept.capacity = (uint32_t)capacity;
    }
    if (size > 0) memcpy(kept.kept.bytes, value.text.bytes, size);
    kept.kept.size = size;
    memcpy(place, &kept, sizeof kept);
    return true;
}

static union slot slot_load(struct type type, const void *place)
{
    union slot slot = {0};
    memcpy(&slot, place, slot_size(type));
    return slot;
}

struct extreme {
    bool is_present;
    union slot value;
    union slot by; /* arg_min, arg_max */
};

static bool has_by(const struct aggregate *aggregate)
{
    return aggregate->kind == AGGREGATE_ARG_MIN || aggregate->kind == AGGREGATE_ARG_MAX;
}

static struct extreme extreme_load(const struct aggregate *aggregate, const unsigned char *state)
{
    struct extreme extreme = {.is_present = state[0] != 0};
    const unsigned char *value = state + sizeof(uint64_t);
    extreme.value = slot_load(aggregate->input_type, value);
    if (has_by(aggregate)) {
        extreme.by = slot_load(aggregate->by_type, value + slot_size(aggregate->input_type));
    }
    return extreme;
}

/* Among equal `by` the smallest value wins. */
static bool is_better(const struct aggregate *aggregate, const struct extreme *a,
                      const struct extreme *b)
{
    int order;
    if (!has_by(aggregate)) {
        order = slot_compare(aggregate->input_type, a->value, b->value);
        return aggregate->kind == AGGREGATE_MIN ? order < 0 : order > 0;
    }
    order = slot_compare(aggregate->by_type, a->by, b->by);
    if (aggregate->kind == AGGREGATE_ARG_MAX) order = -order;
    if (order == 0) order = slot_compare(aggregate->input_type, a->value, b->value);
    return order < 0;
}

static bool offer(const struct state_list *states, uint32_t i, const struct extreme *more)
{
    const struct aggregate *aggregate = states->aggregate;
    unsigned char *state = state_at(states, i);
    unsigned char *value = state + sizeof(uint64_t);
    struct extreme extreme = extreme_load(aggregate, state);
    if (extreme.is_present && !is_better(aggregate, more, &extreme)) return true;
    state[0] = 1;
    return slot_store(aggregate->input_type, value, more->value, states->arena) &&
           (!has_by(aggregate) ||
            slot_store(aggregate->by_type, value + slot_size(aggregate->input_type), more->by,
                       states->arena));
}

static bool is_integer(struct type type)
{
    return type.kind == TYPE_INT || type.kind == TYPE_DECIMAL || type.kind == TYPE_DATE ||
           type.kind == TYPE_TIMESTAMP;
}

/* The complement turns an order around: the least is where the complement is greatest. */
static void offer_integers(struct state_list states, struct column column,
                           struct selection selection)
{
    int64_t turned = states.aggregate->kind == AGGREGATE_MIN ? -1 : 0;
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        if (column_is_null(&column, row)) continue;
        int64_t *state = state_at(&states, i); /* Whether there is a value, and the value. */
        int64_t value = column.ints[row];
        if (state[0] != 0 && (value ^ turned) <= (state[1] ^ turned)) continue;
        state[0] = 1;
        state[1] = value;
    }
}

static bool offer_rows(const struct state_list *states, const struct column *values,
                       const struct column *bys, struct selection selection)
{
    if (bys == NULL && is_integer(values->type)) {
        offer_integers(*states, *values, selection);
        return true;
    }
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        if (column_is_null(values, row) || (bys != NULL && column_is_null(bys, row))) continue;
        struct extreme more = {.value = slot_read(values, row)};
        if (bys != NULL) more.by = slot_read(bys, row);
        if (!offer(states, i, &more)) return false;
    }
    return true;
}

/* ---- rows in ---- */

static void add_counts(struct state_list states, const struct column *column,
                       struct selection selection)
{
    const uint8_t *nulls = column == NULL ? NULL : column->nulls;
    for (uint32_t i = 0; i < selection.count; i++) {
        int64_t *count = state_at(&states, i);
        *count += nulls == NULL || nulls[selection_row(selection, i)] == 0;
    }
}

bool aggregate_state_add(const struct state_list *states, const struct batch *batch,
                         struct selection selection)
{
    const struct aggregate *aggregate = states->aggregate;
    const struct column *column =
        aggregate->kind == AGGREGATE_COUNT_ROWS ? NULL : &batch->columns[aggregate->input_column];
    switch (aggregate->kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        add_counts(*states, column, selection);
        return true;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        if (is_exact(aggregate)) return add_exact(*states, *column, selection);
        add_sums(*states, *column, selection);
        return true;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        return offer_rows(states, column, NULL, selection);
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        break;
    }
    return offer_rows(states, column, &batch->columns[aggregate->by_column], selection);
}

/* ---- partial states in ---- */

/* Nearly all sums are the window alone, which travels as it is: two numbers. The others are bytes.
 */
static bool merge_exact(const struct state_list *states, const struct batch *partial)
{
    const struct column *columns = &partial->columns[states->aggregate->state_column];
    for (uint32_t row = 0; row < partial->row_count; row++) {
        struct exact_state *state = state_at(states, row);
        struct text bytes = columns[3].texts[row];
        struct exact_sum sum = {.window_low = (uint64_t)columns[1].ints[row],
                                .window_high = (uint64_t)columns[2].ints[row]};
        if (bytes.size > 0 && !exact_sum_decode(&sum, (const unsigned char *)bytes.bytes,
                                                bytes.size, states->scratch)) {
            return false;
        }
        if (!exact_sum_merge(&state->sum, &sum, states->arena)) return false;
        state->count += columns[0].ints[row];
    }
    return true;
}

static void merge_counts(struct state_list states, const int64_t *counts, uint32_t row_count)
{
    for (uint32_t row = 0; row < row_count; row++) {
        *(int64_t *)state_at(&states, row) += counts[row];
    }
}

static void merge_sums(struct state_list states, const struct column *columns, uint32_t row_count)
{
    const int64_t *counts = columns[0].ints;
    const int64_t *lows = columns[1].ints;
    const int64_t *highs = columns[2].ints;
    for (uint32_t row = 0; row < row_count; row++) {
        struct sum_state *state = state_at(&states, row);
        struct sum_state more = {counts[row], (uint64_t)lows[row], (uint64_t)highs[row]};
        state->count += more.count;
        /* Unsigned: sums of true states never wrap, and damaged ones may. */
        sum_set(state, (int128)((uint128)sum_get(state) + (uint128)sum_get(&more)));
    }
}

bool aggregate_state_merge(const struct state_list *states, const struct batch *partial)
{
    const struct aggregate *aggregate = states->aggregate;
    const struct column *columns = &partial->columns[aggregate->state_column];
    struct selection all = {NULL, partial->row_count};
    switch (aggregate->kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        merge_counts(*states, columns[0].ints, partial->row_count);
        return true;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        if (is_exact(aggregate)) return merge_exact(states, partial);
        merge_sums(*states, columns, partial->row_count);
        return true;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        return offer_rows(states, &columns[0], NULL, all);
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        break;
    }
    return offer_rows(states, &columns[0], &columns[1], all);
}

/* ---- partial states out ---- */

static bool write_exact(const struct exact_sum *sum, struct column *columns, uint32_t row,
                        struct arena *arena)
{
    uint64_t low, high;
    bool is_window = exact_sum_fits_window(sum, &low, &high);
    columns[1].ints[row] = is_window ? (int64_t)low : 0;
    columns[2].ints[row] = is_window ? (int64_t)high : 0;
    columns[3].texts[row] = TEXT_LITERAL("");
    if (is_window) return true;
    unsigned char bytes[EXACT_SUM_BYTES_MAX];
    struct text text = {(const char *)bytes, (uint32_t)exact_sum_encode(sum, bytes)};
    const char *copy = arena_copy_string(arena, text);
    if (copy == NULL) return false;
    columns[3].texts[row] = (struct text){copy, text.size};
    return true;
}

static bool partial_exact(const struct state_list *states, uint32_t count, struct column *columns,
                          struct arena *arena)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct exact_state *state = state_at(states, i);
        columns[0].ints[i] = state->count;
        if (!write_exact(&state->sum, columns, i, arena)) return false;
    }
    return true;
}

static bool set_null(struct column *column, uint32_t row, uint32_t count, struct arena *arena)
{
    if (!column_need_nulls(column, count, arena)) return false;
    column->nulls[row] = 1;
    slot_write(column, row, (union slot){0});
    return true;
}

static bool partial_extremes(const struct state_list *states, uint32_t count,
                             struct column *columns, struct arena *arena)
{
    const struct aggregate *aggregate = states->aggregate;
    for (uint32_t i = 0; i < count; i++) {
        struct extreme extreme = extreme_load(aggregate, state_at(states, i));
        if (!extreme.is_present) {
            if (!set_null(&columns[0], i, count, arena)) return false;
            if (has_by(aggregate) && !set_null(&columns[1], i, count, arena)) return false;
            continue;
        }
        slot_write(&columns[0], i, extreme.value);
        if (has_by(aggregate)) slot_write(&columns[1], i, extreme.by);
    }
    return true;
}

bool aggregate_state_partial(const struct state_list *states, uint32_t count,
                             struct column *columns, struct arena *arena)
{
    const struct aggregate *aggregate = states->aggregate;
    switch (aggregate->kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
        for (uint32_t i = 0; i < count; i++) {
            columns[0].ints[i] = *(int64_t *)state_at(states, i);
        }
        return true;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        if (is_exact(aggregate)) return partial_exact(states, count, columns, arena);
        for (uint32_t i = 0; i < count; i++) {
            const struct sum_state *state = state_at(states, i);
            columns[0].ints[i] = state->count;
            columns[1].ints[i] = (int64_t)state->low;
            columns[2].ints[i] = (int64_t)state->high;
        }
        return true;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        break;
    }
    return partial_extremes(states, count, columns, arena);
}

/* ---- rows in, partial states out ---- */

static bool lift_counts(const struct column *values, struct selection selection, struct column *out)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        out->ints[row] = values == NULL || !column_is_null(values, row);
    }
    return true;
}

static bool lift_sums(const struct column *values, struct selection selection,
                      struct column *columns)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        int64_t value = column_is_null(values, row) ? 0 : values->ints[row];
        columns[1].ints[row] = value;
        columns[2].ints[row] = value < 0 ? -1 : 0;
    }
    return lift_counts(values, selection, &columns[0]);
}

static bool lift_exact(const struct column *values, struct selection selection,
                       struct column *columns, struct arena *arena)
{
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        struct exact_sum sum = {0};
        if (!column_is_null(values, row) && !exact_sum_add(&sum, values->doubles[row], arena)) {
            return false;
        }
        if (!write_exact(&sum, columns, row, arena)) return false;
    }
    return lift_counts(values, selection, &columns[0]);
}

/* One value is the least, the greatest and the chosen one. Without either there is neither. */
static bool lift_extremes(const struct column *values, const struct column *bys,
                          const struct batch *batch, struct selection selection,
                          struct column *columns, struct arena *arena)
{
    columns[0].data = values->data;
    columns[0].nulls = values->nulls;
    if (bys == NULL) return true;
    columns[1].data = bys->data;
    if (values->nulls == NULL && bys->nulls == NULL) return true;
    uint8_t *nulls = arena_array(arena, uint8_t, batch->row_count);
    if (nulls == NULL) return false;
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        nulls[row] = column_is_null(values, row) || column_is_null(bys, row);
    }
    columns[0].nulls = columns[1].nulls = nulls;
    return true;
}

bool aggregate_state_lift(const struct aggregate *aggregate, const struct batch *batch,
                          struct selection selection, struct column *columns, struct arena *arena)
{
    const struct column *values =
        aggregate->kind == AGGREGATE_COUNT_ROWS ? NULL : &batch->columns[aggregate->input_column];
    const struct column *bys = NULL;
    switch (aggregate->kind) {
    case AGGREGATE_COUNT_ROWS:
    case AGGREGATE_COUNT:
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        break;
    case AGGREGATE_ARG_MIN:
    case AGGREGATE_ARG_MAX:
        bys = &batch->columns[aggregate->by_column];
        return lift_extremes(values, bys, batch, selection, columns, arena);
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        return lift_extremes(values, bys, batch, selection, columns, arena);
    }
    for (uint32_t i = 0; i < aggregate->state_width; i++) {
        if (!column_init(&columns[i], columns[i].type, batch->row_count, arena)) return false;
    }
    if (aggregate->kind == AGGREGATE_COUNT_ROWS || aggregate->kind == AGGREGATE_COUNT) {
        return lift_counts(values, selection, &columns[0]);
    }
    return is_exact(aggregate) ? lift_exact(values, selection, columns, arena)
                               : lift_sums(values, selection, columns);
}

/* ---- results out ---- */

static status too_large(const struct aggregate *aggregate, struct error *err)
{
    char name[TYPE_NAME_SIZE];
    return error_set(err, STATUS_OVERFLOW, "a sum does not fit %s; sum CAST(... AS DOUBLE) instead",
                     type_name(aggregate->result_type, name));
}

static status result_sum(const struct aggregate *aggregate, const struct sum_state *state,
                         int64_t *out, struct error *err)
{
    int128 sum = sum_get(state);
    int128 limit = INT64_MAX;
    if (aggregate->result_type.kind == TYPE_DECIMAL) limit = (int128)1000000000000000000 - 1;
    bool smallest = aggregate->result_type.kind == TYPE_INT && sum == INT64_MIN;
    if ((sum > limit || sum < -limit) && !smallest) return too_large(aggregate, err);
    *out = (int64_t)sum;
    return STATUS_OK;
}

/* One normal form for results: there is one zero and one NaN. */
static double normal(double value)
{
    if (value != value) return __builtin_nan("");
    return value == 0 ? 0.0 : value;
}

static status result_numbers(const struct state_list *states, uint32_t i, struct column *column,
                             struct error *err)
{
    const struct aggregate *aggregate = states->aggregate;
    bool average = aggregate->kind == AGGREGATE_AVG;
    if (is_exact(aggregate)) {
        const struct exact_state *state = state_at(states, i);
        double sum = exact_sum_round(&state->sum);
        column->doubles[i] = normal(average ? sum / (double)state->count : sum);
        return STATUS_OK;
    }
    const struct sum_state *state = state_at(states, i);
    if (!average) return result_sum(aggregate, state, &column->ints[i], err);
    column->doubles[i] =
        decimal_ratio(sum_get(state), (uint64_t)state->count,
                      aggregate->input_type.kind == TYPE_DECIMAL ? aggregate->input_type.scale : 0);
    return STATUS_OK;
}

status aggregate_state_result(const struct state_list *states, uint32_t count,
                              struct column *column, struct arena *arena, struct error *err)
{
    const struct aggregate *aggregate = states->aggregate;
    for (uint32_t i = 0; i < count; i++) {
        /* Every state but a count's begins with how many values it has seen, or whether any. */
        int64_t first_word = *(int64_t *)state_at(states, i);
        if (aggregate->kind == AGGREGATE_COUNT_ROWS || aggregate->kind == AGGREGATE_COUNT) {
            column->ints[i] = first_word;
        } else if (first_word == 0) {
            if (!set_null(column, i, count, arena)) {
                return error_memory(err);
            }
        } else if (aggregate->kind == AGGREGATE_SUM || aggregate->kind == AGGREGATE_AVG) {
            TRY(result_numbers(states, i, column, err));
        } else {
            slot_write(column, i, extreme_load(aggregate, state_at(states, i)).value);
        }
    }
    return STATUS_OK;
}
