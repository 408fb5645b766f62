/* SPDX-License-Identifier: Apache-2.0 */
/* test_group_records.c - a row finds the record of its key, whichever way it is looked for.
 *
 * Method: keys are drawn from ranges that move and widen from batch to batch, at the ends of the
 * integers too, with NULLs; there are one to five of them. The model numbers keys in the order in
 * which they first come. Records must be those of the model's numbers, after resets too, while a
 * table goes from slots to a window, to a wider one, and back. Then they are put in order.
 */
#include "unit/test.h"

#include "engine/base/random.h"
#include "engine/exec/fold/group_records.h"
#include "engine/data/key_hash.h"
#include "unit/engine/data/key_with_hash.h"

enum { KEYS = 5, ROWS = GROUP_SLICE_ROWS, BUCKETS = 1 << 12, GROUPS = 60000 };

/* What comes next, key by key: values from `lowest` on. */
struct draw {
    int64_t lowest[KEYS];
    uint64_t width[KEYS];
    uint32_t null_percent;
};

struct model_key {
    int64_t words[KEYS]; /* 0 when NULL. */
    bool nulls[KEYS];
    uint32_t next; /* Of the same bucket, and one. */
};

struct group_model {
    uint32_t heads[BUCKETS];
    struct model_key *keys;
    uint32_t count;
};

static uint32_t model_find(struct group_model *model, uint32_t key_count,
                           const struct model_key *key)
{
    uint64_t mixed = 0;
    for (uint32_t i = 0; i < key_count; i++) {
        mixed = (mixed + (uint64_t)key->words[i] + key->nulls[i]) * 0x9e3779b97f4a7c15u;
    }
    uint32_t *head = &model->heads[mixed >> 52];
    for (uint32_t at = *head; at != 0; at = model->keys[at - 1].next) {
        const struct model_key *other = &model->keys[at - 1];
        if (memcmp(key->words, other->words, sizeof key->words) == 0 &&
            memcmp(key->nulls, other->nulls, sizeof key->nulls) == 0) {
            return at - 1;
        }
    }
    assert_true(model->count < GROUPS);
    model->keys[model->count] = *key;
    model->keys[model->count++].next = *head;
    *head = model->count;
    return model->count - 1;
}

static void model_reset(struct group_model *model)
{
    memset(model->heads, 0, sizeof model->heads);
    model->count = 0;
}

struct scene {
    struct random random;
    struct group_records records;
    struct group_model model;
    struct budget budget;
    struct column columns[KEYS];
    int64_t words[KEYS][ROWS];
    uint8_t nulls[KEYS][ROWS];
    uint32_t key_count;
    uint32_t grown_count; /* How often a window became another. */
    uint32_t found_count; /* Marks put on records. */
    size_t state_offset;
};

static const struct field fields[KEYS] = {{.type = {.kind = TYPE_INT}},
                                          {.type = {.kind = TYPE_DATE}},
                                          {.type = {.kind = TYPE_TIMESTAMP}},
                                          {.type = {.kind = TYPE_DECIMAL, .precision = 9}},
                                          {.type = {.kind = TYPE_INT}}};
static const uint32_t key_columns[KEYS] = {0, 1, 2, 3, 4};

static bool scene_init(struct scene *scene, uint32_t key_count)
{
    struct group_layout layout = {{fields, key_count}, key_count, sizeof(uint64_t)};
    scene->key_count = key_count;
    return group_records_init(&scene->records, layout, &scene->budget, &scene->state_offset);
}

static struct scene *scene_create(uint64_t seed, uint32_t key_count)
{
    struct scene *scene = test_calloc(1, sizeof *scene);
    scene->random = (struct random){seed};
    scene->model.keys = test_calloc(GROUPS, sizeof *scene->model.keys);
    assert_true(scene_init(scene, key_count));
    return scene;
}

static void scene_destroy(struct scene *scene)
{
    group_records_done(&scene->records);
    assert_int_equal(scene->budget.used_bytes, 0);
    test_free(scene->model.keys);
    test_free(scene);
}

static void scene_reset(struct scene *scene)
{
    group_records_reset(&scene->records);
    model_reset(&scene->model);
    assert_int_equal(scene->records.count, 0);
}

static void draw_rows(struct scene *scene, const struct draw *draw)
{
    for (uint32_t i = 0; i < scene->key_count; i++) {
        scene->columns[i] = (struct column){
            .type = fields[i].type,
            .ints = scene->words[i],
            .nulls = draw->null_percent > 0 ? scene->nulls[i] : NULL,
        };
        for (uint32_t row = 0; row < ROWS; row++) {
            uint64_t step = draw->width[i] == 0 ? random_u64(&scene->random)
                                                : random_u64(&scene->random) % draw->width[i];
            scene->words[i][row] = (int64_t)((uint64_t)draw->lowest[i] + step);
            scene->nulls[i][row] = random_u64(&scene->random) % 100 < draw->null_percent;
        }
    }
}

