/* kept_rows.c - bytes in, one batch out. */
#include "exec/kept_rows.h"

#include <stdlib.h>

#include "wire/batch_codec.h"

static int compare_identities(const void *a, const void *b)
{
    const struct batch_identity *left = &((const struct kept_batch *)a)->identity;
    const struct batch_identity *right = &((const struct kept_batch *)b)->identity;
    if (left->input != right->input) return left->input < right->input ? -1 : 1;
    if (left->lane != right->lane) return left->lane < right->lane ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

/* A batch with enough rows before it can't matter any more: what comes later only adds to them. */
static void forget_the_rest(struct kept_rows *kept)
{
    qsort(kept->batches, kept->count, sizeof *kept->batches, compare_identities);
    uint64_t before = 0;
    size_t count = 0;
    for (size_t i = 0; i < kept->count; i++) {
        if (before >= kept->row_limit) {
            buf_done(&kept->batches[i].bytes);
            continue;
        }
        before += kept->batches[i].row_count;
        kept->batches[count++] = kept->batches[i];
    }
    kept->count = count;
    kept->row_count = before;
}

status kept_rows_add(struct kept_rows *kept, struct batch_identity identity, struct buf *bytes,
                     uint64_t *out_rows, struct error *err)
{
    struct arena arena;
    struct batch batch;
    arena_init(&arena, kept->budget);
    status result = batch_decode(bytes->bytes, bytes->size, kept->schema, &arena, &batch, err);
    arena_done(&arena);
    TRY(result);
    *out_rows = batch.row_count;
    /* An empty batch says nothing: its number is counted by whoever counts. */
    if (batch.row_count == 0) return STATUS_OK;
    if (kept->count == kept->capacity) {
        size_t grown = kept->capacity == 0 ? 16 : kept->capacity * 2;
        struct kept_batch *batches = memory_resize(
            kept->budget, kept->batches, kept->capacity * sizeof *batches, grown * sizeof *batches);
        if (batches == NULL) return error_memory(err);
        kept->batches = batches;
        kept->capacity = grown;
    }
    kept->batches[kept->count++] = (struct kept_batch){identity, batch.row_count, *bytes};
    kept->row_count += batch.row_count;
    *bytes = (struct buf){.budget = bytes->budget};
    if (kept->row_limit != 0 && kept->row_count > 2 * kept->row_limit) forget_the_rest(kept);
    return STATUS_OK;
}

status kept_rows_read(struct kept_rows *kept, struct batch *out_batch, struct error *err)
{
    if (!kept->builder_ready) {
        kept->builder_ready = true;
        if (!builder_init(&kept->builder, kept->schema, kept->budget)) return error_memory(err);
    }
    if (kept->count > 1)
        qsort(kept->batches, kept->count, sizeof *kept->batches, compare_identities);
    struct arena arena;
    arena_init(&arena, kept->budget);
    status result = STATUS_OK;
    for (size_t i = 0; i < kept->count && result == STATUS_OK; i++) {
        struct buf *bytes = &kept->batches[i].bytes;
        struct batch batch;
        result = batch_decode(bytes->bytes, bytes->size, kept->schema, &arena, &batch, err);
        if (result != STATUS_OK) break;
        builder_append(&kept->builder, &batch, (struct selection){NULL, batch.row_count});
        buf_done(bytes);
        arena_reset(&arena);
    }
    arena_done(&arena);
    TRY(result);
    kept->count = 0;
    if (kept->builder.too_large) {
        return error_set(
            err, STATUS_LIMIT,
            "more than 4 GiB of text in one column, or 4 billion rows, are too many to "
            "collect; select less");
    }
    return builder_batch(&kept->builder, out_batch) ? STATUS_OK : error_memory(err);
}

void kept_rows_done(struct kept_rows *kept)
{
    for (size_t i = 0; i < kept->count; i++) {
        buf_done(&kept->batches[i].bytes);
    }
    memory_free(kept->budget, kept->batches, kept->capacity * sizeof *kept->batches);
    if (kept->builder_ready) builder_done(&kept->builder);
    *kept = (struct kept_rows){0};
}
