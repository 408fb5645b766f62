/* SPDX-License-Identifier: Apache-2.0 */
/* calendar.c - dates read eight bytes at a time.
 *
 * YYYY-MM-DD and HH:MM:SS have fixed places, so that one exclusive-or with the pattern leaves
 * digits and zeros, and one addition checks all eight bytes at once: arithmetic on the bytes of a
 * word (Lamport, "Multiple Byte Processing with Full-Word Instructions", CACM 18(8), 1975).
 */
#include "engine/base/calendar.h"

#include "engine/base/assert.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "text is read in words, lowest first");

enum { CLOCK_AT = 11, CLOCK_END = TIMESTAMP_SECONDS_SIZE, FRACTION_DIGITS_MAX = 6 };

#define HIGH_BITS 0x8080808080808080u

static uint64_t load_word(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* The two digits whose values are in bytes `index` and `index + 1` of the word. */
static uint32_t pair_at(uint64_t word, uint32_t index)
{
    uint32_t bytes = (uint32_t)(word >> 8 * index);
    return (bytes & 0xff) * 10 + (bytes >> 8 & 0xff);
}

static bool is_leap(uint32_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

uint32_t calendar_days_in_month(uint32_t year, uint32_t month)
{
    static const uint8_t days[16] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month == 2 && is_leap(year)) return 29;
    return days[month & 15];
}

/* The 10 bytes of a date. */
static bool read_date(const char *bytes, int64_t *out)
{
    /* "0000-00-" and "-00": what is left must be at most 9, or 0 where a dash stands. Adding 0x76
     * (0x7f) carries a larger byte into its high bit; one that had it already is refused as such.
     */
    uint64_t word = load_word(bytes) ^ 0x2d30302d30303030u;
    uint64_t above = word + 0x7f76767f76767676u;
    uint32_t day_tens = (unsigned char)bytes[8] - (uint32_t)'0';
    uint32_t day_ones = (unsigned char)bytes[9] - (uint32_t)'0';
    if (((word | above) & HIGH_BITS) != 0) return false;
    if ((day_tens > 9) | (day_ones > 9)) return false;

    uint32_t year = pair_at(word, 0) * 100 + pair_at(word, 2);
    uint32_t month = pair_at(word, 5);
    uint32_t day = day_tens * 10 + day_ones;
    if ((year == 0) | (month - 1 > 11) | (day == 0)) return false;
    if (day > 28 && day > calendar_days_in_month(year, month)) return false;
    *out = date_pack(year, month, day);
    return true;
}

bool date_parse(struct text text, int64_t *out)
{
    return text.size == DATE_TEXT_SIZE && read_date(text.bytes, out);
}

/* Digits after the point, as microseconds. */
static bool read_fraction(const char *bytes, uint32_t size, uint32_t *out)
{
    if (size == 0 || size > FRACTION_DIGITS_MAX) return false;
    uint32_t value = 0;
    for (uint32_t at = 0; at < FRACTION_DIGITS_MAX; at++) {
        uint32_t digit = at < size ? (unsigned char)bytes[at] - (uint32_t)'0' : 0;
        if (digit > 9) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool timestamp_parse(struct text text, int64_t *out)
{
    const char *bytes = text.bytes;
    if (text.size < CLOCK_END) return false;
    int64_t date;
    if (!read_date(bytes, &date)) return false;
    if (bytes[CLOCK_AT - 1] != ' ' && bytes[CLOCK_AT - 1] != 'T') return false;

    uint64_t excess = 0;
    int64_t clock = clock_read(bytes + CLOCK_AT, &excess);
    if ((excess & CLOCK_EXCESS) != 0) return false;

    uint32_t microsecond = 0;
    if (text.size > CLOCK_END) {
        if (bytes[CLOCK_END] != '.') return false;
        if (!read_fraction(bytes + CLOCK_END + 1, text.size - CLOCK_END - 1, &microsecond)) {
            return false;
        }
    }
    *out = timestamp_of_date(date) | clock | (int64_t)microsecond;
    return true;
}

/* Exactly `count` digits. */
static char *put_digits(char *out, uint32_t value, uint32_t count)
{
    for (uint32_t at = count; at > 0; at--) {
        out[at - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

size_t date_print(char *out, int64_t date)
{
    out = put_digits(out, calendar_year(date), 4);
    *out++ = '-';
    out = put_digits(out, calendar_month(date), 2);
    *out++ = '-';
    (void)put_digits(out, calendar_day(date), 2);
    return DATE_TEXT_SIZE;
}

size_t timestamp_print(char *out, int64_t timestamp)
{
    char *end = out + date_print(out, timestamp_date(timestamp));
    *end++ = ' ';
    end = put_digits(end, timestamp_hour(timestamp), 2);
    *end++ = ':';
    end = put_digits(end, timestamp_minute(timestamp), 2);
    *end++ = ':';
    end = put_digits(end, timestamp_second(timestamp), 2);
    if (timestamp_microsecond(timestamp) != 0) {
        *end++ = '.';
        end = put_digits(end, timestamp_microsecond(timestamp), FRACTION_DIGITS_MAX);
        while (end[-1] == '0') {
            end--;
        }
    }
    return (size_t)(end - out);
}

/* 1 is January 1st. A year that begins in March has its leap day at the end, where it moves no
 * month; the months before it are then a straight line (Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms", days_from_civil). */
static uint32_t day_of_year(int64_t date)
{
    uint32_t month = calendar_month(date);
    if (month < 3) return (month - 1) * 31 + calendar_day(date);
    return 59 + is_leap(calendar_year(date)) + (153 * (month - 3) + 2) / 5 + calendar_day(date);
}

/* What stands for %specifier; its size, or 0 for one that does not exist. */
static size_t format_field(char *out, char specifier, int64_t timestamp)
{
    int64_t date = timestamp_date(timestamp);
    char *end = out;
    switch (specifier) {
    case 'Y':
        end = put_digits(out, calendar_year(date), 4);
        break;
    case 'y':
        end = put_digits(out, calendar_year(date) % 100, 2);
        break;
    case 'm':
        end = put_digits(out, calendar_month(date), 2);
        break;
    case 'd':
        end = put_digits(out, calendar_day(date), 2);
        break;
    case 'j':
        end = put_digits(out, day_of_year(date), 3);
        break;
    case 'H':
        end = put_digits(out, timestamp_hour(timestamp), 2);
        break;
    case 'M':
        end = put_digits(out, timestamp_minute(timestamp), 2);
        break;
    case 'S':
        end = put_digits(out, timestamp_second(timestamp), 2);
        break;
    case 'f':
        end = put_digits(out, timestamp_microsecond(timestamp), FRACTION_DIGITS_MAX);
        break;
    case '%':
        *end++ = '%';
        break;
    default:
        break;
    }
    return (size_t)(end - out);
}

size_t date_format(char *out, size_t capacity, struct text format, int64_t timestamp)
{
    size_t size = 0;
    for (uint32_t at = 0; at < format.size; at++) {
        char field[8] = {format.bytes[at]};
        size_t field_size = 1;
        if (format.bytes[at] == '%') {
            at++;
            if (at == format.size) return SIZE_MAX;
            field_size = format_field(field, format.bytes[at], timestamp);
            if (field_size == 0) return SIZE_MAX;
        }
        for (size_t byte = 0; byte < field_size; byte++, size++) {
            if (size < capacity) out[size] = field[byte];
        }
    }
    return size;
}

/* Every field has a fixed width, so a text tells all fields that it shows. Years that are not shown
 * are leap years, and months have 31 days: any day is one then. */
bool date_format_fields(struct text format, int64_t *out_mask, int64_t *out_fill)
{
    enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MICROSECOND, FIELD_COUNT };
    static const char letters[] = "YmdHMSf";
    static const uint32_t starts[] = {46, 42, 37, 32, 26, 20, 0}; /* Its lowest bit. */
    bool shown[FIELD_COUNT] = {false};
    bool rests_on_year = false;
    if (!date_format_check(format)) return false;
    for (uint32_t at = 0; at < format.size; at++) {
        if (format.bytes[at] != '%') continue;
        char letter = format.bytes[++at];
        for (uint32_t field = 0; field < FIELD_COUNT; field++) {
            shown[field] = shown[field] || letters[field] == letter;
        }
        rests_on_year = rests_on_year || letter == 'y' || letter == 'j';
        if (letter == 'j') shown[MONTH] = shown[DAY] = true;
    }
    if (rests_on_year && !shown[YEAR]) return false;
    int64_t mask = 0;
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        uint32_t end = field == YEAR ? 63 : starts[field - 1];
        if (!shown[field]) continue;
        mask |= (int64_t)((UINT64_C(1) << end) - (UINT64_C(1) << starts[field]));
    }
    enum { LEAP_YEAR = 4 };
    int64_t date = date_pack(shown[YEAR] ? 0 : LEAP_YEAR, shown[MONTH] ? 0 : 1, shown[DAY] ? 0 : 1);
    *out_mask = mask;
    *out_fill = timestamp_of_date(date);
    return true;
}

bool date_format_check(struct text format)
{
    return date_format(NULL, 0, format, timestamp_of_date(date_pack(1970, 1, 1))) != SIZE_MAX;
}
