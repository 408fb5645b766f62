/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - a compiled node of an expression, its operands, its loops.
 *
 * Internal to expression evaluation, in three layers: eval.c creates trees and knows the table of
 * kernels; kernels.c and the function_*.c behind it compute; kernel.c runs nodes and knows neither.
 *
 * A kernel computes one function for the selected rows of a
 * batch. Most are strict: NULL in, NULL out; they load their operands, let kernel_start make the
 * result's arrays and its nulls, and loop. Those that narrow the selection (AND, CASE, ...)
 * evaluate their arguments themselves.
 *
 * A NULL row's value is undefined: loops over numbers may compute with it, loops over texts must
 * not look at it.
 */
#ifndef ENGINE_EXEC_EXPR_KERNEL_H
#define ENGINE_EXEC_EXPR_KERNEL_H

#include "engine/data/column.h"
#include "engine/data/schema.h"
#include "engine/exec/expr/eval_context.h"
#include "engine/exec/expr/utf8.h"

struct eval;
struct regexp;

/* Where and on which rows an evaluation happens. */
struct frame {
    const struct batch *batch;
    struct selection selection;
    struct eval_context *context;
};

typedef status kernel_run(struct eval *eval, const struct frame *frame, struct column *out,
                          struct error *err);
typedef status kernel_prepare(struct eval *eval, struct arena *stage_arena, struct error *err);
/* The selected rows for which a BOOL is true; out_rows may be the selection's own array. */
typedef status kernel_filter(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
                             uint32_t *out_count, struct error *err);

/* How a function is computed: see kernels.c. */
struct kernel {
    kernel_run *run;
    kernel_prepare *prepare; /* When the eval is created, once its arguments are; may be NULL. */
    kernel_filter *filter;   /* Faster than `run` and then a filter; may be NULL, */
    /* and may be for some arguments only; NULL: for all. */
    bool (*can_filter)(const struct eval *eval, const struct eval_context *context);
    bool takes_long;    /* What several expressions compute of a text is worth keeping. */
    bool needs_context; /* Constant arguments do not make a constant: which model is used is only
                           known when rows come. */
};

/* Of a subexpression that several nodes have: the values that one of them has computed. */
struct shared_values {
    uint64_t stamp; /* Of the batch whose rows these are; 0: there are none yet. */
    struct column column;
    const uint8_t *has; /* By row; NULL: all of them. */
};

struct eval {
    const struct expr *expr;
    const struct schema *input;  /* Names of columns, for messages; may be NULL. */
    const struct kernel *kernel; /* NULL: not a call. */
    struct eval **args;
    uint32_t arg_count;
    bool is_constant;             /* `constant` is the value of every row, */
    struct value constant;        /* written in the query or computed when the eval was created. */
    void *state;                  /* What the kernel prepared; in the stage arena. */
    struct regexp *regexp;        /* Owned. */
    struct shared_values *shared; /* NULL: no other node computes the same. */
};

/* An argument's values: row r's is at place r & mask, so that a constant needs no copies. */
struct operand {
    struct column column;
    uint32_t mask; /* All ones, or 0: the same value for every row. */
    bool is_null;  /* For every row. */
    union {
        uint8_t truth;
        int64_t integer;
        double number;
        struct text text;
    } constant; /* Where `column` points when mask is 0. */
};

enum { OPERANDS_MAX = 3 }; /* Of functions with a fixed number of arguments. */

/* --- kernel.c --- */
MUST_USE status eval_in_frame(struct eval *eval, const struct frame *frame, struct column *out,
                              struct error *err);
MUST_USE kernel_filter eval_filter_in_frame;
/* The value of a constant or a finished scalar sub-query; NULL for what differs by row. */
const struct value *eval_constant(const struct eval *eval, const struct eval_context *context);
MUST_USE status operand_load(struct eval *arg, const struct frame *frame, struct operand *out,
                             struct error *err);
/* Loads all (at most OPERANDS_MAX) arguments and makes the result's arrays; its nulls are those of
 * the operands together, perhaps borrowed. *out_finished: every row is NULL, nothing is to be done.
 */
MUST_USE status kernel_start(struct eval *eval, const struct frame *frame,
                             struct operand operands[OPERANDS_MAX], struct column *out,
                             bool *out_finished, struct error *err);
/* The nulls of all the operands; NULL when there are none. */
MUST_USE status kernel_nulls(const struct frame *frame, const struct operand *operands,
                             uint32_t count, uint8_t **out, struct error *err);
/* Makes the nulls the result's own, so that they may be written. */
MUST_USE status kernel_own_nulls(const struct frame *frame, struct column *out, struct error *err);
MUST_USE status kernel_all_null(struct type type, const struct frame *frame, struct column *out,
                                struct error *err);
MUST_USE status kernel_no_memory(struct error *err);
/* "TYPE overflow in `expression`". */
MUST_USE status kernel_overflow(const struct eval *eval, struct error *err);
/* The expression as SQL, cut to fit a message. */
enum { KERNEL_SQL_SIZE = 400 };
const char *kernel_sql(const struct eval *eval, char out[KERNEL_SQL_SIZE]);

/* --- Texts that a kernel makes: appended to regions of the batch arena, never moved. --- */
struct text_writer {
    struct arena *arena;
    char *next;
    size_t left;
};

enum { TEXT_REGION_BYTES = 16384 };

/* Room for `size` bytes at writer->next; false: out of memory. */
static inline bool text_writer_reserve(struct text_writer *writer, size_t size)
{
    if (LIKELY(size <= writer->left && writer->next != NULL)) return true;
    size_t region = size < TEXT_REGION_BYTES ? TEXT_REGION_BYTES : size;
    writer->next = arena_alloc(writer->arena, region, 1);
    writer->left = writer->next == NULL ? 0 : region;
    return writer->next != NULL;
}

/* The first `size` bytes of what was reserved become a text. */
static inline struct text text_writer_take(struct text_writer *writer, size_t size)
{
    struct text text = {writer->next, (uint32_t)size};
    writer->next += size;
    writer->left -= size;
    return text;
}

/* --- Loops. --- */

/* The statements once per selected row, in a loop of their own for a dense selection. */
#define EACH_ROW(selection, row, ...)                                                              \
    do {                                                                                           \
        const uint32_t *const each_rows = (selection).rows;                                        \
        const uint32_t each_count = (selection).count;                                             \
        if (each_rows == NULL) {                                                                   \
            for (uint32_t row = 0; row < each_count; row++) {                                      \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (uint32_t each_i = 0; each_i < each_count; each_i++) {                             \
                const uint32_t row = each_rows[each_i];                                            \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static inline bool is_null_at(const uint8_t *nulls, uint32_t row)
{
    return nulls != NULL && nulls[row] != 0;
}

/* One NaN, and no negative zero: results are compared and sent by their bytes. */
static inline double double_normal(double value)
{
    return value == value ? value + 0.0 : __builtin_nan("");
}

/* Integers in the order of the doubles: -0.0 equals 0.0, every NaN equals and is the greatest. */
static inline int64_t double_key(double value)
{
    int64_t bits;
    value = double_normal(value);
    memcpy(&bits, &value, sizeof bits);
    return bits ^ ((bits >> 63) & INT64_MAX);
}

#endif
