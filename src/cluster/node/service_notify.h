/* service_notify.h - tells whoever supervises this process how it is: the protocol of systemd's
 * Type=notify, one datagram to the socket that NOTIFY_SOCKET names.
 *
 * Without that variable nothing happens. What can't be told is lost: a node must not fail because
 * its supervisor does not listen.
 *
 * Threads: any.
 */
#ifndef CLUSTER_NODE_SERVICE_NOTIFY_H
#define CLUSTER_NODE_SERVICE_NOTIFY_H

#include <stdbool.h>

enum service_state { SERVICE_READY, SERVICE_STOPPING };

/* Whether somebody was told. */
bool service_notify(enum service_state state);

#endif
