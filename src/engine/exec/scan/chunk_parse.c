/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_parse.c - blocks of fields that look alike, and one field at a time where they do not.
 *
 * The fields of a column mostly have the same look: so many decimals, `.0` behind every id, a CR at
 * the end. A shape is what the last fields looked like; blocks of fields are read as if they had it
 * (chunk_words.h), without a branch per field. A block that turns out otherwise is read again by
 * the readers in base/, which alone decide what is valid, and gives the shape for the next one. A
 * column without any shape is not asked for one at every block.
 *
 * Blocks look at the bytes as they stand in the chunk. Quotes are no digits, so quoted fields come
 * to the careful readers by themselves.
 *
 * A field is loaded with the eight bytes it begins with, and with some that end where it does. The
 * few fields for which these would be outside the chunk are read carefully, too.
 */
#include "engine/exec/scan/chunk_parse.h"

#include <assert.h>

#include "engine/base/assert.h"
#include "engine/base/calendar.h"
#include "engine/base/number.h"
#include "engine/exec/scan/chunk_words.h"

enum {
    /* What is loaded before a field's end: the last word of a long number before its suffix. */
    BYTES_BEFORE_END = WORD_BYTES + 4,
    /* What is loaded from its start: a timestamp, or a minus and a word. */
    BYTES_FROM_START = TIMESTAMP_SECONDS_SIZE,
    PAUSE_BLOCKS_MAX = 31,
};

static_assert((int)NUMBER_WORD_BYTES == (int)WORD_BYTES, "a word is a word");

ALWAYS_INLINE struct text field_at(const struct chunk_fields *fields, uint32_t row)
{
    struct text raw = chunk_field_raw(fields, row);
    if (!fields->has_quotes) return raw;
    return csv_field_unquote(raw, fields->arena, fields->memory_failed);
}

/* What comes of a column: its array and the rows that are not of its type. */
struct values {
    struct column *column;
    uint32_t *failed;
    uint32_t failed_count;
};

static bool read_bool(struct text field, uint8_t *out)
{
    bool is_true = field.size == 1 && (field.bytes[0] == '1' || (field.bytes[0] | 32) == 't');
    bool is_false = field.size == 1 && (field.bytes[0] == '0' || (field.bytes[0] | 32) == 'f');
    is_true = is_true || text_equal_ignoring_case(field, TEXT_LITERAL("true"));
    is_false = is_false || text_equal_ignoring_case(field, TEXT_LITERAL("false"));
    *out = is_true;
    return is_true || is_false;
}

/* By the readers in base/. The kind is the column's. */
ALWAYS_INLINE bool read_field(struct text field, struct column *column, uint32_t row,
                              enum type_kind kind)
{
    switch (kind) {
    case TYPE_INT:
        return int_parse(field, &column->ints[row]);
    case TYPE_DECIMAL:
        return decimal_parse(field, column->type.precision, column->type.scale, &column->ints[row]);
    case TYPE_DOUBLE:
        return double_parse(field, &column->doubles[row]);
    case TYPE_DATE:
        return date_parse(field, &column->ints[row]);
    case TYPE_TIMESTAMP:
        return timestamp_parse(field, &column->ints[row]);
    case TYPE_BOOL:
        return read_bool(field, &column->bools[row]);
    default:
        ASSERT(false); /* chunk_scan_create takes no table with others. */
        return false;
    }
}

ALWAYS_INLINE void clear_value(struct column *column, uint32_t row, enum type_kind kind)
{
    if (kind == TYPE_BOOL) {
        column->bools[row] = 0;
    } else if (kind == TYPE_DOUBLE) {
        column->doubles[row] = 0.0;
    } else {
        column->ints[row] = 0;
    }
}

/* Consecutive rows. */
struct span {
    uint32_t first;
    uint32_t end;
};

