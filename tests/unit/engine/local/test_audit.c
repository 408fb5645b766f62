/* SPDX-License-Identifier: Apache-2.0 */
/* test_audit.c - the audit tells what happened, and without balanced counts there is no answer.
 *
 * Method: a hand-made example whose records, drops and rows can be counted by reading it; then
 * every single batch that travels is lost, doubled or altered, one run each, and each of these runs
 * must fail without giving a row.
 */
#include "unit/test.h"

#include <stdatomic.h>

#include "engine/local/audit.h"
#include "engine/local/table_files.h"
#include "unit/engine/local/engine_case.h"

static const char tables_sql[] =
    "CREATE TABLE sales (id INT NOT NULL, shop TEXT NOT NULL, amount INT, note TEXT)\n"
    "    FROM 'sales*.csv';\n"
    "CREATE TABLE shops (shop TEXT NOT NULL, city TEXT) FROM 'shops.csv';\n";

/* Lines are counted from 1, with the header; a quoted line end counts too. */
static const char sales1_csv[] = "id,shop,amount,note\n"
                                 "1,a,10,\n"
                                 "x,a,20,\n"         /* 3: id is not an INT. */
                                 "2,,30,\n"          /* 4: shop is empty. */
                                 "3,b,many,\n"       /* 5: amount is NULL. */
                                 "4,a,1\n"           /* 6: too few fields. */
                                 "\"5\",b,7,\"two\n" /* 7 and 8. */
                                 "lines\"\n"
                                 ",,bad,\n"    /* 9: counts once, under id. */
                                 "6,a,5.5,\n"; /* 10: amount is NULL. */
static const char sales2_csv[] = "note,amount,shop,id\n"
                                 ",1,c,\n"  /* 2: id is empty. */
                                 ",2,\"c\n" /* 3 and 4. */
                                 "d\",7\n"
                                 ",4,,8,9\n" /* 5: too many fields. */
                                 ",3,c,9\n"
                                 "n,,,10"; /* 7: shop is empty. */
static const char shops_csv[] = "shop,city\n"
                                "a,Oslo\n"
                                "b,\n"
                                ",Rome\n" /* 4: shop is empty. */
                                "c,Bern\n";

static const char tables_audit[] = "table sales: 2 files, 153 bytes, 13 records, 6 kept\n"
                                   "  dropped : wrong number of fields: 2, first sales1.csv:6\n"
                                   "  dropped id: empty: 2, first sales1.csv:9\n"
                                   "  dropped id: not an INT: 1, first sales1.csv:3\n"
                                   "  dropped shop: empty: 2, first sales1.csv:4\n"
                                   "  nulled amount: not an INT: 2, first sales1.csv:5\n";

static void example_open(struct engine_case *engine)
{
    engine_open(engine);
    engine_write_string(engine->analysis, "tables.sql", tables_sql);
    engine_write_string(
        engine->analysis, "q1.sql",
        "SELECT shop, sum(amount) AS amount, count(*) AS n FROM sales GROUP BY shop");
    engine_write_string(engine->analysis, "q2.sql",
                        "SELECT s.id, h.city FROM sales s JOIN shops h ON s.shop = h.shop\n"
                        "WHERE s.amount > (SELECT avg(amount) FROM sales) ORDER BY s.id");
    engine_write_string(engine->analysis, "q3.sql", "SELECT id FROM sales LIMIT 2");
    engine_write_string(engine->data, "sales1.csv", sales1_csv);
    engine_write_string(engine->data, "sales2.csv", sales2_csv);
    engine_write_string(engine->data, "shops.csv", shops_csv);
}

static bool audit_hold(const struct engine_result *result, const char *part)
{
    bool held = memmem(result->audit.bytes, result->audit.size, part, strlen(part)) != NULL;
    if (!held) {
        print_message("expected\n%s\nin\n%.*s", part, (int)result->audit.size,
                      (const char *)result->audit.bytes);
    }
    return held;
}

static void counts_are_those_of_the_example(void **state)
{
    (void)state;
    static const uint32_t chunk_sizes[] = {1, 7, 64, 1 << 20};
    struct engine_case engine;
    example_open(&engine);
    for (size_t i = 0; i < sizeof chunk_sizes / sizeof chunk_sizes[0]; i++) {
        struct engine_options options = {.threads = 1 + (uint32_t)i, .chunk_bytes = chunk_sizes[i]};
        struct engine_result result;
        engine_run(&engine, &options, &result);
        assert_int_equal(result.code, STATUS_OK);
        assert_true(result.balanced);
        assert_true(audit_hold(&result, "balanced 1\n"));
        assert_true(audit_hold(&result, tables_audit));
        assert_true(audit_hold(&result, "table shops: 1 files, 33 bytes, 4 records, 3 kept\n"
                                        "  dropped shop: empty: 1, first shops.csv:4\n"));
        engine_done(&result);
    }
    engine_close(&engine);
}

