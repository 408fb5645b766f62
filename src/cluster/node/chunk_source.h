/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_source.h - the files of a job as chunks, which the client reads in any order, and again.
 *
 *     chunk_source_create -> chunk_source_read* -> chunk_source_destroy
 *
 * A table is cut into chunks once, from its beginning, however many scans read it. The offset and
 * checksum of each chunk are kept, so that a chunk that is read again is identical, or an error. A
 * file that has changed since it was opened (size, time, inode) is STATUS_INPUT: that is checked
 * before a chunk is read again and before the last one of a table is returned, so that a changed
 * file never completes a scan.
 *
 * After a failed read only chunk_source_destroy may follow.
 *
 * Memory: 36 bytes per chunk; the plan and the files are borrowed until destroy, and no other code
 * may read from these files meanwhile. Threads: one owner.
 */
#ifndef CLUSTER_NODE_CHUNK_SOURCE_H
#define CLUSTER_NODE_CHUNK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/local/table_files.h"
#include "engine/plan/plan.h"
#include "cluster/role/event.h"

struct chunk_source;

struct chunk_source_options {
    const struct plan *plan;
    struct table_files *files; /* By the plan's tables; open. */
    uint32_t field_limit;      /* Bytes; bounds records as well. 0: none. */
};

MUST_USE status chunk_source_create(const struct chunk_source_options *options,
                                    struct chunk_source **out, struct error *err);
/* Accepts NULL. The files stay open. */
void chunk_source_destroy(struct chunk_source *source);

/* Chunk `number` of a scan: its body, moved to the caller, and its checksum. Beyond the last chunk:
 * is_none. */
MUST_USE status chunk_source_read(struct chunk_source *source, uint32_t scan, uint64_t number,
                                  struct client_chunk *out, struct error *err);

/* By table, then chunk: its number of LF; 0 if it was not read. For audit_make. */
uint32_t *const *chunk_source_line_counts(const struct chunk_source *source);

/* The identity of a file when it was opened. */
struct source_file {
    uint32_t table;
    struct text name; /* Relative to the data folder. */
    uint64_t size;
    int64_t modified_ns;
    uint64_t inode;
};

/* All files, table by table; the array lives in the arena, the names belong to the files. */
MUST_USE status chunk_source_files(const struct chunk_source *source, struct arena *arena,
                                   struct source_file **out, uint32_t *out_count,
                                   struct error *err);
/* Whether the files are those of an earlier incarnation of the client: STATUS_INPUT names the first
 * that is not. */
MUST_USE status chunk_source_match(const struct chunk_source *source,
                                   const struct source_file *earlier, uint32_t count,
                                   struct error *err);

#endif
