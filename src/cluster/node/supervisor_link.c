/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_link.c - the check takes a shared lock for a moment, so an `up` that starts just then
 * finds the lock taken: folder_lock_open waits for that.
 */
#include "cluster/node/supervisor_link.h"

#include <stddef.h>
#include <sys/types.h>

#include "cluster/store/folder_lock.h"

bool supervisor_link_look(struct supervisor_link *supervisor_link, uint64_t now_ms)
{
    pid_t holder;
    if (supervisor_link->folder == NULL || supervisor_link->is_lost ||
        now_ms < supervisor_link->look_ms)
        return supervisor_link->is_lost;
    supervisor_link->look_ms = now_ms + SUPERVISOR_LINK_LOOK_MS;
    bool is_free = folder_lock_look(supervisor_link->folder, &holder) == FOLDER_FREE;
    supervisor_link->is_lost = is_free && supervisor_link->was_free;
    supervisor_link->was_free = is_free;
    if (supervisor_link->is_lost) supervisor_link->lost_ms = now_ms;
    return supervisor_link->is_lost;
}

bool supervisor_link_is_overdue(const struct supervisor_link *supervisor_link, uint64_t now_ms)
{
    return supervisor_link->is_lost && now_ms >= supervisor_link->lost_ms + SUPERVISOR_LINK_KILL_MS;
}
