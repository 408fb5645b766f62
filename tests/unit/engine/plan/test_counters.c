/* SPDX-License-Identifier: Apache-2.0 */
/* test_counters.c - counters add up to the same whatever the order, and survive as bytes.
 *
 * Method: random counters of a real plan are laid out as a flat list of triples, which a naive
 * model adds up; merging, encoding and adding, in random orders and groupings, must give the same
 * list. Encoded bytes are cut and changed in every place.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/base/random.h"
#include "engine/sql/compile.h"
#include "engine/plan/counters.h"

enum { PARTS = 9, TRIPLES_MAX = 200, ENTRY_BYTES = 1 + 4 + 3 * 8 };

static const struct compile_query queries[] = {
    {TEXT_INIT("totals"), TEXT_INIT("SELECT store, sum(amount) AS t FROM sales GROUP BY store")},
    {TEXT_INIT("names"),
     TEXT_INIT("SELECT name, count(*) AS n FROM sales JOIN stores ON sales.store = stores.store "
               "WHERE amount > (SELECT avg(amount) FROM sales) GROUP BY name ORDER BY n")},
};

static const struct plan *make_plan(struct arena *arena)
{
    struct compile_input input = {
        .tables_sql = TEXT_LITERAL(
            "CREATE TABLE sales (id INT NOT NULL, store INT NOT NULL, amount INT) FROM 's.csv';"
            "CREATE TABLE stores (store INT NOT NULL, name TEXT NOT NULL) FROM 'n.csv';"),
        .queries = queries,
        .query_count = 2,
    };
    struct plan *plan = NULL;
    struct error err;
    assert_int_equal(compile_queries(&input, arena, &plan, &err), STATUS_OK);
    assert_true(plan->table_count == 2 && plan->pipeline_count > 2 && plan->fold_count > 2);
    return plan;
}

/* ---- counters as a list ---- */

struct triple {
    uint64_t *counts[3];
    bool is_line; /* A count and a place, not three counts. */
};

struct counter_layout {
    struct triple triples[TRIPLES_MAX];
    uint32_t count;
};

static void layout_add(struct counter_layout *layout, uint64_t *a, uint64_t *b, uint64_t *c)
{
    assert_true(layout->count < TRIPLES_MAX);
    layout->triples[layout->count++] = (struct triple){{a, b, c}, false};
}

static void layout_add_line(struct counter_layout *layout, struct drop_counter *line)
{
    layout_add(layout, &line->count, &line->first_chunk, &line->first_line);
    layout->triples[layout->count - 1].is_line = true;
}

static void layout_of(const struct counters *counters, const struct plan *plan,
                      struct counter_layout *layout)
{
    static uint64_t nothing;
    nothing = 0;
    layout->count = 0;
    for (uint32_t i = 0; i < plan->table_count; i++) {
        struct table_counters *table_counters = &counters->tables[i];
        layout_add(layout, &table_counters->record_count, &table_counters->kept_count, &nothing);
        layout_add_line(layout, &table_counters->wrong_fields);
        assert_int_equal(table_counters->column_count, plan->tables[i].schema.count);
        for (uint32_t column = 0; column < table_counters->column_count; column++) {
            layout_add_line(layout, &table_counters->dropped[column][DROP_EMPTY]);
            layout_add_line(layout, &table_counters->dropped[column][DROP_UNREADABLE]);
            layout_add_line(layout, &table_counters->nulled[column]);
        }
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        struct stage_counts *map = &counters->maps[i];
        struct exchange_count *sent = &counters->sent[i];
        struct exchange_count *applied = &counters->applied[i];
        layout_add(layout, &map->rows_in, &map->rows_out, &map->malformed);
        layout_add(layout, &sent->batch_count, &sent->row_count, &sent->hash_sum);
        layout_add(layout, &applied->batch_count, &applied->row_count, &applied->hash_sum);
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        struct fold_counts *fold = &counters->folds[i];
        layout_add(layout, &fold->rows_in, &fold->rows_out, &fold->batches_out);
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        struct exchange_count *given = &counters->given[i];
        layout_add(layout, &given->batch_count, &given->row_count, &given->hash_sum);
    }
}

typedef uint64_t flat[TRIPLES_MAX][3];

static void flatten(const struct counters *counters, const struct plan *plan, flat out)
{
    struct counter_layout layout;
    layout_of(counters, plan, &layout);
    memset(out, 0, sizeof(flat));
    for (uint32_t i = 0; i < layout.count; i++) {
        for (uint32_t j = 0; j < 3; j++) {
            out[i][j] = *layout.triples[i].counts[j];
        }
    }
}