ALWAYS_INLINE void read_rows_of(const struct chunk_fields *fields, struct span rows,
                                struct values *values, enum type_kind kind)
{
    struct column *column = values->column;
    for (uint32_t row = rows.first; row < rows.end; row++) {
        if (LIKELY(read_field(field_at(fields, row), column, row, kind))) continue;
        clear_value(column, row, kind);
        values->failed[values->failed_count++] = row;
    }
}

/* One at a time. */
static void read_rows(const struct chunk_fields *fields, struct span rows, struct values *values)
{
    switch (values->column->type.kind) {
    case TYPE_INT:
        read_rows_of(fields, rows, values, TYPE_INT);
        break;
    case TYPE_DECIMAL:
        read_rows_of(fields, rows, values, TYPE_DECIMAL);
        break;
    case TYPE_DOUBLE:
        read_rows_of(fields, rows, values, TYPE_DOUBLE);
        break;
    case TYPE_DATE:
        read_rows_of(fields, rows, values, TYPE_DATE);
        break;
    case TYPE_TIMESTAMP:
        read_rows_of(fields, rows, values, TYPE_TIMESTAMP);
        break;
    default:
        read_rows_of(fields, rows, values, values->column->type.kind);
        break;
    }
}

/* What the fields of a block are taken to have in common. */
struct number_shape {
    /* Behind the value: nothing or a CR, and for an INT `.0` before it. */
    uint32_t suffix; /* As the uppermost bytes of 32 bits, */
    uint32_t suffix_mask;
    uint32_t suffix_size; /* and how many these are. */
    bool is_plain;        /* No suffix, no field without bytes, none with a minus. */
    bool is_long;         /* INT: 9 to 16 digits instead of 1 to 8. */
    uint32_t decimals;    /* Others: behind the point in its one place; 0: there is none. */
    uint32_t mixed_run;   /* Others: the last blocks in which each had a place of its own. */
};

static void shape_set_suffix(struct number_shape *number_shape, struct text raw, uint32_t size)
{
    number_shape->suffix_size = size;
    if (size == 0) return;
    memcpy(&number_shape->suffix, raw.bytes + raw.size - sizeof number_shape->suffix,
           sizeof number_shape->suffix);
    number_shape->suffix_mask = UINT32_MAX << (32 - 8 * size);
    number_shape->suffix &= number_shape->suffix_mask;
}

/* The look of a field that is not empty. */
static struct number_shape shape_of(const struct chunk_fields *fields, enum type_kind kind,
                                    uint32_t row)
{
    struct text field = chunk_field_raw(fields, row);
    uint32_t end = fields->positions[(size_t)row * fields->stride + 1];
    struct text raw = {field.bytes, (uint32_t)(fields->bytes + end - field.bytes)};
    uint32_t suffix_size = raw.size - field.size;
    uint32_t point_end = field.size;
    while (point_end > 0 && field.bytes[point_end - 1] != '.') {
        point_end--;
    }
    struct number_shape number_shape = {0};
    uint32_t decimals = point_end > 0 ? field.size - point_end : 0;
    if (kind == TYPE_INT) {
        if (decimals == 1 && field.bytes[point_end] == '0') suffix_size += 2;
        number_shape.is_long = raw.size - suffix_size > WORD_BYTES;
    } else {
        number_shape.decimals = decimals < WORD_BYTES ? decimals : 0;
    }
    shape_set_suffix(&number_shape, raw, suffix_size);
    return number_shape;
}

static struct number_shape shape_of_rows(const struct chunk_fields *fields, enum type_kind kind,
                                         struct span rows)
{
    struct number_shape number_shape = {0};
    bool is_found = false;
    bool is_plain = true;
    for (uint32_t row = rows.end; row-- > rows.first;) {
        struct text field = chunk_field_raw(fields, row);
        bool is_empty = field.size == 0;
        if (is_empty || field.bytes[0] == '-') is_plain = false;
        if (!is_empty && !is_found) {
            number_shape = shape_of(fields, kind, row);
            is_found = true;
        }
    }
    number_shape.is_plain = is_plain && number_shape.suffix_size == 0;
    return number_shape;
}

