/* SPDX-License-Identifier: Apache-2.0 */
/* locked_file.h - a private file that one process at a time writes.
 *
 * It is locked (flock) while it is open, until the process ends, and appears under its name with
 * its first bytes or not at all. Only its user may read it.
 *
 * Threads: any, each with its own file. Failure: STATUS_IO names the path.
 */
#ifndef CLUSTER_STORE_LOCKED_FILE_H
#define CLUSTER_STORE_LOCKED_FILE_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

enum locked_file_found {
    LOCKED_FILE_OURS,    /* It is open and locked. */
    LOCKED_FILE_EXISTS,  /* Creating: there is one of that name. */
    LOCKED_FILE_MISSING, /* Opening: there is none. */
    LOCKED_FILE_BUSY     /* Opening: another process has it. */
};

/* For appending; closed with file_close. The descriptor is set only for LOCKED_FILE_OURS. */
MUST_USE status locked_file_create(const char *path, struct text first_bytes, int *out_fd,
                                   enum locked_file_found *out_found, struct error *err);
MUST_USE status locked_file_open(const char *path, int *out_fd, enum locked_file_found *out_found,
                                 struct error *err);
/* Truncates the file to `size` bytes. */
MUST_USE status locked_file_cut(int fd, const char *path, uint64_t size, struct error *err);
/* One that can't be removed stays. */
void locked_file_remove(const char *path);

#endif
