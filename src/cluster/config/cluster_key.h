/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_key.h - the secret key that the nodes, monitors and operators of a cluster share.
 *
 * A file of 64 hexadecimal digits that only its user may read. It is never an argument, an
 * environment variable or part of a log line.
 *
 * Failure: STATUS_USAGE names the file and says what to do.
 */
#ifndef CLUSTER_CONFIG_CLUSTER_KEY_H
#define CLUSTER_CONFIG_CLUSTER_KEY_H

#include "engine/base/error.h"
#include "cluster/wire/datagram.h"

/* Refuses a file that others may read or write, or that is not ours (root's is fine). */
MUST_USE status cluster_key_read(const char *path, struct datagram_key *out, struct error *err);
/* Makes a new key, and the folders above it, unless there is one; `out_made` tells. Complete when
 * it appears. */
MUST_USE status cluster_key_make(const char *path, bool *out_made, struct error *err);

#endif