static void stages_count_rows_in_and_out(void **state)
{
    (void)state;
    struct engine_case engine;
    struct job_options job_options = {.analysis_dir = engine.analysis,
                                      .data_dir = engine.data,
                                      .thread_count = 2,
                                      .chunk_bytes = 16};
    struct engine_result result;
    struct job *job;
    struct error err;
    example_open(&engine);
    assert_int_equal(job_open(&job_options, &job, &err), STATUS_OK);
    result = (struct engine_result){0};
    struct engine_collector collector = {&result, job_plan(job)};
    struct job_events events = {
        .context = &collector, .rows = engine_collect, .stream_query = JOB_STREAM_NONE};
    assert_int_equal(job_run(job, &events, &err), STATUS_OK);
    const struct audit *audit = job_audit(job);
    uint64_t answer_rows[3] = {0};
    for (uint32_t i = 0; i < audit->stage_count; i++) {
        const struct audit_stage *stage = &audit->stages[i];
        bool is_map = strcmp(stage->kind, "map") == 0;
        /* Every map that reads sales sees the 6 records that were kept. */
        if (is_map && strstr(stage->label, "scan sales") != NULL) {
            assert_int_equal(stage->rows_in, 6);
        }
        if (is_map && strstr(stage->label, "scan shops") != NULL) {
            assert_int_equal(stage->rows_in, 3);
        }
        for (uint32_t query = 0; query < 3 && !is_map; query++) {
            if (job_plan(job)->queries[query].result_fold == stage->id) {
                answer_rows[query] = stage->rows_out;
            }
        }
    }
    assert_int_equal(answer_rows[0], 4); /* a, b, c, and c with a line end. */
    assert_int_equal(answer_rows[1], 2); /* 1 and 5: amounts above (10 + 7 + 2 + 3) / 4. */
    assert_int_equal(answer_rows[2], 2);
    for (uint32_t i = 0; i < audit->exchange_count; i++) {
        const struct audit_exchange *exchange = &audit->exchanges[i];
        assert_true(exchange->balanced);
        assert_true(exchange->sent.batch_count > 0);
        assert_int_equal(exchange->sent.batch_count, exchange->applied.batch_count);
        assert_int_equal(exchange->sent.row_count, exchange->applied.row_count);
        assert_int_equal(exchange->sent.hash_sum, exchange->applied.hash_sum);
    }
    engine_done(&result);
    job_close(job);
    engine_close(&engine);
}

static void drops_do_not_depend_on_the_queries_that_run(void **state)
{
    (void)state;
    static const char *const names[] = {"q1", "q2", "q3"};
    struct engine_case engine;
    example_open(&engine);
    /* One that reads no column at all. */
    engine_write_string(engine.analysis, "q4.sql", "SELECT count(*) AS n FROM sales");
    for (int i = 0; i < 4; i++) {
        struct text name = i < 3 ? text_of(names[i]) : TEXT_LITERAL("q4");
        struct engine_options options = {
            .threads = 3, .chunk_bytes = 20, .queries = &name, .query_count = 1};
        struct engine_result result;
        engine_run(&engine, &options, &result);
        assert_int_equal(result.code, STATUS_OK);
        assert_true(audit_hold(&result,
                               "table sales: 2 files, 153 bytes, 13 records, 6 kept\n"
                               "  dropped : wrong number of fields: 2, first sales1.csv:6\n"
                               "  dropped id: empty: 2, first sales1.csv:9\n"
                               "  dropped id: not an INT: 1, first sales1.csv:3\n"
                               "  dropped shop: empty: 2, first sales1.csv:4\n"));
        engine_done(&result);
    }
    engine_close(&engine);
}

/* ---- batches on their way ---- */

enum tamper { TAMPER_LOSE, TAMPER_DOUBLE, TAMPER_ALTER, TAMPER_FORGET };

/* Does one thing to one batch of a run. */
struct tampering {
    struct exchange_fault fault; /* First: pointers to it are pointers to this. */
    enum tamper tamper;
    uint64_t wanted_batch;
    atomic_uint_fast64_t seen_batches;
};

