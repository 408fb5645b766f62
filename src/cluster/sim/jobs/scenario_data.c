/* SPDX-License-Identifier: Apache-2.0 */
/* scenario_data.c - tables made from a fixed seed, with all that is dirty in real files. */
#include "cluster/sim/jobs/scenario_data.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/base/random.h"
#include "engine/file/file.h"
#include "engine/file/output_file.h"
#include "cluster/sim/jobs/scenario.h"

static const char tables_sql[] =
    "CREATE TABLE sales (id INT NOT NULL, store INT NOT NULL, item INT,\n"
    "    amount DECIMAL(10,2) NOT NULL, weight DOUBLE, tags TEXT) FROM 'sales*.csv';\n"
    "CREATE TABLE stores (store INT NOT NULL, name TEXT NOT NULL, region INT)\n"
    "    FROM 'stores.csv';\n"
    "CREATE TABLE items (item INT NOT NULL, title TEXT NOT NULL, price DOUBLE)\n"
    "    FROM 'items.csv';\n"
    "CREATE TABLE visits (store INT NOT NULL, visitor INT NOT NULL) FROM 'visits.csv';\n"
    "CREATE TABLE nothing (a INT NOT NULL) FROM 'nothing.csv';\n"
    "CREATE TABLE drugs (name TEXT NOT NULL, dose INT NOT NULL) FROM 'drugs.csv';\n";

static const struct {
    const char *name;
    const char *sql;
} query_sources[] = {
    {"groups", "SELECT store, count(*) AS n, sum(amount) AS total, avg(weight) AS weight\n"
               "FROM sales GROUP BY store"},
    {"total", "SELECT count(*) AS n, sum(amount) AS total, max(weight) AS most FROM sales"},
    {"plain", "SELECT id, store, amount FROM sales WHERE amount > 50"},
    {"some", "SELECT id, store FROM sales LIMIT 7 OFFSET 3"},
    {"best", "SELECT id, amount FROM sales ORDER BY amount DESC, id LIMIT 10"},
    {"named", "SELECT s.name, sum(x.amount) AS total FROM sales x\n"
              "JOIN stores s ON s.store = x.store GROUP BY s.name ORDER BY total DESC, s.name"},
    {"titled", "SELECT x.id, i.title FROM sales x LEFT JOIN items i ON i.item = x.item\n"
               "WHERE x.amount > 30"},
    {"above", "SELECT id, amount FROM sales WHERE amount > (SELECT avg(amount) FROM sales)"},
    {"union", "SELECT store AS k, 'sale' AS word FROM sales WHERE id < 20\n"
              "UNION ALL SELECT store, name FROM stores UNION ALL SELECT item, title FROM items"},
    {"tags", "SELECT t.tag, count(*) AS n, sum(amount) AS total\n"
             "FROM sales, UNNEST(pluck(tags, 'name')) AS t(tag)\n"
             "GROUP BY t.tag ORDER BY n DESC, t.tag"},
    {"chain", "WITH best AS (SELECT store, sum(amount) AS total FROM sales GROUP BY store\n"
              "    ORDER BY total DESC, store LIMIT 5),\n"
              "named AS (SELECT s.name, b.total, b.store FROM stores s\n"
              "    JOIN best b ON b.store = s.store)\n"
              "SELECT n.name, n.total, count(*) AS visits FROM visits v\n"
              "JOIN named n ON n.store = v.store GROUP BY n.name, n.total ORDER BY n.name"},
    {"ranked", "SELECT region, name, store FROM stores\n"
               "QUALIFY row_number() OVER (PARTITION BY region ORDER BY name, store) <= 2"},
    {"empty", "SELECT count(*) AS n, sum(a) AS total FROM nothing"},
    {"unmatched", "SELECT s.name, x.id FROM stores s LEFT JOIN sales x ON x.store = s.store\n"
                  "ORDER BY s.name, x.id"},
    {"deep", "WITH big AS (SELECT store, sum(amount) AS total FROM sales GROUP BY store)\n"
             "SELECT v.visitor, b.total FROM visits v JOIN big b ON b.store = v.store\n"
             "WHERE b.total > (SELECT avg(price) FROM items)\n"
             "ORDER BY v.visitor, b.total LIMIT 12"},
    {"none", "SELECT v.visitor, n.a FROM visits v JOIN nothing n ON n.a = v.store"},
    {"doses", "SELECT name, sum(dose) AS dose FROM drugs GROUP BY name"},
};

