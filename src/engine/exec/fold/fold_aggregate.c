/* SPDX-License-Identifier: Apache-2.0 */
/* fold_aggregate.c - one row per group.
 *
 * Partial states are merged as they come, so what is held is as large as the answer. Beyond memory
 * it is radix partitioning by hash (Manegold, Boncz, Kersten: Optimizing main-memory join on modern
 * hardware, 2002; here with files as partitions): groups come out in the order of their hashes, so
 * partial states are written by ranges of hashes, and at the end each range is merged by itself,
 * the lowest first. One that is too large is cut into ranges again; its groups have fewer hashes
 * than those before, so the cutting ends.
 */
#include "engine/data/batch_codec.h"
#include "engine/exec/fold/fold_parts.h"
#include "engine/exec/fold/group_table.h"
#include "engine/exec/fold/spill_merge.h"

enum {
    SLICE_ROWS = 256,
    MERGE_ROWS = 2048,
    SPARSE_GROUPS = 512 /* Records of groups come by the block: fewer give nothing back. */
};

/* Partial states by ranges of hashes, of equal width. */
struct group_ranges {
    uint64_t lowest;
    uint64_t width;
    uint32_t count; /* 0: not chosen yet. */
    struct spill_rows items[SPILL_PARTS];
};

struct aggregate_shard {
    struct fold_shard shard;
    struct fold_held held;
    struct group_table *groups; /* NULL: the rows are in a file. */
    struct group_ranges whole;
    struct group_ranges *ranges; /* Where a spill writes to: `whole`, or the parts of a range. */
    struct spill_runs waiting;   /* Ranges that are not merged yet, the lowest last. */
};

/* An empty group table; the groups are gone. */
static status renew(struct aggregate_shard *aggregate, struct error *err)
{
    group_table_destroy(aggregate->groups);
    aggregate->groups = NULL;
    TRY(group_table_create(aggregate->shard.fold->grouping, &aggregate->held.budget,
                           &aggregate->groups, err));
    aggregate->held.empty_bytes = atomic_load(&aggregate->held.budget.used_bytes);
    return STATUS_OK;
}

static status aggregate_init(struct fold_shard *shard, struct error *err)
{
    struct aggregate_shard *aggregate = (struct aggregate_shard *)shard;
    aggregate->held.budget.parent = shard->budget;
    aggregate->ranges = &aggregate->whole;
    aggregate->waiting.budget = shard->budget;
    return renew(aggregate, err);
}

static void ranges_done(struct group_ranges *ranges)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        spill_rows_done(&ranges->items[i]);
    }
    ranges->count = 0;
}

static void aggregate_done(struct fold_shard *shard)
{
    struct aggregate_shard *aggregate = (struct aggregate_shard *)shard;
    group_table_destroy(aggregate->groups);
    aggregate->groups = NULL;
    ranges_done(&aggregate->whole);
    spill_runs_done(&aggregate->waiting);
}

static size_t aggregate_held(const struct fold_shard *shard)
{
    return fold_held_bytes(&((const struct aggregate_shard *)shard)->held);
}

static bool aggregate_is_sparse(const struct fold_shard *shard)
{
    const struct group_table *groups = ((const struct aggregate_shard *)shard)->groups;
    return groups != NULL && group_table_count(groups) < SPARSE_GROUPS;
}

/* ---- cutting into ranges ---- */

/* False: all groups have one hash. */
static bool ranges_choose(struct group_ranges *ranges, struct aggregate_shard *aggregate)
{
    struct fold_shard *shard = &aggregate->shard;
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    for (uint32_t i = 0; i < group_table_count(aggregate->groups); i++) {
        uint64_t hash = group_table_hash(aggregate->groups, i);
        if (hash < lowest) lowest = hash;
        if (hash > highest) highest = hash;
    }
    if (lowest >= highest) return false;
    uint32_t count = shard->spill.part_count;
    *ranges = (struct group_ranges){
        .lowest = lowest, .width = (highest - lowest) / count + 1, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        ranges->items[i] = fold_spill_rows(shard, shard->fold->grouping->partial);
    }
    return true;
}

/* Hashes that came later may lie outside: they belong to the first and the last range. */
static uint32_t range_of(const struct group_ranges *ranges, uint64_t hash)
{
    if (hash < ranges->lowest) return 0;
    uint64_t place = (hash - ranges->lowest) / ranges->width;
    return place < ranges->count ? (uint32_t)place : ranges->count - 1;
}

