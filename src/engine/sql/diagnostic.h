/* SPDX-License-Identifier: Apache-2.0 */
/* diagnostic.h - errors that show the place in the SQL text.
 *
 *     q1.sql:3:10: no column `titel` in movies; did you mean `title`?
 *       3 | SELECT m.titel FROM movies m
 *         |          ^
 *
 * Lines and columns count from 1, columns in characters. Nothing is allocated.
 */
#ifndef ENGINE_SQL_DIAGNOSTIC_H
#define ENGINE_SQL_DIAGNOSTIC_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct sql_source {
    struct text text;
    const char *name; /* File name for messages; NULL: "query". */
};

/* Room for what sql_suggest writes about any name. */
enum { SQL_SUGGESTION_SIZE = 96 };

/* Returns STATUS_SQL. The text is cut to fit; control bytes and invalid UTF-8 are shown as '?'.
 * An offset past the end means the end. */
MUST_USE status sql_error(struct error *err, const struct sql_source *source, uint32_t offset,
                          const char *format, ...) PRINTF_LIKE(4, 5);

/* Writes "; did you mean `x`?", or "" when no candidate is near enough; returns `out`. */
const char *sql_suggest(char *out, size_t size, struct text wanted, const struct text *candidates,
                        size_t count);

#endif
