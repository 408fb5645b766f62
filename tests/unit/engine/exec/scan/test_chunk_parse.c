/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunk_parse.c - fields read in blocks are what the careful readers say of each alone.
 *
 * Method: columns of fields that look alike, so that they are read in blocks, and among them one
 * that does not: every length and place of the point, every byte in every place. Then columns of
 * fields drawn from all looks at once. The column is the first, the middle or the last of its
 * records, with LF or CRLF, and the chunk is in a block of exactly its size, so that the sanitizers
 * see a byte too many. The model is the slow half of the readers in base/, field by field.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/calendar.h"
#include "engine/base/number.h"
#include "engine/base/random.h"
#include "unit/engine/data/csv_whole.h"
#include "engine/exec/scan/chunk_parse.h"

enum { ROWS_MAX = 2048, FIELD_MAX = 48, CHUNK_MAX = ROWS_MAX * (FIELD_MAX + 16) };

static const struct type types[] = {
    {.kind = TYPE_INT},
    {.kind = TYPE_DECIMAL, .precision = 6, .scale = 3},
    {.kind = TYPE_DECIMAL, .precision = 18, .scale = 3},
    {.kind = TYPE_DECIMAL, .precision = 7, .scale = 0},
    {.kind = TYPE_DECIMAL, .precision = 18, .scale = 18},
    {.kind = TYPE_DOUBLE},
    {.kind = TYPE_TIMESTAMP},
    {.kind = TYPE_DATE},
};

/* Where the column stands in its records, and how these end. */
struct field_place {
    uint32_t column;
    uint32_t column_count;
    bool has_cr;
};

static const struct field_place places[] = {
    {0, 1, false}, {0, 1, true}, {0, 2, false}, {1, 2, false}, {1, 2, true}, {1, 3, false},
};

enum { TYPES = sizeof types / sizeof types[0], PLACES = sizeof places / sizeof places[0] };

/* The fields of a column. */
struct parse_sample {
    char bytes[ROWS_MAX][FIELD_MAX];
    uint32_t sizes[ROWS_MAX];
    uint32_t count;
};

static struct parse_sample sample;

static void sample_add(const char *bytes, size_t size)
{
    assert_true(sample.count < ROWS_MAX);
    assert_true(size <= FIELD_MAX);
    memcpy(sample.bytes[sample.count], bytes, size);
    sample.sizes[sample.count++] = (uint32_t)size;
}

static bool model_read(struct text field, struct type type, int64_t *out)
{
    *out = 0;
    if (field.size == 0) return false;
    double number = 0.0;
    switch (type.kind) {
    case TYPE_INT:
        return int_parse_slow(field, out);
    case TYPE_DECIMAL:
        return decimal_parse_slow(field, type.precision, type.scale, out);
    case TYPE_DOUBLE:
        if (!double_parse_slow(field, &number)) return false;
        memcpy(out, &number, sizeof number);
        return true;
    case TYPE_DATE:
        return date_parse(field, out);
    default:
        return timestamp_parse(field, out);
    }
}

/* The records of the sample's fields, in a block of their size that the caller frees. */
static char *write_chunk(struct field_place place, size_t *out_size)
{
    static char chunk[CHUNK_MAX];
    size_t size = 0;
    for (uint32_t row = 0; row < sample.count; row++) {
        for (uint32_t column = 0; column < place.column_count; column++) {
            if (column > 0) chunk[size++] = ',';
            if (column == place.column) {
                memcpy(chunk + size, sample.bytes[row], sample.sizes[row]);
                size += sample.sizes[row];
            } else if (row % 3 > 0) {
                chunk[size++] = '7';
            }
        }
        if (place.has_cr) chunk[size++] = '\r';
        chunk[size++] = '\n';
    }
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, chunk, size);
    *out_size = size;
    return bytes;
}