static status write_slice(const struct aggregate_shard *aggregate, uint32_t first, uint32_t count,
                          struct spill_writer *writers, struct arena *arena, struct error *err)
{
    const struct group_ranges *ranges = aggregate->ranges;
    struct batch batch;
    uint32_t rows[SLICE_ROWS];
    uint8_t places[SLICE_ROWS];
    TRY(group_table_read(aggregate->groups, GROUP_PARTIAL, first, count, arena, &batch, err));
    for (uint32_t i = 0; i < count; i++) {
        places[i] = (uint8_t)range_of(ranges, group_table_hash(aggregate->groups, first + i));
    }
    for (uint32_t place = 0; place < ranges->count; place++) {
        uint32_t chosen = 0;
        for (uint32_t i = 0; i < count; i++) {
            rows[chosen] = i;
            chosen += places[i] == place;
        }
        TRY(spill_writer_append(&writers[place], &batch, (struct selection){rows, chosen}, err));
    }
    return STATUS_OK;
}

static status write_groups(const struct aggregate_shard *aggregate, struct spill_writer *writers,
                           struct error *err)
{
    struct arena arena;
    arena_init(&arena, aggregate->shard.budget);
    uint32_t group_count = group_table_count(aggregate->groups);
    status result = STATUS_OK;
    for (uint32_t first = 0; first < group_count && result == STATUS_OK; first += SLICE_ROWS) {
        uint32_t count = group_count - first;
        if (count > SLICE_ROWS) count = SLICE_ROWS;
        result = write_slice(aggregate, first, count, writers, &arena, err);
        arena_reset(&arena);
    }
    arena_done(&arena);
    for (uint32_t i = 0; i < aggregate->ranges->count && result == STATUS_OK; i++) {
        result = spill_writer_flush(&writers[i], err);
    }
    return result;
}

/* Leaves the table as it is when all its groups have one hash. */
static status aggregate_spill(struct fold_shard *shard, struct error *err)
{
    struct aggregate_shard *aggregate = (struct aggregate_shard *)shard;
    struct group_ranges *ranges = aggregate->ranges;
    if (ranges->count == 0 && !ranges_choose(ranges, aggregate)) return STATUS_OK;
    struct spill_writer writers[SPILL_PARTS] = {{0}};
    status result = STATUS_OK;
    for (uint32_t i = 0; i < ranges->count && result == STATUS_OK; i++) {
        result = spill_writer_open(&writers[i], &ranges->items[i], err);
    }
    if (result == STATUS_OK) result = write_groups(aggregate, writers, err);
    for (uint32_t i = 0; i < ranges->count; i++) {
        spill_writer_done(&writers[i]);
    }
    TRY(result);
    return renew(aggregate, err);
}

/* ---- merging ---- */

/* Merges partial states into the table, which is spilled whenever room is short. */
static status merge_partial(struct aggregate_shard *aggregate, const struct batch *partial,
                            size_t byte_count, struct error *err)
{
    struct fold_shard *shard = &aggregate->shard;
    struct column *columns = arena_array(&shard->scratch, struct column, partial->column_count + 1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t first = 0; first < partial->row_count; first += MERGE_ROWS) {
        uint32_t count = partial->row_count - first;
        if (count > MERGE_ROWS) count = MERGE_ROWS;
        size_t text_bytes = byte_count / partial->row_count * count;
        size_t need = group_table_merge_need(aggregate->groups, count) + text_bytes;
        if (fold_must_spill(shard, need)) TRY(fold_spill_state(shard, err));
        struct batch slice = batch_slice(partial, first, count, columns);
        TRY(group_table_merge(aggregate->groups, &slice, err));
    }
    return STATUS_OK;
}

static status aggregate_apply(struct fold_shard *shard, struct batch_identity identity,
                              struct buf *bytes, uint64_t *out_rows, struct error *err)
{
    (void)identity; /* Merging is commutative. */
    struct batch batch;
    arena_reset(&shard->scratch);
    TRY(batch_decode(bytes->bytes, bytes->size, shard->fold->input, &shard->scratch, &batch, err));
    *out_rows = batch.row_count;
    return merge_partial((struct aggregate_shard *)shard, &batch, bytes->size, err);
}

/* ---- finishing in memory ---- */

static size_t aggregate_finish_need(const struct fold_shard *shard)
{
    return group_table_order_need(((const struct aggregate_shard *)shard)->groups);
}

static status aggregate_finish(struct fold_shard *shard, struct error *err)
{
    struct aggregate_shard *aggregate = (struct aggregate_shard *)shard;
    TRY(group_table_need_one(aggregate->groups, err));
    TRY(group_table_order(aggregate->groups, err));
    fold_finished(shard, group_table_count(aggregate->groups));
    return STATUS_OK;
}

