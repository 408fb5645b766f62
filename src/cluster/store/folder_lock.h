/* folder_lock.h - a folder belongs to one process at a time.
 *
 * DIR/lock is locked while the process lives, however it ends, and says which process that is so
 * that nobody is taken for it: a number is used again, a process is not. DIR/pid has the number
 * alone, for people and scripts. A folder on a disk shared by several machines is guarded as far as
 * its file system guards.
 *
 * Threads: one owner; looking and signalling: any. Failure: STATUS_IO names the folder, and the
 * process that has it.
 */
#ifndef CLUSTER_STORE_FOLDER_LOCK_H
#define CLUSTER_STORE_FOLDER_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

struct folder_lock;

/* Makes the folder, and those above it, if they are not there. Somebody who has the folder is
 * waited for up to `wait_ms`: the system needs a moment to clear away a process that was killed. */
MUST_USE status folder_lock_open(const char *dir, uint32_t wait_ms, struct folder_lock **out,
                                 struct error *err);
/* Removes the pid and lets the folder go. Accepts NULL. */
void folder_lock_close(struct folder_lock *lock);

enum folder_state {
    FOLDER_FREE,
    FOLDER_HELD,   /* By a process that we know. */
    FOLDER_UNKNOWN /* It could not be looked at; or it is taken, and not by a process that could be
                      found here: it is just about to say who it is, or lives elsewhere. */
};
/* How it is now; of FOLDER_HELD, by whom. */
enum folder_state folder_lock_look(const char *dir, pid_t *out_pid);
/* Whether it is FOLDER_HELD. */
bool folder_lock_holder(const char *dir, pid_t *out_pid);
/* To the process that has the folder and to no other; FOLDER_FREE: there was none. STATUS_IO: who
 * has it is not known, or may not be signalled. */
MUST_USE status folder_lock_signal(const char *dir, int number, enum folder_state *out,
                                   struct error *err);

#endif
