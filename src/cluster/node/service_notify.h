/* SPDX-License-Identifier: Apache-2.0 */
/* service_notify.h - reports the state of this process to its service manager: the protocol of
 * systemd's Type=notify, one datagram to the socket that NOTIFY_SOCKET names.
 *
 * Without that variable nothing happens. A report that can't be sent is lost: a node must not fail
 * because its service manager does not listen.
 *
 * Threads: any.
 */
#ifndef CLUSTER_NODE_SERVICE_NOTIFY_H
#define CLUSTER_NODE_SERVICE_NOTIFY_H

#include <stdbool.h>

enum service_state { SERVICE_READY, SERVICE_STOPPING };

/* Whether the report was sent. */
bool service_notify(enum service_state state);

#endif
