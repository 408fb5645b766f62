/* SPDX-License-Identifier: Apache-2.0 */
/* csv_guess.c - the bytes begin within quotes or they do not: whichever makes more of what follows
 * records of the right length, with quotes only where people put them. */
#include "engine/data/csv_guess.h"

#include <stdbool.h>
#include <string.h>

enum { LOOKED_AT = 32 }; /* Records. */

struct look {
    const char *bytes;
    size_t size;
    size_t at;
};

/* What was read of a record. */
struct sight {
    uint32_t field_count; /* 0: it does not end here. */
    bool is_odd;          /* A quote in the midst of a field. */
};

/* Steps behind the quote that ends the text in progress; false: there is none. */
static bool leave_quotes(struct look *look)
{
    while (look->at < look->size) {
        const char *quote = memchr(look->bytes + look->at, '"', look->size - look->at);
        if (quote == NULL) break;
        look->at = (size_t)(quote - look->bytes) + 1;
        if (look->at == look->size || look->bytes[look->at] != '"') return true;
        look->at++;
    }
    return false;
}

/* Whether a field may end here. */
static bool is_at_end(const struct look *look)
{
    if (look->at == look->size) return true;
    char byte = look->bytes[look->at];
    return byte == ',' || byte == '\n' || byte == '\r';
}

/* Reads the record in progress, from the start of a field, or the midst of one. */
static struct sight read_record(struct look *look, bool is_start)
{
    struct sight sight = {.field_count = 1};
    while (look->at < look->size) {
        char byte = look->bytes[look->at++];
        if (byte == '\n') return sight;
        if (byte == '"' && is_start) {
            if (!leave_quotes(look)) break;
            sight.is_odd |= !is_at_end(look);
        } else {
            sight.is_odd |= byte == '"';
        }
        is_start = byte == ',';
        sight.field_count += is_start;
    }
    return (struct sight){0};
}

/* What the bytes are if they begin within quotes, or not. */
struct quote_reading {
    size_t start; /* Of the first record; their size when there is none. */
    uint32_t seen_count;
    uint32_t right_count;
};

static struct quote_reading view_from(bool is_quoted, const char *bytes, size_t size,
                                      uint32_t column_count)
{
    struct quote_reading view = {.start = size};
    struct look look = {bytes, size, 0};
    if (is_quoted && !leave_quotes(&look)) return view;
    bool is_odd = is_quoted && !is_at_end(&look);
    struct sight sight = read_record(&look, false);
    if (sight.field_count == 0) return view;
    view.start = look.at;
    /* Of the first one only the end is seen: it can be wrong, but not right. */
    view.seen_count = is_odd || sight.is_odd;
    while (view.seen_count < LOOKED_AT) {
        sight = read_record(&look, true);
        if (sight.field_count == 0) break;
        view.seen_count++;
        view.right_count += sight.field_count == column_count && !sight.is_odd;
    }
    return view;
}

size_t csv_guess_record(const char *bytes, size_t size, uint32_t column_count)
{
    struct quote_reading outside = view_from(false, bytes, size, column_count);
    struct quote_reading inside = view_from(true, bytes, size, column_count);
    uint64_t outside_right = (uint64_t)outside.right_count * inside.seen_count;
    uint64_t inside_right = (uint64_t)inside.right_count * outside.seen_count;
    if (inside.seen_count == 0) return outside.start;
    if (outside.seen_count == 0) return inside.start;
    return inside_right > outside_right ? inside.start : outside.start;
}
