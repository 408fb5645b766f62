/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - every input of a job's answer but the records: SQL, settings, files, workers.
 *
 * A worker that has the manifest can do any part of the job: it plans the SQL itself, since a plan
 * is a function of SQL, settings, file sizes and build. The hash of the encoded manifest is in
 * every message of the job, and a message with another hash is refused. So a worker never mixes two
 * jobs of one id.
 *
 * Memory: a decoded manifest borrows texts from the bytes and takes arrays from the arena.
 * Failure: bytes that no encoder wrote give STATUS_CORRUPT.
 */
#ifndef CLUSTER_WIRE_MANIFEST_H
#define CLUSTER_WIRE_MANIFEST_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum {
    MANIFEST_NAME_MAX = 64, /* Job ids and node names: 1 to 64 of [A-Za-z0-9._-]. */
    MANIFEST_QUERIES_MAX = 256,
    MANIFEST_SETTINGS_MAX = 256,
    MANIFEST_TABLES_MAX = 256,
    MANIFEST_FILES_MAX = 65536,
    MANIFEST_WORKERS_MAX = 256,
    MANIFEST_TEXT_MAX = 4 << 20 /* One SQL text. */
};

struct manifest_query {
    struct text name;
    struct text sql;
};

struct manifest_setting {
    struct text name;
    struct text value;
};

struct manifest_file {
    struct text name;
    uint64_t size;
};

struct manifest_table {
    struct text name; /* As tables.sql declares it. */
    const struct manifest_file *files;
    uint32_t file_count;
};

struct manifest_worker {
    struct text name;
    bool maps;
    bool folds;
};

struct manifest {
    struct text job;
    struct text build; /* Of the program that planned; another build refuses. */
    uint64_t owner;    /* Hash of the owner key. */
    uint64_t plan;     /* Fingerprint of the plan, so that every node has the same one. */
    struct text tables_sql;
    const struct manifest_query *queries; /* In the order of the answers. */
    uint32_t query_count;
    const struct manifest_setting *settings;
    uint32_t setting_count;
    const struct manifest_table *tables; /* Also those that no query reads. */
    uint32_t table_count;
    const struct manifest_worker *workers; /* Their order decides which one owns which shard. */
    uint32_t worker_count;
    uint32_t shard_count; /* Of folds that have a key. */
    uint32_t chunk_bytes;
    uint32_t field_limit;
    uint64_t broadcast_limit;
    uint64_t memory_limit; /* Of the job on each worker; 0: none. */
    uint64_t log_limit;    /* Of the job's input log on each worker. */
};

void manifest_encode(const struct manifest *manifest, struct buf *out);
MUST_USE status manifest_decode(struct text bytes, struct arena *arena, struct manifest *out,
                                struct error *err);
uint64_t manifest_hash(struct text bytes);

/* Whether a job id or a node's name is one: it becomes a file name and part of a path. */
bool manifest_name_valid(struct text name);

#endif