ALWAYS_INLINE uint64_t load_word(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word ^ WORD_ZEROS;
}

/* Without the bytes behind the first `size`, which is 1 to 8; anything if it is not. */
ALWAYS_INLINE uint64_t word_cut(uint64_t word, uint32_t size)
{
    return word << ((64 - 8 * size) & 63);
}

/* The words of fields of 1 to 8 bytes; false: some are not. */
ALWAYS_INLINE bool load_plain(const struct chunk_fields *fields, uint32_t first,
                              struct words *words)
{
    const uint32_t *position = fields->positions + (size_t)first * fields->stride;
    const size_t stride = fields->stride;
    const char *bytes = fields->bytes;
    uint32_t sizes = 0; /* Less 1: those of 0 to 7 have no other bits. */
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        uint32_t start = position[0] + 1;
        uint32_t size = position[1] - start;
        words->at[i] = word_cut(load_word(bytes + start), size);
        sizes |= size - 1;
        position += stride;
    }
    return sizes < WORD_BYTES;
}

/* A block of words, and what is not in them. */
struct number_block {
    struct words words;
    struct words heads;          /* Of long INTs: the digits before the last eight. */
    struct words negative;       /* All ones for fields that begin with a minus, else 0. */
    uint32_t empty[WORDS_COUNT]; /* Rows without bytes. */
    uint32_t empty_count;
    bool has_negative;
    bool is_mixed; /* Each point has a place of its own, or there is none: */
    uint8_t decimals[WORDS_COUNT];
};

/* The same with the shape's suffix behind every field that is not empty, and perhaps a minus before
 * it. The word of an empty one is `empty`. */
ALWAYS_INLINE bool load_shaped(const struct chunk_fields *fields, uint32_t first,
                               const struct number_shape *shape_in, uint64_t empty, bool is_long,
                               struct number_block *block)
{
    const uint32_t *position = fields->positions + (size_t)first * fields->stride;
    const size_t stride = fields->stride;
    const char *bytes = fields->bytes;
    const struct number_shape number_shape = *shape_in; /* In registers. */
    uint32_t sizes = 0;
    uint32_t differences = 0;
    uint32_t empty_count = 0;
    uint64_t any_negative = 0;
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        uint32_t start = position[0] + 1;
        uint32_t end = position[1];
        bool is_empty = start == end;
        uint32_t kept = is_empty ? 0 : UINT32_MAX;
        uint32_t tail;
        memcpy(&tail, bytes + end - sizeof tail, sizeof tail);
        differences |= (tail ^ number_shape.suffix) & number_shape.suffix_mask & kept;
        end -= number_shape.suffix_size;
        uint64_t is_negative = bytes[start] == '-';
        block->negative.at[i] = -is_negative;
        any_negative |= is_negative;
        start += (uint32_t)is_negative;

        uint32_t size = end - start;
        uint64_t word = load_word(bytes + start);
        if (is_long) {
            size -= WORD_BYTES;
            block->heads.at[i] = is_empty ? 0 : word_cut(word, size);
            word = load_word(bytes + end - WORD_BYTES);
        } else {
            word = word_cut(word, size);
        }
        block->words.at[i] = is_empty ? empty : word;
        sizes |= (size - 1) & kept;
        block->empty[empty_count] = first + i;
        empty_count += is_empty;
        position += stride;
    }
    block->empty_count = empty_count;
    block->has_negative = any_negative != 0;
    return sizes < WORD_BYTES && differences == 0;
}

/* Not for long ones. `empty` is the word of an empty field. */
static bool block_load(const struct chunk_fields *fields, uint32_t first,
                       const struct number_shape *number_shape, uint64_t empty,
                       struct number_block *block)
{
    if (!number_shape->is_plain)
        return load_shaped(fields, first, number_shape, empty, false, block);
    block->empty_count = 0;
    block->has_negative = false;
    return load_plain(fields, first, &block->words);
}

