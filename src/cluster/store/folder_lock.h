/* SPDX-License-Identifier: Apache-2.0 */
/* folder_lock.h - a folder belongs to one process at a time.
 *
 * DIR/lock is locked while the process lives, and identifies it beyond its pid, which the kernel
 * reuses. DIR/pid has the pid alone, for people and scripts. On a network file system the lock is
 * as good as that file system's flock.
 *
 * Threads: one owner; looking and signalling: any. Failure: STATUS_IO names the folder, and the
 * process that holds it.
 */
#ifndef CLUSTER_STORE_FOLDER_LOCK_H
#define CLUSTER_STORE_FOLDER_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

struct folder_lock;

/* Makes the folder, and those above it, if they are missing. Waits up to `wait_ms` for another
 * holder: the kernel needs a moment to release the lock of a process that was killed. */
MUST_USE status folder_lock_open(const char *dir, uint32_t wait_ms, struct folder_lock **out,
                                 struct error *err);
/* Removes DIR/pid and releases the lock. Accepts NULL. */
void folder_lock_close(struct folder_lock *lock);

enum folder_state {
    FOLDER_FREE,
    FOLDER_HELD,   /* By a process of this host that identified itself. */
    FOLDER_UNKNOWN /* It can't be read; or its holder is not found here: it has not identified
                      itself yet, or runs on another host or in another namespace. */
};
/* The current state; for FOLDER_HELD, the holder. */
enum folder_state folder_lock_look(const char *dir, pid_t *out_pid);
/* Whether it is FOLDER_HELD. */
bool folder_lock_holder(const char *dir, pid_t *out_pid);
/* Signals the holder, and no other process; FOLDER_FREE: there was none. STATUS_IO: the holder is
 * unknown, or may not be signalled. */
MUST_USE status folder_lock_signal(const char *dir, int number, enum folder_state *out,
                                   struct error *err);

#endif
