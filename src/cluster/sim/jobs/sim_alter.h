/* sim_alter.h - messages that are altered on their way, so that their seals are right again.
 *
 * No accident does this: it is what a mistake in a node's memory would do. What counts and sums of
 * streams and the audit are for is to see it: the job may fail, or the message may have been left
 * out as a duplicate; a wrong answer it must never be.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_ALTER_H
#define CLUSTER_SIM_JOBS_SIM_ALTER_H

#include "engine/base/buf.h"

struct cluster;

/* Now and then, and only of the first client's job, if the settings say so. */
void sim_alter(struct cluster *cluster, struct buf *bytes);

#endif
