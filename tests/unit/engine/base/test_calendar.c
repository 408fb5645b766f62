/* SPDX-License-Identifier: Apache-2.0 */
/* test_calendar.c - dates and timestamps are read, printed, ordered and counted as the calendar is.
 *
 * Method: a walk over every day of all 9999 years, with a naive calendar alongside, checks packing,
 * order, days, week and year. Reading is checked by putting every byte at every place of valid
 * texts.
 */
#include "unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/calendar.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"

static bool naive_leap(int year)
{
    if (year % 400 == 0) return true;
    if (year % 100 == 0) return false;
    return year % 4 == 0;
}

static int naive_days(int year, int month)
{
    if (month == 2) return naive_leap(year) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static void every_day_has_its_place_in_the_year(void **state)
{
    (void)state;
    int64_t previous = 0;
    for (int year = 1; year <= CALENDAR_YEAR_MAX; year++) {
        int day_of_year = 1;
        for (int month = 1; month <= 12; month++) {
            for (int day = 1; day <= naive_days(year, month); day++) {
                int64_t date = date_pack((uint32_t)year, (uint32_t)month, (uint32_t)day);
                char text[3];
                assert_true(date > previous);
                assert_true(date_format(text, sizeof text, TEXT_LITERAL("%j"),
                                        timestamp_of_date(date)) == sizeof text);
                int seen = (text[0] - '0') * 100 + (text[1] - '0') * 10 + text[2] - '0';
                assert_true(seen == day_of_year);
                previous = date;
                day_of_year++;
            }
        }
    }
}

static void every_date_is_printed_and_read_and_no_other(void **state)
{
    (void)state;
    for (int year = 0; year <= CALENDAR_YEAR_MAX; year += year < 2100 ? 1 : 97) {
        for (int month = 0; month <= 13; month++) {
            for (int day = 0; day <= 32; day++) {
                char text[32];
                int size = snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                bool valid = year >= 1 && month >= 1 && month <= 12 && day >= 1 &&
                             day <= naive_days(year, month);
                int64_t date = 42;
                assert_int_equal(date_parse((struct text){text, (uint32_t)size}, &date), valid);
                if (!valid) {
                    assert_int_equal(date, 42);
                    continue;
                }
                assert_int_equal(calendar_year(date), year);
                assert_int_equal(calendar_month(date), month);
                assert_int_equal(calendar_day(date), day);
                char again[DATE_TEXT_SIZE];
                assert_int_equal(date_print(again, date), DATE_TEXT_SIZE);
                assert_memory_equal(again, text, DATE_TEXT_SIZE);
            }
        }
    }
}

/* The rule again, byte by byte. */
static bool naive_shape(const char *text, uint32_t size, const char *shape)
{
    if (size != strlen(shape)) return false;
    for (uint32_t i = 0; i < size; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (shape[i] == '0' ? !digit : text[i] != shape[i]) return false;
    }
    return true;
}

static int naive_number(const char *text, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        value = value * 10 + text[i] - '0';
    }
    return value;
}

static bool naive_date(const char *text, uint32_t size)
{
    if (!naive_shape(text, size, "0000-00-00")) return false;
    int year = naive_number(text, 4), month = naive_number(text + 5, 2);
    int day = naive_number(text + 8, 2);
    return year > 0 && month > 0 && month < 13 && day > 0 && day <= naive_days(year, month);
}

static bool naive_timestamp(const char *text, uint32_t size)
{
    char shape[] = "00:00:00.000000";
    if (size < 19 || size == 20 || size > 26) return false;
    shape[size - 11] = '\0';
    if (!naive_date(text, 10) || (text[10] != ' ' && text[10] != 'T')) return false;
    if (!naive_shape(text + 11, size - 11, shape)) return false;
    return naive_number(text + 11, 2) < 24 && naive_number(text + 14, 2) < 60 &&
           naive_number(text + 17, 2) < 60;
}

