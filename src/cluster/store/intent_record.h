/* intent_record.h - what a node has in flight, so that it is known after the node was killed.
 *
 *     intent_record_open -> (intent_record_hold -> intent_record_release)* -> intent_record_close
 *
 * DIR/note has a slot for each item in flight. It is a mapped file: a note costs two stores into
 * memory and outlives any end of the process, since the system keeps the page. A machine that loses
 * power may lose notes; then items are only tried more often before they are given up.
 *
 * An item that was in flight when the process ended may be the reason why it did. It stays in the
 * file, with the number of times that this happened, until it is released or forgotten.
 *
 * Threads: any. Failure: STATUS_IO names the path; a damaged file is emptied, and that is told.
 */
#ifndef CLUSTER_STORE_INTENT_RECORD_H
#define CLUSTER_STORE_INTENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

enum { INTENT_SLOTS = 128 };

struct intent_record;

struct note_found {
    uint64_t item;
    uint32_t starts; /* How many times the process ended with it in flight: at least 1. */
};

struct intent_start {
    struct note_found found[INTENT_SLOTS];
    uint32_t found_count;
    bool damaged; /* The file was not one of ours, and was emptied. */
};

/* DIR is there; the file is made if it is not. */
MUST_USE status intent_record_open(const char *dir, struct intent_record **out,
                                   struct intent_start *out_start, struct error *err);
/* Accepts NULL. Notes stay in the file. */
void intent_record_close(struct intent_record *intents);

/* The item (not 0) is in flight now. It may be in flight several times, and is then to be released
 * as often. One found at the start keeps its count. When all slots are taken, the item found at the
 * fewest starts and not in flight gives way; false: there is none, and the item is not noted. */
bool intent_record_hold(struct intent_record *intents, uint64_t item);
/* The item has been dealt with: it is noted no more. One that is not noted is ignored. */
void intent_record_release(struct intent_record *intents, uint64_t item);
/* The item does not matter any more, in flight or not: its job is gone. */
void intent_record_forget(struct intent_record *intents, uint64_t item);

#endif
