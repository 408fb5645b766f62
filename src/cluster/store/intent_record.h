/* SPDX-License-Identifier: Apache-2.0 */
/* intent_record.h - the items that a node has in flight, which survive a crash of the process.
 *
 *     intent_record_open -> (intent_record_hold -> intent_record_release)* -> intent_record_close
 *
 * DIR/intent has a slot for each item in flight. It is a mapped file: an entry costs two stores to
 * memory and survives the process, since the kernel keeps the page. A machine that loses power may
 * lose entries; then items are only tried more often before they are treated as poison.
 *
 * An item that was in flight when the process ended may be the cause. It stays in the file, with
 * the number of times that this happened, until it is released.
 *
 * Threads: any. Failure: STATUS_IO names the path; a damaged file is emptied and reported.
 */
#ifndef CLUSTER_STORE_INTENT_RECORD_H
#define CLUSTER_STORE_INTENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

enum { INTENT_SLOTS = 128 };

struct intent_record;

struct intent_found {
    uint64_t item;
    uint32_t starts; /* How many times the process ended with it in flight: at least 1. */
};

struct intent_start {
    struct intent_found found[INTENT_SLOTS];
    uint32_t found_count;
    bool damaged; /* The file was damaged, and was emptied. */
};

/* DIR exists; makes the file if it is missing. */
MUST_USE status intent_record_open(const char *dir, struct intent_record **out,
                                   struct intent_start *out_start, struct error *err);
/* Accepts NULL. Entries stay in the file. */
void intent_record_close(struct intent_record *intents);

/* The item (not 0) is in flight now. It may be held several times, and must be released as often.
 * An item found at the start keeps its count. When all slots are taken, an item that is not in
 * flight, of the fewest starts, is evicted; false: there is none, and the item is not recorded. */
bool intent_record_hold(struct intent_record *intents, uint64_t item);
/* The item is done, and its entry removed. An unknown item is ignored. */
void intent_record_release(struct intent_record *intents, uint64_t item);

#endif
