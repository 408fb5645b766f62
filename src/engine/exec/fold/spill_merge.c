/* SPDX-License-Identifier: Apache-2.0 */
/* spill_merge.c - k-way merge: a heap of cursors, the one with the smallest row on top (Knuth, The
 * Art of Computer Programming 3, 5.4.1).
 *
 * Rows that follow each other in one piece are written together. When there are too many runs for
 * one merge, only neighbours are merged early, so that the order of the runs still stands for the
 * order of equal rows.
 */
#include "engine/exec/fold/spill_merge.h"

#include "engine/base/assert.h"
#include "engine/data/key_hash.h"
#include "engine/exec/fold/row_sort.h"

enum { PENDING_ROWS = 64 };

struct merge_source {
    struct spill_cursor cursor;
    uint32_t row;
    uint32_t run; /* Its place among the runs. */
};

struct merge_state {
    const struct spill_merge *merge;
    struct merge_source *sources;
    struct merge_source **heap;
    uint32_t heap_count;
    struct spill_writer writer;
    const struct merge_source *pending_source; /* Rows that are to be written: of this piece. */
    uint32_t pending[PENDING_ROWS];
    uint32_t pending_count;
    uint64_t row_count;         /* Written or pending. */
    struct batch_builder first; /* With a cut: some row of the current partition, */
    struct batch first_row;
    uint64_t rank; /* and how many there were. */
};

/* ---- runs ---- */

status spill_runs_add(struct spill_runs *runs, struct spill_rows *rows, struct error *err)
{
    struct spill_rows *added = array_add(runs, runs->budget);
    if (added == NULL) return error_memory(err);
    *added = *rows;
    *rows = (struct spill_rows){.place = rows->place, .schema = rows->schema};
    return STATUS_OK;
}

void spill_runs_done(struct spill_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        spill_rows_done(&runs->items[i]);
    }
    array_done(runs, runs->budget);
}

/* ---- the heap ---- */

static bool comes_before(const struct merge_state *state, const struct merge_source *a,
                         const struct merge_source *b)
{
    int order = row_compare(&a->cursor.batch, a->row, &b->cursor.batch, b->row, state->merge->keys,
                            state->merge->key_count);
    return order != 0 ? order < 0 : a->run < b->run;
}

static void sift_down(struct merge_state *state, uint32_t place)
{
    struct merge_source **heap = state->heap;
    struct merge_source *moved = heap[place];
    for (;;) {
        uint32_t child = place * 2 + 1;
        if (child >= state->heap_count) break;
        if (child + 1 < state->heap_count && comes_before(state, heap[child + 1], heap[child])) {
            child++;
        }
        if (!comes_before(state, heap[child], moved)) break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = moved;
}

static status heap_fill(struct merge_state *state, uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct merge_source *source = &state->sources[i];
        TRY(spill_cursor_next(&source->cursor, err));
        if (source->cursor.batch.row_count > 0) state->heap[state->heap_count++] = source;
    }
    for (uint32_t place = state->heap_count / 2; place > 0; place--) {
        sift_down(state, place - 1);
    }
    return STATUS_OK;
}

/* ---- writing ---- */

static status write_pending(struct merge_state *state, struct error *err)
{
    if (state->pending_count == 0) return STATUS_OK;
    struct selection selection = {state->pending, state->pending_count};
    state->pending_count = 0;
    return spill_writer_append(&state->writer, &state->pending_source->cursor.batch, selection,
                               err);
}

/* Whether the row is among the best of its partition; rows come by partition. */
static status is_kept(struct merge_state *state, const struct merge_source *source, bool *out_kept,
                      struct error *err)
{
    const struct ranking *cut = state->merge->cut;
    const struct batch *batch = &source->cursor.batch;
    uint32_t row = source->row;
    bool same = state->rank > 0 && key_equal(&state->first_row, cut->partition_columns, 0, batch,
                                             cut->partition_columns, row, cut->partition_count);
    if (!same) {
        builder_reset(&state->first);
        builder_append(&state->first, batch, (struct selection){&row, 1});
        if (!builder_batch(&state->first, &state->first_row)) return error_memory(err);
        state->rank = 0;
    }
    *out_kept = ++state->rank <= cut->limit;
    return STATUS_OK;
}

