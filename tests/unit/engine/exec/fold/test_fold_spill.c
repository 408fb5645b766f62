/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold_spill.c - a fold that spills emits the same bytes as one that stays in memory.
 *
 * Method: for every kind of fold, rows of every type are cut into numbered batches and applied in
 * some order, without a limit: what is emitted then, encoded, with its numbers, is what is
 * expected. The same batches are applied in other orders with a tenth of the memory that took, and
 * with a budget that other folds use up at random moments. Every call to the store, and every
 * allocation, is made to fail once.
 */
#include "unit/test.h"

#include <pthread.h>

#include "engine/exec/fold/fold.h"
#include "engine/exec/fold/group_table.h"
#include "unit/engine/exec/fold/make_grouping.h"
#include "unit/engine/exec/fold/memory_store.h"
#include "engine/data/batch_codec.h"

enum { PARTS_MAX = 512, FIELDS_MAX = 32 };

/* ---- examples ---- */

struct spill_part {
    struct batch_identity identity;
    struct buf bytes;
};

struct fold_example {
    struct fold fold;
    struct ranking ranking;
    struct sort_key keys[FIELDS_MAX];
    uint32_t partition_columns[2];
    struct made_grouping made;
    struct field left[FIELDS_MAX];
    struct field right[FIELDS_MAX];
    struct spill_part *parts;
    uint32_t part_count;
};

static void encode(const struct batch *batch, struct schema schema, struct buf *out)
{
    struct batch_builder builder;
    assert_true(builder_init(&builder, schema, NULL));
    builder_append(&builder, batch, (struct selection){NULL, batch->row_count});
    assert_false(builder.failed);
    batch_encode(&builder, out);
    assert_false(out->failed);
    builder_done(&builder);
}

/* What a map sends of these rows: themselves, or their groups' partial states. */
static void encode_part(const struct fold *fold, const struct batch *piece, struct schema schema,
                        struct buf *out)
{
    if (fold->kind != FOLD_AGGREGATE) {
        encode(piece, schema, out);
        return;
    }
    struct arena arena = {0};
    struct group_table *table;
    struct batch partial;
    struct error err;
    assert_int_equal(group_table_create(fold->grouping, NULL, &table, &err), STATUS_OK);
    for (uint32_t first = 0; first < piece->row_count; first += 2048) {
        struct column columns[GROUPED_COLUMNS];
        uint32_t count = piece->row_count - first < 2048 ? piece->row_count - first : 2048;
        struct batch slice = batch_slice(piece, first, count, columns);
        assert_int_equal(group_table_add(table, &slice, (struct selection){NULL, count}, &err),
                         STATUS_OK);
    }
    assert_int_equal(
        group_table_read(table, GROUP_PARTIAL, 0, group_table_count(table), &arena, &partial, &err),
        STATUS_OK);
    encode(&partial, schema, out);
    group_table_destroy(table);
    arena_done(&arena);
}

static void example_cut(struct fold_example *example, const struct batch *rows, uint32_t input,
                        uint32_t part_count, struct random *random)
{
    const struct fold *fold = &example->fold;
    struct schema schema = input == 1 && fold->kind == FOLD_JOIN ? fold->right : fold->input;
    struct batch_identity identity = {.input = input};
    uint32_t done = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        struct column columns[FIELDS_MAX];
        uint32_t left = rows->row_count - done;
        uint32_t most = left / (part_count - i) * 2 + 1;
        uint32_t count = i + 1 == part_count ? left : random_below(random, most + 1);
        if (count > left) count = left;
        struct batch piece = batch_slice(rows, done, count, columns);
        struct spill_part *part = &example->parts[example->part_count++];
        *part = (struct spill_part){.identity = identity};
        encode_part(fold, &piece, schema, &part->bytes);
        done += count;
        identity.number += 1 + random_below(random, 3);
        if (random_below(random, 9) == 0) {
            identity.producer++;
            identity.number = random_below(random, 3);
        }
    }
}

