/* chunk_parse.c - a loop per type, each in two shapes.
 *
 * The plain shape is for chunks without quotes and columns that do not end their record: a field is
 * then what is between two positions and nothing else has to be looked at. Everything else takes
 * the careful shape. Both come from one function whose last parameter is a constant.
 *
 * Numbers are short and of varying length, which makes a branch on the length a bad guess. So the
 * eight bytes that END with the field are loaded, and what came before it is replaced by zeros.
 * That needs eight bytes before the field's end, which all fields have but those at the chunk's
 * very start. What is not a few digits goes to the readers in base/, which decide what is valid.
 */
#include "exec/chunk_parse.h"

#include "base/assert.h"
#include "base/calendar.h"
#include "base/number.h"

enum {
    /* Up to two words are loaded by a field's end, which may be before a CR. */
    EARLY_BYTES = 2 * NUMBER_WORD_BYTES + 1
};

#define ZERO_DIGITS 0x3030303030303030u

ALWAYS_INLINE struct text field_at(const struct chunk_fields *fields, uint32_t row, bool plain)
{
    if (plain) {
        const uint32_t *position = fields->positions + (size_t)row * fields->stride;
        uint32_t start = position[0] + 1;
        return (struct text){fields->bytes + start, position[1] - start};
    }
    struct text raw = chunk_field_raw(fields, row);
    if (!fields->has_quotes) return raw;
    return csv_field_unquote(raw, fields->arena, fields->memory_failed);
}

/* How many rows, from the first on, cannot be loaded by their end. */
static uint32_t count_early_rows(const struct chunk_fields *fields)
{
    /* An unquoted copy has nothing before it. */
    if (fields->has_quotes) return fields->count;
    uint32_t row = 0;
    while (row < fields->count &&
           fields->positions[(size_t)row * fields->stride + 1] < EARLY_BYTES) {
        row++;
    }
    return row;
}

ALWAYS_INLINE bool is_short(struct text field)
{
    return field.size - 1u < NUMBER_WORD_BYTES;
}

/* The field's 1 to 8 bytes as the upper ones of a word, with zeros (the digit) before them. */
ALWAYS_INLINE uint64_t load_ending(struct text field)
{
    uint64_t word;
    memcpy(&word, field.bytes + field.size - NUMBER_WORD_BYTES, sizeof word);
    uint64_t mask = UINT64_MAX << (8 * (NUMBER_WORD_BYTES - field.size));
    return (word & mask) | (ZERO_DIGITS & ~mask);
}

ALWAYS_INLINE bool read_int(struct text field, int64_t *out)
{
    uint64_t value;
    uint64_t upper = 0;
    bool is_read;
    if (is_short(field)) {
        is_read = number_word_digits(load_ending(field), NUMBER_WORD_BYTES, &value);
    } else if (field.size - 1u < 2 * NUMBER_WORD_BYTES) {
        struct text head = {field.bytes, field.size - NUMBER_WORD_BYTES};
        struct text tail = {field.bytes + head.size, NUMBER_WORD_BYTES};
        is_read = number_word_digits(load_ending(tail), NUMBER_WORD_BYTES, &value) &&
                  number_word_digits(load_ending(head), NUMBER_WORD_BYTES, &upper);
    } else {
        is_read = false;
    }
    if (UNLIKELY(!is_read)) return int_parse(field, out);
    *out = (int64_t)(upper * number_powers[NUMBER_WORD_BYTES] + value);
    return true;
}

/* Digits with at most one point among them, as number_read_short. */
ALWAYS_INLINE bool read_point(struct text field, uint64_t *out_value, uint32_t *out_decimals)
{
    if (UNLIKELY(!is_short(field))) return false;
    uint64_t word = load_ending(field);
    uint64_t difference = word ^ 0x2e2e2e2e2e2e2e2eu;
    uint64_t points = (difference - 0x0101010101010101u) & ~difference & 0x8080808080808080u;
    uint32_t decimals = 0;
    if (points != 0) {
        if (UNLIKELY(field.size == 1)) return false;
        /* What is before the point moves up over it, and a zero moves in. */
        uint32_t point = (uint32_t)__builtin_ctzll(points) & ~7u; /* In bits. */
        uint64_t before = ((uint64_t)1 << point) - 1;
        word = (word & ~before << 8) | (word & before) << 8 | '0';
        decimals = NUMBER_WORD_BYTES - 1 - point / 8;
    }
    *out_decimals = decimals;
    return number_word_digits(word, NUMBER_WORD_BYTES, out_value);
}

ALWAYS_INLINE bool read_decimal(struct text field, struct type type, int64_t *out)
{
    uint64_t value;
    uint32_t decimals;
    if (LIKELY(read_point(field, &value, &decimals)) && LIKELY(decimals <= type.scale)) {
        uint32_t missing = type.scale - decimals;
        if (UNLIKELY(value >= number_powers[type.precision - missing])) return false;
        *out = (int64_t)(value * number_powers[missing]);
        return true;
    }
    return decimal_parse(field, type.precision, type.scale, out);
}

ALWAYS_INLINE bool read_double(struct text field, double *out)
{
    uint64_t value;
    uint32_t decimals;
    if (LIKELY(read_point(field, &value, &decimals))) {
        /* Both operands are exact, so the quotient is rounded once. */
        *out = (double)value / number_double_powers[decimals];
        return true;
    }
    return double_parse(field, out);
}

