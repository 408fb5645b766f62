/* SPDX-License-Identifier: Apache-2.0 */
/* csv_guess.h - where a record seems to begin, when what came before is not known.
 *
 * A guess only: it is for a reader that learns the truth later and can start anew (speculative
 * parsing: Mühlbauer et al., "Instant Loading for Main Memory Databases", VLDB 2013). It is wrong
 * where the text within quotes looks more like records than the records do.
 */
#ifndef ENGINE_DATA_CSV_GUESS_H
#define ENGINE_DATA_CSV_GUESS_H

#include <stddef.h>
#include <stdint.h>

/* The offset, at least 1, of the first byte that seems to begin a record of so many columns; `size`
 * when none does. A record may begin at offset 1 if the byte before it, which is bytes[0], is an
 * LF. Threads: a pure function. */
size_t csv_guess_record(const char *bytes, size_t size, uint32_t column_count);

#endif
