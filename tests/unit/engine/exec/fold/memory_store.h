/* SPDX-License-Identifier: Apache-2.0 */
/* memory_store.h - files to spill to that lie in memory, and fail when they are told to.
 *
 * Their bytes are outside of any budget. Threads: one.
 */
#ifndef UNIT_EXEC_MEMORY_STORE_H
#define UNIT_EXEC_MEMORY_STORE_H

#include <stdlib.h>
#include <string.h>

#include "engine/exec/fold/spill.h"

struct memory_store {
    struct spill_store store; /* First, so that a spill_store pointer converts back. */
    uint64_t opened, closed, written_bytes;
    /* So many calls succeed before all fail; UINT64_MAX: all succeed. */
    uint64_t opens_left, writes_left, reads_left;
    uint64_t flip_read; /* The bytes of this read come back altered; UINT64_MAX: none. */
    bool failed;        /* It came to that. */
};

struct memory_file {
    struct spill_file file;
    unsigned char *bytes;
    size_t size;
    size_t capacity;
};

static inline bool memory_store_allows(struct memory_store *store, uint64_t *left)
{
    if (*left == UINT64_MAX) return true;
    if (*left > 0) {
        --*left;
        return true;
    }
    store->failed = true;
    return false;
}

static inline status memory_store_open(struct spill_store *base, struct spill_file **out_file,
                                       struct error *err)
{
    struct memory_store *store = (struct memory_store *)base;
    if (!memory_store_allows(store, &store->opens_left)) {
        return error_set(err, STATUS_IO, "no such folder");
    }
    struct memory_file *file = calloc(1, sizeof *file);
    if (file == NULL) abort();
    file->file.store = base;
    store->opened++;
    *out_file = &file->file;
    return STATUS_OK;
}

static inline status memory_store_write(struct spill_file *base, const void *bytes, size_t size,
                                        uint64_t *out_offset, struct error *err)
{
    struct memory_file *file = (struct memory_file *)base;
    struct memory_store *store = (struct memory_store *)base->store;
    if (!memory_store_allows(store, &store->writes_left)) {
        return error_set(err, STATUS_IO, "the disk is full");
    }
    if (file->size + size > file->capacity) {
        file->capacity = (file->size + size) * 2;
        file->bytes = realloc(file->bytes, file->capacity);
        if (file->bytes == NULL) abort();
    }
    memcpy(file->bytes + file->size, bytes, size);
    *out_offset = file->size;
    file->size += size;
    store->written_bytes += size;
    return STATUS_OK;
}

static inline status memory_store_read(const struct spill_file *base, uint64_t offset, void *bytes,
                                       size_t size, struct error *err)
{
    const struct memory_file *file = (const struct memory_file *)base;
    struct memory_store *store = (struct memory_store *)base->store;
    if (!memory_store_allows(store, &store->reads_left)) {
        return error_set(err, STATUS_IO, "the disk is gone");
    }
    if (offset > file->size || size > file->size - offset) abort();
    memcpy(bytes, file->bytes + offset, size);
    if (store->flip_read != UINT64_MAX && store->flip_read-- == 0) {
        ((unsigned char *)bytes)[size / 2] ^= 1;
        store->flip_read = UINT64_MAX;
        store->failed = true;
    }
    return STATUS_OK;
}

static inline void memory_store_close(struct spill_file *base)
{
    struct memory_file *file = (struct memory_file *)base;
    ((struct memory_store *)base->store)->closed++;
    free(file->bytes);
    free(file);
}

static inline struct memory_store memory_store_new(void)
{
    return (struct memory_store){.store = {.open = memory_store_open,
                                           .write = memory_store_write,
                                           .read = memory_store_read,
                                           .close = memory_store_close},
                                 .opens_left = UINT64_MAX,
                                 .writes_left = UINT64_MAX,
                                 .reads_left = UINT64_MAX,
                                 .flip_read = UINT64_MAX};
}

#endif
