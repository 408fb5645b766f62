/* SPDX-License-Identifier: Apache-2.0 */
/* ranker.c - candidates are gathered and pruned now and then; rows that cannot win are rejected.
 *
 * After a pruning, a partition that has its k rows has a threshold: the worst of them. A new row
 * must come before it to become a candidate. So most rows cost one hash look-up and one comparison,
 * and a few hundred candidates at a time are sorted. The usual heap of k rows (Knuth, The Art of
 * Computer Programming 3, 5.2.3) would order every candidate when it comes, and move it; here rows
 * are copied in bulk, and sorted by columns.
 *
 * Without partitions a gate (rank_gate.h) stands before all that: it knows the first key alone.
 */
#include "engine/exec/fold/ranker.h"

#include "engine/base/assert.h"
#include "engine/base/radix_sort.h"
#include "engine/data/batch_builder.h"
#include "engine/data/key_hash.h"
#include "engine/exec/fold/rank_gate.h"
#include "engine/exec/fold/row_sort.h"

enum {
    CANDIDATES = 256,
    GATED_SHARE = 3, /* Behind a gate, candidates may be so many times the limit. */
    SLICE_ROWS = RANK_GATE_ROWS
};

struct threshold {
    uint64_t hash;
    uint32_t row; /* Of `kept`, + 1; 0: free slot. */
};

struct ranker {
    const struct ranking *ranking;
    struct budget *budget;
    struct sort_key *order; /* Partition columns, then the ranking's keys. */
    uint32_t order_count;
    struct batch_builder candidates;
    struct batch_builder best; /* What the last pruning kept, */
    struct batch kept;         /* and the view of it, made once per pruning. */
    uint32_t kept_count;
    struct threshold *thresholds;
    size_t threshold_count; /* A power of two, or 0. */
    bool has_gate;
    struct rank_gate gate;
    struct arena arena; /* Lives as long as the ranker. */
    struct arena scratch;
    struct arena prune_arena; /* Thresholds: until the next pruning. */
};

status ranker_create(const struct ranking *ranking, struct schema schema, struct budget *budget,
                     struct ranker **out_ranker, struct error *err)
{
    struct ranker *ranker = memory_alloc(budget, sizeof *ranker);
    if (ranker == NULL) return error_memory(err);
    *ranker = (struct ranker){.ranking = ranking, .budget = budget};
    arena_init(&ranker->arena, budget);
    arena_init(&ranker->scratch, budget);
    arena_init(&ranker->prune_arena, budget);
    ranker->order_count = ranking->partition_count + ranking->key_count;
    ranker->order = arena_array(&ranker->arena, struct sort_key, ranker->order_count + 1);
    if (ranker->order == NULL || !builder_init(&ranker->candidates, schema, budget) ||
        !builder_init(&ranker->best, schema, budget)) {
        ranker_destroy(ranker);
        return error_memory(err);
    }
    ranker->has_gate = ranking->partition_count == 0 && ranking->key_count > 0 &&
                       ranking->limit > 0 && ranking->limit <= RANK_GATE_LIMIT;
    if (ranker->has_gate && !rank_gate_init(&ranker->gate, (uint32_t)ranking->limit, budget)) {
        ranker_destroy(ranker);
        return error_memory(err);
    }
    for (uint32_t i = 0; i < ranking->partition_count; i++) {
        ranker->order[i] = (struct sort_key){.column = ranking->partition_columns[i]};
    }
    for (uint32_t i = 0; i < ranking->key_count; i++) {
        ranker->order[ranking->partition_count + i] = ranking->keys[i];
    }
    *out_ranker = ranker;
    return STATUS_OK;
}

void ranker_destroy(struct ranker *ranker)
{
    if (ranker == NULL) return;
    builder_done(&ranker->candidates);
    builder_done(&ranker->best);
    if (ranker->has_gate) rank_gate_done(&ranker->gate);
    arena_done(&ranker->arena);
    arena_done(&ranker->scratch);
    arena_done(&ranker->prune_arena);
    memory_free(ranker->budget, ranker, sizeof *ranker);
}