ALWAYS_INLINE uint32_t read_ints(const struct chunk_fields *all, int64_t *out, uint32_t *failed,
                                 bool plain)
{
    const struct chunk_fields fields = *all; /* In registers, whatever is stored to *out. */
    uint32_t failed_count = 0;
    uint32_t early_count = count_early_rows(&fields);
    for (uint32_t row = 0; row < early_count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!int_parse(field, &out[row]))) {
            out[row] = 0;
            failed[failed_count++] = row;
        }
    }
    for (uint32_t row = early_count; row < fields.count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!read_int(field, &out[row]))) {
            out[row] = 0;
            failed[failed_count++] = row;
        }
    }
    return failed_count;
}

ALWAYS_INLINE uint32_t read_decimals(const struct chunk_fields *all, struct type type, int64_t *out,
                                     uint32_t *failed, bool plain)
{
    const struct chunk_fields fields = *all; /* In registers, whatever is stored to *out. */
    uint32_t failed_count = 0;
    uint32_t early_count = count_early_rows(&fields);
    for (uint32_t row = 0; row < early_count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!decimal_parse(field, type.precision, type.scale, &out[row]))) {
            out[row] = 0;
            failed[failed_count++] = row;
        }
    }
    for (uint32_t row = early_count; row < fields.count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!read_decimal(field, type, &out[row]))) {
            out[row] = 0;
            failed[failed_count++] = row;
        }
    }
    return failed_count;
}

ALWAYS_INLINE uint32_t read_doubles(const struct chunk_fields *all, double *out, uint32_t *failed,
                                    bool plain)
{
    const struct chunk_fields fields = *all; /* In registers, whatever is stored to *out. */
    uint32_t failed_count = 0;
    uint32_t early_count = count_early_rows(&fields);
    for (uint32_t row = 0; row < early_count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!double_parse(field, &out[row]))) {
            out[row] = 0.0;
            failed[failed_count++] = row;
        }
    }
    for (uint32_t row = early_count; row < fields.count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!read_double(field, &out[row]))) {
            out[row] = 0.0;
            failed[failed_count++] = row;
        }
    }
    return failed_count;
}

ALWAYS_INLINE uint32_t read_dates(const struct chunk_fields *all, int64_t *out, uint32_t *failed,
                                  bool plain)
{
    const struct chunk_fields fields = *all; /* In registers, whatever is stored to *out. */
    uint32_t failed_count = 0;
    for (uint32_t row = 0; row < fields.count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!date_parse(field, &out[row]))) {
            out[row] = 0;
            failed[failed_count++] = row;
        }
    }
    return failed_count;
}

ALWAYS_INLINE uint32_t read_timestamps(const struct chunk_fields *all, int64_t *out,
                                       uint32_t *failed, bool plain)
{
    const struct chunk_fields fields = *all; /* In registers, whatever is stored to *out. */
    uint32_t failed_count = 0;
    for (uint32_t row = 0; row < fields.count; row++) {
        struct text field = field_at(&fields, row, plain);
        if (UNLIKELY(!timestamp_parse(field, &out[row]))) {
            out[row] = 0;
            failed[failed_count++] = row;
        }
    }
    return failed_count;
}

static bool read_bool(struct text field, uint8_t *out)
{
    bool is_true = field.size == 1 && (field.bytes[0] == '1' || (field.bytes[0] | 32) == 't');
    bool is_false = field.size == 1 && (field.bytes[0] == '0' || (field.bytes[0] | 32) == 'f');
    is_true = is_true || text_equal_ignoring_case(field, TEXT_LITERAL("true"));
    is_false = is_false || text_equal_ignoring_case(field, TEXT_LITERAL("false"));
    *out = is_true;
    return is_true || is_false;
}

static uint32_t read_bools(const struct chunk_fields *fields, uint8_t *out, uint32_t *failed)
{
    uint32_t failed_count = 0;
    for (uint32_t row = 0; row < fields->count; row++) {
        if (UNLIKELY(!read_bool(field_at(fields, row, false), &out[row]))) {
            failed[failed_count++] = row;
        }
    }
    return failed_count;
}

uint32_t chunk_parse_values(const struct chunk_fields *fields, struct column *column,
                            uint32_t *failed)
{
    bool plain = !fields->ends_record && !fields->has_quotes;
    switch (column->type.kind) {
    case TYPE_INT:
        return plain ? read_ints(fields, column->ints, failed, true)
                     : read_ints(fields, column->ints, failed, false);
    case TYPE_DECIMAL:
        return plain ? read_decimals(fields, column->type, column->ints, failed, true)
                     : read_decimals(fields, column->type, column->ints, failed, false);
    case TYPE_DOUBLE:
        return plain ? read_doubles(fields, column->doubles, failed, true)
                     : read_doubles(fields, column->doubles, failed, false);
    case TYPE_DATE:
        return plain ? read_dates(fields, column->ints, failed, true)
                     : read_dates(fields, column->ints, failed, false);
    case TYPE_TIMESTAMP:
        return plain ? read_timestamps(fields, column->ints, failed, true)
                     : read_timestamps(fields, column->ints, failed, false);
    case TYPE_BOOL:
        return read_bools(fields, column->bools, failed);
    default:
        ASSERT(false); /* chunk_scan_create takes no table with others. */
        return 0;
    }
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
