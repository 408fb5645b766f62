/* SPDX-License-Identifier: Apache-2.0 */
/* calendar.h - DATE and TIMESTAMP as integers that are packed calendar fields.
 *
 *     DATE      = year << 9 | month << 5 | day
 *     TIMESTAMP = DATE << 37 | hour << 32 | minute << 26 | second << 20 | microsecond
 *
 * They order as time does, fields cost a shift, and reading and printing need no arithmetic on
 * days. The calendar is Gregorian throughout, years 1 to 9999, without zones or leap seconds.
 * Functions that take a DATE or a TIMESTAMP expect a valid one.
 *
 * Readers take the whole text or return false and leave *out alone. Printers do not terminate.
 */
#ifndef ENGINE_BASE_CALENDAR_H
#define ENGINE_BASE_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

enum {
    DATE_TEXT_SIZE = 10,
    TIMESTAMP_SECONDS_SIZE = 19, /* Without a fraction. */
    TIMESTAMP_TEXT_SIZE = 26,
    CALENDAR_YEAR_MAX = 9999
};

/* date_format writes at most this for a format of so many bytes: two become up to six. */
#define DATE_FORMAT_SIZE(format_size) ((size_t)(format_size)*3)

static inline int64_t date_pack(uint32_t year, uint32_t month, uint32_t day)
{
    return (int64_t)(year << 9 | month << 5 | day);
}

static inline uint32_t calendar_year(int64_t date)
{
    return (uint32_t)(date >> 9);
}

static inline uint32_t calendar_month(int64_t date)
{
    return (uint32_t)(date >> 5) & 15;
}

static inline uint32_t calendar_day(int64_t date)
{
    return (uint32_t)date & 31;
}

/* Midnight, when the day begins. */
static inline int64_t timestamp_of_date(int64_t date)
{
    return (int64_t)((uint64_t)date << 37);
}

static inline int64_t timestamp_date(int64_t timestamp)
{
    return timestamp >> 37;
}

static inline uint32_t timestamp_hour(int64_t timestamp)
{
    return (uint32_t)(timestamp >> 32) & 31;
}

static inline uint32_t timestamp_minute(int64_t timestamp)
{
    return (uint32_t)(timestamp >> 26) & 63;
}

static inline uint32_t timestamp_second(int64_t timestamp)
{
    return (uint32_t)(timestamp >> 20) & 63;
}

static inline uint32_t timestamp_microsecond(int64_t timestamp)
{
    return (uint32_t)timestamp & 0xfffff;
}

/* The eight bytes HH:MM:SS as the lower part of a TIMESTAMP. What is not a time of day sets some of
 * these bits in *excess, which are never cleared. */
#define CLOCK_EXCESS 0x8080808080808080u

ALWAYS_INLINE int64_t clock_read(const char *bytes, uint64_t *excess)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    /* "00:00:00": what is left must be at most 9 (5, 2) or 0 where a colon stands. Adding 127 less
     * that carries a larger byte into its high bit; one that had it already is refused as such. */
    word ^= 0x30303a30303a3030u;
    *excess |= word | (word + 0x767a7f767a7f767du);
    uint64_t pairs = word * 10 + (word >> 8);
    uint64_t hour = pairs & 0xff;
    *excess |= hour + (127 - 23);
    return (int64_t)(hour << 32 | (pairs >> 24 & 0xff) << 26 | (pairs >> 48 & 0xff) << 20);
}

uint32_t calendar_days_in_month(uint32_t year, uint32_t month);

/* YYYY-MM-DD */
bool date_parse(struct text text, int64_t *out);
/* YYYY-MM-DD HH:MM:SS[.f], with a space or a T between, and 1 to 6 digits f. */
bool timestamp_parse(struct text text, int64_t *out);
size_t date_print(char *out, int64_t date);
/* With a space, and with a fraction only if there is one, without its final zeros. */
size_t timestamp_print(char *out, int64_t timestamp);

/* Whether every % is followed by one of Y m d H M S f y j %. */
bool date_format_check(struct text format);
/* As strftime. Returns the size of the whole text, of which at most `capacity` bytes are written;
 * SIZE_MAX when the format is none. */
size_t date_format(char *out, size_t capacity, struct text format, int64_t timestamp);

/* What of a TIMESTAMP a format shows: (t & mask) | fill is a TIMESTAMP that gives the same text as
 * t, and is the same for all that give this text. False: the format has %y or %j, but not %Y; or it
 * is none. */
bool date_format_fields(struct text format, int64_t *out_mask, int64_t *out_fill);

#endif