static void check_flat(const struct counters *counters, const struct plan *plan, flat expected)
{
    flat found;
    flatten(counters, plan, found);
    assert_memory_equal(found, expected, sizeof found);
}

/* ---- random counters ---- */

struct counter_world {
    struct arena arena;
    const struct plan *plan;
    struct counters parts[PARTS];
    flat total; /* Of all parts, added up naively. */
};

static struct counters new_counters(struct counter_world *world)
{
    struct counters counters;
    assert_true(counters_init(&counters, world->plan, &world->arena));
    return counters;
}

static void fill_triple(struct random *random, const struct triple *triple)
{
    if (random_below(random, 3) == 0) return;
    for (uint32_t i = 0; i < 3; i++) {
        bool is_sum = !triple->is_line && i == 2; /* Sums of hashes wrap around. */
        *triple->counts[i] = is_sum ? random_u64(random) : random_below(random, 5);
    }
    if (triple->is_line && *triple->counts[0] == 0) {
        *triple->counts[1] = *triple->counts[2] = 0; /* No place without a record. */
    }
}

static void fill_counters(struct counter_world *world, struct random *random,
                          struct counters *counters)
{
    const struct plan *plan = world->plan;
    struct counter_layout layout;
    layout_of(counters, plan, &layout);
    for (uint32_t i = 0; i < layout.count; i++) {
        fill_triple(random, &layout.triples[i]);
    }
    for (uint32_t i = 0; i < plan->table_count; i++) {
        struct table_counters *table_counters = &counters->tables[i];
        if (random_below(random, 4) > 0) {
            table_counters->record_count++;
            continue;
        }
        /* Where nothing was read, there is nothing to tell. */
        uint32_t columns = table_counters->column_count;
        memset(table_counters->dropped, 0, columns * sizeof *table_counters->dropped);
        memset(table_counters->nulled, 0, columns * sizeof *table_counters->nulled);
        table_counters->wrong_fields = (struct drop_counter){0};
        table_counters->record_count = table_counters->kept_count = 0;
    }
}

static bool is_before(const uint64_t *a, const uint64_t *b)
{
    return a[1] != b[1] ? a[1] < b[1] : a[2] < b[2];
}

static void add_naively(flat total, const struct counter_layout *layout, flat part)
{
    for (uint32_t i = 0; i < layout->count; i++) {
        if (!layout->triples[i].is_line) {
            for (uint32_t j = 0; j < 3; j++) {
                total[i][j] += part[i][j];
            }
            continue;
        }
        if (part[i][0] == 0) continue;
        if (total[i][0] == 0 || is_before(part[i], total[i])) {
            total[i][1] = part[i][1];
            total[i][2] = part[i][2];
        }
        total[i][0] += part[i][0];
    }
}

static void world_open(struct counter_world *world, uint64_t seed)
{
    struct random random = {seed};
    *world = (struct counter_world){.plan = NULL};
    world->plan = make_plan(&world->arena);
    for (uint32_t i = 0; i < PARTS; i++) {
        struct counter_layout layout;
        flat part;
        world->parts[i] = new_counters(world);
        fill_counters(world, &random, &world->parts[i]);
        layout_of(&world->parts[i], world->plan, &layout);
        flatten(&world->parts[i], world->plan, part);
        add_naively(world->total, &layout, part);
    }
}

static void world_close(struct counter_world *world)
{
    arena_done(&world->arena);
}

static struct text encode(const struct counter_world *world, const struct counters *counters,
                          struct buf *out)
{
    buf_reset(out);
    counters_encode(counters, world->plan, out);
    assert_false(out->failed);
    return (struct text){(const char *)out->bytes, (uint32_t)out->size};
}

/* ---- tests ---- */

static void a_decoded_counters_is_the_one_encoded(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct counter_world world;
        struct buf bytes = {0};
        struct buf again = {0};
        world_open(&world, seed);
        for (uint32_t i = 0; i < PARTS; i++) {
            struct counters decoded = new_counters(&world);
            struct error err;
            flat expected;
            struct text text = encode(&world, &world.parts[i], &bytes);
            assert_int_equal(text.size % ENTRY_BYTES, 0);
            assert_int_equal(counters_add(&decoded, world.plan, text, &err), STATUS_OK);
            flatten(&world.parts[i], world.plan, expected);
            check_flat(&decoded, world.plan, expected);
            assert_true(text_equal(encode(&world, &decoded, &again), text));
        }
        buf_done(&bytes);
        buf_done(&again);
        world_close(&world);
    }
}