/* In a block of exactly its size. */
static void check_validity(const char *text, uint32_t size)
{
    char *copy = memory_alloc(NULL, size == 0 ? 1 : size);
    assert_non_null(copy);
    if (size > 0) memcpy(copy, text, size);
    int64_t value;
    assert_int_equal(date_parse((struct text){copy, size}, &value), naive_date(text, size));
    assert_int_equal(timestamp_parse((struct text){copy, size}, &value),
                     naive_timestamp(text, size));
    memory_free(NULL, copy, size == 0 ? 1 : size);
}

static void one_wrong_byte_anywhere_is_refused(void **state)
{
    (void)state;
    static const char valid[] = "2024-02-29 23:59:59.123456";
    enum { SIZE = sizeof valid - 1 };
    for (uint32_t size = 0; size <= SIZE; size++) {
        check_validity(valid, size);
        for (uint32_t place = 0; place < size; place++) {
            for (int byte = 0; byte < 256; byte++) {
                char text[SIZE];
                memcpy(text, valid, SIZE);
                text[place] = (char)byte;
                check_validity(text, size);
            }
        }
    }
    check_validity("2024-02-29 23:59:59.1234567", 27);
}

static void timestamps_are_read_printed_and_ordered(void **state)
{
    (void)state;
    struct random random = {.state = 1};
    char previous_text[TIMESTAMP_TEXT_SIZE + 8] = "0001-01-01 00:00:00.000000";
    int64_t previous = timestamp_of_date(date_pack(1, 1, 1));
    for (int round = 0; round < 50000; round++) {
        int year = (int)random_below(&random, 9999) + 1, month = (int)random_below(&random, 12) + 1;
        int day = (int)random_below(&random, 28) + 1;
        int hour = (int)random_below(&random, 24), minute = (int)random_below(&random, 60);
        int second = (int)random_below(&random, 60);
        int microsecond = (int)random_below(&random, 1000000);
        if (random_below(&random, 2) == 0) microsecond = microsecond / 1000 * 1000;
        if (random_below(&random, 4) == 0) microsecond = 0;
        char text[64];
        int size = snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d:%02d.%06d", year, month,
                            day, hour, minute, second, microsecond);
        assert_int_equal(size, TIMESTAMP_TEXT_SIZE);
        int64_t timestamp = 0;
        assert_true(timestamp_parse((struct text){text, (uint32_t)size}, &timestamp));
        assert_true(timestamp_date(timestamp) ==
                    date_pack((uint32_t)year, (uint32_t)month, (uint32_t)day));
        assert_int_equal(timestamp_hour(timestamp), hour);
        assert_int_equal(timestamp_minute(timestamp), minute);
        assert_int_equal(timestamp_second(timestamp), second);
        assert_int_equal(timestamp_microsecond(timestamp), microsecond);
        int order = strcmp(text, previous_text);
        assert_int_equal((timestamp > previous) - (timestamp < previous),
                         (order > 0) - (order < 0));
        memcpy(previous_text, text, (size_t)size + 1);
        previous = timestamp;

        while (size > 19 && (text[size - 1] == '0' || text[size - 1] == '.')) {
            size--;
        }
        char again[TIMESTAMP_TEXT_SIZE];
        assert_int_equal(timestamp_print(again, timestamp), size);
        assert_memory_equal(again, text, (size_t)size);
        int64_t back = 0;
        again[10] = 'T';
        assert_true(timestamp_parse((struct text){again, (uint32_t)size}, &back));
        assert_true(back == timestamp);
    }
}

static void check_format(const char *format, const char *expected)
{
    int64_t timestamp;
    assert_true(timestamp_parse(TEXT_LITERAL("2024-03-01 06:07:08.00012"), &timestamp));
    char text[64] = {0};
    assert_int_equal(date_format(text, sizeof text, text_of(format), timestamp), strlen(expected));
    assert_string_equal(text, expected);
    assert_true(date_format_check(text_of(format)));
    assert_true(strlen(expected) <= DATE_FORMAT_SIZE(strlen(format)));

    /* Too little room cuts, and says how much it would have been. */
    char little[4] = "####";
    assert_int_equal(date_format(little, 3, text_of(format), timestamp), strlen(expected));
    size_t kept = strlen(expected) < 3 ? strlen(expected) : 3;
    assert_memory_equal(little, expected, kept);
    assert_int_equal(little[3], '#');
}