static void example_done(struct fold_example *example)
{
    for (uint32_t i = 0; i < example->part_count; i++) {
        buf_done(&example->parts[i].bytes);
    }
    free(example->parts);
    free(example);
}

/* Keys come again about `repeats` times. Some are equal in hash and differ: a NULL hashes as one
 * certain number. */
static void example_keys(struct batch *rows, uint32_t column, uint32_t repeats,
                         struct random *random, struct arena *arena)
{
    int64_t same_hash;
    uint64_t null_key = 0x9ae16a3b2f90404fu;
    memcpy(&same_hash, &null_key, sizeof same_hash);
    struct column *keys = &rows->columns[column];
    random_rows_need(column_need_nulls(keys, rows->row_count, arena) ? keys : NULL);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        uint32_t chosen = random_below(random, rows->row_count / repeats + 3);
        keys->nulls[i] = chosen == 0;
        keys->ints[i] = chosen == 1 ? same_hash : (int64_t)chosen * 7919;
    }
}

static uint32_t total_order(struct random *random, struct sort_key *keys, uint32_t column_count)
{
    for (uint32_t i = 0; i < 2; i++) {
        keys[i] = (struct sort_key){random_below(random, column_count),
                                    random_below(random, 2) == 0, random_below(random, 2) == 0};
    }
    for (uint32_t i = 0; i < column_count; i++) {
        keys[i + 2] = (struct sort_key){.column = i};
    }
    return column_count + 2;
}

struct example_options {
    enum fold_kind kind;
    uint32_t row_count;
    uint32_t part_count;
    uint32_t repeats; /* Rows per key. */
    uint32_t variant;
    bool narrow; /* A few columns, as most folds have. */
};

static void example_fields(struct fold_example *example, bool narrow)
{
    static const uint8_t few[] = {1, 4, 3};
    struct fold *fold = &example->fold;
    uint32_t count = 0;
    for (uint32_t i = 0; i < (narrow ? 3 : 10); i++) {
        /* The key first: a number. */
        uint32_t chosen = narrow ? few[i] : (i + 1) % 10;
        /* Lists are neither sorted nor ranked by. */
        bool ordered = fold->kind == FOLD_SORT || fold->kind == FOLD_RANK;
        if (ordered && type_is_list(random_rows_fields[chosen].type)) continue;
        example->left[count++] = random_rows_fields[chosen];
    }
    fold->input = (struct schema){example->left, count};
    fold->output = fold->input;
    example->right[0] = random_rows_fields[1];
    example->right[1] = random_rows_fields[4];
    example->right[2] = random_rows_fields[8];
    if (fold->kind == FOLD_JOIN) fold->right = (struct schema){example->right, 3};
}

static struct fold_example *example_new(struct example_options options, struct random *random)
{
    struct fold_example *example = random_rows_need(calloc(1, sizeof *example));
    struct arena arena = {0};
    struct random_rows rows = {
        .random = random, .arena = &arena, .domain = 200, .null_percent = 5, .plain_doubles = true};
    struct fold *fold = &example->fold;
    *fold = (struct fold){.kind = options.kind, .limit = UINT64_MAX};
    example->parts = random_rows_need(calloc(PARTS_MAX, sizeof *example->parts));
    struct batch left;
    if (options.kind == FOLD_AGGREGATE) {
        grouped_keys(&example->made, 1 << 1 | (options.narrow ? 0 : 1 << 4));
        if (options.narrow) {
            grouped_aggregate(&example->made, AGGREGATE_COUNT_ROWS, 0, 0);
            grouped_aggregate(&example->made, AGGREGATE_SUM, GROUPED_DOUBLE, 0);
            grouped_aggregate(&example->made, AGGREGATE_MAX, GROUPED_TYPES + 4, 0);
        } else {
            grouped_every_aggregate(&example->made);
        }
        fold->grouping = &example->made.grouping;
        fold->key_count = fold->grouping->key_count;
        fold->input = fold->grouping->partial;
        fold->output = fold->grouping->result;
        left = grouped_rows(&rows, options.row_count);
        example_keys(&left, 1, options.repeats, random, &arena);
    } else {
        example_fields(example, options.narrow);
        left = random_rows_batch(&rows, fold->input, options.row_count);
        example_keys(&left, 0, options.repeats, random, &arena);
        example->ranking = (struct ranking){.keys = example->keys,
                                            .limit = 1 + options.variant % 3,
                                            .partition_columns = example->partition_columns,
                                            .partition_count = options.kind == FOLD_RANK};
        example->ranking.key_count = total_order(random, example->keys, fold->input.count);
        fold->ranking = &example->ranking;
    }
    if (options.variant % 2 == 1 && options.kind != FOLD_AGGREGATE) {
        fold->offset = options.row_count / 7;
        fold->limit = options.row_count / 2;
    }
    example_cut(example, &left, 0, options.part_count, random);
    if (options.kind == FOLD_JOIN) {
        fold->key_count = 1;
        fold->inner = options.variant % 4 < 2;
        struct batch right = random_rows_batch(&rows, fold->right, options.row_count);
        example_keys(&right, 0, options.repeats, random, &arena);
        example_cut(example, &right, 1, options.part_count, random);
    }
    arena_done(&arena);
    return example;
}

