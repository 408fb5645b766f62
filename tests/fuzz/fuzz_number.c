/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_number.c - the readers of numbers agree with the naive rules, and what is printed reads
 * back.
 *
 * The first byte chooses a precision and scale; the rest is the text, and its first eight bytes are
 * also a number to print.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/calendar.h"
#include "engine/base/number.h"
#include "unit/engine/base/number_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_readers(struct text text, uint8_t precision, uint8_t scale)
{
    int64_t seen = 0, expected = 0;
    ASSERT(int_parse(text, &seen) == model_int(text, &expected));
    ASSERT(seen == expected);
    bool valid = model_decimal(text, precision, scale, &expected);
    ASSERT(decimal_parse(text, precision, scale, &seen) == valid);
    ASSERT(!valid || seen == expected);
    double seen_double = 0, expected_double = 0;
    ASSERT(double_parse(text, &seen_double) == model_double(text, &expected_double));
    ASSERT(memcmp(&seen_double, &expected_double, sizeof seen_double) == 0);
}

static void check_calendar(struct text text)
{
    char printed[TIMESTAMP_TEXT_SIZE];
    int64_t value, again = 0;
    if (date_parse(text, &value)) {
        ASSERT(date_print(printed, value) == text.size);
        ASSERT(memcmp(printed, text.bytes, text.size) == 0);
    }
    if (timestamp_parse(text, &value)) {
        struct text back = {printed, (uint32_t)timestamp_print(printed, value)};
        ASSERT(timestamp_parse(back, &again));
        ASSERT(again == value);
    }
    char formatted[64];
    int64_t epoch = timestamp_of_date(date_pack(1970, 1, 1));
    size_t formatted_size = date_format(formatted, sizeof formatted, text, epoch);
    ASSERT((formatted_size != SIZE_MAX) == date_format_check(text));
}

static void check_printers(uint64_t bits, uint8_t scale)
{
    char printed[NUMBER_TEXT_SIZE];
    int64_t value = (int64_t)bits, again = 0;
    struct text text = {printed, (uint32_t)int_print(printed, value)};
    ASSERT(int_parse(text, &again));
    ASSERT(again == value);
    value %= (int64_t)number_powers[DECIMAL_PRECISION_MAX];
    text.size = (uint32_t)decimal_print(printed, value, scale);
    ASSERT(decimal_parse(text, DECIMAL_PRECISION_MAX, scale, &again));
    ASSERT(again == value);
    double number, back = 0;
    memcpy(&number, &bits, sizeof number);
    text.size = (uint32_t)double_print(printed, number);
    ASSERT(text.size <= NUMBER_TEXT_SIZE);
    if (isnan(number) || isinf(number)) return;
    ASSERT(double_parse(text, &back));
    ASSERT(back == number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > MODEL_TEXT_MAX) return 0;
    uint8_t precision = (uint8_t)(1 + data[0] % DECIMAL_PRECISION_MAX);
    uint8_t scale = (uint8_t)(data[0] / DECIMAL_PRECISION_MAX % (precision + 1));
    data++;
    size--;
    struct text text = {(const char *)data, (uint32_t)size};
    check_readers(text, precision, scale);
    check_calendar(text);
    uint64_t bits;
    if (size < sizeof bits) return 0;
    memcpy(&bits, data, sizeof bits);
    check_printers(bits, scale);
    return 0;
}
