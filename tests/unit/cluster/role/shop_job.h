/* SPDX-License-Identifier: Apache-2.0 */
/* shop_job.h - a small job with everything in it that a layout can have.
 *
 * Sales and stores; queries with one fold after another, a build side, a scalar that a scan needs
 * and one that what a fold emitted needs. Tests change what they like before it is encoded.
 */
#ifndef UNIT_ROLE_SHOP_JOB_H
#define UNIT_ROLE_SHOP_JOB_H

#include "unit/test.h"

#include "cluster/role/job_layout.h"

enum { SHOP_WORKERS = 5, SHOP_TOTALS = 0, SHOP_NAMES, SHOP_ABOVE, SHOP_GOOD, SHOP_QUERIES };

static const char shop_tables[] =
    "PARAMETER low = 0;\n"
    "CREATE TABLE sales (id INT NOT NULL, store INT NOT NULL, amount INT) FROM 'sales*.csv';\n"
    "CREATE TABLE stores (store INT NOT NULL, name TEXT NOT NULL) FROM 'stores.csv';\n";

static const struct manifest_query shop_queries[SHOP_QUERIES] = {
    [SHOP_TOTALS] = {TEXT_INIT("totals"),
                     TEXT_INIT("SELECT store, sum(amount) AS total FROM sales\n"
                               "WHERE amount >= $low GROUP BY store")},
    [SHOP_NAMES] = {TEXT_INIT("names"), TEXT_INIT("SELECT name, count(*) AS n FROM sales\n"
                                                  "JOIN stores ON sales.store = stores.store\n"
                                                  "GROUP BY name ORDER BY n DESC, name")},
    [SHOP_ABOVE] = {TEXT_INIT("above"),
                    TEXT_INIT("SELECT id, amount FROM sales\n"
                              "WHERE amount > (SELECT avg(amount) FROM sales)")},
    [SHOP_GOOD] = {TEXT_INIT("good"),
                   TEXT_INIT("SELECT store, sum(amount) AS total FROM sales GROUP BY store\n"
                             "HAVING sum(amount) > (SELECT max(amount) FROM sales)")},
};

static const struct manifest_file shop_sales_files[] = {
    {TEXT_INIT("sales1.csv"), 600000},
    {TEXT_INIT("2024/sales2.csv"), 400000},
};
static const struct manifest_file shop_stores_files[] = {{TEXT_INIT("stores.csv"), 100}};

static const struct manifest_table shop_table_files[] = {
    {TEXT_INIT("stores"), shop_stores_files, 1},
    {TEXT_INIT("sales"), shop_sales_files, 2},
};

static const struct manifest_worker shop_workers[SHOP_WORKERS] = {
    {TEXT_INIT("w1"), true, true}, {TEXT_INIT("w2"), true, false}, {TEXT_INIT("w3"), false, true},
    {TEXT_INIT("w4"), true, true}, {TEXT_INIT("w5"), true, false},
};

static inline struct manifest shop_manifest(void)
{
    return (struct manifest){
        .job = TEXT_LITERAL("job-1"),
        .build = text_of(job_layout_build),
        .owner = 77,
        .tables_sql = text_of(shop_tables),
        .queries = shop_queries,
        .query_count = SHOP_QUERIES,
        .tables = shop_table_files,
        .table_count = 2,
        .workers = shop_workers,
        .worker_count = SHOP_WORKERS,
        .shard_count = 8,
        .chunk_bytes = 1 << 20,
        .field_limit = 1 << 16,
        .broadcast_limit = 1 << 20,
    };
}

/* Its own queries only. */
static inline struct manifest shop_manifest_of(uint32_t query)
{
    struct manifest manifest = shop_manifest();
    manifest.queries = &shop_queries[query];
    manifest.query_count = 1;
    return manifest;
}

/* The layout of a manifest that lacks only its fingerprint. */
static inline struct job_layout *shop_layout(struct manifest manifest)
{
    struct buf bytes = {0};
    struct job_layout *layout = NULL;
    struct error err = {.text = ""};
    if (job_layout_fingerprint(&manifest, &err) != STATUS_OK) fail_msg("%s", err.text);
    manifest_encode(&manifest, &bytes);
    assert_false(bytes.failed);
    struct text text = {(const char *)bytes.bytes, (uint32_t)bytes.size};
    if (job_layout_create(text, NULL, &layout, &err) != STATUS_OK) fail_msg("%s", err.text);
    buf_done(&bytes);
    return layout;
}

/* The scans of a table; tests know how many there are. */
static inline uint32_t shop_scans(const struct plan *plan, const char *table, uint32_t out_scans[2])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->scan_count; i++) {
        if (!text_equal(plan->tables[plan->scans[i].table].name, text_of(table))) continue;
        assert_true(count < 2);
        out_scans[count++] = i;
    }
    return count;
}

#endif
