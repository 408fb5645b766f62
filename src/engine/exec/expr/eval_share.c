/* SPDX-License-Identifier: Apache-2.0 */
/* eval_share.c - common subexpression elimination among the evals of a batch.
 *
 * A condition, a key and an aggregate often begin with the same function of a text. The one that is
 * computed first leaves its values for the others; since conditions come first and only ever leave
 * out rows, it mostly has the rows that these ask for. If not, they compute their own.
 *
 * Numbers are not worth it: checking that all rows are there takes as long as adding two.
 */
#include "engine/exec/expr/eval.h"
#include "engine/exec/expr/kernel.h"

enum { NODES_MAX = 128 };

struct eval_list {
    struct eval *nodes[NODES_MAX];
    uint32_t count;
};

static bool can_share(const struct eval *eval)
{
    if (eval->is_constant || eval->arg_count == 0 || !eval->kernel->takes_long) return false;
    /* An expression that counts values it could not read must count them each time. */
    return !expr_counts(eval->expr) && eval->args[0]->expr->type.kind == TYPE_TEXT;
}

static status note(struct eval_list *list, struct eval *eval, struct arena *arena,
                   struct error *err)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct eval *other = list->nodes[i];
        if (!expr_equal(other->expr, eval->expr)) continue;
        if (other->shared == NULL) {
            other->shared = arena_new(arena, struct shared_values);
            if (other->shared == NULL) return kernel_no_memory(err);
        }
        eval->shared = other->shared;
        return STATUS_OK;
    }
    if (list->count < NODES_MAX) list->nodes[list->count++] = eval;
    return STATUS_OK;
}

/* Depth: that of the expression, which eval_create bounds. */
static status visit(struct eval_list *list, struct eval *eval, struct arena *arena,
                    struct error *err)
{
    if (eval->expr->kind != EXPR_CALL) return STATUS_OK;
    if (can_share(eval)) TRY(note(list, eval, arena, err));
    for (uint32_t i = 0; i < eval->arg_count; i++) {
        TRY(visit(list, eval->args[i], arena, err));
    }
    return STATUS_OK;
}

status eval_share(struct eval *const *evals, uint32_t count, struct arena *stage_arena,
                  struct error *err)
{
    struct eval_list list = {.count = 0};
    for (uint32_t i = 0; i < count; i++) {
        TRY(visit(&list, evals[i], stage_arena, err));
    }
    return STATUS_OK;
}
