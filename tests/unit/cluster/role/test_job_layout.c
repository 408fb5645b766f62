/* SPDX-License-Identifier: Apache-2.0 */
/* test_job_layout.c - every node that has a manifest knows the same owners, or refuses it.
 *
 * Method: for every choice of workers that fold, and several numbers of shards, owners are counted
 * and streams compared with what the plan's pipelines say. What maps need is looked up in plans of
 * single queries, where it is known. Manifests are changed in every byte, with and without a
 * checksum that fits.
 */
#include "unit/test.h"

#include <string.h>

#include "engine/base/hash.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/expr/sentiment_model.h"
#include "unit/cluster/role/shop_job.h"

enum { SEAL_BYTES = 8, CHOICES = 1 << SHOP_WORKERS };

/* ---- ownership ---- */

static void check_owners(const struct job_layout *layout)
{
    const struct manifest *manifest = &layout->manifest;
    for (uint32_t fold = 0; fold < layout->plan->fold_count; fold++) {
        uint32_t shard_count = layout->shard_counts[fold];
        uint32_t owned[SHOP_WORKERS] = {0};
        assert_int_equal(shard_count,
                         fold_shard_count(&layout->plan->folds[fold], manifest->shard_count));
        for (uint32_t shard = 0; shard < shard_count; shard++) {
            uint32_t owner = job_layout_owner(layout, fold, shard);
            assert_true(owner < manifest->worker_count);
            assert_true(manifest->workers[owner].folds);
            owned[owner]++;
        }
        /* Dealt out evenly. */
        uint32_t fair = shard_count / layout->fold_worker_count;
        for (uint32_t worker = 0; worker < manifest->worker_count; worker++) {
            if (!manifest->workers[worker].folds) continue;
            assert_true(owned[worker] == fair || owned[worker] == fair + 1);
        }
    }
    for (uint32_t scan = 0; scan < layout->plan->scan_count; scan++) {
        uint32_t supervisor = job_layout_counter_owner(layout, scan);
        assert_true(supervisor < manifest->worker_count);
        assert_true(manifest->workers[supervisor].folds);
    }
}

enum { SOURCES_MAX = 40 };

/* Who gets something of each stream, from the batches that there are. */
struct fed {
    bool by_scan[SOURCES_MAX][SHOP_WORKERS];
    bool by_fold[SOURCES_MAX][SHOP_WORKERS];
};

static void check_feeds(const struct job_layout *layout)
{
    const struct plan *plan = layout->plan;
    struct fed fed = {0};
    assert_true(plan->scan_count <= SOURCES_MAX && plan->fold_count <= SOURCES_MAX);
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct pipeline *pipeline = &plan->pipelines[i];
        bool(*rows)[SHOP_WORKERS] =
            pipeline->source_kind == SOURCE_SCAN ? fed.by_scan : fed.by_fold;
        for (uint32_t shard = 0; shard < layout->shard_counts[pipeline->target]; shard++) {
            rows[pipeline->source][job_layout_owner(layout, pipeline->target, shard)] = true;
        }
    }
    for (uint32_t scan = 0; scan < plan->scan_count; scan++) {
        fed.by_scan[scan][job_layout_counter_owner(layout, scan)] = true; /* The report. */
        for (uint32_t worker = 0; worker < layout->manifest.worker_count; worker++) {
            assert_int_equal(job_layout_feeds(layout, STREAM_SCAN, scan, worker),
                             fed.by_scan[scan][worker]);
        }
    }
    for (uint32_t fold = 0; fold < plan->fold_count; fold++) {
        for (uint32_t worker = 0; worker < layout->manifest.worker_count; worker++) {
            assert_int_equal(job_layout_feeds(layout, STREAM_FOLD, fold, worker),
                             fed.by_fold[fold][worker]);
            /* Everybody maps, sooner or later. */
            assert_int_equal(job_layout_feeds(layout, STREAM_COPY, fold, worker),
                             layout->copied[fold]);
        }
    }
}

static void every_shard_has_one_owner_and_owners_are_fed(void **state)
{
    (void)state;
    static const uint32_t shard_counts[] = {1, 3, 8};
    for (uint32_t choice = 1; choice < CHOICES; choice++) {
        struct manifest_worker workers[SHOP_WORKERS];
        struct manifest manifest = shop_manifest();
        for (uint32_t i = 0; i < SHOP_WORKERS; i++) {
            workers[i] = shop_workers[i];
            workers[i].folds = (choice >> i & 1) == 1;
        }
        manifest.workers = workers;
        manifest.shard_count = shard_counts[choice % 3];
        struct job_layout *layout = shop_layout(manifest);
        check_owners(layout);
        check_feeds(layout);
        job_layout_release(layout);
    }
}

