/* mailbox.h - where threads meet: items put in by many, taken out in order.
 *
 * It grows as needed: those who post are bounded by themselves (prefetch, windows, connections).
 * When memory runs out, the process ends as if it had been killed.
 *
 * Threads: any may post and take. Memory: items are copied; what they own moves with them.
 */
#ifndef CLUSTER_NODE_MAILBOX_H
#define CLUSTER_NODE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct mailbox;

MUST_USE status mailbox_create(size_t item_bytes, struct mailbox **out, struct error *err);
/* Items left are forgotten: take them out before. Accepts NULL. */
void mailbox_destroy(struct mailbox *mailbox);
void mailbox_post(struct mailbox *mailbox, const void *item);
/* Waits up to `timeout_ms` for an item; false: there was none, or the box is closed and empty. */
bool mailbox_take(struct mailbox *mailbox, uint32_t timeout_ms, void *out_item);
/* Whoever waits now or later gets what is left, then nothing, without waiting. */
void mailbox_close(struct mailbox *mailbox);

#endif