static void check_sample(struct type type, struct field_place place)
{
    static struct error err;
    static int64_t values[ROWS_MAX];
    static uint32_t failed[ROWS_MAX + 1];
    size_t size = 0;
    char *bytes = write_chunk(place, &size);
    struct csv_index index = {0};
    struct csv_input input = {bytes, size, place.column_count};
    assert_int_equal(csv_index_build(&index, input, &err), STATUS_OK);
    assert_int_equal(index.row_count, sample.count);

    struct arena arena;
    arena_init(&arena, NULL);
    bool memory_failed = false;
    struct chunk_fields fields = {
        .bytes = bytes,
        .positions = index.positions + place.column,
        .stride = index.stride,
        .count = index.row_count,
        .ends_record = place.column + 1 == place.column_count,
        .has_quotes = index.has_quotes,
        .arena = &arena,
        .memory_failed = &memory_failed,
    };
    struct column column = {.type = type};
    if (type.kind == TYPE_DOUBLE) {
        column.doubles = (double *)(void *)values;
    } else {
        column.ints = values;
    }
    uint32_t failed_count = chunk_parse_values(&fields, &column, failed);
    uint32_t next_failed = 0;
    for (uint32_t row = 0; row < sample.count; row++) {
        struct text field =
            csv_field_unquote(chunk_field_raw(&fields, row), &arena, &memory_failed);
        int64_t expected;
        bool is_failed = next_failed < failed_count && failed[next_failed] == row;
        if (model_read(field, type, &expected) == is_failed) {
            fail_msg("row %u, \"%.*s\": %s", row, TEXT_ARGS(field),
                     is_failed ? "is refused" : "is read");
        }
        next_failed += is_failed;
        if (values[row] != expected) {
            fail_msg("row %u, \"%.*s\": %lld is not %lld", row, TEXT_ARGS(field),
                     (long long)values[row], (long long)expected);
        }
    }
    assert_int_equal(next_failed, failed_count);
    assert_false(memory_failed);
    arena_done(&arena);
    csv_index_done(&index);
    free(bytes);
}

/* Some rows of one look, the odd one, and again: in every place of a block as rows go by. */
static void sample_put_odd(const char *usual, const char *odd, size_t odd_size)
{
    enum { BEFORE = 19, AFTER = 14 };
    for (int row = 0; row < BEFORE; row++) {
        sample_add(usual, strlen(usual));
    }
    sample_add(odd, odd_size);
    for (int row = 0; row < AFTER; row++) {
        sample_add(usual, strlen(usual));
    }
}

static void check_if_full(struct type type, struct field_place place)
{
    if (sample.count + 40 <= ROWS_MAX) return;
    check_sample(type, place);
    sample.count = 0;
}

static const char *const looks[] = {
    "7",
    "1234567",
    "98765432",
    "123456789",
    "9876543210987654",
    "12345678901234567",
    "3.5",
    "3.55",
    "12345.67",
    "0.123456",
    "12.",
    ".5",
    "10764.0",
    "12345678.0",
    "123456789.0",
    "1.00",
    "1.5",
    "-5",
    "-12.25",
    "-123456789",
    "+3",
    "",
};

enum { LOOKS = sizeof looks / sizeof looks[0] };

/* Digits of every length, with the point in every place or none, with and without a minus. */
static void every_length_and_point_is_read_among_every_look(void **state)
{
    (void)state;
    for (size_t type = 0; type < TYPES; type++) {
        for (size_t look = 0; look < LOOKS; look++) {
            struct field_place place = places[(type + look) % PLACES];
            sample.count = 0;
            for (uint32_t number = 0; number < 21 * 22 * 4; number++) {
                char odd[FIELD_MAX] = "-";
                uint32_t digits = number / 4 / 22;
                uint32_t point = number / 4 % 22; /* Beyond the digits: none. */
                if (point > digits + 1) continue;
                size_t size = number % 2;
                for (uint32_t digit = 0; digit < digits; digit++) {
                    if (digit == point) odd[size++] = '.';
                    odd[size++] = number / 2 % 2 > 0 ? '0' : (char)('1' + digit % 9);
                }
                if (point == digits) odd[size++] = '.';
                sample_put_odd(looks[look], odd, size);
                check_if_full(types[type], place);
            }
            check_sample(types[type], place);
        }
    }
}

