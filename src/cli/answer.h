/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what every command that answers an analysis has in common: what it is asked, where the
 * answers go, and the audit below them.
 *
 *     options_parse -> answer_read -> answer_open -> (rows to answer->output)*
 *         -> output_finish, answer_show_audit | answer_explain -> answer_close
 *
 * A command's table of options begins with ANSWER_OPTION_SPECS; its own ones follow.
 *
 * Memory: all that was asked lives in the arena. Threads: one at a time.
 */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "engine/local/audit.h"
#include "engine/local/job.h"

enum {
    ANSWER_QUERY,
    ANSWER_SET,
    ANSWER_FORMAT,
    ANSWER_OUTPUT,
    ANSWER_AUDIT,
    ANSWER_ROWS,
    ANSWER_CHUNK_SIZE,
    ANSWER_FIELD_LIMIT,
    ANSWER_BROADCAST_LIMIT,
    ANSWER_QUIET,
    ANSWER_OPTIONS
};

/* clang-format off */
#define ANSWER_OPTION_SPECS                                                                        \
    [ANSWER_QUERY] = {"query", "q1,q3", "only these queries; default: all of the analysis",        \
                      true, 0},                                                                    \
    [ANSWER_SET] = {"set", "NAME=VALUE", "a parameter of the analysis; may be repeated", true, 0}, \
    [ANSWER_FORMAT] = {"format", "FORMAT", "table (default), csv, json or ndjson", false, 0},      \
    [ANSWER_OUTPUT] = {"output", "DIR",                                                            \
                       "a file per query in DIR (csv unless --format), and audit.json", false, 0}, \
    [ANSWER_AUDIT] = {"audit", "full", "the whole audit: drops, stages, exchanges, to stderr",         \
                      false, 0},                                                                   \
    [ANSWER_ROWS] = {"rows", "N|all", "rows of a table; default: all, on a terminal 40", false,    \
                     0},                                                                           \
    [ANSWER_CHUNK_SIZE] = {"chunk-size", "SIZE",                                                   \
                           "bytes of a file worked on at a time; default: 512KiB, 4MiB of large data",\
                           false, 0},                                                              \
    [ANSWER_FIELD_LIMIT] = {"field-limit", "SIZE",                                                 \
                            "largest field of a file, at most 1GiB; default: 64MiB", false, 0},    \
    [ANSWER_BROADCAST_LIMIT] = {"broadcast-limit", "SIZE",                                       \
                                 "a join's smaller side beyond this goes by shards; default: 256MiB",\
                                 false, 0},                                                        \
    [ANSWER_QUIET] = {"quiet", NULL, "no progress, and no audit but that of --audit full",        \
                      false, 0}
/* clang-format on */

struct answer {
    struct arena arena;
    struct options options;
    struct job_options job_options;
    struct output_options output_options;
    struct output output;
    struct progress progress; /* Makes room when answers go to stdout. */
    bool full_audit;
    bool quiet;
};

/* From answer->options, which must have been parsed, into all that is above. */
MUST_USE status answer_read(struct answer *answer, struct error *err);
/* The plan is borrowed until answer_close. The answer must not move while it is open. */
MUST_USE status answer_open(struct answer *answer, const struct plan *plan, struct error *err);
/* After a failure: the cause that the user can do something about comes first. */
MUST_USE status answer_explain(const struct answer *answer, struct error *err);
void answer_show_audit(struct answer *answer, const struct audit *audit);
/* Accepts one that was never opened. */
void answer_close(struct answer *answer);

#endif