static void without_a_worker_that_folds_there_is_no_job(void **state)
{
    (void)state;
    const struct manifest_worker workers[] = {{TEXT_LITERAL("w1"), true, false}};
    struct manifest manifest = shop_manifest();
    struct buf bytes = {0};
    struct job_layout *layout = NULL;
    struct error err = {.text = ""};
    manifest.workers = workers;
    manifest.worker_count = 1;
    assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_OK);
    manifest_encode(&manifest, &bytes);
    struct text text = {(const char *)bytes.bytes, (uint32_t)bytes.size};
    assert_int_equal(job_layout_create(text, NULL, &layout, &err), STATUS_USAGE);
    assert_string_equal(err.text, "no worker of the manifest folds");
    assert_null(layout);
    buf_done(&bytes);
}

static void workers_are_found_by_their_names(void **state)
{
    (void)state;
    struct job_layout *layout = shop_layout(shop_manifest());
    for (uint32_t i = 0; i < SHOP_WORKERS; i++) {
        assert_int_equal(job_layout_worker(layout, shop_workers[i].name), i);
    }
    assert_int_equal(job_layout_worker(layout, TEXT_LITERAL("w")), SHOP_WORKERS);
    assert_int_equal(job_layout_worker(layout, TEXT_LITERAL("w11")), SHOP_WORKERS);
    assert_int_equal(job_layout_worker(layout, (struct text){0}), SHOP_WORKERS);
    job_layout_release(layout);
}

static void chunks_go_to_all_work_queues_in_turn(void **state)
{
    (void)state;
    struct job_layout *layout = shop_layout(shop_manifest());
    for (uint32_t queue_count = 1; queue_count < 9; queue_count++) {
        uint32_t first = job_layout_work_queue(layout, 0, queue_count);
        assert_true(first < queue_count);
        for (uint64_t number = 0; number < 30; number++) {
            assert_int_equal(job_layout_work_queue(layout, number, queue_count),
                             (first + number) % queue_count);
        }
    }
    job_layout_release(layout);
}

/* ---- needs ---- */

static uint32_t count_copied(const struct job_layout *layout)
{
    uint32_t count = 0;
    for (uint32_t fold = 0; fold < layout->plan->fold_count; fold++) {
        if (layout->copied[fold]) count++;
    }
    return count;
}

/* The only fold of a plan that is copied. */
static uint32_t only_copied(const struct job_layout *layout)
{
    uint32_t fold = 0;
    assert_int_equal(count_copied(layout), 1);
    while (!layout->copied[fold]) {
        fold++;
    }
    return fold;
}

static bool scan_needs(const struct job_layout *layout, uint32_t scan, uint32_t fold)
{
    return layout->needs[(size_t)scan * layout->plan->fold_count + fold];
}

/* How many pipelines of a source kind need a fold. */
static uint32_t count_needing(const struct job_layout *layout, enum source_kind kind, uint32_t fold)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < layout->plan->pipeline_count; i++) {
        bool needs = layout->pipeline_needs[(size_t)i * layout->plan->fold_count + fold];
        if (needs && layout->plan->pipelines[i].source_kind == kind) count++;
    }
    return count;
}

static void a_join_needs_its_build_side(void **state)
{
    (void)state;
    struct job_layout *layout = shop_layout(shop_manifest_of(SHOP_NAMES));
    uint32_t side = only_copied(layout);
    uint32_t sales[2];
    uint32_t stores[2];
    assert_true(layout->plan->folds[side].is_build_side);
    assert_int_equal(shop_scans(layout->plan, "sales", sales), 1);
    assert_int_equal(shop_scans(layout->plan, "stores", stores), 1);
    /* The smaller table is the build side, and is read first. */
    assert_true(scan_needs(layout, sales[0], side));
    assert_false(scan_needs(layout, stores[0], side));
    assert_true(layout->plan->scans[stores[0]].phase < layout->plan->scans[sales[0]].phase);
    assert_int_equal(count_needing(layout, SOURCE_SCAN, side), 1);
    /* Sales are grouped by the store's row, and what comes of it fetches the names. */
    assert_int_equal(count_needing(layout, SOURCE_FOLD, side), 1);
    job_layout_release(layout);
}