static struct model_key key_of_row(const struct scene *scene, uint32_t row)
{
    struct model_key key = {0};
    for (uint32_t i = 0; i < scene->key_count; i++) {
        key.nulls[i] = column_is_null(&scene->columns[i], row);
        if (!key.nulls[i]) key.words[i] = scene->words[i][row];
    }
    return key;
}

/* Whether there was memory for it. */
static bool find_drawn(struct scene *scene, uint32_t count, bool all_rows)
{
    unsigned char *found[ROWS];
    uint32_t rows[ROWS];
    struct batch batch = {ROWS, scene->key_count, scene->columns};
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i] = ROWS - 1 - i;
    }
    struct selection selection = {all_rows ? NULL : rows, count};
    const uint32_t *window = scene->records.window.groups;
    size_t need = group_records_need(&scene->records, count) + scene->budget.used_bytes;
    scene->budget.peak_bytes = scene->budget.used_bytes;
    if (!group_records_find(&scene->records, &batch, key_columns, selection, found)) return false;
    /* The list of blocks, which is short, may double. */
    assert_true(scene->budget.peak_bytes <= need + 4096);
    scene->grown_count += window != NULL && scene->records.window.groups != window;
    for (uint32_t i = 0; i < count; i++) {
        struct model_key key = key_of_row(scene, selection_row(selection, i));
        uint32_t group = model_find(&scene->model, scene->key_count, &key);
        assert_ptr_equal(found[i], group_record(&scene->records, group));
        ++*(uint64_t *)(void *)(found[i] + scene->state_offset);
    }
    scene->found_count += count;
    assert_int_equal(scene->records.count, scene->model.count);
    return true;
}

static void find_rows(struct scene *scene, const struct draw *draw, uint32_t batch_count)
{
    for (uint32_t i = 0; i < batch_count; i++) {
        draw_rows(scene, draw);
        uint32_t count = i % 3 == 0 ? ROWS : (uint32_t)(random_u64(&scene->random) % (ROWS + 1));
        assert_true(find_drawn(scene, count, i % 2 == 0));
    }
}

/* Keys, hashes and states of all groups. */
static void check_records(struct scene *scene)
{
    struct arena arena = {0};
    const struct group_records *records = &scene->records;
    uint32_t count = records->count;
    unsigned char **from = arena_array(&arena, unsigned char *, (size_t)count + 1);
    struct column columns[KEYS];
    assert_non_null(from);
    for (uint32_t group = 0; group < count; group++) {
        from[group] = group_record(records, group);
    }
    for (uint32_t i = 0; i < scene->key_count; i++) {
        assert_true(column_init(&columns[i], fields[i].type, count, &arena));
    }
    assert_true(group_records_read(records, from, count, columns, &arena));
    uint64_t *hashes = arena_array(&arena, uint64_t, (size_t)count + 1);
    assert_non_null(hashes);
    struct batch batch = {count, scene->key_count, columns};
    key_hash(&batch, key_columns, scene->key_count, (struct selection){NULL, count}, hashes);
    uint64_t mark_count = 0;
    for (uint32_t group = 0; group < count; group++) {
        const struct model_key *key = &scene->model.keys[group];
        for (uint32_t i = 0; i < scene->key_count; i++) {
            assert_int_equal(column_is_null(&columns[i], group), key->nulls[i]);
            if (!key->nulls[i]) assert_int_equal(columns[i].ints[group], key->words[i]);
        }
        assert_true(group_record_hash(records, from[group]) == hashes[group]);
        mark_count += *(uint64_t *)(void *)(from[group] + scene->state_offset);
    }
    assert_int_equal(mark_count, scene->found_count);
    arena_done(&arena);
}

/* Every group once, by hash and then by keys. Ends with a reset, since nothing else may follow. */
static void check_order(struct scene *scene)
{
    struct group_records *records = &scene->records;
    uint32_t count = records->count;
    bool *seen = test_calloc((size_t)count + 1, sizeof *seen);
    size_t need = group_records_order_need(records) + scene->budget.used_bytes;
    scene->budget.peak_bytes = scene->budget.used_bytes;
    assert_true(group_records_order(records));
    assert_true(group_records_order(records));
    assert_true(scene->budget.peak_bytes <= need);
    for (uint32_t place = 0; place < count; place++) {
        const unsigned char *record = group_record_at(records, place);
        uint32_t group = group_slot_group(records->slots.items[place]);
        assert_true(group < count && !seen[group]);
        assert_ptr_equal(record, group_record(records, group));
        seen[group] = true;
        if (place == 0) continue;
        const unsigned char *before = group_record_at(records, place - 1);
        uint64_t hash = group_record_hash(records, record);
        uint64_t hash_before = group_record_hash(records, before);
        assert_true(hash_before <= hash);
        if (hash_before == hash) assert_true(group_records_compare(records, before, record) < 0);
    }
    test_free(seen);
    scene_reset(scene);
    scene->found_count = 0;
}