static void block_negate(const struct number_block *block, uint64_t *values)
{
    if (LIKELY(!block->has_negative)) return;
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        uint64_t negative = block->negative.at[i];
        values[i] = (values[i] ^ negative) - negative;
    }
}

static bool block_read_ints(const struct chunk_fields *fields, uint32_t first,
                            const struct number_shape *number_shape, struct number_block *block,
                            int64_t *out_ints)
{
    const struct words_point none = {0};
    uint64_t *out = (uint64_t *)out_ints;
    uint64_t heads[WORDS_COUNT];
    if (number_shape->is_long) {
        if (!load_shaped(fields, first, number_shape, 0, true, block)) return false;
        if (!words_read_point(&block->heads, none, false, heads)) return false;
        if (!words_read_point(&block->words, none, false, out)) return false;
        for (uint32_t i = 0; i < WORDS_COUNT; i++) {
            out[i] += heads[i] * number_powers[WORD_BYTES];
        }
    } else {
        if (!block_load(fields, first, number_shape, 0, block)) return false;
        if (!words_read_point(&block->words, none, false, out)) return false;
    }
    block_negate(block, out);
    return true;
}

/* How an integer with so many decimals becomes one of the type's scale: what it must be below, and
 * the factor. The limit is 0 where there are more than the scale. */
struct scaling {
    uint64_t limits[WORD_BYTES];
    uint64_t factors[WORD_BYTES];
};

static struct scaling scaling_of(struct type type)
{
    struct scaling scaling = {0};
    for (uint32_t decimals = 0; decimals < WORD_BYTES && decimals <= type.scale; decimals++) {
        uint32_t missing = type.scale - decimals;
        scaling.limits[decimals] = number_powers[type.precision - missing];
        scaling.factors[decimals] = number_powers[missing];
    }
    return scaling;
}

/* Integers, whose decimals are the shape's or, if the block is mixed, its own. */
static bool block_read_points(const struct chunk_fields *fields, uint32_t first,
                              struct number_shape *number_shape, struct number_block *block,
                              uint64_t *out)
{
    enum { MIXED_RUN = 2 }; /* So many, and the next is taken to be mixed as well. */
    struct words_point point = words_point_at(number_shape->decimals);
    bool has_point = number_shape->decimals > 0;
    block->is_mixed = false;
    if (!block_load(fields, first, number_shape, has_point ? point.expected : 0, block))
        return false;
    if (number_shape->mixed_run < MIXED_RUN) {
        bool is_read = has_point ? words_read_point(&block->words, point, true, out)
                                 : words_read_point(&block->words, point, false, out);
        if (LIKELY(is_read)) {
            number_shape->mixed_run = 0;
            return true;
        }
    }
    if (!words_read_points(&block->words, out, block->decimals)) return false;
    unsigned differences = 0;
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        differences |= block->decimals[i] ^ block->decimals[0];
    }
    block->is_mixed = differences != 0;
    if (block->is_mixed) {
        number_shape->mixed_run += number_shape->mixed_run < MIXED_RUN;
    } else {
        number_shape->mixed_run = 0;
        number_shape->decimals = block->decimals[0];
    }
    return true;
}

static bool block_read_decimals(const struct chunk_fields *fields, uint32_t first,
                                struct number_shape *number_shape, const struct scaling *scaling,
                                struct number_block *block, int64_t *out_ints)
{
    uint64_t *out = (uint64_t *)out_ints;
    if (!block_read_points(fields, first, number_shape, block, out)) return false;
    bool is_beyond = false;
    if (LIKELY(!block->is_mixed)) {
        const uint64_t limit = scaling->limits[number_shape->decimals];
        const uint64_t factor = scaling->factors[number_shape->decimals];
        for (uint32_t i = 0; i < WORDS_COUNT; i++) {
            is_beyond |= out[i] >= limit;
            out[i] *= factor;
        }
    } else {
        for (uint32_t i = 0; i < WORDS_COUNT; i++) {
            is_beyond |= out[i] >= scaling->limits[block->decimals[i]];
            out[i] *= scaling->factors[block->decimals[i]];
        }
    }
    block_negate(block, out);
    return !is_beyond;
}