static void a_scan_needs_the_scalars_of_its_conditions(void **state)
{
    (void)state;
    struct job_layout *layout = shop_layout(shop_manifest_of(SHOP_ABOVE));
    uint32_t scalar = only_copied(layout);
    uint32_t sales[2];
    assert_true(layout->plan->folds[scalar].is_scalar);
    assert_int_equal(shop_scans(layout->plan, "sales", sales), 2);
    uint32_t late =
        layout->plan->scans[sales[0]].phase > layout->plan->scans[sales[1]].phase ? 0 : 1;
    assert_true(scan_needs(layout, sales[late], scalar));
    assert_false(scan_needs(layout, sales[1 - late], scalar));
    job_layout_release(layout);
}

static void what_a_fold_emits_may_need_a_scalar_too(void **state)
{
    (void)state;
    struct job_layout *layout = shop_layout(shop_manifest_of(SHOP_GOOD));
    uint32_t scalar = only_copied(layout);
    assert_true(layout->plan->folds[scalar].is_scalar);
    assert_int_equal(count_needing(layout, SOURCE_FOLD, scalar), 1);
    assert_int_equal(count_needing(layout, SOURCE_SCAN, scalar), 0);
    for (uint32_t scan = 0; scan < layout->plan->scan_count; scan++) {
        assert_false(scan_needs(layout, scan, scalar));
    }
    job_layout_release(layout);
}

static void what_needs_nothing_is_sent_nothing(void **state)
{
    (void)state;
    struct job_layout *layout = shop_layout(shop_manifest_of(SHOP_TOTALS));
    assert_int_equal(count_copied(layout), 0);
    job_layout_release(layout);
    /* A side that is too large goes by shards, which are not copied. */
    struct manifest manifest = shop_manifest_of(SHOP_NAMES);
    manifest.broadcast_limit = 1;
    layout = shop_layout(manifest);
    assert_int_equal(count_copied(layout), 0);
    check_owners(layout);
    check_feeds(layout);
    job_layout_release(layout);
}

static void all_queries_together_need_what_each_needs(void **state)
{
    (void)state;
    struct job_layout *layout = shop_layout(shop_manifest());
    const struct plan *plan = layout->plan;
    assert_int_equal(count_copied(layout), 3);
    for (uint32_t fold = 0; fold < plan->fold_count; fold++) {
        bool is_used = plan->folds[fold].is_build_side || plan->folds[fold].is_scalar;
        assert_int_equal(layout->copied[fold], is_used);
        /* What is needed is complete in an earlier phase. */
        for (uint32_t scan = 0; scan < plan->scan_count; scan++) {
            if (!scan_needs(layout, scan, fold)) continue;
            assert_true(plan->folds[fold].phase < plan->scans[scan].phase);
        }
    }
    job_layout_release(layout);
}

/* ---- the same everywhere, or refused ---- */

static void encode_shop(struct manifest manifest, struct buf *out)
{
    struct error err;
    assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_OK);
    manifest_encode(&manifest, out);
    assert_false(out->failed);
}

static struct text text_from(const struct buf *bytes)
{
    return (struct text){(const char *)bytes->bytes, (uint32_t)bytes->size};
}

static void equal_bytes_give_equal_layouts(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct job_layout *layouts[2];
    struct error err;
    encode_shop(shop_manifest(), &bytes);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job_layout_create(text_from(&bytes), NULL, &layouts[i], &err), STATUS_OK);
        assert_true(text_equal(layouts[i]->bytes, text_from(&bytes)));
        assert_true(layouts[i]->hash == manifest_hash(text_from(&bytes)));
        assert_true(layouts[i]->bytes.bytes != (const char *)bytes.bytes);
    }
    buf_done(&bytes); /* They were copied. */
    const struct plan *plan = layouts[0]->plan;
    assert_true(layouts[0]->manifest.plan == layouts[1]->manifest.plan);
    assert_int_equal(plan->fold_count, layouts[1]->plan->fold_count);
    for (uint32_t fold = 0; fold < plan->fold_count; fold++) {
        assert_int_equal(layouts[0]->copied[fold], layouts[1]->copied[fold]);
        for (uint32_t shard = 0; shard < layouts[0]->shard_counts[fold]; shard++) {
            assert_int_equal(job_layout_owner(layouts[0], fold, shard),
                             job_layout_owner(layouts[1], fold, shard));
        }
    }
    /* Kept, it lives until the last release. */
    assert_ptr_equal(job_layout_keep(layouts[0]), layouts[0]);
    job_layout_release(layouts[0]);
    assert_true(text_equal(layouts[0]->manifest.job, TEXT_LITERAL("job-1")));
    job_layout_release(layouts[0]);
    job_layout_release(layouts[1]);
    job_layout_release(NULL);
}