/* A field of that look in which one byte is another. */
static void every_byte_in_every_place_is_read_among_its_like(void **state)
{
    (void)state;
    static const char *const times[] = {"2024-02-29 12:34:56", "1999-12-31T23:59:59"};
    for (size_t type = 0; type < TYPES; type++) {
        for (size_t look = 0; look < LOOKS + 2; look++) {
            const char *usual = look < LOOKS ? looks[look] : times[look - LOOKS];
            size_t size = strlen(usual);
            struct field_place place = places[(type + look) % PLACES];
            sample.count = 0;
            for (size_t at = 0; at < size; at++) {
                for (int byte = 0; byte < 256; byte++) {
                    if (byte == ',' || byte == '\n' || byte == '"') continue;
                    char odd[FIELD_MAX];
                    memcpy(odd, usual, size);
                    odd[at] = (char)byte;
                    sample_put_odd(usual, odd, size);
                    check_if_full(types[type], place);
                }
            }
            check_sample(types[type], place);
        }
    }
}

/* Before the first date is read there is no last one, not even one of zero bytes. */
static void a_date_of_zero_bytes_is_none(void **state)
{
    (void)state;
    static const char odd[20] = "\0\0\0\0\0\0\0\0\0\0\0"
                                "12:34:56";
    for (size_t place = 0; place < PLACES; place++) {
        sample.count = 0;
        for (int row = 0; row < 64; row++) {
            sample_add(odd, 19);
        }
        check_sample(TYPE(TIMESTAMP), places[place]);
    }
}

/* Anything that a column may hold, from a handful of looks. */
static void put_random_field(struct random *random, uint32_t look)
{
    char field[FIELD_MAX];
    int size = 0;
    uint32_t number = (uint32_t)random_u64(random) >> random_below(random, 32);
    switch (look) {
    case 0:
        size = snprintf(field, sizeof field, "%u", number);
        break;
    case 1:
        size = snprintf(field, sizeof field, "%u.0", number);
        break;
    case 2:
        size = snprintf(field, sizeof field, "%u.%u", number % 10000, number % 7);
        break;
    case 3:
        size = snprintf(field, sizeof field, "%u.%02u", number % 1000, number % 100);
        break;
    case 4:
        size = snprintf(field, sizeof field, "-%u.%03u", number % 1000, number % 1000);
        break;
    case 5:
        size = snprintf(field, sizeof field, "%llu",
                        (unsigned long long)(random_u64(random) >> random_below(random, 40)));
        break;
    case 6:
        size = snprintf(field, sizeof field, "20%02u-%02u-%02u%c%02u:%02u:%02u", number % 3,
                        1 + number % 2, 27 + number % 5, number % 9 > 0 ? ' ' : 'T', number % 26,
                        number % 61, number / 61 % 61);
        break;
    case 7:
        size = snprintf(field, sizeof field, "2024-02-29 12:34:56.%u", number % 1000);
        break;
    case 8:
        size = snprintf(field, sizeof field, "\"%u\"", number);
        break;
    default:
        break;
    }
    sample_add(field, (size_t)size);
}

static void mixed_columns_are_read_as_field_by_field(void **state)
{
    (void)state;
    enum { ROUNDS = 300, RANDOM_LOOKS = 10 };
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct random random = {seed};
        uint32_t looks_used = 1 + random_below(&random, 3);
        uint32_t used[3];
        for (uint32_t i = 0; i < 3; i++) {
            used[i] = random_below(&random, RANDOM_LOOKS);
        }
        uint32_t rarity = 1 + random_below(&random, 60);
        uint32_t rows = 1 + random_below(&random, ROWS_MAX);
        sample.count = 0;
        while (sample.count < rows) {
            bool is_usual = random_below(&random, rarity) > 0;
            put_random_field(&random, used[is_usual ? 0 : random_below(&random, looks_used)]);
        }
        for (size_t type = 0; type < TYPES; type++) {
            check_sample(types[type], places[random_below(&random, PLACES)]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_and_point_is_read_among_every_look),
        cmocka_unit_test(every_byte_in_every_place_is_read_among_its_like),
        cmocka_unit_test(a_date_of_zero_bytes_is_none),
        cmocka_unit_test(mixed_columns_are_read_as_field_by_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
