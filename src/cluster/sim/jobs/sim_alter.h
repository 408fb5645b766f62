/* SPDX-License-Identifier: Apache-2.0 */
/* sim_alter.h - messages that are altered on their way, with checksums that match again.
 *
 * A network does not do this; a broken memory of a node would. The counts and sums of streams and
 * the audit exist to notice it: the job may fail, or the message may be dropped as a duplicate, but
 * the answer must not be wrong.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_ALTER_H
#define CLUSTER_SIM_JOBS_SIM_ALTER_H

#include "engine/base/buf.h"

struct cluster;

/* Now and then, and only of the first client's job, if the settings say so. */
void sim_alter(struct cluster *cluster, struct buf *bytes);

#endif
