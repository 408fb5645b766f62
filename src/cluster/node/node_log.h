/* SPDX-License-Identifier: Apache-2.0 */
/* node_log.h - the log of a node: one line per event, key=value (logfmt).
 *
 *     2026-11-15T07:31:04.120Z level=info node=w1 event=job-stored job=j1
 *
 * Lines go to data_dir/NAME/log. They never have row contents or keys. Threads: any.
 */
#ifndef CLUSTER_NODE_NODE_LOG_H
#define CLUSTER_NODE_NODE_LOG_H

#include "engine/base/error.h"
#include "cluster/role/event.h"

struct node_log;

/* `folder` is the node's; the file is opened for appending. Lines above `level` are left out. */
MUST_USE status node_log_open(const char *folder, const char *node, enum say_level level,
                              struct node_log **out, struct error *err);
void node_log_close(struct node_log *log);
void node_log_say(struct node_log *log, enum say_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
