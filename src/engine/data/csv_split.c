/* SPDX-License-Identifier: Apache-2.0 */
/* csv_split.c - states over long runs of bytes.
 *
 * Up to the first quote, only the last byte matters, and finding a quote is what memchr is best at.
 * From there on the kernels follow the quotes, 64 bytes at a time.
 */
#include "engine/data/csv_split.h"

#include <string.h>

#include "engine/data/csv_kernel.h"

/* After `size` > 0 bytes, none of which is a quote. */
static enum csv_state advance_without_quotes(enum csv_state state, const char *bytes, size_t size)
{
    if (state == CSV_QUOTED) return CSV_QUOTED;
    switch (bytes[size - 1]) {
    case '\n':
        return CSV_RECORD_START;
    case ',':
        return CSV_FIELD_START;
    default:
        return CSV_UNQUOTED;
    }
}

enum csv_state csv_advance(enum csv_state state, const char *bytes, size_t size)
{
    if (size == 0) return state;
    const char *quote = memchr(bytes, '"', size);
    if (quote == NULL) return advance_without_quotes(state, bytes, size);

    size_t skipped = (size_t)(quote - bytes);
    if (skipped > 0) state = advance_without_quotes(state, bytes, skipped);
    return csv_kernel_get()->advance(state, quote, size - skipped);
}

size_t csv_record_end(enum csv_state *state, const char *bytes, size_t size)
{
    return csv_kernel_get()->record_end(state, bytes, size);
}

uint64_t csv_count_lines(const char *bytes, size_t size)
{
    return csv_kernel_get()->count_lines(bytes, size);
}
