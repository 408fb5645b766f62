/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - the one idiom for failure.
 *
 * A fallible function returns `status`, is MUST_USE, and takes `struct error *err` last. The text
 * is written where the cause is understood and says what happened, where, and what to do next.
 */
#ifndef ENGINE_BASE_ERROR_H
#define ENGINE_BASE_ERROR_H

#include <stdbool.h>

#define MUST_USE            __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a)   __attribute__((format(printf, f, a)))
#define ALWAYS_INLINE       static inline __attribute__((always_inline))
#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

typedef enum {
    STATUS_OK = 0,
    STATUS_MEMORY,      /* An allocation failed or a budget is used up. */
    STATUS_LIMIT,       /* Some other configured limit was reached. */
    STATUS_INPUT,       /* The user's data cannot be read as it claims to be. */
    STATUS_SQL,         /* The user's SQL is wrong; the text shows line and caret. */
    STATUS_OVERFLOW,    /* A computed value does not fit its type. */
    STATUS_USAGE,       /* Wrong command line. */
    STATUS_IO,          /* The system refused: file, disk, network. */
    STATUS_CORRUPT,     /* Encoded bytes are not what an encoder wrote. */
    STATUS_CANCELLED,   /* The user, or the reader of the output, asked to stop. */
    STATUS_UNREACHABLE, /* No gateway of the cluster could be used; a later attempt may succeed. */
    STATUS_INTERNAL     /* The counts do not reconcile: a defect of millrace. */
} status;

enum { ERROR_TEXT_SIZE = 2048, STATUS_NAMES = STATUS_INTERNAL + 1 };

/* "input", "usage": what a program can tell failures apart by. */
extern const char *const status_names[STATUS_NAMES];
const char *status_name(status code);

struct error {
    status code;
    char text[ERROR_TEXT_SIZE];
};

/* Writes the text (cut at the limit) and gives `code`, so that it can stand in a return. A macro,
 * so that compilers see that a failure is never STATUS_OK. */
#define error_set(err, code, ...) (error_write((err), (code), __VA_ARGS__), (status)(code))
void error_write(struct error *err, status code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "prefix: " in front of the text, keeping the code; returns the code. */
MUST_USE status error_prefix(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* A caller that knows the query and the operator says more; see engine/local/local.c. */
MUST_USE static inline status error_memory(struct error *err)
{
    return error_set(err, STATUS_MEMORY, "out of memory");
}

/* Passes a failure up from a function that holds nothing. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        status try_status = (expression);                                                          \
        if (UNLIKELY(try_status != STATUS_OK)) return try_status;                                  \
    } while (0)

#endif