/* ---- a run ---- */

struct outcome {
    struct fold_sink sink;
    struct buf bytes; /* Every batch, with its number. */
    uint64_t batch_count;
    uint64_t row_count;
};

static status take_batch(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                         struct error *err)
{
    struct outcome *outcome = (struct outcome *)sink;
    struct field fields[FIELDS_MAX * 4];
    (void)err;
    assert_int_equal(number, outcome->batch_count);
    outcome->batch_count++;
    outcome->row_count += batch->row_count;
    assert_true(batch->column_count <= FIELDS_MAX * 4);
    for (uint32_t i = 0; i < batch->column_count; i++) {
        fields[i] = (struct field){.type = batch->columns[i].type};
    }
    buf_put_u64(&outcome->bytes, number);
    encode(batch, (struct schema){fields, batch->column_count}, &outcome->bytes);
    return STATUS_OK;
}

/* Needs no memory of its own, so that it can be used while that fails. */
static status pass_batch(struct fold_sink *sink, uint64_t number, const struct batch *batch,
                         struct error *err)
{
    struct outcome *outcome = (struct outcome *)sink;
    (void)number, (void)err;
    outcome->row_count += batch->row_count;
    return STATUS_OK;
}

struct fold_trial {
    const struct fold_example *example;
    struct budget *budget;
    struct memory_store *store; /* NULL: none. */
    struct random random;
    uint32_t ballast_percent; /* In so many of a hundred cases other folds need the memory. */
    uint32_t asked_percent;   /* In so many it is asked to spill, */
    uint32_t asked_count;     /* which was so often. */
    bool only_counts;
    struct outcome outcome;
    uint64_t spilled_bytes;
};

static status run_apply(struct fold_trial *run, struct fold_shard *shard,
                        const struct spill_part *part, struct error *err)
{
    struct buf moved = {.budget = run->budget};
    uint64_t row_count;
    buf_put(&moved, part->bytes.bytes, part->bytes.size);
    status code = moved.failed ? error_memory(err)
                               : fold_shard_apply(shard, part->identity, &moved, &row_count, err);
    buf_done(&moved);
    return code;
}

/* Takes seven eighths of the limit and more, if there is room. Counting it is enough. */
static size_t ballast_take(struct fold_trial *run)
{
    size_t reserve = run->budget->limit_bytes / 8 - 1;
    size_t room = budget_room(run->budget);
    if (random_below(&run->random, 100) >= run->ballast_percent || room <= reserve) return 0;
    run->budget->used_bytes += room - reserve;
    return room - reserve;
}

