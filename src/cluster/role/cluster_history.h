/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_history.h - the last events of a cluster, in order, as monitors and gateways keep them.
 *
 * A sorted array that forgets its first: a few events a minute need no more. It is sorted because
 * events arrive in any order and again: a new leader gathers them from different followers, and
 * datagrams overtake each other.
 *
 * Zeroed: empty. Threads: one owner.
 */
#ifndef CLUSTER_ROLE_CLUSTER_HISTORY_H
#define CLUSTER_ROLE_CLUSTER_HISTORY_H

#include "cluster/wire/datagram.h"

enum { CLUSTER_HISTORY_SIZE = 256 };

struct cluster_history_entry {
    struct cluster_event event;
    uint64_t at_ms; /* By the owner's clock. */
};

struct cluster_history {
    struct cluster_history_entry items[CLUSTER_HISTORY_SIZE]; /* In order of place. */
    uint32_t count;
};

/* False: it is there already, or older than all that are kept. */
bool cluster_history_add(struct cluster_history *history, const struct cluster_event *event,
                         uint64_t at_ms);
/* The first events after `place`, with their ages; at most DATAGRAM_EVENTS_MAX. */
void cluster_history_list(const struct cluster_history *history, struct event_place place,
                          uint64_t now_ms, struct event_list *out);
/* A place such that the list after it has the last `count`. */
struct event_place cluster_history_before(const struct cluster_history *history, uint32_t count);

#endif
