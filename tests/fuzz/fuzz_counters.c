/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_counters.c - any bytes are counters of a plan, or are refused.
 *
 * Goal: adding reads nothing past the bytes and writes nothing outside the counters. What was added
 * and is encoded has the same bytes however often it goes around, unless nothing was read of a
 * table: then its lines are left out.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/sql/compile.h"
#include "engine/plan/counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct compile_query queries[] = {
    {TEXT_INIT("totals"), TEXT_INIT("SELECT store, sum(amount) AS t FROM sales GROUP BY store")},
    {TEXT_INIT("names"),
     TEXT_INIT("SELECT name, count(*) AS n FROM sales JOIN stores ON sales.store = stores.store "
               "WHERE amount > (SELECT avg(amount) FROM sales) GROUP BY name ORDER BY n")},
};

/* Always the same, and never given back. */
static const struct plan *the_plan(void)
{
    static struct arena arena;
    static struct plan *plan;
    struct compile_input input = {
        .tables_sql = TEXT_LITERAL(
            "CREATE TABLE sales (id INT NOT NULL, store INT NOT NULL, amount INT) FROM 's.csv';"
            "CREATE TABLE stores (store INT NOT NULL, name TEXT NOT NULL) FROM 'n.csv';"),
        .queries = queries,
        .query_count = 2,
    };
    struct error err;
    if (plan == NULL) ASSERT(compile_queries(&input, &arena, &plan, &err) == STATUS_OK);
    return plan;
}

static struct counters new_counters(const struct plan *plan, struct arena *arena)
{
    struct counters counters;
    bool fits = counters_init(&counters, plan, arena);
    ASSERT(fits);
    return counters;
}

static void add_text(struct counters *counters, const struct plan *plan, const struct buf *bytes)
{
    struct error err;
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    ASSERT(counters_add(counters, plan, text, &err) == STATUS_OK);
}

/* Both ways of putting counters together give the same. */
static void check_sums(const struct counters *counters, const struct plan *plan,
                       struct arena *arena)
{
    struct counters decoded = new_counters(plan, arena);
    struct counters added = new_counters(plan, arena);
    struct buf once = {0};
    struct buf again = {0};
    counters_encode(counters, plan, &once);
    add_text(&decoded, plan, &once);
    counters_encode(&decoded, plan, &again);
    ASSERT(!once.failed && !again.failed);
    ASSERT(once.size == again.size);
    ASSERT(once.size == 0 || memcmp(once.bytes, again.bytes, once.size) == 0);

    add_text(&added, plan, &once);
    add_text(&added, plan, &once);
    add_text(&decoded, plan, &again);
    buf_reset(&once);
    buf_reset(&again);
    counters_encode(&added, plan, &once);
    counters_encode(&decoded, plan, &again);
    ASSERT(!once.failed && !again.failed);
    ASSERT(once.size == again.size);
    ASSERT(once.size == 0 || memcmp(once.bytes, again.bytes, once.size) == 0);
    buf_done(&once);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct plan *plan = the_plan();
    struct arena arena = {0};
    struct counters counters = new_counters(plan, &arena);
    struct error err = {.text = ""};
    struct text text = {(const char *)data, (uint32_t)size};
    status code = counters_add(&counters, plan, text, &err);
    ASSERT(code == STATUS_OK || code == STATUS_CORRUPT);
    if (code == STATUS_OK) {
        check_sums(&counters, plan, &arena);
    } else {
        ASSERT(err.text[0] != '\0');
    }
    arena_done(&arena);
    return 0;
}
