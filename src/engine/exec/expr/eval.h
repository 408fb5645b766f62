/* SPDX-License-Identifier: Apache-2.0 */
/* eval.h - expressions computed over batches, a column at a time.
 *
 *     eval_create -> eval_share? -> (eval_run | eval_filter)* -> eval_destroy
 *
 * Only the rows of the selection are computed, and only they can fail: AND, OR, CASE and COALESCE
 * narrow it for their later arguments. Values mean what they mean in DuckDB: three-valued logic,
 * overflow is an error, NaN equals NaN and is greater than everything.
 *
 * Memory: an eval lives in the stage arena, except compiled regular expressions, which
 * eval_destroy frees. The expression is borrowed and must outlive it. Results live in the context's
 * arena, or are borrowed from the batch, the expression and the scalars.
 * Threads: an eval belongs to one thread; expressions may be shared.
 */
#ifndef ENGINE_EXEC_EXPR_EVAL_H
#define ENGINE_EXEC_EXPR_EVAL_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/data/column.h"
#include "engine/data/schema.h"
#include "engine/exec/expr/eval_context.h"
#include "engine/plan/expr.h"

struct eval;

/* `input` names the columns of the batches in messages; borrowed, must outlive the eval; may be
 * NULL. STATUS_SQL: a bad pattern, option or format; they are constants, so this is found before
 * any row. */
MUST_USE status eval_create(const struct expr *expr, const struct schema *input,
                            struct arena *stage_arena, struct eval **out, struct error *err);
/* Expensive subexpressions that several of them have are from now on computed once per batch:
 * their contexts must have the same arena for it, and a stamp that tells batches apart. Evals that
 * share already may share with more. */
MUST_USE status eval_share(struct eval *const *evals, uint32_t count, struct arena *stage_arena,
                           struct error *err);
/* Accepts NULL. */
void eval_destroy(struct eval *eval);

/* Values stand at the places of the selected rows, in arrays of batch->row_count; what stands at
 * other places is undefined. A column reference gives the batch's own column, borrowed; a constant
 * gives a column that repeats it. */
MUST_USE status eval_run(struct eval *eval, const struct batch *batch, struct selection selection,
                         struct eval_context *context, struct column *out, struct error *err);

/* The selected rows where the BOOL is true, not NULL. out_rows has room for selection.count and may
 * be the selection's own array. */
MUST_USE status eval_filter(struct eval *eval, const struct batch *batch,
                            struct selection selection, struct eval_context *context,
                            uint32_t *out_rows, uint32_t *out_count, struct error *err);

#endif