static void formats_are_filled_in(void **state)
{
    (void)state;
    check_format("", "");
    check_format("plain", "plain");
    check_format("%Y-%m-%d %H:%M:%S.%f", "2024-03-01 06:07:08.000120");
    check_format("%y%j", "24061");
    check_format("100%% of %Y", "100% of 2024");
    check_format("%Y-H", "2024-H");
    check_format("%f%f", "000120000120");
}

static void unknown_specifiers_are_refused(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char format[] = {'%', 'Y', '%', (char)byte};
        bool known = byte != 0 && strchr("YmdHMSfyj%", byte) != NULL;
        char text[64];
        size_t size = date_format(text, sizeof text, (struct text){format, 4}, 0);
        assert_int_equal(size != SIZE_MAX, known);
        assert_int_equal(date_format_check((struct text){format, 4}), known);
    }
    assert_false(date_format_check(TEXT_LITERAL("%")));
    assert_false(date_format_check(TEXT_LITERAL("%Y%")));
    assert_true(date_format_check(TEXT_LITERAL("%%")));
}

/* A timestamp's key: the text stays, and texts are the same where keys are. */
static void keys_are_the_same_where_texts_are(void **state)
{
    (void)state;
    static const char letters[] = "YmdHMSfyj";
    static const char *const moments[] = {
        "0001-01-01 00:00:00",        "2023-12-31 23:59:59.999999", "2024-01-31 00:00:00",
        "2024-02-29 10:00:00",        "2024-02-29 10:00:01",        "2124-02-29 10:00:00.000001",
        "2024-03-01 10:20:00.000001", "2025-03-01 10:20:00.5",      "9999-12-31 23:59:59.999999",
    };
    enum { LETTERS = sizeof letters - 1, MOMENTS = sizeof moments / sizeof moments[0] };
    for (uint32_t chosen = 0; chosen < 1u << LETTERS; chosen++) {
        char bytes[64] = "%%";
        for (uint32_t i = 0; i < LETTERS; i++) {
            char part[] = {'.', '%', letters[i], '\0'};
            if ((chosen >> i & 1) != 0) strcat(bytes, part);
        }
        struct text format = text_of(bytes);
        int64_t mask = 0;
        int64_t fill = 0;
        bool has_year = (chosen & 1) != 0;
        bool needs_year = chosen >> (LETTERS - 2) != 0;
        assert_int_equal(date_format_fields(format, &mask, &fill), has_year || !needs_year);
        if (needs_year && !has_year) continue;
        char texts[MOMENTS][64];
        int64_t keys[MOMENTS];
        for (uint32_t i = 0; i < MOMENTS; i++) {
            int64_t moment = 0;
            int64_t again = 0;
            char printed[TIMESTAMP_TEXT_SIZE];
            char text[64];
            assert_true(timestamp_parse(text_of(moments[i]), &moment));
            keys[i] = (moment & mask) | fill;
            texts[i][date_format(texts[i], 63, format, moment)] = '\0';
            text[date_format(text, 63, format, keys[i])] = '\0';
            assert_string_equal(text, texts[i]);
            size_t size = timestamp_print(printed, keys[i]);
            assert_true(timestamp_parse((struct text){printed, (uint32_t)size}, &again));
            assert_int_equal(again, keys[i]);
            for (uint32_t j = 0; j < i; j++) {
                assert_int_equal(keys[i] == keys[j], strcmp(texts[i], texts[j]) == 0);
            }
        }
    }
    int64_t unused = 0;
    assert_false(date_format_fields(TEXT_LITERAL("%Q"), &unused, &unused));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_has_its_place_in_the_year),
        cmocka_unit_test(every_date_is_printed_and_read_and_no_other),
        cmocka_unit_test(one_wrong_byte_anywhere_is_refused),
        cmocka_unit_test(timestamps_are_read_printed_and_ordered),
        cmocka_unit_test(formats_are_filled_in),
        cmocka_unit_test(unknown_specifiers_are_refused),
        cmocka_unit_test(keys_are_the_same_where_texts_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