void ranker_reset(struct ranker *ranker)
{
    builder_reset(&ranker->candidates);
    builder_reset(&ranker->best);
    if (ranker->has_gate) rank_gate_reset(&ranker->gate);
    ranker->kept_count = 0;
    ranker->threshold_count = 0;
}

static bool same_partition(const struct ranker *ranker, const struct batch *batch, uint32_t a,
                           uint32_t b)
{
    const struct ranking *ranking = ranker->ranking;
    return key_equal(batch, ranking->partition_columns, a, batch, ranking->partition_columns, b,
                     ranking->partition_count);
}

/* Of the sorted rows, the first `limit` of each partition. Returns how many. */
static uint32_t cut_partitions(const struct ranker *ranker, const struct batch *batch,
                               uint32_t *rows, uint32_t count)
{
    uint32_t kept = 0;
    uint64_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool continues = i > 0 && same_partition(ranker, batch, rows[i - 1], rows[i]);
        rank = continues ? rank + 1 : 1;
        /* `kept` is never ahead of i: the row that the next step compares with is still there. */
        if (rank <= ranker->ranking->limit) rows[kept++] = rows[i];
    }
    return kept;
}

static bool thresholds_build(struct ranker *ranker)
{
    arena_reset(&ranker->prune_arena);
    ranker->threshold_count = 0;
    uint32_t count = ranker->kept_count;
    uint64_t limit = ranker->ranking->limit;
    if (count < limit || count == 0) return true;
    size_t slot_count = 16;
    while (slot_count < (size_t)count * 2 / limit + 2) {
        slot_count *= 2;
    }
    ranker->thresholds = arena_array(&ranker->prune_arena, struct threshold, slot_count);
    if (ranker->thresholds == NULL) return false;
    for (uint32_t first = 0; first < count;) {
        uint32_t next = first + 1;
        while (next < count && same_partition(ranker, &ranker->kept, first, next)) {
            next++;
        }
        if (next - first >= limit) {
            uint32_t last = next - 1;
            uint64_t hash;
            key_hash(&ranker->kept, ranker->ranking->partition_columns,
                     ranker->ranking->partition_count, (struct selection){&last, 1}, &hash);
            size_t place = hash & (slot_count - 1);
            while (ranker->thresholds[place].row != 0) {
                place = (place + 1) & (slot_count - 1);
            }
            ranker->thresholds[place] = (struct threshold){hash, last + 1};
        }
        first = next;
    }
    ranker->threshold_count = slot_count;
    return true;
}

/* Of all rows, those that the gate would still let in: it may have become narrower since they came.
 */
static uint32_t choose_rows(const struct ranker *ranker, const struct batch *all, uint32_t *rows)
{
    uint64_t prefixes[SLICE_ROWS];
    uint32_t count = 0;
    for (uint32_t first = 0; first < all->row_count; first += SLICE_ROWS) {
        uint32_t *slice = rows + count;
        uint32_t slice_count =
            all->row_count - first < SLICE_ROWS ? all->row_count - first : SLICE_ROWS;
        for (uint32_t i = 0; i < slice_count; i++) {
            slice[i] = first + i;
        }
        if (ranker->has_gate) {
            row_prefixes(all, &ranker->order[0], (struct selection){slice, slice_count}, prefixes);
            slice_count = rank_gate_left(&ranker->gate, prefixes, slice, slice_count);
        }
        count += slice_count;
    }
    return count;
}

static bool prune(struct ranker *ranker)
{
    struct batch_builder *candidates = &ranker->candidates;
    struct batch all;
    builder_append(candidates, &ranker->kept, (struct selection){NULL, ranker->kept_count});
    if (!builder_batch(candidates, &all)) return false;
    arena_reset(&ranker->scratch);
    uint32_t *rows = arena_array(&ranker->scratch, uint32_t, (size_t)all.row_count + 1);
    if (rows == NULL) return false;
    uint32_t count = choose_rows(ranker, &all, rows);
    if (!row_sort(&all, ranker->order, ranker->order_count, rows, count, &ranker->scratch)) {
        return false;
    }
    uint32_t kept = cut_partitions(ranker, &all, rows, count);
    builder_reset(&ranker->best);
    builder_append(&ranker->best, &all, (struct selection){rows, kept});
    builder_reset(candidates);
    if (!builder_batch(&ranker->best, &ranker->kept)) return false;
    ranker->kept_count = kept;
    return thresholds_build(ranker);
}

