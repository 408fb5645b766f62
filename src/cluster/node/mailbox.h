/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox.h - a FIFO queue between threads, with many producers and consumers.
 *
 * It grows as needed: its producers have bounds of their own (prefetch, windows, connections). When
 * memory runs out, an assertion ends the process, as a crash would.
 *
 * Threads: any may post and take. Memory: items are copied; memory they own moves with them.
 */
#ifndef CLUSTER_NODE_MAILBOX_H
#define CLUSTER_NODE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct mailbox;

MUST_USE status mailbox_create(size_t item_bytes, struct mailbox **out, struct error *err);
/* Does not free what remaining items own: take them before. Accepts NULL. */
void mailbox_destroy(struct mailbox *mailbox);
void mailbox_post(struct mailbox *mailbox, const void *item);
/* Waits up to `timeout_ms` for an item; false: there was none. */
bool mailbox_take(struct mailbox *mailbox, uint32_t timeout_ms, void *out_item);

#endif
