/* SPDX-License-Identifier: Apache-2.0 */
/* regexp_needs.h - a prefilter: what every value must have that a regular expression matches, as
 * far as that is quickly checked.
 *
 * A value that lacks it has no match; for others the expression decides. It is found in the pattern
 * alone. Where the pattern has something that is not understood here, nothing is needed.
 *
 * Memory: the struct owns all it has. Read-only once made.
 */
#ifndef ENGINE_EXEC_EXPR_REGEXP_NEEDS_H
#define ENGINE_EXEC_EXPR_REGEXP_NEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/exec/expr/literals.h"
#include "engine/exec/expr/regexp_node.h"

struct regexp_needs {
    uint32_t size_min;
    /* Of the value's first and last bytes, when a match begins or ends there. */
    uint32_t head_count;
    uint32_t tail_count;
    struct byte_set head[NODE_EDGE];
    struct byte_set tail[NODE_EDGE];
    bool ends_with_body; /* A match ends where the value does and has only these bytes. */
    struct byte_set body;
    bool has_literals; /* One of them is in every match. */
    struct literals literals;
};

/* Of a pattern that PCRE2 has accepted as UTF-8, without options that change what it means but
 * `any_case`. */
void regexp_needs_find(struct regexp_needs *out, struct text pattern, bool any_case);
/* False: there is no match. *out_from: none begins before it. */
bool regexp_needs_met(const struct regexp_needs *needs, struct text value, uint32_t *out_from);

#endif