static void check_refused(struct manifest manifest, status code, const char *part)
{
    struct buf bytes = {0};
    struct job_layout *layout = NULL;
    struct error err = {.text = ""};
    manifest_encode(&manifest, &bytes);
    assert_int_equal(job_layout_create(text_from(&bytes), NULL, &layout, &err), code);
    if (strstr(err.text, part) == NULL) fail_msg("%s", err.text);
    assert_null(layout);
    buf_done(&bytes);
}

/* The model of sentiment() decides bytes as the program does: it is part of the build's name. */
static void another_model_is_refused_and_a_copy_of_the_own_is_not(void **state)
{
    (void)state;
    struct sentiment_model same = sentiment_builtin;
    struct sentiment_model other = sentiment_builtin;
    other.checksum ^= 1;
    const struct sentiment_model *models[] = {NULL, &same, &other};
    for (uint32_t planned = 0; planned < 3; planned++) {
        struct manifest manifest = shop_manifest();
        char build[JOB_LAYOUT_BUILD_SIZE];
        struct buf bytes = {0};
        struct error err = {.text = ""};
        manifest.build = job_layout_build_with(models[planned], build);
        assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_OK);
        manifest_encode(&manifest, &bytes);
        for (uint32_t own = 0; own < 3; own++) {
            struct job_layout *layout = NULL;
            bool agree = (planned == 2) == (own == 2);
            assert_int_equal(job_layout_create(text_from(&bytes), models[own], &layout, &err),
                             agree ? STATUS_OK : STATUS_USAGE);
            if (agree) assert_ptr_equal(layout->sentiment, models[own]);
            if (!agree) assert_non_null(strstr(err.text, "with the same sentiment_model"));
            job_layout_release(layout);
        }
        buf_done(&bytes);
    }
}

static void another_build_or_plan_is_refused(void **state)
{
    (void)state;
    struct manifest manifest = shop_manifest();
    struct error err;
    assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_OK);
    struct manifest other = manifest;
    other.build = TEXT_LITERAL("0.0.9");
    check_refused(other, STATUS_USAGE, "planned by build 0.0.9 and this is build ");
    other = manifest;
    other.plan ^= 1;
    check_refused(other, STATUS_USAGE, "gives another plan here");
    /* Other queries, or the same ones in another order. */
    other = manifest;
    other.query_count--;
    check_refused(other, STATUS_USAGE, "gives another plan here");
    /* Sizes that make the other table the build side. */
    const struct manifest_file large = {TEXT_LITERAL("stores.csv"), 1000000000};
    const struct manifest_table tables[] = {{TEXT_LITERAL("stores"), &large, 1},
                                            shop_table_files[1]};
    other = manifest;
    other.tables = tables;
    check_refused(other, STATUS_USAGE, "gives another plan here");
    other = manifest;
    other.tables_sql = TEXT_LITERAL("CREATE TABLE");
    check_refused(other, STATUS_SQL, "tables.sql:1:13: ");
}

static void a_setting_is_part_of_the_plan(void **state)
{
    (void)state;
    const struct manifest_setting setting = {TEXT_LITERAL("low"), TEXT_LITERAL("5")};
    struct manifest manifest = shop_manifest();
    struct error err;
    assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_OK);
    uint64_t without = manifest.plan;
    manifest.settings = &setting;
    manifest.setting_count = 1;
    check_refused(manifest, STATUS_USAGE, "gives another plan here");
    assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_OK);
    assert_true(manifest.plan != without);
    job_layout_release(shop_layout(manifest));
}

static void what_is_wrong_with_a_question_is_said(void **state)
{
    (void)state;
    struct manifest_query query = {TEXT_LITERAL("q9"), TEXT_LITERAL("SELECT nam FROM stores")};
    struct manifest_setting setting = {TEXT_LITERAL("lwo"), TEXT_LITERAL("5")};
    struct manifest manifest = shop_manifest();
    struct error err;
    manifest.plan = 42;
    manifest.queries = &query;
    manifest.query_count = 1;
    assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_SQL);
    assert_string_equal(err.text, "q9.sql:1:8: no column `nam` in stores; did you mean `name`?\n"
                                  "  1 | SELECT nam FROM stores\n"
                                  "    |        ^");
    manifest = shop_manifest();
    manifest.plan = 42;
    manifest.settings = &setting;
    manifest.setting_count = 1;
    assert_int_equal(job_layout_fingerprint(&manifest, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "did you mean `low`?"));
    assert_int_equal(manifest.plan, 42);
}

