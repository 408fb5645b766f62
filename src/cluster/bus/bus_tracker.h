/* SPDX-License-Identifier: Apache-2.0 */
/* bus_tracker.h - delivery tracking: unconfirmed messages and unacknowledged deliveries.
 *
 * Outbox: messages wait, are published (numbered 1, 2, 3... on each connection, as publisher
 * confirms count them), and are confirmed, returned or refused. On a new connection all unconfirmed
 * messages wait again, in the old order, unless the sender has revoked them.
 *
 * Inbox: deliveries get ids that are never used twice; the broker's tags start again with every
 * connection, so ids of an older connection are ignored. Acknowledgements are batched: while tags
 * are acknowledged in order, one "multiple" acknowledgement stands for all.
 *
 * Nothing here touches a socket or a clock: bus_amqp.c and the simulator use the same trackers.
 * Memory: owned; bytes are moved in, and lent for publishing until they are confirmed.
 * Failure: running out of memory is sticky: `failed`; the process has to end as if killed.
 */
#ifndef CLUSTER_BUS_BUS_TRACKER_H
#define CLUSTER_BUS_BUS_TRACKER_H

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "cluster/bus/bus.h"

struct outbox;

MUST_USE status outbox_create(const struct bus_limits *limits, struct outbox **out,
                              struct error *err);
void outbox_destroy(struct outbox *outbox);

void outbox_add(struct outbox *outbox, const struct bus_address *to, struct buf *bytes,
                uint64_t token);
/* Forgets a message that waits. A published one will not be published again; its confirm is still
 * reported if it comes. */
void outbox_revoke(struct outbox *outbox, uint64_t token);

/* The next message to publish, if one waits and the window has room; it is then counted as
 * published, with number *out_sequence. Borrowed until it is confirmed, returned or reconnected. */
struct outbox_message {
    struct bus_address to;
    struct text bytes;
    uint64_t token;
};
bool outbox_next(struct outbox *outbox, struct outbox_message *out, uint64_t *out_sequence);

/* The broker's answers. Tokens (but 0) of settled messages are appended to `settled`, as u64 in
 * host byte order. Sequences that are not outstanding are ignored. */
void outbox_confirm(struct outbox *outbox, uint64_t sequence, bool multiple, struct buf *settled);
/* Refused by the broker: waits again. */
void outbox_refuse(struct outbox *outbox, uint64_t sequence, bool multiple);
/* No such queue. The return comes before the confirm of the same message. The broker does not say
 * which one it was, so the publisher puts the sequence into the message's properties. True: it was
 * outstanding; the confirm that follows is then not reported. */
bool outbox_return(struct outbox *outbox, uint64_t sequence, struct buf *settled);
/* A new connection: unconfirmed messages wait again, before those that already waited. */
void outbox_reconnect(struct outbox *outbox);

uint64_t outbox_waiting(const struct outbox *outbox);
uint64_t outbox_unconfirmed(const struct outbox *outbox);
bool outbox_failed(const struct outbox *outbox);

struct inbox;

MUST_USE status inbox_create(struct inbox **out, struct error *err);
void inbox_destroy(struct inbox *inbox);
/* A delivery came on channel `channel` (0 to 15) with the broker's tag, which is higher than all
 * before on this channel and connection: gives its id. */
uint64_t inbox_deliver(struct inbox *inbox, uint32_t channel, uint64_t tag);
void inbox_acknowledge(struct inbox *inbox, uint64_t delivery);
/* The next acknowledgement to send, if any. */
struct inbox_ack {
    uint32_t channel;
    uint64_t tag;
    bool multiple;
};
bool inbox_next_ack(struct inbox *inbox, struct inbox_ack *out);
/* A new connection: tags start again, earlier ids are void. */
void inbox_reconnect(struct inbox *inbox);
bool inbox_failed(const struct inbox *inbox);

#endif
