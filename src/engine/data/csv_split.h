/* SPDX-License-Identifier: Apache-2.0 */
/* csv_split.h - cutting CSV anywhere: what the bytes so far say about the next one.
 *
 * The grammar, which all csv_* modules share, is RFC 4180 with rules for what that leaves open (LF
 * alone, text behind a closing quote, a quote within a field):
 * - A record ends at an LF outside quotes; a CR directly before it belongs to the line end, any
 *   other CR is data. Fields are separated by commas outside quotes.
 * - A field whose first byte is a quote is quoted. In it, two quotes are one, a single quote closes
 *   it, and all else is data, LF and comma included. Text between the closing quote and the next
 *   separator is data, quotes in it as well.
 * - A quote in a field that does not begin with one is data, as is every other byte value.
 *
 * To cut a file into chunks of whole records, of about `wanted` bytes:
 *
 *     state = csv_advance(CSV_RECORD_START, bytes, wanted);
 *     end = wanted;
 *     if (state != CSV_RECORD_START) end += csv_record_end(&state, bytes + wanted, size - wanted);
 *
 * No function reads beyond `size`. Threads: pure functions.
 */
#ifndef ENGINE_DATA_CSV_SPLIT_H
#define ENGINE_DATA_CSV_SPLIT_H

#include <stddef.h>
#include <stdint.h>

enum csv_state {
    CSV_RECORD_START,
    CSV_FIELD_START, /* Of a field that is not the first of its record. */
    CSV_UNQUOTED,    /* In a field without quotes, or in the text after the closing one. */
    CSV_QUOTED,
    CSV_QUOTE_SEEN, /* In a quoted field, after a quote that closes it unless another follows. */
};

/* The state after these bytes. */
enum csv_state csv_advance(enum csv_state state, const char *bytes, size_t size);

/* The offset just after the LF that ends the record in progress; *state is CSV_RECORD_START then.
 * When it does not end here: `size`, and *state is another one (but with no bytes at all, *state
 * stays as it is). At CSV_RECORD_START the record in progress is the one that begins at offset 0.
 */
size_t csv_record_end(enum csv_state *state, const char *bytes, size_t size);

/* How many LF bytes there are, in quotes or not. */
uint64_t csv_count_lines(const char *bytes, size_t size);

#endif
