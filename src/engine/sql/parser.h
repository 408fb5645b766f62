/* SPDX-License-Identifier: Apache-2.0 */
/* parser.h - SQL text to the tree of ast.h.
 *
 * What millrace does not accept is refused here when it can be told by its form, with the place and
 * what to write instead. Names and types are the binder's business.
 *
 * Memory: the tree lives in the arena; the source is borrowed and must outlive it. Failure:
 * STATUS_SQL, or STATUS_MEMORY when the arena is full. Limits: below. A tree is never higher than
 * SQL_DEPTH_MAX, so that a walk over it may recurse.
 */
#ifndef ENGINE_SQL_PARSER_H
#define ENGINE_SQL_PARSER_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/sql/ast.h"
#include "engine/sql/diagnostic.h"

enum {
    SQL_DEPTH_MAX = 200,
    SQL_SOURCE_BYTES_MAX = 4 << 20,
    SQL_STATEMENTS_MAX = 1000 /* Tables, and parameters, of one file. */
};

MUST_USE status sql_parse(const struct sql_source *source, struct arena *arena,
                          struct ast_script **out_script, struct error *err);

#endif
