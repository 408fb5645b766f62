/* SPDX-License-Identifier: Apache-2.0 */
/* test_manifest.c - manifests survive as bytes, are written in one way only, and damage is noticed.
 *
 * Method: random manifests full of exchange values are encoded, decoded and compared field by
 * field. One of them is cut and changed in every place, with and without a checksum that fits.
 * Limits and names are tried just inside and just outside.
 */
#include "unit/test.h"

#include "unit/cluster/wire/sealed_bytes.h"
#include "cluster/wire/manifest.h"

static struct text text_from(const struct buf *bytes)
{
    return (struct text){(const char *)bytes->bytes, (uint32_t)bytes->size};
}

static struct manifest_table random_table(struct random *random, struct arena *arena)
{
    uint32_t count = random_below(random, 4);
    struct manifest_file *files = arena_array(arena, struct manifest_file, (size_t)count + 1);
    assert_non_null(files);
    for (uint32_t i = 0; i < count; i++) {
        files[i] =
            (struct manifest_file){sealed_random_text(random, arena), sealed_random_u64(random)};
    }
    return (struct manifest_table){sealed_random_text(random, arena), files, count};
}

static void random_lists(struct random *random, struct arena *arena, struct manifest *manifest)
{
    enum { MOST = 4 };
    struct manifest_query *queries = arena_array(arena, struct manifest_query, MOST);
    struct manifest_setting *settings = arena_array(arena, struct manifest_setting, MOST);
    struct manifest_table *tables = arena_array(arena, struct manifest_table, MOST);
    struct manifest_worker *workers = arena_array(arena, struct manifest_worker, MOST);
    assert_true(queries != NULL && settings != NULL && tables != NULL && workers != NULL);
    for (uint32_t i = 0; i < MOST; i++) {
        queries[i].name = sealed_random_text(random, arena);
        queries[i].sql = sealed_random_text(random, arena);
        settings[i].name = sealed_random_text(random, arena);
        settings[i].value = sealed_random_text(random, arena);
        tables[i] = random_table(random, arena);
        workers[i].name = sealed_random_name(random, arena);
        workers[i].maps = sealed_random_bool(random);
        workers[i].folds = sealed_random_bool(random);
    }
    manifest->queries = queries;
    manifest->query_count = random_below(random, MOST + 1);
    manifest->settings = settings;
    manifest->setting_count = random_below(random, MOST + 1);
    manifest->tables = tables;
    manifest->table_count = random_below(random, MOST + 1);
    manifest->workers = workers;
    manifest->worker_count = random_below(random, MOST + 1);
}

static struct manifest random_manifest(struct random *random, struct arena *arena)
{
    struct manifest manifest = {
        .job = sealed_random_name(random, arena),
        .build = sealed_random_text(random, arena),
        .owner = sealed_random_u64(random),
        .plan = sealed_random_u64(random),
        .tables_sql = sealed_random_text(random, arena),
        .shard_count = sealed_random_u32(random),
        .chunk_bytes = sealed_random_u32(random),
        .field_limit = sealed_random_u32(random),
        .broadcast_limit = sealed_random_u64(random),
        .memory_limit = sealed_random_u64(random),
        .log_limit = sealed_random_u64(random),
    };
    random_lists(random, arena, &manifest);
    return manifest;
}

static void compare_tables(const struct manifest_table *a, const struct manifest_table *b)
{
    assert_true(text_equal(a->name, b->name));
    assert_int_equal(a->file_count, b->file_count);
    for (uint32_t i = 0; i < a->file_count; i++) {
        assert_true(text_equal(a->files[i].name, b->files[i].name));
        assert_true(a->files[i].size == b->files[i].size);
    }
}

static void compare_lists(const struct manifest *a, const struct manifest *b)
{
    assert_int_equal(a->query_count, b->query_count);
    for (uint32_t i = 0; i < a->query_count; i++) {
        assert_true(text_equal(a->queries[i].name, b->queries[i].name));
        assert_true(text_equal(a->queries[i].sql, b->queries[i].sql));
    }
    assert_int_equal(a->setting_count, b->setting_count);
    for (uint32_t i = 0; i < a->setting_count; i++) {
        assert_true(text_equal(a->settings[i].name, b->settings[i].name));
        assert_true(text_equal(a->settings[i].value, b->settings[i].value));
    }
    assert_int_equal(a->table_count, b->table_count);
    for (uint32_t i = 0; i < a->table_count; i++) {
        compare_tables(&a->tables[i], &b->tables[i]);
    }
    assert_int_equal(a->worker_count, b->worker_count);
    for (uint32_t i = 0; i < a->worker_count; i++) {
        assert_true(text_equal(a->workers[i].name, b->workers[i].name));
        assert_int_equal(a->workers[i].maps, b->workers[i].maps);
        assert_int_equal(a->workers[i].folds, b->workers[i].folds);
    }
}

