/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - the kernels, by file, and the table that says which function each computes.
 *
 * A new function is a signature (plan/function.c), a kernel, and a line in the table of kernels.c.
 */
#ifndef ENGINE_EXEC_EXPR_KERNELS_H
#define ENGINE_EXEC_EXPR_KERNELS_H

#include "engine/exec/expr/kernel.h"

extern const struct kernel kernels[FUNCTION_COUNT];

/* Equality of two operands of one type into `out`, nulls disregarded. */
void compare_equal(const struct frame *frame, const struct operand *a, const struct operand *b,
                   const uint8_t *nulls, uint8_t *out);

kernel_run logic_and, logic_or, logic_not, logic_is_null, logic_is_not_null;
kernel_filter logic_and_filter;
kernel_run choice_case, choice_coalesce, choice_nullif, choice_extreme;
kernel_run compare_run, compare_in;
kernel_prepare compare_prepare, compare_in_prepare;
kernel_filter compare_filter;
bool compare_can_filter(const struct eval *eval, const struct eval_context *context);
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