static status aggregate_read(const struct fold_shard *shard, uint32_t first, uint32_t count,
                             struct arena *arena, struct batch *out_batch, struct error *err)
{
    const struct aggregate_shard *aggregate = (const struct aggregate_shard *)shard;
    return group_table_read(aggregate->groups, GROUP_RESULT, first, count, arena, out_batch, err);
}

/* ---- finishing range by range ---- */

static status push_ranges(struct spill_runs *waiting, struct group_ranges *ranges,
                          struct error *err)
{
    for (uint32_t i = ranges->count; i > 0; i--) {
        if (ranges->items[i - 1].row_count == 0) continue;
        TRY(spill_runs_add(waiting, &ranges->items[i - 1], err));
    }
    ranges->count = 0;
    return STATUS_OK;
}

static status merge_range(struct aggregate_shard *aggregate, const struct spill_rows *range,
                          struct error *err)
{
    struct fold_shard *shard = &aggregate->shard;
    struct spill_cursor cursor;
    spill_cursor_open(&cursor, range);
    status result;
    do {
        arena_reset(&shard->scratch);
        result = spill_cursor_next(&cursor, err);
        if (result == STATUS_OK && cursor.batch.row_count > 0) {
            result = merge_partial(aggregate, &cursor.batch, cursor.bytes.size, err);
        }
    } while (result == STATUS_OK && cursor.batch.row_count > 0);
    spill_cursor_done(&cursor);
    TRY(result);
    size_t need = group_table_order_need(aggregate->groups);
    if (aggregate->ranges->count > 0 || fold_must_spill(shard, need)) {
        return fold_spill_state(shard, err);
    }
    return STATUS_OK;
}

static status write_results(struct aggregate_shard *aggregate, struct spill_writer *writer,
                            struct error *err)
{
    struct arena *scratch = &aggregate->shard.scratch;
    TRY(group_table_order(aggregate->groups, err));
    uint32_t group_count = group_table_count(aggregate->groups);
    for (uint32_t first = 0; first < group_count; first += SLICE_ROWS) {
        uint32_t count = group_count - first;
        if (count > SLICE_ROWS) count = SLICE_ROWS;
        struct batch batch;
        arena_reset(scratch);
        TRY(group_table_read(aggregate->groups, GROUP_RESULT, first, count, scratch, &batch, err));
        TRY(spill_writer_append(writer, &batch, (struct selection){NULL, count}, err));
    }
    return renew(aggregate, err);
}

static status finish_range(struct aggregate_shard *aggregate, struct spill_writer *writer,
                           struct error *err)
{
    struct spill_runs *waiting = &aggregate->waiting;
    struct spill_rows range = waiting->items[--waiting->count];
    struct group_ranges parts = {0};
    aggregate->ranges = &parts;
    status result = merge_range(aggregate, &range, err);
    if (result == STATUS_OK && parts.count > 0) {
        result = push_ranges(waiting, &parts, err);
    } else if (result == STATUS_OK) {
        result = write_results(aggregate, writer, err);
    }
    aggregate->ranges = &aggregate->whole;
    ranges_done(&parts);
    spill_rows_done(&range);
    return result;
}

static status aggregate_finish_spilled(struct fold_shard *shard, struct error *err)
{
    struct aggregate_shard *aggregate = (struct aggregate_shard *)shard;
    struct spill_writer writer;
    shard->spill.result.schema = shard->fold->grouping->result;
    TRY(fold_spill_state(shard, err));
    status result = spill_writer_open(&writer, &shard->spill.result, err);
    if (result == STATUS_OK && aggregate->whole.count == 0) {
        /* One hash, which nothing can divide. */
        result = group_table_need_one(aggregate->groups, err);
        if (result == STATUS_OK) result = write_results(aggregate, &writer, err);
    } else if (result == STATUS_OK) {
        result = push_ranges(&aggregate->waiting, &aggregate->whole, err);
    }
    while (result == STATUS_OK && aggregate->waiting.count > 0) {
        result = finish_range(aggregate, &writer, err);
    }
    if (result == STATUS_OK) result = spill_writer_flush(&writer, err);
    spill_writer_done(&writer);
    TRY(result);
    fold_spill_finished(shard);
    return STATUS_OK;
}

const struct fold_class fold_aggregate = {
    .shard_bytes = sizeof(struct aggregate_shard),
    .shards_by_key = true,
    .init = aggregate_init,
    .done = aggregate_done,
    .apply = aggregate_apply,
    .held = aggregate_held,
    .is_sparse = aggregate_is_sparse,
    .spill = aggregate_spill,
    .finish_need = aggregate_finish_need,
    .finish = aggregate_finish,
    .finish_spilled = aggregate_finish_spilled,
    .read = aggregate_read,
};
