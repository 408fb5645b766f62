/* intent_record.h - what a node has in hand, so that it is known after the node was killed.
 *
 *     note_file_open -> (note_file_hold -> note_file_release)* -> note_file_close
 *
 * DIR/note has a slot for each item in hand. It is a mapped file: a note costs two stores into
 * memory and outlives any end of the process, since the system keeps the page. A machine that loses
 * power may lose notes; then items are only tried more often before they are given up.
 *
 * An item that was in hand when the process ended may be the reason why it did. It stays in the
 * file, with the number of times that this happened, until it is released or forgotten.
 *
 * Threads: any. Failure: STATUS_IO names the path; a damaged file is emptied, and that is told.
 */
#ifndef CLUSTER_STORE_INTENT_RECORD_H
#define CLUSTER_STORE_INTENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

enum { NOTE_SLOTS = 128 };

struct note_file;

struct note_found {
    uint64_t item;
    uint32_t starts; /* How many times the process ended with it in hand: at least 1. */
};

struct note_start {
    struct note_found found[NOTE_SLOTS];
    uint32_t found_count;
    bool damaged; /* The file was not one of ours, and was emptied. */
};

/* DIR is there; the file is made if it is not. */
MUST_USE status note_file_open(const char *dir, struct note_file **out,
                               struct note_start *out_start, struct error *err);
/* Accepts NULL. Notes stay in the file. */
void note_file_close(struct note_file *notes);

/* The item (not 0) is in hand now. It may be in hand several times, and is then to be released as
 * often. One found at the start keeps its count. When all slots are taken, the item found at the
 * fewest starts and not in hand gives way; false: there is none, and the item is not noted. */
bool note_file_hold(struct note_file *notes, uint64_t item);
/* The item has been dealt with: it is noted no more. One that is not noted is ignored. */
void note_file_release(struct note_file *notes, uint64_t item);
/* The item does not matter any more, in hand or not: its job is gone. */
void note_file_forget(struct note_file *notes, uint64_t item);

#endif