enum { QUERY_SOURCES = sizeof query_sources / sizeof query_sources[0] };

const struct scenario_spec scenario_specs[] = {
    {"groups", {"groups"}, 400, false, 0},
    {"total", {"total"}, 700, false, 0},
    {"plain", {"plain"}, 500, false, 0},
    {"limit", {"some", "best"}, 500, false, 0},
    {"join", {"named"}, 350, false, 0},
    {"left join", {"titled"}, 450, false, 0},
    {"fold join", {"unmatched"}, 500, false, 0},
    {"scalar", {"above"}, 600, false, 0},
    {"union", {"union"}, 400, false, 0},
    {"unnest", {"tags"}, 450, false, 0},
    {"shared", {"groups", "plain", "tags", "total"}, 600, false, 0},
    {"phases", {"chain"}, 400, false, 0},
    {"ranked", {"ranked", "empty"}, 60, false, 0},
    {"deep", {"deep", "named"}, 500, false, 0},
    {"empty", {"none", "empty"}, 150, false, 0},
    {"mixed", {"chain", "above", "titled", "union"}, 700, false, 0},
    {"joins by shards", {"named", "titled", "deep"}, 500, false, 1},
    {"unordered joins by shards", {"none", "unmatched"}, 600, false, 1},
    {"filtered joins", {"named", "unmatched"}, 500, false, 100},
    {"poison", {"doses"}, 120, true, 0},
};

const uint32_t scenario_spec_count = sizeof scenario_specs / sizeof scenario_specs[0];

/* ---- data ---- */

enum { SALES_FILES = 2, SALES_PER_FILE = 130, STORES = 14, ITEMS = 20, VISITS = 120, DRUGS = 40 };

static uint32_t between(struct random *random, uint32_t low, uint32_t high)
{
    return low + random_below(random, high - low + 1);
}

static void put_tags(struct random *random, struct buf *out)
{
    static const char *const tags[] = {"new", "old", "red", "blue", "it's"};
    uint32_t count = random_below(random, 4);
    if (random_below(random, 15) == 0) {
        buf_put_string(out, "[{'name");
        return;
    }
    buf_put_string(out, "\"[");
    for (uint32_t i = 0; i < count; i++) {
        buf_format(out, "%s{'name': \"\"%s\"\"}", i > 0 ? ", " : "", tags[random_below(random, 5)]);
    }
    buf_put_string(out, "]\"");
}

static void put_sale(struct random *random, uint32_t id, struct buf *out)
{
    switch (random_below(random, 25)) {
    case 0:
        buf_format(out, "%u,%u\n", id, between(random, 1, 9)); /* Too few fields. */
        return;
    case 1:
        buf_format(out, "%u,,3,1.00,,\n", id); /* No store. */
        return;
    case 2:
        buf_format(out, "%u,2,x,abc,1.5,\n", id); /* No amount that is one. */
        return;
    case 3:
        buf_format(out, "%u,3,q,7.25,heavy,\"a\nnote, and \"\"more\"\"\"\n", id);
        return;
    default:
        break;
    }
    buf_format(out, "%u,%u,", id, between(random, 1, STORES + 2));
    if (random_below(random, 8) > 0) buf_format(out, "%u", between(random, 1, ITEMS + 3));
    buf_format(out, ",%u.%02u,", random_below(random, 100), random_below(random, 100));
    if (random_below(random, 6) > 0) buf_format(out, "%u.%u", between(random, 0, 30), id % 10);
    buf_put_u8(out, ',');
    put_tags(random, out);
    buf_put_u8(out, '\n');
}

