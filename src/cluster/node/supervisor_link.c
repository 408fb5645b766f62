/* supervisor_link.c - looking takes a lock for a moment, so that somebody who is about to take it
 * for good may find it taken: whoever opens such a folder waits a little.
 */
#include "cluster/node/supervisor_link.h"

#include <stddef.h>
#include <sys/types.h>

#include "cluster/store/folder_lock.h"

bool leash_look(struct leash *leash, uint64_t now_ms)
{
    pid_t holder;
    if (leash->folder == NULL || leash->is_lost || now_ms < leash->look_ms) return leash->is_lost;
    leash->look_ms = now_ms + LEASH_LOOK_MS;
    bool is_free = folder_lock_look(leash->folder, &holder) == FOLDER_FREE;
    leash->is_lost = is_free && leash->was_free;
    leash->was_free = is_free;
    if (leash->is_lost) leash->lost_ms = now_ms;
    return leash->is_lost;
}

bool leash_is_overdue(const struct leash *leash, uint64_t now_ms)
{
    return leash->is_lost && now_ms >= leash->lost_ms + LEASH_KILL_MS;
}
