/* SPDX-License-Identifier: Apache-2.0 */
/* analysis.h - where an analysis is: a name under analyses/, or the path of a folder. */
#ifndef CLI_ANALYSIS_H
#define CLI_ANALYSIS_H

#include "engine/base/arena.h"
#include "engine/base/error.h"

/* Names are looked for in $MILLRACE_ANALYSES, beside the tree the program was built in, and under
 * its prefix; what has a slash, or is found nowhere, is a path. The folder must hold tables.sql.
 * STATUS_USAGE lists what there is. The result lives in the arena. */
MUST_USE status analysis_find(const char *name, struct arena *arena, const char **out_dir,
                              struct error *err);

struct analysis {
    const char *name;
    const char *folder;
};

/* All that have a name, in the order of names. Lives in the arena. */
MUST_USE status analysis_list(struct arena *arena, struct analysis **out, uint32_t *out_count,
                              struct error *err);

#endif
