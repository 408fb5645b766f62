/* SPDX-License-Identifier: Apache-2.0 */
/* log_tail.h - the end of a node's log, for messages about a node that ended at its start. */
#ifndef CLUSTER_SUPERVISE_LOG_TAIL_H
#define CLUSTER_SUPERVISE_LOG_TAIL_H

#include <stddef.h>

/* "\nFOLDER/log ends with\n" and its last lines, without the last line's end; empty: there is no
 * log. Cut at the size. */
void log_tail(const char *folder, char *out, size_t size);
/* The reason of the node's last event=failed, on one line; empty: none is near the end. Cut at the
 * size. */
void log_reason(const char *folder, char *out, size_t size);

#endif