static status pass_on(struct merge_state *state, const struct merge_source *source,
                      struct error *err)
{
    bool kept = true;
    if (state->merge->cut != NULL) TRY(is_kept(state, source, &kept, err));
    if (!kept) return STATUS_OK;
    if (state->pending_source != source || state->pending_count == PENDING_ROWS) {
        TRY(write_pending(state, err));
    }
    state->pending_source = source;
    state->pending[state->pending_count++] = source->row;
    state->row_count++;
    return STATUS_OK;
}

static status advance_top(struct merge_state *state, struct error *err)
{
    struct merge_source *top = state->heap[0];
    if (++top->row == top->cursor.batch.row_count) {
        /* The piece is freed: rows that are borrowed from it must be written before. */
        if (state->pending_source == top) TRY(write_pending(state, err));
        top->row = 0;
        TRY(spill_cursor_next(&top->cursor, err));
        if (top->cursor.batch.row_count == 0) {
            state->heap[0] = state->heap[--state->heap_count];
            if (state->heap_count == 0) return STATUS_OK;
        }
    }
    sift_down(state, 0);
    return STATUS_OK;
}

static status merge_rows(struct merge_state *state, struct error *err)
{
    while (state->heap_count > 0 && state->row_count < state->merge->row_limit) {
        TRY(pass_on(state, state->heap[0], err));
        TRY(advance_top(state, err));
    }
    TRY(write_pending(state, err));
    return spill_writer_flush(&state->writer, err);
}

static status merge_once(const struct spill_merge *merge, const struct spill_rows *runs,
                         uint32_t count, struct spill_rows *out, struct error *err)
{
    struct budget *budget = out->place->budget;
    struct merge_state state = {.merge = merge};
    struct arena arena;
    arena_init(&arena, budget);
    state.sources = arena_array(&arena, struct merge_source, count);
    state.heap = arena_array(&arena, struct merge_source *, count);
    if (state.sources == NULL || state.heap == NULL) {
        arena_done(&arena);
        return error_memory(err);
    }
    for (uint32_t i = 0; i < count; i++) {
        state.sources[i].run = i;
        spill_cursor_open(&state.sources[i].cursor, &runs[i]);
    }
    status result = spill_writer_open(&state.writer, out, err);
    if (result == STATUS_OK && merge->cut != NULL &&
        !builder_init(&state.first, runs[0].schema, budget)) {
        result = error_memory(err);
    }
    if (result == STATUS_OK) result = heap_fill(&state, count, err);
    if (result == STATUS_OK) result = merge_rows(&state, err);
    if (merge->cut != NULL) builder_done(&state.first);
    spill_writer_done(&state.writer);
    for (uint32_t i = 0; i < count; i++) {
        spill_cursor_done(&state.sources[i].cursor);
    }
    arena_done(&arena);
    return result;
}

/* Runs first .. first+count-1 become one that takes the place of the first. */
static status merge_neighbours(const struct spill_merge *merge, struct spill_runs *runs,
                               uint32_t first, uint32_t count, struct error *err)
{
    struct spill_rows *items = runs->items + first;
    struct spill_rows merged = {.place = items[0].place, .schema = items[0].schema};
    status result = merge_once(merge, items, count, &merged, err);
    if (result != STATUS_OK) {
        spill_rows_done(&merged);
        return result;
    }
    for (uint32_t i = 0; i < count; i++) {
        spill_rows_done(&items[i]);
    }
    items[0] = merged;
    for (uint32_t i = first + count; i < runs->count; i++) {
        runs->items[i - count + 1] = runs->items[i];
    }
    runs->count -= count - 1;
    return STATUS_OK;
}

status spill_merge(const struct spill_merge *merge, struct spill_runs *runs, struct spill_rows *out,
                   struct error *err)
{
    ASSERT(merge->fan >= 2);
    uint32_t first = 0;
    while (runs->count > merge->fan) {
        uint32_t surplus = runs->count - merge->fan + 1;
        uint32_t count = surplus < merge->fan ? surplus : merge->fan;
        if (first + count > runs->count) first = 0;
        TRY(merge_neighbours(merge, runs, first, count, err));
        first++;
    }
    if (runs->count == 0) return STATUS_OK;
    return merge_once(merge, runs->items, runs->count, out, err);
}
