/* SPDX-License-Identifier: Apache-2.0 */
/* answer_order.c - rows are buffered in blocks of whole batches, since the offsets in one block
 * have 32 bits, and answers may be longer.
 */
#include "cli/cluster/answer_order.h"

#include "engine/base/assert.h"

enum { BLOCK_ROWS = 1 << 16, BLOCK_BYTES = 256 << 20 };

struct row_block {
    struct batch_builder rows;
    struct row_block *next;
};

struct ordered_query {
    bool ended;
    struct row_block *first;
    struct row_block *last;
};

status answer_order_open(struct answer_order *order, struct output *output, const struct plan *plan,
                         struct plan_query *shown, struct arena *arena, struct error *err)
{
    *order = (struct answer_order){
        .output = output,
        .plan = plan,
        .shown = shown,
        .queries = arena_array(arena, struct ordered_query, (size_t)plan->query_count + 1),
    };
    return order->queries != NULL ? STATUS_OK : error_memory(err);
}

static void blocks_free(struct ordered_query *query)
{
    while (query->first != NULL) {
        struct row_block *block = query->first;
        query->first = block->next;
        builder_done(&block->rows);
        memory_free(NULL, block, sizeof *block);
    }
    query->last = NULL;
}

static bool block_is_full(const struct row_block *block)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < block->rows.schema.count; i++) {
        bytes += block->rows.columns[i].bytes.size + block->rows.columns[i].elements.size;
    }
    return block->rows.row_count >= BLOCK_ROWS || bytes >= BLOCK_BYTES;
}

static struct row_block *block_add(struct answer_order *order, uint32_t index)
{
    struct ordered_query *query = &order->queries[index];
    struct row_block *block = memory_alloc(NULL, sizeof *block);
    if (block == NULL) return NULL;
    *block = (struct row_block){0};
    if (!builder_init(&block->rows, order->plan->queries[index].schema, NULL)) {
        builder_done(&block->rows);
        memory_free(NULL, block, sizeof *block);
        return NULL;
    }
    if (query->last != NULL) {
        query->last->next = block;
    } else {
        query->first = block;
    }
    query->last = block;
    return block;
}

static status keep(struct answer_order *order, uint32_t index, const struct batch *batch,
                   struct error *err)
{
    struct row_block *block = order->queries[index].last;
    if (block == NULL || block_is_full(block)) block = block_add(order, index);
    if (block != NULL) {
        builder_append(&block->rows, batch, (struct selection){.count = batch->row_count});
    }
    if (block == NULL || block->rows.failed) {
        return error_set(err, STATUS_MEMORY, "out of memory for the answer of %.*s",
                         TEXT_ARGS(order->plan->queries[index].name));
    }
    return STATUS_OK;
}

/* Writes the buffered rows of a query, whose turn it is now. */
static status release(struct answer_order *order, uint32_t index, struct error *err)
{
    struct ordered_query *query = &order->queries[index];
    for (struct row_block *block = query->first; block != NULL; block = block->next) {
        struct batch batch;
        if (!builder_batch(&block->rows, &batch)) return error_memory(err);
        TRY(output_rows(order->output, order->next, &batch, err));
    }
    blocks_free(query);
    return STATUS_OK;
}

status answer_order_rows(struct answer_order *order, uint32_t query, const struct batch *batch,
                         struct error *err)
{
    ASSERT(query < order->plan->query_count);
    ASSERT(!order->queries[query].ended);
    if (order->shown != NULL || query > order->next) return keep(order, query, batch, err);
    ASSERT(query == order->next);
    return output_rows(order->output, query, batch, err);
}

status answer_order_end(struct answer_order *order, uint32_t query, struct error *err)
{
    ASSERT(query < order->plan->query_count);
    ASSERT(!order->queries[query].ended);
    order->queries[query].ended = true;
    if (order->shown != NULL) {
        order->shown[order->next] = order->plan->queries[query];
        TRY(release(order, query, err));
        return output_query_end(order->output, order->next++, err);
    }
    while (order->next < order->plan->query_count && order->queries[order->next].ended) {
        TRY(output_query_end(order->output, order->next, err));
        order->next++;
        if (order->next < order->plan->query_count) TRY(release(order, order->next, err));
    }
    return STATUS_OK;
}

void answer_order_close(struct answer_order *order)
{
    for (uint32_t i = 0; order->queries != NULL && i < order->plan->query_count; i++) {
        blocks_free(&order->queries[i]);
    }
    order->queries = NULL;
}