static void an_counters_of_nothing_is_no_bytes(void **state)
{
    (void)state;
    struct counter_world world;
    struct buf bytes = {0};
    struct error err;
    world_open(&world, 3);
    struct counters counters = new_counters(&world);
    assert_int_equal(encode(&world, &counters, &bytes).size, 0);
    flat nothing;
    memset(nothing, 0, sizeof nothing);
    check_flat(&counters, world.plan, nothing);
    assert_int_equal(counters_add(&counters, world.plan, (struct text){0}, &err), STATUS_OK);
    check_flat(&counters, world.plan, nothing);
    for (uint32_t i = 0; i < PARTS; i++) {
        counters_reset(&world.parts[i], world.plan);
        check_flat(&world.parts[i], world.plan, nothing);
        /* What was reset can be used as before. */
        assert_int_equal(counters_add(&world.parts[i], world.plan, (struct text){0}, &err),
                         STATUS_OK);
        assert_int_equal(encode(&world, &world.parts[i], &bytes).size, 0);
    }
    buf_done(&bytes);
    world_close(&world);
}

static void shuffle(struct random *random, uint32_t *order)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        order[i] = i;
    }
    for (uint32_t i = PARTS - 1; i > 0; i--) {
        uint32_t other = random_below(random, i + 1);
        uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void parts_add_up_to_the_same_in_any_order_and_grouping(void **state)
{
    (void)state;
    struct random random = {77};
    for (uint64_t seed = 100; seed < 130; seed++) {
        struct counter_world world;
        struct buf bytes = {0};
        struct error err;
        uint32_t order[PARTS];
        world_open(&world, seed);
        for (uint32_t round = 0; round < 10; round++) {
            /* Parts go into groups, which are then put together. */
            struct counters groups[3] = {new_counters(&world), new_counters(&world),
                                         new_counters(&world)};
            shuffle(&random, order);
            for (uint32_t i = 0; i < PARTS; i++) {
                struct counters *group = &groups[random_below(&random, 3)];
                struct text text = encode(&world, &world.parts[order[i]], &bytes);
                assert_int_equal(counters_add(group, world.plan, text, &err), STATUS_OK);
            }
            for (uint32_t i = 0; i < 2; i++) {
                struct text text = encode(&world, &groups[i], &bytes);
                assert_int_equal(counters_add(&groups[2], world.plan, text, &err), STATUS_OK);
            }
            check_flat(&groups[2], world.plan, world.total);
        }
        buf_done(&bytes);
        world_close(&world);
    }
}

/* ---- hostile bytes ---- */

/* Bytes in a block of their own, so that a step past their end is noticed. */
static bool is_accepted(struct counter_world *world, const unsigned char *bytes, size_t size)
{
    struct arena_mark mark = arena_mark(&world->arena);
    struct counters counters = new_counters(world);
    struct error err = {.text = ""};
    unsigned char *block = memory_alloc(NULL, size + (size == 0));
    assert_non_null(block);
    if (size > 0) memcpy(block, bytes, size);
    struct text text = {(const char *)block, (uint32_t)size};
    status code = counters_add(&counters, world->plan, text, &err);
    assert_true(code == STATUS_OK || (code == STATUS_CORRUPT && err.text[0] != '\0'));
    memory_free(NULL, block, size + (size == 0));
    arena_release(&world->arena, mark);
    return code == STATUS_OK;
}

static void cut_and_changed_bytes_are_refused_or_are_an_counters(void **state)
{
    (void)state;
    struct counter_world world;
    struct buf bytes = {0};
    world_open(&world, 5);
    struct text text = encode(&world, &world.parts[0], &bytes);
    assert_true(text.size > 10 * ENTRY_BYTES);
    for (size_t size = 0; size <= text.size; size++) {
        assert_int_equal(is_accepted(&world, bytes.bytes, size), size % ENTRY_BYTES == 0);
    }
    for (size_t bit = 0; bit < (size_t)text.size * 8; bit++) {
        unsigned char mask = (unsigned char)(1u << bit % 8);
        bytes.bytes[bit / 8] ^= mask;
        bool accepted = is_accepted(&world, bytes.bytes, text.size);
        /* Counts may be any; tags and indexes only some. */
        if (bit / 8 % ENTRY_BYTES >= 5) assert_true(accepted);
        bytes.bytes[bit / 8] ^= mask;
    }
    buf_done(&bytes);
    world_close(&world);
}

static void put_entry(struct buf *out, uint8_t tag, uint32_t index)
{
    buf_put_u8(out, tag);
    buf_put_u32(out, index);
    for (uint64_t i = 1; i <= 3; i++) {
        buf_put_u64(out, i);
    }
}

/* How many indexes a tag has; the numbers of tags are those of the encoding. */
static uint32_t index_count(const struct plan *plan, uint8_t tag, uint32_t table)
{
    switch (tag) {
    case 1:
        return plan->table_count;
    case 2: /* The whole record, and three lines of each column. */
        return 1 + 3 * plan->tables[table].schema.count;
    case 3:
    case 4:
    case 5:
        return plan->pipeline_count;
    case 6:
        return plan->fold_count;
    case 7:
        return plan->query_count;
    default:
        return 0;
    }
}

static void tags_and_indexes_the_plan_has_not_are_refused(void **state)
{
    (void)state;
    struct counter_world world;
    struct buf bytes = {0};
    world_open(&world, 6);
    for (uint32_t table = 0; table < world.plan->table_count; table++) {
        for (uint32_t tag = 0; tag < 256; tag++) {
            uint32_t count = index_count(world.plan, (uint8_t)tag, table);
            const uint32_t far_off[] = {1000, INT32_MAX, UINT32_MAX - 1, UINT32_MAX};
            for (uint32_t i = 0; i < count + 3 + 4; i++) {
                uint32_t index = i < count + 3 ? i : far_off[i - count - 3];
                buf_reset(&bytes);
                put_entry(&bytes, 1, table);
                put_entry(&bytes, (uint8_t)tag, index);
                assert_int_equal(is_accepted(&world, bytes.bytes, bytes.size), index < count);
            }
        }
    }
    /* A line that speaks of no table. */
    buf_reset(&bytes);
    put_entry(&bytes, 2, 0);
    assert_false(is_accepted(&world, bytes.bytes, bytes.size));
    buf_done(&bytes);
    world_close(&world);
}

/* ---- ends of exchanges ---- */

static void an_end_is_the_same_in_any_order_and_tells_places_apart(void **state)
{
    (void)state;
    static const struct batch_place places[] = {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0},
                                                {7, 3, 9}, {3, 7, 9}, {9, 7, 3}};
    enum { PLACES = sizeof places / sizeof places[0] };
    const struct text bytes[2] = {TEXT_LITERAL("one batch"), TEXT_LITERAL("another")};
    struct exchange_count there = {0};
    struct exchange_count back = {0};
    for (uint32_t i = 0; i < PLACES; i++) {
        uint32_t last = PLACES - 1 - i;
        exchange_count_add(&there, places[i], i, bytes[i % 2]);
        exchange_count_add(&back, places[last], last, bytes[last % 2]);
    }
    assert_memory_equal(&there, &back, sizeof there);
    assert_int_equal(there.batch_count, PLACES);
    assert_int_equal(there.row_count, PLACES * (PLACES - 1) / 2);
    for (uint32_t i = 0; i < PLACES; i++) {
        for (uint32_t j = 0; j < i; j++) {
            struct exchange_count straight = {0};
            struct exchange_count swapped = {0};
            exchange_count_add(&straight, places[i], 1, bytes[0]);
            exchange_count_add(&straight, places[j], 1, bytes[1]);
            exchange_count_add(&swapped, places[i], 1, bytes[1]);
            exchange_count_add(&swapped, places[j], 1, bytes[0]);
            assert_true(straight.hash_sum != swapped.hash_sum);
        }
    }
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct arena plan_arena = {0};
    const struct plan *plan = make_plan(&plan_arena);
    bool refused = true;
    for (size_t count = 0; refused; count++) {
        struct arena arena = {0};
        struct counters counters;
        memory_fail_after(count);
        bool fits = counters_init(&counters, plan, &arena);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(fits, !refused);
        arena_done(&arena);
    }
    arena_done(&plan_arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decoded_counters_is_the_one_encoded),
        cmocka_unit_test(an_counters_of_nothing_is_no_bytes),
        cmocka_unit_test(parts_add_up_to_the_same_in_any_order_and_grouping),
        cmocka_unit_test(cut_and_changed_bytes_are_refused_or_are_an_counters),
        cmocka_unit_test(tags_and_indexes_the_plan_has_not_are_refused),
        cmocka_unit_test(an_end_is_the_same_in_any_order_and_tells_places_apart),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