/* ---- damage ---- */

static status try_bytes(const unsigned char *bytes, size_t size)
{
    struct job_layout *layout = NULL;
    struct error err = {.text = ""};
    status code =
        job_layout_create((struct text){(const char *)bytes, (uint32_t)size}, NULL, &layout, &err);
    assert_int_equal(code == STATUS_OK, layout != NULL);
    if (code != STATUS_OK) assert_true(err.text[0] != '\0');
    job_layout_release(layout);
    return code;
}

static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    struct buf bytes = {0};
    encode_shop(shop_manifest(), &bytes);
    assert_int_equal(try_bytes(NULL, 0), STATUS_CORRUPT);
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_equal(try_bytes(bytes.bytes, size), STATUS_CORRUPT);
    }
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        unsigned char mask = (unsigned char)(1u << bit % 8);
        bytes.bytes[bit / 8] ^= mask;
        assert_int_equal(try_bytes(bytes.bytes, bytes.size), STATUS_CORRUPT);
        bytes.bytes[bit / 8] ^= mask;
    }
    buf_done(&bytes);
}

/* An attacker puts the right checksum behind it. Then it is another job, or is refused
 * for what is in it. */
static void changed_bytes_are_another_job_or_refused(void **state)
{
    (void)state;
    struct buf bytes = {0};
    uint32_t accepted_count = 0;
    encode_shop(shop_manifest(), &bytes);
    size_t unsealed = bytes.size - SEAL_BYTES;
    for (size_t at = 0; at < unsealed; at++) {
        struct buf changed = {0};
        bytes.bytes[at] ^= (unsigned char)(1u << at % 7);
        buf_put(&changed, bytes.bytes, unsealed);
        buf_put_u64(&changed, hash_bytes(bytes.bytes, unsealed));
        status code = try_bytes(changed.bytes, changed.size);
        assert_true(code == STATUS_OK || code == STATUS_CORRUPT || code == STATUS_USAGE ||
                    code == STATUS_SQL || code == STATUS_LIMIT || code == STATUS_OVERFLOW);
        if (code == STATUS_OK) accepted_count++;
        bytes.bytes[at] ^= (unsigned char)(1u << at % 7);
        buf_done(&changed);
    }
    assert_true(accepted_count > 0 && accepted_count < unsealed / 2);
    buf_done(&bytes);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct error err;
    bool refused = true;
    encode_shop(shop_manifest(), &bytes);
    for (size_t count = 0; refused; count++) {
        struct job_layout *layout = NULL;
        memory_fail_after(count);
        status code = job_layout_create(text_from(&bytes), NULL, &layout, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        job_layout_release(layout);
    }
    refused = true;
    for (size_t count = 0; refused; count++) {
        struct manifest manifest = shop_manifest();
        memory_fail_after(count);
        status code = job_layout_fingerprint(&manifest, &err);
        refused = memory_was_refused();
        memory_fail_never();
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
    }
    buf_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shard_has_one_owner_and_owners_are_fed),
        cmocka_unit_test(without_a_worker_that_folds_there_is_no_job),
        cmocka_unit_test(workers_are_found_by_their_names),
        cmocka_unit_test(chunks_go_to_all_work_queues_in_turn),
        cmocka_unit_test(a_join_needs_its_build_side),
        cmocka_unit_test(a_scan_needs_the_scalars_of_its_conditions),
        cmocka_unit_test(what_a_fold_emits_may_need_a_scalar_too),
        cmocka_unit_test(what_needs_nothing_is_sent_nothing),
        cmocka_unit_test(all_queries_together_need_what_each_needs),
        cmocka_unit_test(equal_bytes_give_equal_layouts),
        cmocka_unit_test(another_build_or_plan_is_refused),
        cmocka_unit_test(another_model_is_refused_and_a_copy_of_the_own_is_not),
        cmocka_unit_test(a_setting_is_part_of_the_plan),
        cmocka_unit_test(what_is_wrong_with_a_question_is_said),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(changed_bytes_are_another_job_or_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
