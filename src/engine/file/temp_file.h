/* SPDX-License-Identifier: Apache-2.0 */
/* temp_file.h - a file without a name, for what memory cannot hold.
 *
 * It belongs to this process alone and is gone with it, also after a kill: there is never anything
 * to clean up.
 *
 * Threads: one writer; after it, or beside it for what it has written, any number of readers.
 */
#ifndef ENGINE_FILE_TEMP_FILE_H
#define ENGINE_FILE_TEMP_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct temp_file {
    int fd;
    uint64_t size;
    const char *folder; /* Borrowed; for messages. */
};

MUST_USE status temp_file_open(const char *folder, struct temp_file *out, struct error *err);
/* All of the bytes, at the end. */
MUST_USE status temp_file_append(struct temp_file *file, const void *bytes, size_t size,
                                 struct error *err);
MUST_USE status temp_file_read(const struct temp_file *file, uint64_t offset, void *out,
                               size_t size, struct error *err);
void temp_file_close(struct temp_file *file);

#endif
