/* key_file.h - a small file with a secret, that nobody but its user has had a hand in.
 *
 * Contents go straight to the caller's memory, who wipes it: no copy stays anywhere.
 *
 * Failure: STATUS_USAGE for what the user has to change, with the command that does; STATUS_IO
 * names the file.
 */
#ifndef CLUSTER_STORE_KEY_FILE_H
#define CLUSTER_STORE_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"

/* Refuses what is no plain file, what others than its owner may use, and what (or the link to it)
 * belongs neither to this process's user nor to root. At most `capacity` bytes: *out_size is larger
 * by one if there are more. */
MUST_USE status key_file_read(const char *path, void *out, size_t capacity, size_t *out_size,
                              struct error *err);
/* A new file, with the folders above it, that is whole when it appears; *out_made false: there is
 * one already, and it stays as it is. */
MUST_USE status key_file_create(const char *path, const void *bytes, size_t size, bool *out_made,
                                struct error *err);

#endif
