/* SPDX-License-Identifier: Apache-2.0 */
/* bench_wire.c - batches to bytes and back, of as many rows as a chunk's.
 *
 * Bytes are the encoded ones. Decoding uses numbers where they lie, so it is measured by what it
 * must look at all the same: NULL flags, the ends of texts, and a view for each of these.
 */
#include "micro.h"

#include "engine/data/batch_codec.h"

enum { BATCHES = 32, BATCH_ROWS = 4096 };

struct wire_detail {
    enum micro_file file;
    const char *sql; /* All columns of its table are sent. */
};

struct wire_state {
    struct micro_rows rows;
    struct buf encoded[BATCHES];
    struct arena arena;
};

static uint64_t run_encode(struct micro *micro)
{
    struct wire_state *state = micro->state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < BATCHES; i++) {
        struct buf *out = &state->encoded[i];
        buf_reset(out);
        batch_encode(&state->rows.builders[i], out);
        (void)micro_need(out->failed ? NULL : out);
        sum += out->size + out->bytes[out->size / 2];
    }
    return sum;
}

static uint64_t run_decode(struct micro *micro)
{
    struct wire_state *state = micro->state;
    struct error err;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < BATCHES; i++) {
        const struct buf *bytes = &state->encoded[i];
        struct batch batch;
        arena_reset(&state->arena);
        micro_require(batch_decode(bytes->bytes, bytes->size, state->rows.table->schema,
                                   &state->arena, &batch, &err),
                      &err);
        sum += batch.row_count + !column_is_null(&batch.columns[1], BATCH_ROWS / 2);
    }
    return sum;
}

static void prepare_wire(struct micro *micro)
{
    const struct wire_detail *detail = micro->which->detail;
    struct wire_state *state = micro_need(arena_new(&micro->arena, struct wire_state));
    state->rows = (struct micro_rows){
        .file = detail->file,
        .table = &micro_compile(detail->sql, &micro->arena)->tables[0],
        .rows_each = BATCH_ROWS,
        .batch_count = BATCHES,
    };
    micro_rows_make(&state->rows, &micro->arena);
    micro->state = state;
    micro->row_count = (uint64_t)BATCHES * BATCH_ROWS;
    (void)run_encode(micro); /* For its bytes; the checksum is asked for later. */
    for (uint32_t i = 0; i < BATCHES; i++) {
        micro->byte_count += state->encoded[i].size;
    }
}

static void finish_wire(struct micro *micro)
{
    struct wire_state *state = micro->state;
    for (uint32_t i = 0; i < BATCHES; i++) {
        buf_done(&state->encoded[i]);
    }
    micro_rows_done(&state->rows);
    arena_done(&state->arena);
}

#define WIRE_CASE(name_, work, ...)                                                                \
    {                                                                                              \
        .name = "wire/" #work "/" name_, .prepare = prepare_wire, .run = run_##work,               \
        .finish = finish_wire, .detail = MICRO_DETAIL(wire_detail, __VA_ARGS__)                    \
    }

static const struct micro_case cases[] = {
    WIRE_CASE("ratings", encode, MICRO_RATINGS, "SELECT movieId FROM ratings"),
    WIRE_CASE("transactions", encode, MICRO_TRANSACTIONS, "SELECT store_id FROM transactions"),
    WIRE_CASE("comments", encode, MICRO_COMMENTS, "SELECT body FROM comments"),
    WIRE_CASE("ratings", decode, MICRO_RATINGS, "SELECT movieId FROM ratings"),
    WIRE_CASE("transactions", decode, MICRO_TRANSACTIONS, "SELECT store_id FROM transactions"),
    WIRE_CASE("comments", decode, MICRO_COMMENTS, "SELECT body FROM comments"),
};

const struct micro_suite micro_wire = {cases, sizeof cases / sizeof cases[0]};
