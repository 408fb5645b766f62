/* folder_lock.h - a folder belongs to one process at a time.
 *
 * DIR/lock is locked while the process lives, however it ends; DIR/pid tells others which process
 * it is. A folder on a disk shared by several machines is guarded as far as its file system guards.
 *
 * Threads: one owner. Failure: STATUS_IO names the folder, and the process that has it.
 */
#ifndef IO_FOLDER_LOCK_H
#define IO_FOLDER_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct folder_lock;

/* Makes the folder, and those above it, if they are not there. Somebody who has the folder is
 * waited for up to `wait_ms`: the system needs a moment to clear away a process that was killed. */
MUST_USE status folder_lock_open(const char *dir, uint32_t wait_ms, struct folder_lock **out,
                                 struct error *err);
/* Removes the pid and lets the folder go. Accepts NULL. */
void folder_lock_close(struct folder_lock *lock);

/* The process that has the folder now; false: nobody. What a process that was killed left in
 * DIR/pid is not believed. */
bool folder_lock_holder(const char *dir, pid_t *out_pid);

#endif
