/* SPDX-License-Identifier: Apache-2.0 */
/* regexp.h - regular expressions over UTF-8 that may be invalid: PCRE2, bounded.
 *
 *     regexp_create -> (regexp_matches | regexp_extract)* -> regexp_destroy
 *
 * Invalid bytes match nothing. The number of steps per value is limited, so that an expression that
 * explodes ends in STATUS_LIMIT. Plain literals with | between don't go through PCRE2 at all, nor
 * do values that lack what every match has.
 *
 * Memory: a regexp owns what it needs; found texts are borrowed from the value.
 * Threads: one owner; matching writes to the regexp.
 */
#ifndef ENGINE_EXEC_EXPR_REGEXP_H
#define ENGINE_EXEC_EXPR_REGEXP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct regexp;

/* Options are letters: i any letter case, c not so, s a point matches newlines too, m n p not so,
 * l the pattern is a literal. STATUS_SQL: bad pattern or option. */
MUST_USE status regexp_create(struct text pattern, struct text options, struct regexp **out,
                              struct error *err);
/* Accepts NULL. */
void regexp_destroy(struct regexp *regexp);

/* How many groups the pattern has, the whole match (number 0) left out. */
uint32_t regexp_group_count(const struct regexp *regexp);
/* Whether the pattern occurs anywhere in the value. */
MUST_USE status regexp_matches(struct regexp *regexp, struct text value, bool *out,
                               struct error *err);
/* The group's text in the first match; empty without a match or when the group took no part. */
MUST_USE status regexp_extract(struct regexp *regexp, struct text value, uint32_t group,
                               struct text *out, struct error *err);

#endif
