/* kernel.h - what the function_*.c files share: a compiled node, its operands, its loops.
 *
 * Internal to expression evaluation. A kernel computes one function for the selected rows of a
 * batch. Most are strict: NULL in, NULL out; they load their operands, let kernel_start make the
 * result's arrays and its nulls, and loop. Those that narrow the selection (AND, CASE, ...)
 * evaluate their arguments themselves.
 *
 * A NULL row's value is undefined: loops over numbers may compute with it, loops over texts must
 * not look at it.
 */
#ifndef ENGINE_EXEC_EXPR_KERNEL_H
#define ENGINE_EXEC_EXPR_KERNEL_H

#include "engine/exec/expr/eval.h"
#include "engine/exec/expr/utf8.h"

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

/* What several nodes compute: the values of the rows that one of them has computed. */
struct shared_values {
    uint64_t stamp; /* Of the batch whose rows these are; 0: there are none yet. */
    struct column column;
    const uint8_t *has; /* By row; NULL: all of them. */
};

struct eval {
    const struct expr *expr;
    const struct schema *input; /* Names of columns, for messages; may be NULL. */
    kernel_run *run;
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

/* --- eval.c --- */
MUST_USE status eval_in_frame(struct eval *eval, const struct frame *frame, struct column *out,
                              struct error *err);
/* The selected rows where the BOOL is true; out_rows may be the selection's own array. */
MUST_USE status eval_filter_in_frame(struct eval *eval, const struct frame *frame,
                                     uint32_t *out_rows, uint32_t *out_count, struct error *err);
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
MUST_USE status kernel_repeat(const struct value *value, struct type type,
                              const struct frame *frame, struct column *out, struct error *err);
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

/* --- function_compare.c --- */
/* Whether this comparison has a loop that yields rows directly, */
bool compare_can_filter(const struct eval *eval, const struct eval_context *context);
/* and that loop. */
MUST_USE status compare_filter(struct eval *eval, const struct frame *frame, uint32_t *out_rows,
                               uint32_t *out_count, struct error *err);
/* Equality of two operands of one type into `out`, nulls disregarded. */
void compare_equal(const struct frame *frame, const struct operand *a, const struct operand *b,
                   const uint8_t *nulls, uint8_t *out);

/* --- The kernels, by file. --- */
kernel_run logic_and, logic_or, logic_not, logic_is_null, logic_is_not_null;
kernel_run choice_case, choice_coalesce, choice_nullif, choice_extreme;
kernel_run compare_run, compare_in;
kernel_prepare compare_prepare, compare_in_prepare;
kernel_run number_arithmetic, number_divide, number_integer_divide, number_modulo;
kernel_run number_negate, number_abs, number_round, number_unary;
kernel_run cast_run;
kernel_run text_concat, text_case, text_trim, text_length, text_substring;
kernel_run text_search, text_replace, text_split_part;
kernel_run like_run;
kernel_prepare like_prepare;
kernel_run pattern_matches, pattern_extract;
kernel_prepare pattern_prepare;
kernel_run calendar_part, calendar_time_of_day, calendar_strftime, calendar_strftime_key;
kernel_prepare calendar_strftime_prepare;
kernel_run list_length, list_contains, list_element, list_pluck;
kernel_prepare list_pluck_prepare;
kernel_run hash_run;
kernel_run sentiment_polarity_run, sentiment_label_run;

#endif