static bool can_win(const struct ranker *ranker, const struct batch *batch, uint32_t row,
                    uint64_t hash)
{
    const struct ranking *ranking = ranker->ranking;
    size_t mask = ranker->threshold_count - 1;
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
        const struct threshold *threshold = &ranker->thresholds[place];
        if (threshold->row == 0) return true;
        if (threshold->hash != hash) continue;
        uint32_t worst = threshold->row - 1;
        if (!key_equal(&ranker->kept, ranking->partition_columns, worst, batch,
                       ranking->partition_columns, row, ranking->partition_count)) {
            continue;
        }
        return row_compare(batch, row, &ranker->kept, worst, ranking->keys, ranking->key_count) < 0;
    }
}

static uint32_t reject(const struct ranker *ranker, const struct batch *batch,
                       struct selection selection, uint32_t *out_rows)
{
    uint64_t hashes[SLICE_ROWS];
    key_hash(batch, ranker->ranking->partition_columns, ranker->ranking->partition_count, selection,
             hashes);
    uint32_t count = 0;
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        if (can_win(ranker, batch, row, hashes[i])) out_rows[count++] = row;
    }
    return count;
}

/* With so many candidates it is time to prune. */
static size_t candidates_most(const struct ranker *ranker)
{
    if (ranker->has_gate) return CANDIDATES + GATED_SHARE * (size_t)ranker->gate.limit;
    return CANDIDATES + (size_t)ranker->kept_count;
}

status ranker_add(struct ranker *ranker, const struct batch *batch, struct selection selection,
                  struct error *err)
{
    if (ranker->ranking->limit == 0) return STATUS_OK;
    uint32_t rows[SLICE_ROWS];
    uint64_t prefixes[SLICE_ROWS];
    for (uint32_t first = 0, count; first < selection.count; first += count) {
        /* While no row can be rejected, prune soon: thresholds come of it. */
        bool rejects = ranker->has_gate || ranker->threshold_count > 0;
        uint32_t most = rejects ? SLICE_ROWS : CANDIDATES;
        count = selection.count - first;
        if (count > most) count = most;
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = selection_row(selection, first + i);
        }
        struct selection slice = {rows, count};
        if (ranker->has_gate) {
            row_prefixes(batch, &ranker->order[0], slice, prefixes);
            slice.count = rank_gate_pass(&ranker->gate, prefixes, rows, count);
        }
        if (ranker->threshold_count > 0) slice.count = reject(ranker, batch, slice, rows);
        struct batch_builder *candidates = &ranker->candidates;
        builder_append(candidates, batch, slice);
        if (candidates->failed) return error_memory(err);
        if (candidates->row_count >= candidates_most(ranker) && !prune(ranker)) {
            return error_memory(err);
        }
    }
    return STATUS_OK;
}

status ranker_finish(struct ranker *ranker, struct batch *out_batch, struct error *err)
{
    if (!prune(ranker)) return error_memory(err);
    *out_batch = ranker->kept;
    return STATUS_OK;
}

size_t ranker_need(const struct ranker *ranker)
{
    const struct batch_builder *candidates = &ranker->candidates;
    size_t row_count = (size_t)candidates->row_count + ranker->kept_count;
    size_t row_bytes = sizeof(uint32_t) + 2 * sizeof(struct radix_item);
    size_t held_bytes = 0;
    for (uint32_t i = 0; i < candidates->schema.count; i++) {
        for (uint32_t j = 0; j < 2; j++) {
            const struct builder_column *column =
                &(j == 0 ? candidates : &ranker->best)->columns[i];
            held_bytes += column->values.capacity + column->nulls.capacity +
                          column->bytes.capacity + column->elements.capacity;
        }
        if (candidates->schema.fields[i].type.kind == TYPE_TEXT) {
            row_bytes += 2 * sizeof(struct text);
        }
    }
    /* Both builders may have to double, and the old memory is freed only after the copy. */
    return 2 * held_bytes + row_count * row_bytes;
}