static struct draw draw_evenly(uint32_t key_count, int64_t lowest, uint64_t width,
                               uint32_t null_percent)
{
    struct draw draw = {.null_percent = null_percent};
    for (uint32_t i = 0; i < key_count; i++) {
        draw.lowest[i] = lowest;
        draw.width[i] = width;
    }
    return draw;
}

static void narrow_keys_get_a_window_and_keep_it(void **state)
{
    (void)state;
    static const int64_t lowests[] = {0, -3, 1000000, INT64_MIN, INT64_MAX - 6};
    for (uint32_t key_count = 1; key_count <= KEYS; key_count++) {
        for (size_t i = 0; i < sizeof lowests / sizeof *lowests; i++) {
            struct scene *scene = scene_create(i + 1, key_count);
            struct draw draw = draw_evenly(key_count, lowests[i], 7, i % 2 == 0 ? 0 : 10);
            for (uint32_t round = 0; round < 3; round++) {
                find_rows(scene, &draw, 120);
                check_records(scene);
                check_order(scene);
            }
            assert_int_equal(scene->records.window.place_count > 0, key_count <= KEY_WINDOW_KEYS);
            assert_int_equal(scene->records.slots.count == 0, key_count <= KEY_WINDOW_KEYS);
            scene_destroy(scene);
        }
    }
}

/* Ranges move away in steps; some are too large for a window at last. */
static void a_window_widens_until_it_would_be_too_large(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint32_t key_count = 1 + (uint32_t)(seed % 3);
        struct scene *scene = scene_create(seed, key_count);
        struct draw draw =
            draw_evenly(key_count, seed % 2 == 0 ? -4 : INT64_MIN + 100, 5, seed % 4 == 0 ? 20 : 0);
        find_rows(scene, &draw, 130);
        assert_true(scene->records.window.place_count > 0);
        for (uint32_t step = 0; step < 20; step++) {
            uint32_t moved = (uint32_t)(random_u64(&scene->random) % key_count);
            draw.width[moved] += random_u64(&scene->random) % 12;
            draw.lowest[moved] += (int64_t)(random_u64(&scene->random) % 9) - 4;
            if (step == 17) draw.width[moved] = seed % 5 == 0 ? 0 : 1 << 22;
            if (step == 18) draw = draw_evenly(key_count, INT64_MAX - 5, 6, 1);
            find_rows(scene, &draw, 4);
            if (step == 10) {
                check_records(scene);
                check_order(scene);
            }
        }
        check_records(scene);
        check_order(scene);
        assert_true(scene->grown_count > 1);
        assert_int_equal(scene->records.window.place_count, 0);
        assert_true(scene->records.window_gone);
        scene_destroy(scene);
    }
}

/* A window comes late, when there are enough groups for its size, and resets leave few or many. */
static void many_groups_of_a_wide_range_get_a_window(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct scene *scene = scene_create(seed, 1);
        struct draw draw = draw_evenly(1, -70000, 200000, seed % 2 == 0 ? 0 : 1);
        find_rows(scene, &draw, 70);
        assert_int_equal(scene->records.window.place_count, 0);
        find_rows(scene, &draw, 400);
        assert_true(scene->records.window.place_count > 200000);
        check_records(scene);
        for (uint32_t round = 0; round < 4; round++) {
            check_order(scene);
            find_rows(scene, &draw, round % 2 == 0 ? 3 : 300);
            check_records(scene);
        }
        scene_destroy(scene);
    }
}

/* Of three kinds: any hashes; such as begin with the same bits, as a shard has them; and such that
 * have few upper halves. */
static int64_t nth_key(uint64_t number, uint32_t kind)
{
    uint64_t hash = (number + 1) * 0x9e3779b97f4a7c15u;
    if (kind == 1) hash = hash >> 8 | (uint64_t)0xa5 << 56;
    if (kind == 2) hash = hash >> 32 | (number % 500) << 32;
    return key_with_hash(hash);
}