static status write_file(const char *folder, const char *name, const struct buf *content,
                         struct arena *arena, struct error *err)
{
    const char *path = file_path(folder, text_of(name), arena);
    if (path == NULL || content->failed) return error_memory(err);
    struct text text = {(const char *)content->bytes, (uint32_t)content->size};
    return output_file_replace(path, OUTPUT_PUBLIC, text, err);
}

static status write_sales(const char *folder, struct random *random, struct buf *text,
                          struct arena *arena, struct error *err)
{
    for (uint32_t i = 0; i < SALES_FILES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "sales%u.csv", i + 1); /* Fits. */
        buf_reset(text);
        buf_put_string(text, "id,store,item,amount,weight,tags\n");
        for (uint32_t id = 0; id < SALES_PER_FILE; id++) {
            put_sale(random, i * SALES_PER_FILE + id, text);
        }
        TRY(write_file(folder, name, text, arena, err));
    }
    return STATUS_OK;
}

static status write_small(const char *folder, struct random *random, struct buf *text,
                          struct arena *arena, struct error *err)
{
    buf_reset(text);
    buf_put_string(text, "region,name,store\n");
    for (uint32_t i = 1; i <= STORES; i++) {
        buf_format(text, "%u,\"Store %u\",%u\n", i % 3, i / 2, i);
    }
    buf_put_string(text, "1,,77\n");
    TRY(write_file(folder, "stores.csv", text, arena, err));
    buf_reset(text);
    buf_put_string(text, "item,title,price,unused\n");
    for (uint32_t i = 1; i <= ITEMS; i++) {
        buf_format(text, "%u,Item number %u,%u.5,x\n", i, i, between(random, 1, 90));
    }
    TRY(write_file(folder, "items.csv", text, arena, err));
    buf_reset(text);
    buf_put_string(text, "store,visitor\n");
    for (uint32_t i = 0; i < VISITS; i++) {
        buf_format(text, "%u,%u\n", between(random, 1, STORES + 3), between(random, 1, 50));
    }
    TRY(write_file(folder, "visits.csv", text, arena, err));
    buf_reset(text);
    buf_put_string(text, "a\n");
    TRY(write_file(folder, "nothing.csv", text, arena, err));
    buf_reset(text);
    buf_put_string(text, "name,dose\n");
    for (uint32_t i = 0; i < DRUGS; i++) {
        buf_format(text, "%s,%u\n", i == DRUGS / 2 ? SCENARIO_POISON : "aspirin", i);
    }
    return write_file(folder, "drugs.csv", text, arena, err);
}

static status write_queries(const char *folder, struct buf *text, struct arena *arena,
                            struct error *err)
{
    buf_put_string(text, tables_sql);
    TRY(write_file(folder, "tables.sql", text, arena, err));
    for (uint32_t i = 0; i < QUERY_SOURCES; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s.sql", query_sources[i].name); /* Fits. */
        buf_reset(text);
        buf_put_string(text, query_sources[i].sql);
        TRY(write_file(folder, name, text, arena, err));
    }
    return STATUS_OK;
}

status scenario_data_write(const char *folder, struct arena *arena, struct error *err)
{
    struct random random = {.state = 20240607};
    struct buf text = {0};
    status result = write_queries(folder, &text, arena, err);
    if (result == STATUS_OK) result = write_sales(folder, &random, &text, arena, err);
    if (result == STATUS_OK) result = write_small(folder, &random, &text, arena, err);
    buf_done(&text);
    return result;
}

void scenario_data_remove(const char *folder, struct arena *arena)
{
    struct file_entry *entries;
    uint32_t count;
    struct error ignored;
    if (file_list(folder, arena, &entries, &count, &ignored) != STATUS_OK) return;
    for (uint32_t i = 0; i < count; i++) {
        const char *path = file_path(folder, entries[i].name, arena);
        if (path != NULL) (void)unlink(path); /* What can't be removed stays. */
    }
    file_remove_folder(folder);
}
