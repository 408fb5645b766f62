/* SPDX-License-Identifier: Apache-2.0 */
/* gen.h - writes realistic data for a built-in analysis: movies, coffee or memes.
 *
 *     gen_write(&options, &report, &err)
 *
 * The same analysis, seed and scale give the same bytes on every machine. All tables shrink and
 * grow linearly with the scale; the cafés' stores and menu stay. The data is as dirty as real files
 * are: about one record in some thousands breaks a rule, each in another way, but no quote is ever
 * left open.
 *
 * Each file is written under a temporary name and renamed once complete, so a file of the right
 * name is always whole. What was there before is replaced.
 *
 * Memory: a few MiB, whatever the scale. Threads: one call, one thread; calls are independent.
 */
#ifndef GEN_GEN_H
#define GEN_GEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct gen_options {
    const char *analysis;  /* "movies", "coffee" or "memes". */
    const char *directory; /* Created when it is not there. */
    double scale;          /* 1 is full size; six decimals count. */
    uint64_t seed;
    /* Called about once per MiB; may be NULL. What is expected is an estimate. */
    void (*progress)(void *context, uint64_t bytes_done, uint64_t bytes_expected_or_0);
    void *context;
    const atomic_bool *cancelled; /* May be NULL. */
};

struct gen_report {
    uint64_t file_count;
    uint64_t byte_count;
    uint64_t record_count; /* Headers are not records; dirty records are. */
};

/* STATUS_USAGE for an unknown analysis or an impossible scale, STATUS_IO with the file's path,
 * STATUS_CANCELLED; files completed before a failure stay. */
MUST_USE status gen_write(const struct gen_options *options, struct gen_report *out_report,
                          struct error *err);

#endif