/* The slots grow to several megabytes, in place, and every group is found again. */
static void many_groups_are_found_after_growing(void **state)
{
    (void)state;
    static const uint32_t counts[] = {400000, 300000, 3000};
    for (uint32_t kind = 0; kind < 3; kind++) {
        struct scene *scene = scene_create(1, 1);
        uint32_t count = counts[kind];
        for (uint32_t round = 0; round < 2; round++) {
            for (uint32_t first = 0; first < count; first += ROWS) {
                uint32_t rows = count - first < ROWS ? count - first : ROWS;
                unsigned char *found[ROWS];
                for (uint32_t i = 0; i < rows; i++) {
                    scene->words[0][i] = nth_key(first + i, kind);
                }
                scene->columns[0] =
                    (struct column){.type = fields[0].type, .ints = scene->words[0]};
                struct batch batch = {rows, 1, scene->columns};
                assert_true(group_records_find(&scene->records, &batch, key_columns,
                                               (struct selection){NULL, rows}, found));
                for (uint32_t i = 0; i < rows; i++) {
                    assert_ptr_equal(found[i], group_record(&scene->records, first + i));
                }
            }
            assert_int_equal(scene->records.count, count);
        }
        check_order(scene);
        scene_destroy(scene);
    }
}

static bool play(struct scene *scene)
{
    struct draw draw = draw_evenly(2, 5, 6, 5);
    for (uint32_t i = 0; i < 90; i++) {
        if (i == 70) draw.width[0] = 400;
        if (i == 80) draw.width[1] = 0;
        draw_rows(scene, &draw);
        if (!find_drawn(scene, ROWS, true)) return false;
        if (i == 75) {
            if (!group_records_order(&scene->records)) return false;
            scene_reset(scene);
            scene->found_count = 0;
        }
    }
    return true;
}

static void every_failing_allocation_is_reported_and_a_reset_heals(void **state)
{
    (void)state;
    bool refused = true;
    for (size_t allowed = 0; refused; allowed++) {
        struct scene *scene = scene_create(9, 2);
        group_records_done(&scene->records);
        memory_fail_after(allowed);
        bool made = scene_init(scene, 2);
        bool played = made && play(scene);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(played, !refused);
        if (!refused) assert_true(scene->grown_count > 0 && scene->records.window_gone);
        if (made) {
            scene_reset(scene);
            scene->found_count = 0;
            assert_true(play(scene));
            check_records(scene);
        }
        scene_destroy(scene);
        assert_true(allowed < 1000);
    }
}

/* Short ones are in the record, long ones beside it: neither is where the row had it. */
static void texts_of_any_size_are_kept(void **state)
{
    (void)state;
    enum { SIZES = 40 };
    static const struct field field = {.type = {.kind = TYPE_TEXT}};
    static const uint32_t column = 0;
    char bytes[SIZES][SIZES];
    struct text texts[2 * SIZES];
    unsigned char *found[2 * SIZES];
    for (uint32_t i = 0; i < SIZES; i++) {
        memset(bytes[i], 'k', sizeof bytes[i]);
        texts[i] = texts[SIZES + i] = (struct text){bytes[i], i};
    }
    struct column keys = {.type = field.type, .texts = texts};
    struct batch batch = {.row_count = 2 * SIZES, .column_count = 1, .columns = &keys};
    struct group_records records;
    size_t state_offset;
    assert_true(group_records_init(&records, (struct group_layout){{&field, 1}, 1, 8}, NULL,
                                   &state_offset));
    assert_true(
        group_records_find(&records, &batch, &column, (struct selection){NULL, 2 * SIZES}, found));
    assert_int_equal(records.count, SIZES);
    memset(bytes, 'x', sizeof bytes);
    struct text kept[SIZES];
    struct column read = {.type = field.type, .texts = kept};
    assert_true(group_records_read(&records, found, SIZES, &read, NULL));
    for (uint32_t i = 0; i < SIZES; i++) {
        assert_ptr_equal(found[i], found[SIZES + i]);
        assert_int_equal(kept[i].size, i);
        for (uint32_t j = 0; j < i; j++) {
            assert_int_equal(kept[i].bytes[j], 'k');
        }
        if (i > 0) assert_true(group_records_compare(&records, found[i], found[i - 1]) > 0);
    }
    group_records_done(&records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_keys_get_a_window_and_keep_it),
        cmocka_unit_test(a_window_widens_until_it_would_be_too_large),
        cmocka_unit_test(many_groups_of_a_wide_range_get_a_window),
        cmocka_unit_test(many_groups_are_found_after_growing),
        cmocka_unit_test(every_failing_allocation_is_reported_and_a_reset_heals),
        cmocka_unit_test(texts_of_any_size_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