static bool block_read_doubles(const struct chunk_fields *fields, uint32_t first,
                               struct number_shape *number_shape, struct number_block *block,
                               double *out)
{
    uint64_t values[WORDS_COUNT];
    if (!block_read_points(fields, first, number_shape, block, values)) return false;
    block_negate(block, values);
    /* Both operands are exact, so the quotient is rounded once. */
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        uint32_t decimals = block->is_mixed ? block->decimals[i] : number_shape->decimals;
        out[i] = (double)(int64_t)values[i] / number_double_powers[decimals];
    }
    return true;
}

/* Dates come in order, or at least in runs: the last one read is kept as it was written. */
struct last_date {
    uint64_t year_and_month; /* YYYY-MM- */
    uint32_t day; /* DD and what separates it from the clock; DAY_NONE: there is none yet. */
    int64_t date;
};

#define DAY_MASK 0x00ffffffu
#define DAY_NONE UINT32_MAX

static bool last_date_set(struct last_date *last, const char *bytes)
{
    char separator = bytes[DATE_TEXT_SIZE];
    int64_t date;
    if (separator != ' ' && separator != 'T') return false;
    if (!date_parse((struct text){bytes, DATE_TEXT_SIZE}, &date)) return false;
    memcpy(&last->year_and_month, bytes, sizeof last->year_and_month);
    memcpy(&last->day, bytes + sizeof last->year_and_month, sizeof last->day);
    last->day &= DAY_MASK;
    last->date = date;
    return true;
}

/* YYYY-MM-DD HH:MM:SS, without a fraction, and with the shape's suffix. */
static bool block_read_timestamps(const struct chunk_fields *fields, uint32_t first,
                                  const struct number_shape *number_shape,
                                  struct last_date *last_date, int64_t *out)
{
    const uint32_t *position = fields->positions + (size_t)first * fields->stride;
    const size_t stride = fields->stride;
    const char *chunk = fields->bytes;
    const uint32_t wanted_size = TIMESTAMP_SECONDS_SIZE + number_shape->suffix_size;
    const uint32_t suffix = number_shape->suffix;
    const uint32_t suffix_mask = number_shape->suffix_mask;
    struct last_date last = *last_date; /* In registers, whatever is stored to *out. */
    uint64_t excess = 0;
    uint32_t differences = 0;
    for (uint32_t i = 0; i < WORDS_COUNT; i++) {
        uint32_t start = position[0] + 1;
        const char *bytes = chunk + start;
        uint32_t tail;
        memcpy(&tail, chunk + position[1] - sizeof tail, sizeof tail);
        differences |= (position[1] - start) ^ wanted_size;
        differences |= (tail ^ suffix) & suffix_mask;

        uint64_t year_and_month;
        uint32_t day;
        memcpy(&year_and_month, bytes, sizeof year_and_month);
        memcpy(&day, bytes + sizeof year_and_month, sizeof day);
        if (UNLIKELY(year_and_month != last.year_and_month || (day & DAY_MASK) != last.day)) {
            if (!last_date_set(last_date, bytes)) return false;
            last = *last_date;
        }
        out[i] = timestamp_of_date(last.date) | clock_read(bytes + DATE_TEXT_SIZE + 1, &excess);
        position += stride;
    }
    return differences == 0 && (excess & CLOCK_EXCESS) == 0;
}

/* What is remembered from block to block. */
struct habits {
    struct number_shape number_shape;
    struct scaling scaling;     /* DECIMAL. */
    struct last_date last_date; /* TIMESTAMP. */
};

