/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - the CSV of a query is a stream of bytes, cut into blocks of one size; each block is
 * hashed into the sum. So the sum depends on the bytes alone, and the hash of the blocks before the
 * first difference tells about where it is.
 */
#include "cli/cluster/verify.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/hash.h"
#include "cli/audit_report.h"
#include "engine/data/print_csv.h"

enum { BLOCK_BYTES = 64 << 10, SHOWN_BYTES = 120 };

struct verify_query {
    struct buf pending; /* Less than a block between two calls. */
    struct buf hashes;  /* Of whole blocks: uint64_t. */
    uint64_t row_count;
};

status verify_open(struct verify *verify, const struct plan *plan, struct arena *arena,
                   struct error *err)
{
    *verify = (struct verify){
        .plan = plan,
        .queries = arena_array(arena, struct verify_query, (size_t)plan->query_count + 1),
    };
    return verify->queries != NULL ? STATUS_OK : error_memory(err);
}

status verify_rows(struct verify *verify, uint32_t query, const struct batch *batch,
                   struct error *err)
{
    struct verify_query *sum = &verify->queries[query];
    struct buf *pending = &sum->pending;
    print_csv_rows(&verify->plan->queries[query].schema, batch, pending);
    sum->row_count += batch->row_count;
    size_t done = 0;
    for (; !pending->failed && pending->size - done >= BLOCK_BYTES; done += BLOCK_BYTES) {
        buf_put_u64(&sum->hashes, hash_bytes(pending->bytes + done, BLOCK_BYTES));
    }
    if (pending->failed || sum->hashes.failed) return error_memory(err);
    if (done > 0) {
        memmove(pending->bytes, pending->bytes + done, pending->size - done);
        pending->size -= done;
    }
    return STATUS_OK;
}

static bool bufs_equal(const struct buf *a, const struct buf *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

static size_t first_difference(const struct buf *a, const struct buf *b)
{
    size_t at = 0;
    while (at < a->size && at < b->size && a->bytes[at] == b->bytes[at]) {
        at++;
    }
    return at;
}

static status compare_query(const struct verify *cluster, const struct verify *local,
                            uint32_t query, struct error *err)
{
    const struct verify_query *a = &cluster->queries[query];
    const struct verify_query *b = &local->queries[query];
    struct text name = local->plan->queries[query].name;
    if (a->row_count != b->row_count) {
        return error_set(err, STATUS_INTERNAL,
                         "not verified: %.*s has %" PRIu64 " rows from the cluster, %" PRIu64
                         " from `run`; please report this",
                         TEXT_ARGS(name), a->row_count, b->row_count);
    }
    if (bufs_equal(&a->hashes, &b->hashes) && bufs_equal(&a->pending, &b->pending)) {
        return STATUS_OK;
    }
    size_t block = first_difference(&a->hashes, &b->hashes) / sizeof(uint64_t);
    size_t at = block * BLOCK_BYTES;
    bool is_in_tail = block == a->hashes.size / sizeof(uint64_t);
    if (is_in_tail) at += first_difference(&a->pending, &b->pending);
    return error_set(err, STATUS_INTERNAL,
                     "not verified: the rows of %.*s differ from those of `run`, %s byte %zu of "
                     "their CSV; please report this",
                     TEXT_ARGS(name), is_in_tail ? "at" : "soon after", at);
}

static struct text excerpt(const struct buf *buf, size_t at)
{
    size_t start = at > SHOWN_BYTES / 2 ? at - SHOWN_BYTES / 2 : 0;
    size_t size = buf->size - start < SHOWN_BYTES ? buf->size - start : SHOWN_BYTES;
    return (struct text){(const char *)buf->bytes + start, (uint32_t)size};
}

static status compare_audit(const struct audit *cluster, const struct audit *local,
                            struct error *err)
{
    struct buf a = {0};
    struct buf b = {0};
    status result = STATUS_OK;
    audit_facts(cluster, &a);
    audit_facts(local, &b);
    if (a.failed || b.failed) {
        result = error_memory(err);
    } else if (!bufs_equal(&a, &b)) {
        size_t at = first_difference(&a, &b);
        struct text in_cluster = excerpt(&a, at);
        struct text in_local = excerpt(&b, at);
        result = error_set(err, STATUS_INTERNAL,
                           "not verified: the rows are equal to those of `run`, but not the audit; "
                           "please report this\n  cluster: ...%.*s...\n  run:     ...%.*s...",
                           TEXT_ARGS(in_cluster), TEXT_ARGS(in_local));
    }
    buf_done(&a);
    buf_done(&b);
    return result;
}

status verify_compare(struct verify_side cluster, struct verify_side local, struct error *err)
{
    for (uint32_t i = 0; i < local.rows->plan->query_count; i++) {
        TRY(compare_query(cluster.rows, local.rows, i, err));
    }
    return compare_audit(cluster.audit, local.audit, err);
}

void verify_close(struct verify *verify)
{
    for (uint32_t i = 0; verify->queries != NULL && i < verify->plan->query_count; i++) {
        buf_done(&verify->queries[i].pending);
        buf_done(&verify->queries[i].hashes);
    }
    verify->queries = NULL;
}
