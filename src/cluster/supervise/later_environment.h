/* later_environment.h - the environment of a node that is started again.
 *
 * It is ours, but for MILLRACE_CRASH: a crash point with a count or a seed would be hit again by
 * the next incarnation, and so on for ever. Only those that throw dice stay armed.
 */
#ifndef CLUSTER_SUPERVISE_LATER_ENVIRONMENT_H
#define CLUSTER_SUPERVISE_LATER_ENVIRONMENT_H

#include "engine/base/arena.h"
#include "engine/base/error.h"

/* Ends with NULL; lives in the arena and in our own environment. */
MUST_USE status later_environment_make(struct arena *arena, const char *const **out,
                                       struct error *err);

#endif
