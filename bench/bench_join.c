/* SPDX-License-Identifier: Apache-2.0 */
/* bench_join.c - a join's two halves: building the hash table, and probing it.
 *
 *     build   a table from rows in memory
 *     probe   many rows at a time, as a pipeline does it
 *     find    row by row, as a fold does it that joins; hashing the row is part of it
 *
 * Keys come in random order, so that a table that is larger than the caches is met as it is in the
 * worst case. `int` keys are spread over a wide range, `dense` ones are near each other as the
 * identifiers of most tables are.
 */
#include "micro.h"

#include "engine/data/key_hash.h"
#include "engine/exec/fold/join_table.h"

enum { PROBE_ROWS = 1 << 20 };

struct join_detail {
    uint8_t kind;
    uint32_t side_rows;
    bool misses; /* No row has a partner; else every one has. */
    bool dense;
};

struct join_state {
    struct column side_key;
    struct join_table side;
    struct column probe_key;
    struct arena build_arena;
};

static uint64_t run_probe(struct micro *micro)
{
    struct join_state *state = micro->state;
    const uint32_t key_column = 0;
    struct batch batch = {PROBE_ROWS, 1, &state->probe_key};
    uint64_t sum = 0;
    for (uint32_t first = 0; first < PROBE_ROWS; first += JOIN_PROBE_ROWS) {
        struct column column;
        struct join_probe probe;
        struct batch slice = batch_slice(&batch, first, JOIN_PROBE_ROWS, &column);
        struct selection selection = {NULL, JOIN_PROBE_ROWS};
        join_table_probe(&state->side, &slice, &key_column, selection, &probe);
        sum += probe.count;
        if (probe.count > 0) sum += probe.found[probe.count / 2];
    }
    return sum;
}

static uint64_t run_find(struct micro *micro)
{
    struct join_state *state = micro->state;
    const uint32_t key_column = 0;
    struct batch batch = {PROBE_ROWS, 1, &state->probe_key};
    uint64_t sum = 0;
    for (uint32_t row = 0; row < PROBE_ROWS; row++) {
        uint64_t hash;
        key_hash(&batch, &key_column, 1, (struct selection){&row, 1}, &hash);
        sum += join_table_find(&state->side, hash, &batch, &key_column, row);
    }
    return sum;
}

static uint64_t run_build(struct micro *micro)
{
    const struct join_detail *detail = micro->which->detail;
    struct join_state *state = micro->state;
    struct batch rows = {detail->side_rows, 1, &state->side_key};
    struct join_table side;
    struct error err;
    arena_reset(&state->build_arena);
    micro_require(join_table_build(&side, rows, 1, &state->build_arena, &err), &err);
    /* What one finds in it, rather than how it lies. */
    const uint32_t key_column = 0;
    uint32_t row = detail->side_rows / 2;
    uint64_t hash;
    key_hash(&rows, &key_column, 1, (struct selection){&row, 1}, &hash);
    return join_table_find(&side, hash, &rows, &key_column, row);
}

/* `odd` is 0 or 1: dense keys of the one kind are among, and different from, those of the other. */
static struct column make_keys(const struct join_detail *detail, const uint32_t *ids,
                               uint32_t count, uint32_t odd, struct arena *arena)
{
    struct column keys = micro_keys((struct type){.kind = detail->kind}, ids, count, arena);
    for (uint32_t i = 0; detail->dense && i < count; i++) {
        keys.ints[i] = (int64_t)ids[i] * 2 + odd;
    }
    return keys;
}

static void prepare_build(struct micro *micro)
{
    const struct join_detail *detail = micro->which->detail;
    struct join_state *state = micro_need(arena_new(&micro->arena, struct join_state));
    uint32_t count = detail->side_rows;
    uint32_t *ids = micro_ids(count, count, &micro->arena);
    state->side_key = make_keys(detail, ids, count, 0, &micro->arena);
    micro->state = state;
    micro->row_count = count;
    micro->byte_count = micro_column_bytes(&state->side_key, count);
}

static void prepare_probe(struct micro *micro)
{
    const struct join_detail *detail = micro->which->detail;
    prepare_build(micro);
    struct join_state *state = micro->state;
    struct batch rows = {detail->side_rows, 1, &state->side_key};
    struct error err;
    micro_require(join_table_build(&state->side, rows, 1, &micro->arena, &err), &err);

    uint32_t *ids = micro_ids(PROBE_ROWS, detail->side_rows, &micro->arena);
    for (uint32_t i = 0; detail->misses && !detail->dense && i < PROBE_ROWS; i++) {
        ids[i] += detail->side_rows;
    }
    state->probe_key = make_keys(detail, ids, PROBE_ROWS, detail->misses, &micro->arena);
    micro->row_count = PROBE_ROWS;
    micro->byte_count = micro_column_bytes(&state->probe_key, PROBE_ROWS);
}

static void prepare_find(struct micro *micro)
{
    prepare_probe(micro);
}

static void finish_join(struct micro *micro)
{
    struct join_state *state = micro->state;
    arena_done(&state->build_arena);
}

#define JOIN_CASE(name_, work, ...)                                                                \
    {                                                                                              \
        .name = "join/" #work "/" name_, .prepare = prepare_##work, .run = run_##work,             \
        .finish = finish_join, .detail = MICRO_DETAIL(join_detail, __VA_ARGS__)                    \
    }

static const struct micro_case cases[] = {
    JOIN_CASE("int/1k", build, TYPE_INT, 1000, false, false),
    JOIN_CASE("int/1M", build, TYPE_INT, 1000000, false, false),
    JOIN_CASE("dense/1k", build, TYPE_INT, 1000, false, true),
    JOIN_CASE("dense/1M", build, TYPE_INT, 1000000, false, true),
    JOIN_CASE("text/1k", build, TYPE_TEXT, 1000, false, false),
    JOIN_CASE("text/1M", build, TYPE_TEXT, 1000000, false, false),
    JOIN_CASE("int/1k/hit", probe, TYPE_INT, 1000, false, false),
    JOIN_CASE("int/1k/miss", probe, TYPE_INT, 1000, true, false),
    JOIN_CASE("int/1M/hit", probe, TYPE_INT, 1000000, false, false),
    JOIN_CASE("int/1M/miss", probe, TYPE_INT, 1000000, true, false),
    JOIN_CASE("dense/1k/hit", probe, TYPE_INT, 1000, false, true),
    JOIN_CASE("dense/1k/miss", probe, TYPE_INT, 1000, true, true),
    JOIN_CASE("dense/1M/hit", probe, TYPE_INT, 1000000, false, true),
    JOIN_CASE("dense/1M/miss", probe, TYPE_INT, 1000000, true, true),
    JOIN_CASE("text/1k/hit", probe, TYPE_TEXT, 1000, false, false),
    JOIN_CASE("text/1k/miss", probe, TYPE_TEXT, 1000, true, false),
    JOIN_CASE("text/1M/hit", probe, TYPE_TEXT, 1000000, false, false),
    JOIN_CASE("text/1M/miss", probe, TYPE_TEXT, 1000000, true, false),
    JOIN_CASE("int/1M/hit", find, TYPE_INT, 1000000, false, false),
    JOIN_CASE("int/1M/miss", find, TYPE_INT, 1000000, true, false),
    JOIN_CASE("text/1M/hit", find, TYPE_TEXT, 1000000, false, false),
    JOIN_CASE("text/1M/miss", find, TYPE_TEXT, 1000000, true, false),
};

const struct micro_suite micro_join = {cases, sizeof cases / sizeof cases[0]};
