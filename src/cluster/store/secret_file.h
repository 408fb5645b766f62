/* secret_file.h - files that only their owner may read: keys, tokens, and certificates beside them.
 *
 * Memory: contents live in the given arena, followed by a zero. Failure: STATUS_USAGE for what the
 * user has to change, with the command that does; STATUS_IO names the file.
 */
#ifndef CLUSTER_STORE_SECRET_FILE_H
#define CLUSTER_STORE_SECRET_FILE_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct arena;

/* Refuses a file that others than its owner may read or write. */
MUST_USE status secret_file_read(const char *path, size_t size_limit, struct arena *arena,
                                 struct text *out, struct error *err);

/* A private key in PEM that can be used without a password; the same refusal. */
MUST_USE status secret_file_read_key(const char *path, struct arena *arena, struct text *out,
                                     struct error *err);
/* Certificates in PEM, which may be read by anybody. */
MUST_USE status secret_file_read_certificates(const char *path, struct arena *arena,
                                              struct text *out, struct error *err);

#endif
