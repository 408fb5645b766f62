/* SPDX-License-Identifier: Apache-2.0 */
/* later_environment.h - the environment of a node that is restarted.
 *
 * It is ours, except MILLRACE_CRASH: a crash point with a count or a seed would be reached again by
 * the next incarnation, and so on for ever. Points with a probability alone stay armed.
 */
#ifndef CLUSTER_SUPERVISE_LATER_ENVIRONMENT_H
#define CLUSTER_SUPERVISE_LATER_ENVIRONMENT_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/fault_injection.h"

#if FAULT_INJECTION
/* Ends with NULL; lives in the arena and in our own environment. */
MUST_USE status later_environment_make(struct arena *arena, const char *const **out,
                                       struct error *err);
#else
/* NULL: the node inherits ours, as there are no crash points. */
MUST_USE static inline status later_environment_make(struct arena *arena, const char *const **out,
                                                     struct error *err)
{
    (void)arena, (void)err;
    *out = NULL;
    return STATUS_OK;
}
#endif

#endif
