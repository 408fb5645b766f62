/* SPDX-License-Identifier: Apache-2.0 */
/* eval_context.h - what an evaluation is given beside its batch. */
#ifndef ENGINE_EXEC_EXPR_EVAL_CONTEXT_H
#define ENGINE_EXEC_EXPR_EVAL_CONTEXT_H

#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/plan/expr.h"

struct sentiment_model;

struct eval_context {
    const struct value *scalars; /* By fold id. */
    struct arena *arena;         /* Of the batch: results live here. */
    uint64_t *malformed;         /* Counts lists that pluck could not read; may be NULL. */
    const struct sentiment_model *sentiment; /* Borrowed; NULL: the one in the program. */
    uint64_t stamp;       /* Another one for every batch, for evals that share; 0: they don't. */
    struct arena *shared; /* Where shared values live, as long as the stamp; NULL: `arena`. */
};

#endif
