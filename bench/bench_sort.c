/* SPDX-License-Identifier: Apache-2.0 */
/* bench_sort.c - ORDER BY over a million rows in random order: row_sort, which moves row numbers.
 */
#include "micro.h"

#include "engine/exec/fold/row_sort.h"

enum { ROWS = 1000000, RATINGS = 10 };

struct sort_detail {
    uint8_t kind;
    bool ties; /* A first key of few values, descending; the key proper decides between equals. */
};

struct sort_state {
    struct batch batch;
    struct sort_key keys[2];
    uint32_t key_count;
    uint32_t *rows;
    struct arena scratch;
};

static uint64_t run_sort(struct micro *micro)
{
    struct sort_state *state = micro->state;
    for (uint32_t i = 0; i < ROWS; i++) {
        state->rows[i] = i;
    }
    bool sorted =
        row_sort(&state->batch, state->keys, state->key_count, state->rows, ROWS, &state->scratch);
    (void)micro_need(sorted ? state : NULL);
    arena_reset(&state->scratch);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ROWS; i += 1 + ROWS / 100) {
        sum = sum * 31 + state->rows[i];
    }
    return sum;
}

static void prepare_sort(struct micro *micro)
{
    const struct sort_detail *detail = micro->which->detail;
    struct arena *arena = &micro->arena;
    struct sort_state *state = micro_need(arena_new(arena, struct sort_state));
    struct column *columns = micro_need(arena_array(arena, struct column, 2));
    struct type type = {.kind = detail->kind};
    columns[0] = micro_keys(TYPE(INT), micro_ids(ROWS, RATINGS, arena), ROWS, arena);
    columns[1] = micro_keys(type, micro_ids(ROWS, ROWS, arena), ROWS, arena);
    state->batch = (struct batch){ROWS, 2, columns};
    if (detail->ties) {
        state->keys[state->key_count++] = (struct sort_key){.column = 0, .descending = true};
        micro->byte_count = micro_column_bytes(&columns[0], ROWS);
    }
    state->keys[state->key_count++] = (struct sort_key){.column = 1};
    state->rows = micro_need(arena_array(arena, uint32_t, ROWS));
    micro->byte_count += micro_column_bytes(&columns[1], ROWS);
    micro->row_count = ROWS;
    micro->state = state;
}

static void finish_sort(struct micro *micro)
{
    struct sort_state *state = micro->state;
    arena_done(&state->scratch);
}

#define SORT_CASE(name_, ...)                                                                      \
    {                                                                                              \
        .name = "sort/" name_, .prepare = prepare_sort, .run = run_sort, .finish = finish_sort,    \
        .detail = MICRO_DETAIL(sort_detail, __VA_ARGS__)                                           \
    }

static const struct micro_case cases[] = {
    SORT_CASE("int", TYPE_INT, false),
    SORT_CASE("text", TYPE_TEXT, false),
    SORT_CASE("ties+int", TYPE_INT, true),
    SORT_CASE("ties+text", TYPE_TEXT, true),
};

const struct micro_suite micro_sort = {cases, sizeof cases / sizeof cases[0]};