static void compare(const struct manifest *a, const struct manifest *b)
{
    assert_true(text_equal(a->job, b->job));
    assert_true(text_equal(a->build, b->build));
    assert_true(a->owner == b->owner);
    assert_true(a->plan == b->plan);
    assert_true(text_equal(a->tables_sql, b->tables_sql));
    compare_lists(a, b);
    assert_int_equal(a->shard_count, b->shard_count);
    assert_int_equal(a->chunk_bytes, b->chunk_bytes);
    assert_int_equal(a->field_limit, b->field_limit);
    assert_true(a->broadcast_limit == b->broadcast_limit);
    assert_true(a->memory_limit == b->memory_limit);
    assert_true(a->log_limit == b->log_limit);
}

static void decoded_manifests_are_those_encoded(void **state)
{
    (void)state;
    struct random random = {1};
    for (uint32_t round = 0; round < 1000; round++) {
        struct arena arena = {0};
        struct buf bytes = {0};
        struct manifest decoded;
        struct error err;
        struct manifest manifest = random_manifest(&random, &arena);
        manifest_encode(&manifest, &bytes);
        assert_false(bytes.failed);
        assert_int_equal(manifest_decode(text_from(&bytes), &arena, &decoded, &err), STATUS_OK);
        compare(&manifest, &decoded);
        buf_done(&bytes);
        arena_done(&arena);
    }
}

static status again(struct text bytes, struct buf *out, struct error *err)
{
    struct arena arena = {0};
    struct manifest manifest;
    status code = manifest_decode(bytes, &arena, &manifest, err);
    if (code == STATUS_OK) manifest_encode(&manifest, out);
    arena_done(&arena);
    return code;
}

static void damage_is_refused_or_is_another_manifest(void **state)
{
    (void)state;
    struct random random = {2};
    struct manifest manifest;
    struct buf bytes = {0};
    struct arena arena = {0};
    do {
        manifest = random_manifest(&random, &arena);
    } while (manifest.query_count == 0 || manifest.setting_count == 0 ||
             manifest.worker_count == 0 || manifest.table_count == 0 ||
             manifest.tables[0].file_count == 0);
    manifest_encode(&manifest, &bytes);
    sealed_check_damage(&bytes, again);
    buf_done(&bytes);
    arena_done(&arena);
}

static void a_manifest_behind_other_bytes_is_the_same(void **state)
{
    (void)state;
    struct random random = {3};
    struct arena arena = {0};
    struct buf alone = {0};
    struct buf behind = {0};
    struct manifest manifest = random_manifest(&random, &arena);
    manifest_encode(&manifest, &alone);
    buf_put_string(&behind, "abc");
    manifest_encode(&manifest, &behind);
    assert_int_equal(behind.size, alone.size + 3);
    assert_memory_equal(behind.bytes + 3, alone.bytes, alone.size);
    buf_done(&alone);
    buf_done(&behind);
    arena_done(&arena);
}

/* Whether it can be encoded, and is decoded then. */
static bool survives(const struct manifest *manifest)
{
    struct arena arena = {0};
    struct buf bytes = {0};
    struct manifest decoded;
    struct error err;
    manifest_encode(manifest, &bytes);
    bool encoded = !bytes.failed;
    if (encoded) {
        assert_int_equal(manifest_decode(text_from(&bytes), &arena, &decoded, &err), STATUS_OK);
        compare(manifest, &decoded);
    }
    buf_done(&bytes);
    arena_done(&arena);
    return encoded;
}

static void every_limit_can_be_met_and_not_passed(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct manifest plain = {.job = TEXT_LITERAL("job")};
    struct manifest_query *queries =
        arena_array(&arena, struct manifest_query, MANIFEST_QUERIES_MAX + 1);
    struct manifest_setting *settings =
        arena_array(&arena, struct manifest_setting, MANIFEST_SETTINGS_MAX + 1);
    struct manifest_file *files = arena_array(&arena, struct manifest_file, MANIFEST_FILES_MAX + 1);
    struct manifest_table *tables =
        arena_array(&arena, struct manifest_table, MANIFEST_TABLES_MAX + 1);
    struct manifest_worker *workers =
        arena_array(&arena, struct manifest_worker, MANIFEST_WORKERS_MAX + 1);
    char *sql = arena_array(&arena, char, MANIFEST_TEXT_MAX + 1);
    assert_true(queries != NULL && settings != NULL && files != NULL && tables != NULL &&
                workers != NULL && sql != NULL);
    for (uint32_t i = 0; i <= MANIFEST_WORKERS_MAX; i++) {
        workers[i].name = TEXT_LITERAL("w");
    }
    assert_true(survives(&plain));
    for (uint32_t over = 0; over <= 1; over++) {
        struct manifest many[6] = {plain, plain, plain, plain, plain, plain};
        struct manifest_table table = {.files = files, .file_count = MANIFEST_FILES_MAX + over};
        many[0].queries = queries, many[0].query_count = MANIFEST_QUERIES_MAX + over;
        many[1].settings = settings, many[1].setting_count = MANIFEST_SETTINGS_MAX + over;
        many[2].tables = tables, many[2].table_count = MANIFEST_TABLES_MAX + over;
        many[3].workers = workers, many[3].worker_count = MANIFEST_WORKERS_MAX + over;
        many[4].tables = &table, many[4].table_count = 1;
        many[5].tables_sql = (struct text){sql, MANIFEST_TEXT_MAX + over};
        for (uint32_t i = 0; i < 6; i++) {
            assert_int_equal(survives(&many[i]), over == 0);
        }
    }
    arena_done(&arena);
}