static bool block_read(const struct chunk_fields *fields, uint32_t first, struct habits *habits,
                       struct values *values)
{
    struct column *column = values->column;
    struct number_shape *number_shape = &habits->number_shape;
    struct number_block block;
    block.empty_count = 0;
    bool is_read;
    switch (column->type.kind) {
    case TYPE_INT:
        is_read = block_read_ints(fields, first, number_shape, &block, column->ints + first);
        break;
    case TYPE_DECIMAL:
        is_read = block_read_decimals(fields, first, number_shape, &habits->scaling, &block,
                                      column->ints + first);
        break;
    case TYPE_DOUBLE:
        is_read = block_read_doubles(fields, first, number_shape, &block, column->doubles + first);
        break;
    default:
        is_read = block_read_timestamps(fields, first, number_shape, &habits->last_date,
                                        column->ints + first);
        break;
    }
    if (!is_read) return false;
    for (uint32_t i = 0; i < block.empty_count; i++) {
        values->failed[values->failed_count++] = block.empty[i];
    }
    return true;
}

/* Those for which all that is loaded is within the chunk. */
static struct span loadable_rows(const struct chunk_fields *fields)
{
    const uint32_t *positions = fields->positions;
    size_t stride = fields->stride;
    struct span rows = {0, fields->count};
    while (rows.first < rows.end && positions[rows.first * stride + 1] < BYTES_BEFORE_END) {
        rows.first++;
    }
    if (rows.first == rows.end) return rows;
    uint32_t bytes_end = positions[(rows.end - 1) * stride + 1];
    while (rows.end > rows.first &&
           bytes_end - (positions[(rows.end - 1) * stride] + 1) < BYTES_FROM_START) {
        rows.end--;
    }
    return rows;
}

static void read_blocks(const struct chunk_fields *fields, struct values *values)
{
    struct type type = values->column->type;
    struct habits habits = {.last_date = {.day = DAY_NONE}};
    if (type.kind == TYPE_DECIMAL) habits.scaling = scaling_of(type);
    struct span loadable = loadable_rows(fields);
    read_rows(fields, (struct span){0, loadable.first}, values);

    struct span block = {loadable.first, loadable.first + WORDS_COUNT};
    if (block.end <= loadable.end) habits.number_shape = shape_of_rows(fields, type.kind, block);
    uint32_t pause = 0; /* Blocks before the next that is tried. */
    uint32_t next_pause = 0;
    for (; block.end <= loadable.end; block.first += WORDS_COUNT, block.end += WORDS_COUNT) {
        if (pause == 0 && block_read(fields, block.first, &habits, values)) {
            next_pause = 0;
            continue;
        }
        read_rows(fields, block, values);
        if (pause == 0) {
            pause = next_pause;
            next_pause = next_pause < PAUSE_BLOCKS_MAX ? 2 * next_pause + 1 : next_pause;
        } else {
            pause--;
        }
        if (pause == 0) habits.number_shape = shape_of_rows(fields, type.kind, block);
    }
    read_rows(fields, (struct span){block.first, fields->count}, values);
}

uint32_t chunk_parse_values(const struct chunk_fields *fields, struct column *column,
                            uint32_t *failed)
{
    struct values values = {.column = column, .failed = failed};
    switch (column->type.kind) {
    case TYPE_INT:
    case TYPE_DECIMAL:
    case TYPE_DOUBLE:
    case TYPE_TIMESTAMP:
        read_blocks(fields, &values);
        break;
    default:
        read_rows(fields, (struct span){0, fields->count}, &values);
        break;
    }
    return values.failed_count;
}

uint32_t chunk_parse_empty(const struct chunk_fields *fields, uint32_t *failed)
{
    uint32_t failed_count = 0;
    if (!fields->has_quotes && !fields->ends_record) {
        const uint32_t *position = fields->positions;
        for (uint32_t row = 0; row < fields->count; row++) {
            failed[failed_count] = row;
            failed_count += position[0] + 1 == position[1];
            position += fields->stride;
        }
        return failed_count;
    }
    for (uint32_t row = 0; row < fields->count; row++) {
        if (UNLIKELY(chunk_field_is_empty(chunk_field_raw(fields, row)))) {
            failed[failed_count++] = row;
        }
    }
    return failed_count;
}
