/* SPDX-License-Identifier: Apache-2.0 */
/* spill.h - where a fold's state goes when memory is short.
 *
 * A store gives files without a name: no other process sees them, and they vanish with this one,
 * however it ends. Each piece is read back by its offset and checked against its hash, so a disk
 * that alters bytes causes an error and never another answer.
 *
 * Threads: a store may be used by many; a file is written by one owner, and read by many after
 * that.
 */
#ifndef ENGINE_EXEC_FOLD_SPILL_H
#define ENGINE_EXEC_FOLD_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"

struct spill_file;

/* What a kind of store implements. Errors name the folder and what helps. */
struct spill_store {
    status (*open)(struct spill_store *store, struct spill_file **out_file, struct error *err);
    /* Appends all of it; *out_offset is where it begins. */
    status (*write)(struct spill_file *file, const void *bytes, size_t size, uint64_t *out_offset,
                    struct error *err);
    status (*read)(const struct spill_file *file, uint64_t offset, void *bytes, size_t size,
                   struct error *err);
    void (*close)(struct spill_file *file);
};

/* The beginning of every store's own struct for a file. */
struct spill_file {
    struct spill_store *store;
};

/* One piece of a file: an encoded batch. */
struct spill_extent {
    uint64_t offset;
    uint64_t hash;
    uint32_t size;
    uint32_t row_count;
};

MUST_USE status spill_write(struct spill_file *file, const void *bytes, size_t size,
                            uint32_t row_count, struct spill_extent *out_extent, struct error *err);
/* Replaces what is in `out`. */
MUST_USE status spill_read(const struct spill_file *file, struct spill_extent extent,
                           struct buf *out, struct error *err);
/* Accepts NULL. */
void spill_close(struct spill_file *file);

#endif