static status apply_copy(struct exchanges *exchanges, const struct exchange_batch *batch,
                         struct error *err)
{
    struct exchange_batch copy = *batch;
    copy.bytes = (struct buf){.budget = batch->bytes.budget};
    buf_put(&copy.bytes, batch->bytes.bytes, batch->bytes.size);
    status result = exchange_apply(exchanges, &copy, err);
    buf_done(&copy.bytes);
    return result;
}

/* As if the producer had not made the batch. */
static void forget(const struct exchange_batch *batch, uint64_t row_count,
                   struct exchange_count *sent)
{
    struct exchange_count one = {0};
    exchange_count_add(&one,
                       (struct batch_place){.producer = batch->identity.producer,
                                            .shard = batch->shard,
                                            .number = batch->identity.number},
                       row_count, engine_text(&batch->bytes));
    sent->batch_count -= one.batch_count;
    sent->row_count -= one.row_count;
    sent->hash_sum -= one.hash_sum;
}

static status tamper_one(struct exchange_fault *fault, struct exchanges *exchanges,
                         struct exchange_batch *batch, uint64_t row_count,
                         struct exchange_count *sent, struct error *err)
{
    struct tampering *tampering = (struct tampering *)fault;
    if (atomic_fetch_add(&tampering->seen_batches, 1) == tampering->wanted_batch) {
        switch (tampering->tamper) {
        case TAMPER_LOSE:
            return STATUS_OK;
        case TAMPER_FORGET:
            forget(batch, row_count, sent);
            return STATUS_OK;
        case TAMPER_DOUBLE:
            TRY(apply_copy(exchanges, batch, err));
            break;
        case TAMPER_ALTER:
            /* The last byte of a value, not of the frame: it still decodes. */
            batch->bytes.bytes[batch->bytes.size - 8] ^= 1;
            break;
        }
    }
    return exchange_apply(exchanges, batch, err);
}

static status release_nothing(struct exchange_fault *fault, struct exchanges *exchanges,
                              struct error *err)
{
    (void)fault, (void)exchanges, (void)err; /* No batch waits. */
    return STATUS_OK;
}

/* False: there were not so many batches. */
static bool disturb(const struct engine_case *engine, uint64_t batch, enum tamper tamper,
                    uint32_t threads)
{
    struct tampering tampering = {.fault = {.carry = tamper_one, .release = release_nothing},
                                  .tamper = tamper,
                                  .wanted_batch = batch};
    struct engine_options options = {
        .threads = threads, .chunk_bytes = 40, .shard_count = 2, .fault = &tampering.fault};
    struct engine_result result;
    engine_run(engine, &options, &result);
    bool was_disturbed = atomic_load(&tampering.seen_batches) > batch;
    if (was_disturbed) {
        /* Altered bytes may not even decode. */
        if (tamper != TAMPER_ALTER || result.code != STATUS_CORRUPT) {
            assert_int_equal(result.code, STATUS_INTERNAL);
            assert_non_null(strstr(result.err.text, "counts do not reconcile"));
        }
        assert_false(result.balanced);
        assert_int_equal(result.batch_count, 0);
    } else {
        assert_int_equal(result.code, STATUS_OK);
        assert_true(result.balanced);
        assert_true(result.batch_count > 0);
    }
    engine_done(&result);
    return was_disturbed;
}

static void check_tamper(enum tamper tamper)
{
    struct engine_case engine;
    uint64_t batch = 0;
    example_open(&engine);
    while (disturb(&engine, batch, tamper, 1 + (uint32_t)(batch % 3))) {
        batch++;
    }
    assert_true(batch > 10);
    engine_close(&engine);
}

static void every_lost_batch_is_noticed(void **state)
{
    (void)state;
    check_tamper(TAMPER_LOSE);
}

static void every_batch_that_was_never_sent_is_noticed(void **state)
{
    (void)state;
    check_tamper(TAMPER_FORGET);
}

static void every_doubled_batch_is_noticed(void **state)
{
    (void)state;
    check_tamper(TAMPER_DOUBLE);
}

static void every_altered_batch_is_noticed(void **state)
{
    (void)state;
    check_tamper(TAMPER_ALTER);
}

/* Counters and files of the example, whose files hold nothing but headers. */
struct empty_job {
    struct engine_case engine;
    struct job *job;
    struct arena arena;
    struct counters counters;
    struct audit_source source;
};