static void counts_beyond_a_limit_are_refused_though_the_items_are_there(void **state)
{
    (void)state;
    struct manifest manifest = {.job = TEXT_LITERAL("job")};
    enum { QUERIES_AT = 2 + 4 + 3 + 4 + 8 + 8 + 4 };
    for (uint32_t over = 0; over <= 1; over++) {
        struct buf plain = {0};
        struct buf bytes = {0};
        uint32_t count = MANIFEST_QUERIES_MAX + over;
        manifest_encode(&manifest, &plain);
        buf_put(&bytes, plain.bytes, QUERIES_AT);
        buf_put_u32(&bytes, count);
        for (uint32_t i = 0; i < count; i++) {
            buf_put_u64(&bytes, 0);
        }
        buf_put(&bytes, plain.bytes + QUERIES_AT + 4, plain.size - SEAL_BYTES - QUERIES_AT - 4);
        assert_int_equal(sealed_accepted_resealed(bytes.bytes, bytes.size, again), over == 0);
        buf_done(&plain);
        buf_done(&bytes);
    }
}

static void names_are_short_and_plain(void **state)
{
    (void)state;
    char longest[MANIFEST_NAME_MAX + 1];
    memset(longest, 'x', sizeof longest);
    for (uint32_t size = 0; size <= MANIFEST_NAME_MAX + 1; size++) {
        assert_int_equal(manifest_name_valid((struct text){longest, size}),
                         size >= 1 && size <= MANIFEST_NAME_MAX);
    }
    for (int byte = 0; byte < 256; byte++) {
        char name[3] = {'a', (char)byte, 'b'};
        bool plain = byte != 0 && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                         "0123456789._-",
                                         byte) != NULL;
        assert_int_equal(manifest_name_valid((struct text){name, 3}), plain);
        assert_int_equal(manifest_name_valid((struct text){name + 1, 1}), plain && byte != '.');
    }
    assert_false(manifest_name_valid((struct text){0}));
    assert_false(manifest_name_valid(TEXT_LITERAL("..")));
    assert_true(manifest_name_valid(TEXT_LITERAL("...")));
    assert_true(manifest_name_valid(TEXT_LITERAL(".a")));
}

static void names_that_are_none_are_not_encoded(void **state)
{
    (void)state;
    struct manifest_worker worker = {.name = TEXT_LITERAL("a/b")};
    struct manifest no_job = {.tables_sql = TEXT_LITERAL("x")};
    struct manifest bad_job = {.job = TEXT_LITERAL("..")};
    struct manifest bad_worker = {
        .job = TEXT_LITERAL("job"), .workers = &worker, .worker_count = 1};
    assert_false(survives(&no_job));
    assert_false(survives(&bad_job));
    assert_false(survives(&bad_worker));
}

static void another_manifest_has_another_hash_and_none_has_none(void **state)
{
    (void)state;
    struct manifest manifest = {.job = TEXT_LITERAL("job")};
    struct buf bytes = {0};
    manifest_encode(&manifest, &bytes);
    uint64_t hash = manifest_hash(text_from(&bytes));
    assert_true(hash != 0);
    assert_true(hash == manifest_hash(text_from(&bytes)));
    buf_reset(&bytes);
    manifest.log_limit = 1;
    manifest_encode(&manifest, &bytes);
    assert_true(hash != manifest_hash(text_from(&bytes)));
    buf_done(&bytes);
}

static void memory_that_runs_out_is_said(void **state)
{
    (void)state;
    struct random random = {4};
    struct arena arena = {0};
    struct buf bytes = {0};
    struct manifest manifest = random_manifest(&random, &arena);
    while (manifest.query_count == 0) {
        manifest = random_manifest(&random, &arena);
    }
    manifest_encode(&manifest, &bytes);
    for (size_t count = 0;; count++) {
        struct arena small = {0};
        struct manifest decoded;
        struct error err;
        memory_fail_after(count);
        status code = manifest_decode(text_from(&bytes), &small, &decoded, &err);
        bool refused = memory_was_refused();
        memory_fail_never();
        arena_done(&small);
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        if (!refused) break;
    }
    struct buf none = {0};
    memory_fail_after(0);
    manifest_encode(&manifest, &none);
    memory_fail_never();
    assert_true(none.failed);
    buf_done(&none);
    buf_done(&bytes);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_manifests_are_those_encoded),
        cmocka_unit_test(damage_is_refused_or_is_another_manifest),
        cmocka_unit_test(a_manifest_behind_other_bytes_is_the_same),
        cmocka_unit_test(every_limit_can_be_met_and_not_passed),
        cmocka_unit_test(counts_beyond_a_limit_are_refused_though_the_items_are_there),
        cmocka_unit_test(names_are_short_and_plain),
        cmocka_unit_test(names_that_are_none_are_not_encoded),
        cmocka_unit_test(another_manifest_has_another_hash_and_none_has_none),
        cmocka_unit_test(memory_that_runs_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
