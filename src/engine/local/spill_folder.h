/* SPDX-License-Identifier: Apache-2.0 */
/* spill_folder.h - the store of folds that outgrow memory: temporary files in a folder.
 *
 * Threads: any, as spill.h says.
 */
#ifndef ENGINE_LOCAL_SPILL_FOLDER_H
#define ENGINE_LOCAL_SPILL_FOLDER_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/exec/fold/spill.h"

struct spill_folder {
    struct spill_store store; /* First. */
    const char *folder;       /* Borrowed. */
    atomic_uint_fast64_t written_bytes;
    /* Called with every piece written or read: the folds make progress. May be NULL. */
    void (*alive)(void *context);
    void *alive_context;
};

/* Makes nothing in the folder before something is spilled. */
void spill_folder_init(struct spill_folder *spill, const char *folder);

/* Where temporary files go by default: $TMPDIR, else /var/tmp, which unlike /tmp is on a disk. */
const char *spill_folder_default(void);

#endif