static void empty_job_open(struct empty_job *empty)
{
    struct error err;
    *empty = (struct empty_job){0};
    example_open(&empty->engine);
    engine_write_string(empty->engine.data, "sales1.csv", "id,shop,amount,note\n");
    engine_write_string(empty->engine.data, "sales2.csv", "id,shop,amount,note\n");
    engine_write_string(empty->engine.data, "shops.csv", "shop,city\n");
    struct job_options options = {.analysis_dir = empty->engine.analysis,
                                  .data_dir = empty->engine.data};
    assert_int_equal(job_open(&options, &empty->job, &err), STATUS_OK);
    const struct plan *plan = job_plan(empty->job);
    assert_true(counters_init(&empty->counters, plan, &empty->arena));
    empty->source = (struct audit_source){
        .plan = plan,
        .counters = &empty->counters,
        .files = job_files(empty->job),
        .shard_counts = arena_array(&empty->arena, uint32_t, plan->fold_count + 1)};
    assert_non_null(empty->source.shard_counts);
    assert_int_equal(audit_check(&empty->source, &err), STATUS_OK);
}

static void empty_job_close(struct empty_job *empty)
{
    arena_done(&empty->arena);
    job_close(empty->job);
    engine_close(&empty->engine);
}

/* A record that was read is kept, or dropped for one reason. Dropped records reach no map, so that
 * nothing but the table's own counters can tell that one is missing. */
static void every_record_that_nobody_counted_is_noticed(void **state)
{
    (void)state;
    struct empty_job empty;
    struct error err;
    empty_job_open(&empty);
    for (uint32_t i = 0; i < empty.source.plan->table_count; i++) {
        struct table_counters *table = &empty.counters.tables[i];
        uint64_t *dropped[] = {
            &table->wrong_fields.count, &table->dropped[0][0].count,
            &table->dropped[table->column_count - 1][DROP_REASON_COUNT - 1].count};
        for (size_t place = 0; place < sizeof dropped / sizeof dropped[0]; place++) {
            table->record_count++;
            assert_int_equal(audit_check(&empty.source, &err), STATUS_INTERNAL);
            assert_non_null(strstr(err.text, "records"));
            ++*dropped[place];
            assert_int_equal(audit_check(&empty.source, &err), STATUS_OK);
            ++*dropped[place]; /* One record, two reasons. */
            assert_int_equal(audit_check(&empty.source, &err), STATUS_INTERNAL);
            --*dropped[place];
        }
    }
    empty_job_close(&empty);
}

/* In a cluster, a client's count of what it fetched meets the workers' count of what they made. */
static void an_answer_that_is_not_the_one_that_was_made_is_noticed(void **state)
{
    (void)state;
    struct empty_job empty;
    struct error err;
    struct counters *counters = &empty.counters;
    empty_job_open(&empty);
    struct buf first = {.bytes = (unsigned char *)"first", .size = 5};
    struct buf second = {.bytes = (unsigned char *)"other", .size = 5};
    for (uint32_t query = 0; query < empty.source.plan->query_count; query++) {
        exchange_count_add_answer(&counters->given[query], 0, &first);
        exchange_count_add_answer(&counters->given[query], 1, &second);
        assert_int_equal(audit_check(&empty.source, &err), STATUS_INTERNAL);
        assert_non_null(strstr(err.text, "is not the one that was made"));
        /* Each at the other's place. */
        exchange_count_add_answer(&counters->taken[query], 0, &second);
        exchange_count_add_answer(&counters->taken[query], 1, &first);
        assert_int_equal(audit_check(&empty.source, &err), STATUS_INTERNAL);
        counters->taken[query] = (struct exchange_count){0};
        exchange_count_add_answer(&counters->taken[query], 1, &second);
        exchange_count_add_answer(&counters->taken[query], 0, &first);
        assert_int_equal(audit_check(&empty.source, &err), STATUS_OK);
    }
    empty_job_close(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_the_example),
        cmocka_unit_test(stages_count_rows_in_and_out),
        cmocka_unit_test(drops_do_not_depend_on_the_queries_that_run),
        cmocka_unit_test(every_lost_batch_is_noticed),
        cmocka_unit_test(every_batch_that_was_never_sent_is_noticed),
        cmocka_unit_test(every_doubled_batch_is_noticed),
        cmocka_unit_test(every_altered_batch_is_noticed),
        cmocka_unit_test(every_record_that_nobody_counted_is_noticed),
        cmocka_unit_test(an_answer_that_is_not_the_one_that_was_made_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
