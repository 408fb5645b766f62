/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.h - small files that only their owner may read: keys, tokens; and certificates.
 *
 * Memory: contents live in the given arena, followed by a zero; those of secret_file_read_own go
 * straight to the caller's memory, which the caller wipes: no copy stays anywhere.
 *
 * Failure: STATUS_USAGE for what the user has to change, with the command that does; STATUS_IO
 * names the file.
 */
#ifndef CLUSTER_STORE_SECRET_FILE_H
#define CLUSTER_STORE_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct arena;

/* Refuses a file that others than its owner may read or write. */
MUST_USE status secret_file_read(const char *path, size_t size_limit, struct arena *arena,
                                 struct text *out, struct error *err);
/* Refuses also a file (or a link to it) that belongs neither to this process's user nor to root,
 * and one that is no plain file. At most `capacity` bytes: *out_size is larger by one if there are
 * more.
 */
MUST_USE status secret_file_read_own(const char *path, void *out, size_t capacity, size_t *out_size,
                                     struct error *err);

/* A private key in PEM that can be used without a password; checked as secret_file_read does. */
MUST_USE status secret_file_read_key(const char *path, struct arena *arena, struct text *out,
                                     struct error *err);
/* Certificates in PEM, which are public: no check of the mode. */
MUST_USE status secret_file_read_certificates(const char *path, struct arena *arena,
                                              struct text *out, struct error *err);

/* Creates the file, and the folders above it; it is complete when it appears. *out_made false:
 * there is one already, which stays as it is. */
MUST_USE status secret_file_create(const char *path, const void *bytes, size_t size, bool *out_made,
                                   struct error *err);

#endif