static status run_steps(struct fold_trial *run, struct fold_shard *shard, struct error *err)
{
    const struct fold_example *example = run->example;
    uint32_t order[PARTS_MAX];
    for (uint32_t i = 0; i < example->part_count; i++) {
        uint32_t other = random_below(&run->random, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    status code = STATUS_OK;
    for (uint32_t i = 0; i < example->part_count && code == STATUS_OK; i++) {
        size_t ballast = ballast_take(run);
        code = run_apply(run, shard, &example->parts[order[i]], err);
        run->budget->used_bytes -= ballast;
        if (code == STATUS_OK && random_below(&run->random, 100) < run->asked_percent) {
            run->asked_count++;
            code = fold_shard_spill(shard, err);
        }
    }
    size_t ballast = ballast_take(run);
    if (code == STATUS_OK) code = fold_shard_finish(shard, err);
    run->budget->used_bytes -= ballast;
    for (uint32_t i = 0; i < 2 && code == STATUS_OK; i++) {
        buf_reset(&run->outcome.bytes);
        run->outcome.batch_count = 0;
        run->outcome.row_count = 0;
        run->outcome.sink.accept = run->only_counts ? pass_batch : take_batch;
        code = fold_shard_emit(shard, &run->outcome.sink, err);
    }
    return code;
}

static status run_fold(struct fold_trial *run, struct error *err)
{
    struct fold_shard *shard = NULL;
    struct spill_store *store = run->store == NULL ? NULL : &run->store->store;
    status code = fold_shard_create(&run->example->fold, run->budget, store, &shard, err);
    if (code == STATUS_OK) code = run_steps(run, shard, err);
    if (code == STATUS_OK) {
        assert_int_equal(fold_shard_counts(shard)->rows_out, run->outcome.row_count);
        if (!run->only_counts) {
            assert_int_equal(fold_shard_counts(shard)->batches_out, run->outcome.batch_count);
        }
    }
    fold_shard_destroy(shard);
    assert_int_equal(run->budget->used_bytes, 0);
    if (run->store != NULL) {
        assert_int_equal(run->store->opened, run->store->closed);
        run->spilled_bytes = run->store->written_bytes;
    }
    return code;
}

static struct fold_trial run_expected(const struct fold_example *example, struct budget *budget)
{
    struct fold_trial run = {.example = example, .budget = budget, .random = {1}};
    struct error err;
    assert_int_equal(run_fold(&run, &err), STATUS_OK);
    return run;
}

static void check_equal(const struct fold_trial *run, const struct fold_trial *expected)
{
    assert_int_equal(run->outcome.row_count, expected->outcome.row_count);
    assert_int_equal(run->outcome.batch_count, expected->outcome.batch_count);
    assert_int_equal(run->outcome.bytes.size, expected->outcome.bytes.size);
    if (run->outcome.bytes.size == 0) return;
    assert_memory_equal(run->outcome.bytes.bytes, expected->outcome.bytes.bytes,
                        run->outcome.bytes.size);
}

/* ---- the same bytes ---- */

static void check_limit(const struct fold_example *example, const struct fold_trial *expected,
                        size_t limit, uint64_t seed)
{
    struct memory_store store = memory_store_new();
    struct budget budget = {.limit_bytes = limit};
    struct fold_trial run = {
        .example = example, .budget = &budget, .store = &store, .random = {seed}};
    struct error err;
    status code = run_fold(&run, &err);
    if (code != STATUS_OK) {
        print_error("kind %d, limit %zu: %s\n", (int)example->fold.kind, limit, err.text);
    }
    assert_int_equal(code, STATUS_OK);
    assert_true(run.spilled_bytes > 0);
    assert_true(budget.peak_bytes <= limit);
    check_equal(&run, expected);
    buf_done(&run.outcome.bytes);
}

static void a_tenth_of_the_memory_gives_the_same_bytes(void **state)
{
    (void)state;
    struct random random = {1};
    for (int kind = FOLD_COLLECT; kind <= FOLD_JOIN; kind++) {
        /* An inner join, or everything; a left join, or a window. */
        for (uint32_t variant = 0; variant < 4; variant += 3) {
            /* An aggregate keeps the least of a row, and a tenth must have room for a batch. */
            uint32_t row_count = kind == FOLD_AGGREGATE ? 350000 : 250000;
            struct fold_example *example =
                example_new((struct example_options){.kind = (enum fold_kind)kind,
                                                     .row_count = row_count,
                                                     .part_count = 200,
                                                     .repeats = 2,
                                                     .variant = variant,
                                                     .narrow = true},
                            &random);
            struct budget wanted = {0};
            struct fold_trial expected = run_expected(example, &wanted);
            check_limit(example, &expected, wanted.peak_bytes / 10, variant);
            if (variant == 0) check_limit(example, &expected, wanted.peak_bytes / 3, 99);
            buf_done(&expected.outcome.bytes);
            example_done(example);
        }
    }
}

/* One of the small examples, and a limit at which its spilling and emitting fit. */
static struct fold_example *small_example(int kind, uint32_t variant, struct random *random)
{
    return example_new((struct example_options){.kind = (enum fold_kind)kind,
                                                .row_count = 1500,
                                                .part_count = 20,
                                                .repeats = 1 + variant % 3,
                                                .variant = variant},
                       random);
}
/* For sweeps, which run it very often. */
static struct fold_example *tiny_example(int kind, struct random *random)
{
    return example_new((struct example_options){.kind = (enum fold_kind)kind,
                                                .row_count = 1500,
                                                .part_count = 10,
                                                .repeats = 2,
                                                .narrow = true},
                       random);
}
static const size_t SMALL_LIMIT = (size_t)16 << 20;

static void every_moment_of_spilling_gives_the_same_bytes(void **state)
{
    (void)state;
    struct random random = {2};
    for (uint32_t round = 0; round < 10; round++) {
        int kind = FOLD_COLLECT + (int)(round % 5);
        struct fold_example *example = small_example(kind, round / 5, &random);
        struct budget wanted = {0};
        struct fold_trial expected = run_expected(example, &wanted);
        for (uint32_t percent = 0; percent <= 100; percent += 50) {
            struct memory_store store = memory_store_new();
            struct budget budget = {.limit_bytes = SMALL_LIMIT};
            struct fold_trial run = {.example = example,
                                     .budget = &budget,
                                     .store = &store,
                                     .random = {round + percent},
                                     .ballast_percent = percent};
            struct error err;
            status code = run_fold(&run, &err);
            if (code != STATUS_OK) print_error("kind %d: %s\n", kind, err.text);
            assert_int_equal(code, STATUS_OK);
            if (percent == 0) assert_int_equal(run.spilled_bytes, 0);
            if (percent == 100) assert_true(run.spilled_bytes > 0);
            check_equal(&run, &expected);
            buf_done(&run.outcome.bytes);
        }
        buf_done(&expected.outcome.bytes);
        example_done(example);
    }
}

static void a_shard_that_is_asked_to_spill_gives_the_same_bytes(void **state)
{
    (void)state;
    struct random random = {6};
    for (uint32_t round = 0; round < 10; round++) {
        int kind = FOLD_COLLECT + (int)(round % 5);
        struct fold_example *example = small_example(kind, round / 5, &random);
        struct budget wanted = {0};
        struct fold_trial expected = run_expected(example, &wanted);
        for (uint32_t percent = 20; percent <= 100; percent += 80) {
            struct memory_store store = memory_store_new();
            struct budget budget = {.limit_bytes = SMALL_LIMIT};
            struct fold_trial run = {.example = example,
                                     .budget = &budget,
                                     .store = &store,
                                     .random = {round + percent},
                                     .asked_percent = percent};
            struct error err;
            assert_int_equal(run_fold(&run, &err), STATUS_OK);
            assert_true(run.asked_count > 0 && run.spilled_bytes > 0);
            check_equal(&run, &expected);
            buf_done(&run.outcome.bytes);
        }
        buf_done(&expected.outcome.bytes);
        example_done(example);
    }
}

/* Only a shard that holds much, of a budget that has a limit, and while room is short. */
static void the_largest_is_worth_asking(void **state)
{
    (void)state;
    struct random random = {7};
    struct fold_example *example = small_example(FOLD_COLLECT, 0, &random);
    struct memory_store store = memory_store_new();
    struct budget budget = {.limit_bytes = (size_t)1 << 20};
    struct budget unlimited = {0};
    struct fold_trial run = {.example = example, .budget = &budget};
    struct fold_shard *shard;
    struct error err;
    assert_int_equal(fold_shard_create(&example->fold, &budget, &store.store, &shard, &err),
                     STATUS_OK);
    assert_int_equal(fold_shard_spillable(shard), 0);
    assert_false(fold_room_is_short(&budget));
    assert_false(fold_room_is_short(&unlimited));
    size_t empty = budget.used_bytes;
    for (uint32_t i = 0; budget.used_bytes < empty + budget.limit_bytes / 8; i++) {
        assert_int_equal(run_apply(&run, shard, &example->parts[i], &err), STATUS_OK);
        if (budget.used_bytes < empty + budget.limit_bytes / 16) {
            assert_int_equal(fold_shard_spillable(shard), 0);
        }
    }
    size_t held = fold_shard_spillable(shard);
    assert_true(held >= budget.limit_bytes / 16);
    /* Three quarters belong to other folds. */
    budget.used_bytes += budget.limit_bytes / 4 * 3 - 1000;
    assert_true(fold_room_is_short(&budget));
    assert_int_equal(fold_shard_spill(shard, &err), STATUS_OK);
    assert_int_equal(fold_shard_spillable(shard), 0);
    assert_true(store.written_bytes > 0);
    assert_true(budget_room(&budget) > budget.limit_bytes / 8);
    budget.used_bytes -= budget.limit_bytes / 4 * 3 - 1000;
    fold_shard_destroy(shard);
    /* Without a store there is nowhere to go. */
    assert_int_equal(fold_shard_create(&example->fold, &budget, NULL, &shard, &err), STATUS_OK);
    for (uint32_t i = 0; budget.used_bytes < budget.limit_bytes / 8; i++) {
        assert_int_equal(run_apply(&run, shard, &example->parts[i], &err), STATUS_OK);
    }
    assert_int_equal(fold_shard_spillable(shard), 0);
    fold_shard_destroy(shard);
    assert_int_equal(budget.used_bytes, 0);
    example_done(example);
}

/* ---- what is rare ---- */

/* A join by a few keys only: no hash divides the right side, and rows have very many partners. */
static void check_few_keys(uint32_t left_count, uint32_t right_count, bool inner, size_t limit)
{
    struct random random = {left_count};
    struct arena arena = {0};
    struct random_rows rows = {.random = &random, .arena = &arena, .domain = 3};
    struct fold_example *example = random_rows_need(calloc(1, sizeof *example));
    example->parts = random_rows_need(calloc(PARTS_MAX, sizeof *example->parts));
    example->left[0] = random_rows_fields[1];
    example->left[1] = random_rows_fields[4];
    example->fold = (struct fold){.kind = FOLD_JOIN,
                                  .input = {example->left, 2},
                                  .right = {example->left, 2},
                                  .key_count = 1,
                                  .inner = inner,
                                  .limit = UINT64_MAX};
    struct batch left = random_rows_batch(&rows, example->fold.input, left_count);
    rows.domain = 2; /* One of the keys has no partner. */
    struct batch right = random_rows_batch(&rows, example->fold.right, right_count);
    example_cut(example, &left, 0, 5, &random);
    example_cut(example, &right, 1, 50, &random);
    struct budget wanted = {0};
    struct fold_trial expected = run_expected(example, &wanted);
    check_limit(example, &expected, limit, 7);
    buf_done(&expected.outcome.bytes);
    example_done(example);
    arena_done(&arena);
}

static void a_join_by_few_keys_is_done_piece_by_piece(void **state)
{
    (void)state;
    check_few_keys(7, 60000, true, 5 << 19);
    check_few_keys(7, 60000, false, 5 << 19);
}

static void pairs_of_small_inputs_may_be_many(void **state)
{
    (void)state;
    check_few_keys(700, 700, false, 5 << 19);
}

struct shard_reader {
    const struct fold_shard *shard;
    struct outcome outcome;
    status code;
};

static void *read_all(void *context)
{
    struct shard_reader *reader = context;
    struct error err;
    reader->outcome.sink.accept = take_batch;
    reader->code = fold_shard_emit(reader->shard, &reader->outcome.sink, &err);
    return NULL;
}

static void several_threads_read_what_was_spilled(void **state)
{
    (void)state;
    enum { READERS = 4 };
    struct random random = {8};
    struct fold_example *example = small_example(FOLD_SORT, 0, &random);
    struct budget wanted = {0};
    struct fold_trial expected = run_expected(example, &wanted);
    struct memory_store store = memory_store_new();
    struct budget budget = {.limit_bytes = SMALL_LIMIT};
    struct fold_trial run = {.example = example, .budget = &budget, .ballast_percent = 100};
    struct shard_reader readers[READERS] = {{0}};
    pthread_t threads[READERS];
    struct fold_shard *shard;
    struct error err;
    assert_int_equal(fold_shard_create(&example->fold, &budget, &store.store, &shard, &err),
                     STATUS_OK);
    assert_int_equal(run_steps(&run, shard, &err), STATUS_OK);
    assert_true(store.written_bytes > 0);
    for (uint32_t i = 0; i < READERS; i++) {
        readers[i].shard = shard;
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    }
    for (uint32_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(readers[i].code, STATUS_OK);
        buf_done(&run.outcome.bytes);
        run.outcome = readers[i].outcome;
        check_equal(&run, &expected);
    }
    fold_shard_destroy(shard);
    buf_done(&run.outcome.bytes);
    buf_done(&expected.outcome.bytes);
    example_done(example);
}

static void a_build_side_may_be_made_of_spilled_batches(void **state)
{
    (void)state;
    struct random random = {3};
    struct fold_example *example = small_example(FOLD_COLLECT, 0, &random);
    struct memory_store store = memory_store_new();
    struct budget budget = {.limit_bytes = SMALL_LIMIT};
    struct fold_trial run = {.example = example, .budget = &budget, .store = &store};
    struct fold_shard *shard;
    struct error err;
    example->fold.is_build_side = true;
    example->fold.side_keys = 1;
    run.ballast_percent = 50;
    assert_int_equal(fold_shard_create(&example->fold, &budget, &store.store, &shard, &err),
                     STATUS_OK);
    assert_int_equal(run_steps(&run, shard, &err), STATUS_OK);
    assert_true(store.written_bytes > 0);
    const struct join_table *side = fold_shard_join_table(shard);
    assert_int_equal(side->rows.row_count, 1500);
    struct budget wanted = {0};
    struct fold_trial expected = run_expected(example, &wanted);
    check_equal(&run, &expected);
    fold_shard_destroy(shard);
    buf_done(&run.outcome.bytes);
    buf_done(&expected.outcome.bytes);
    /* One that finds no room fails as ever. */
    size_t ballast = SMALL_LIMIT - (300 << 10);
    budget.used_bytes += ballast;
    run = (struct fold_trial){.example = example, .budget = &budget, .store = &store};
    assert_int_equal(fold_shard_create(&example->fold, &budget, &store.store, &shard, &err),
                     STATUS_OK);
    status code = run_steps(&run, shard, &err);
    assert_int_equal(code, STATUS_MEMORY);
    fold_shard_destroy(shard);
    budget.used_bytes -= ballast;
    assert_int_equal(budget.used_bytes, 0);
    buf_done(&run.outcome.bytes);
    example_done(example);
}

static void a_scalar_is_read_back(void **state)
{
    (void)state;
    struct random random = {4};
    struct fold_example *example = small_example(FOLD_COLLECT, 0, &random);
    example->fold.is_scalar = true;
    for (uint32_t round = 0; round < 8; round++) {
        struct value values[2];
        example->fold.offset = round * 200;
        example->fold.limit = round == 7 ? 2 : 1;
        for (uint32_t i = 0; i < 2; i++) {
            struct memory_store store = memory_store_new();
            struct budget budget = {.limit_bytes = SMALL_LIMIT};
            struct fold_trial run = {
                .example = example, .budget = &budget, .ballast_percent = i * 100};
            struct fold_shard *shard;
            struct error err;
            assert_int_equal(fold_shard_create(&example->fold, &budget, &store.store, &shard, &err),
                             STATUS_OK);
            assert_int_equal(run_steps(&run, shard, &err), STATUS_OK);
            status code = fold_shard_scalar(shard, &values[i], &err);
            assert_int_equal(code, round == 7 ? STATUS_INPUT : STATUS_OK);
            if (i == 1 && round > 0) assert_true(store.written_bytes > 0);
            fold_shard_destroy(shard);
            buf_done(&run.outcome.bytes);
        }
        if (round == 7) continue;
        assert_int_equal(values[0].is_null, values[1].is_null);
        assert_int_equal(values[0].integer, values[1].integer);
    }
    example_done(example);
}

/* ---- failures ---- */

enum { FAIL_OPEN, FAIL_WRITE, FAIL_READ, FAIL_FLIP, FAIL_KINDS };

static void check_failing_calls(const struct fold_example *example, int what)
{
    bool failed = true;
    for (uint64_t allowed = 0; failed; allowed += 1 + allowed / 10) {
        struct memory_store store = memory_store_new();
        struct budget budget = {.limit_bytes = SMALL_LIMIT};
        struct fold_trial run = {.example = example,
                                 .budget = &budget,
                                 .store = &store,
                                 .random = {5},
                                 .ballast_percent = 60,
                                 .only_counts = true};
        struct error err;
        uint64_t *const left[] = {&store.opens_left, &store.writes_left, &store.reads_left,
                                  &store.flip_read};
        *left[what] = allowed;
        status code = run_fold(&run, &err);
        failed = store.failed;
        status expected = what == FAIL_FLIP ? STATUS_CORRUPT : STATUS_IO;
        assert_int_equal(code, failed ? expected : STATUS_OK);
        assert_true(allowed > 0 || failed);
        assert_true(allowed < 100000);
    }
}

static void every_failing_call_to_the_store_is_reported(void **state)
{
    (void)state;
    struct random random = {5};
    for (int kind = FOLD_COLLECT; kind <= FOLD_JOIN; kind++) {
        struct fold_example *example = tiny_example(kind, &random);
        for (int what = FAIL_OPEN; what < FAIL_KINDS; what++) {
            check_failing_calls(example, what);
        }
        example_done(example);
    }
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct random random = {6};
    for (int kind = FOLD_COLLECT; kind <= FOLD_JOIN; kind++) {
        struct fold_example *example = tiny_example(kind, &random);
        bool refused = true;
        for (size_t allowed = 0; refused; allowed += 1 + allowed / 40) {
            struct memory_store store = memory_store_new();
            struct budget budget = {.limit_bytes = SMALL_LIMIT};
            struct fold_trial run = {.example = example,
                                     .budget = &budget,
                                     .store = &store,
                                     .random = {6},
                                     .ballast_percent = 60,
                                     .only_counts = true};
            struct error err;
            memory_fail_after(allowed);
            status code = run_fold(&run, &err);
            refused = memory_was_refused();
            memory_fail_never();
            assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        }
        example_done(example);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenth_of_the_memory_gives_the_same_bytes),
        cmocka_unit_test(every_moment_of_spilling_gives_the_same_bytes),
        cmocka_unit_test(a_shard_that_is_asked_to_spill_gives_the_same_bytes),
        cmocka_unit_test(the_largest_is_worth_asking),
        cmocka_unit_test(a_join_by_few_keys_is_done_piece_by_piece),
        cmocka_unit_test(pairs_of_small_inputs_may_be_many),
        cmocka_unit_test(several_threads_read_what_was_spilled),
        cmocka_unit_test(a_build_side_may_be_made_of_spilled_batches),
        cmocka_unit_test(a_scalar_is_read_back),
        cmocka_unit_test(every_failing_call_to_the_store_is_reported),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
