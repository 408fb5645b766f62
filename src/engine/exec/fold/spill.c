/* SPDX-License-Identifier: Apache-2.0 */
/* spill.c - every piece is written with its hash and compared with it when it comes back. */
#include "engine/exec/fold/spill.h"

#include <inttypes.h>

#include "engine/base/hash.h"

status spill_write(struct spill_file *file, const void *bytes, size_t size, uint32_t row_count,
                   struct spill_extent *out_extent, struct error *err)
{
    if (size > UINT32_MAX) {
        return error_set(err, STATUS_LIMIT,
                         "more than 4 GiB of rows in one piece are too many to write to a "
                         "temporary file; raise --memory-limit");
    }
    uint64_t offset;
    TRY(file->store->write(file, bytes, size, &offset, err));
    *out_extent = (struct spill_extent){.offset = offset,
                                        .hash = hash_bytes(bytes, size),
                                        .size = (uint32_t)size,
                                        .row_count = row_count};
    return STATUS_OK;
}

status spill_read(const struct spill_file *file, struct spill_extent extent, struct buf *out,
                  struct error *err)
{
    buf_reset(out);
    if (!buf_reserve(out, extent.size)) return error_memory(err);
    TRY(file->store->read(file, extent.offset, out->bytes, extent.size, err));
    if (hash_bytes(out->bytes, extent.size) != extent.hash) {
        return error_set(err, STATUS_CORRUPT,
                         "a temporary file has changed since it was written: %" PRIu32
                         " bytes at %" PRIu64 " are not what they were; is the disk of the folder "
                         "for temporary files sound?",
                         extent.size, extent.offset);
    }
    out->size = extent.size;
    return STATUS_OK;
}

void spill_close(struct spill_file *file)
{
    if (file != NULL) file->store->close(file);
}
