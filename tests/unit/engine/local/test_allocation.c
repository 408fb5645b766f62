/* SPDX-License-Identifier: Apache-2.0 */
/* test_allocation.c - when memory is out, a job fails with STATUS_MEMORY and nothing else happens.
 *
 * Method: for a few records of each built-in analysis, all of its queries are run again and again;
 * first the very first allocation fails and all after it, then the second, and so on, until a run
 * passes. Every failure must be STATUS_MEMORY and the run that passes must give the right answer;
 * crashes and leaks are the sanitizers' business. The same is done with the memory limit, whose
 * message must say where it was reached.
 */
#include "unit/test.h"

#include "unit/engine/local/engine_case.h"

enum { EVERY_ONE_BELOW = 2000, LATER_STEP = 7, THREADED_STEP = 23, LEAST_LIMIT_BYTES = 24 << 10 };

/* ---- data ---- */

struct allocation_sample {
    const char *analysis;
    struct {
        const char *name;
        const char *text;
    } files[6];
};

static const struct allocation_sample samples[] = {
    {"movies",
     {{"movies_metadata.csv",
       "id,title,genres,release_date,overview,production_countries,spoken_languages,budget,revenue,"
       "original_language\n"
       "1,Uno,\"[{'id': 1, 'name': 'Drama'}]\",2001-02-03,a wonderful story,\"[{'name': "
       "'Argentina'}, {'name': 'Spain'}]\",\"[{'name': 'es'}]\",100,250,es\n"
       "2,\"Dos, \"\"two\"\"\",\"[{'name': \"\"L'Amour\"\"}]\",2010-05-05,terrible war,\"[{'name': "
       "'Argentina'}]\",[],7,0,es\n"
       "3,Three,[],2005-01-01,nothing,\"[{'name': 'United States of America'}]\",[],10,30,en\n"
       "x,bad,[],2005-01-01,nothing,[],[],10,30,en\n"
       "4,no date,[],,nothing,[],[],10,30,en\n"},
      {"credits.csv", "cast,crew,id\n\"[{'name': 'Ricardo'}, {'name': 'Norma'}]\",[],1\n"
                      "\"[{'name': 'Ricardo'}]\",[],2\n[],[],3\n"},
      {"ratings.csv",
       "userId,movieId,rating,timestamp\n1,1,4.5,0\n2,1,3.0,0\n1,2,1.0,0\n1,3,5,0\n"},
      {NULL, NULL}}},
    {"coffee",
     {{"transactions_202401.csv",
       "transaction_id,store_id,payment_method_id,voucher_id,user_id,original_amount,"
       "discount_applied,final_amount,created_at\n"
       "t1,1,1,,17.0,80,0,80.125,2024-01-05 06:00:00\n"
       "t2,2,1,,,90,0,90.5,2024-08-05 23:00:00\n"
       "t3,1,1,,18.0,20,0,20,2025-01-05 12:00:00\n"},
      {"transaction_items_202401.csv",
       "transaction_id,item_id,quantity,unit_price,subtotal,created_at\n"
       "t1,1,2,5,10.5,2024-01-05 06:00:00\nt1,2,1,7,7,2024-01-05 06:00:00\n"
       "t2,2,1,7,7,2024-08-05 23:00:00\n"},
      {"users_1.csv",
       "user_id,gender,birthdate,registered_at\n17,f,1990-01-01,2023-01-01 00:00:00\n"},
      {"stores.csv", "store_id,store_name\n1,Centro\n2,Norte\n"},
      {"menu_items.csv", "item_id,item_name\n1,Latte\n2,Mocha\n"},
      {NULL, NULL}}},
    {"memes",
     {{"posts.csv", "type,id,subreddit.id,score,url\npost,aa,x,10,http://a\npost,bb,x,2,http://b\n"
                    "post,cc,x,30,\npost,dd,x,40,http://d\n"},
      {"comments.csv", "id,permalink,body,sentiment\n"
                       "c1,https://r/me/comments/aa/t/c1/,my Teacher,0.5\n"
                       "c2,https://r/me/comments/dd/t/c2/,\"a\nstudent\",-0.25\n"
                       "c3,https://r/me/comments/dd/t/c3/,[deleted],1\n"},
      {NULL, NULL}}},
};

enum { SAMPLES = sizeof samples / sizeof samples[0] };

static void sample_open(struct engine_case *engine, const struct allocation_sample *sample)
{
    const char *source = getenv("SOURCE_DIR");
    char folder[ENGINE_PATH_SIZE];
    char path[ENGINE_PATH_SIZE];
    engine_open(engine);
    (void)engine_path(source == NULL ? MILLRACE_SOURCE_DIR : source, "analyses", folder);
    /* The engine's own analysis folder stays empty. */
    engine_require(rmdir(engine->analysis) == 0, engine->analysis);
    (void)snprintf(engine->analysis, sizeof engine->analysis, "%s",
                   engine_path(folder, sample->analysis, path));
    for (int i = 0; sample->files[i].name != NULL; i++) {
        engine_write_string(engine->data, sample->files[i].name, sample->files[i].text);
    }
}

static void sample_close(struct engine_case *engine)
{
    engine_empty(engine->data);
    engine_require(rmdir(engine->data) == 0, engine->data);
    *strrchr(engine->data, '/') = '\0';
    engine_require(rmdir(engine->data) == 0, engine->data);
}

static void assert_same_rows(const struct engine_result *expected,
                             const struct engine_result *found)
{
    assert_int_equal(expected->query_count, found->query_count);
    for (uint32_t i = 0; i < expected->query_count; i++) {
        assert_true(text_equal(engine_text(&expected->rows[i]), engine_text(&found->rows[i])));
    }
}

/* ---- failing allocations ---- */

static void sweep(const struct allocation_sample *sample, uint32_t threads)
{
    struct engine_case engine;
    struct engine_options options = {.threads = threads, .chunk_bytes = 200};
    struct engine_result expected;
    sample_open(&engine, sample);
    engine_run(&engine, &options, &expected);
    if (expected.code != STATUS_OK) print_message("%s\n", expected.err.text);
    assert_int_equal(expected.code, STATUS_OK);
    bool passed = false;
    for (size_t count = 0; !passed;) {
        struct engine_result found;
        memory_fail_after(count);
        engine_run(&engine, &options, &found);
        bool refused = memory_was_refused();
        memory_fail_never();
        if (refused && found.code != STATUS_MEMORY) {
            print_message("%s: allocation %zu fails: status %d, %s\n", sample->analysis, count,
                          (int)found.code, found.code == STATUS_OK ? "" : found.err.text);
        }
        assert_int_equal(found.code, refused ? STATUS_MEMORY : STATUS_OK);
        if (!refused) assert_same_rows(&expected, &found);
        passed = !refused;
        engine_done(&found);
        count += threads > 1 ? THREADED_STEP : count < EVERY_ONE_BELOW ? 1 : LATER_STEP;
    }
    engine_done(&expected);
    sample_close(&engine);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        sweep(&samples[i], 1);
    }
}

static void allocations_may_fail_among_threads(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        sweep(&samples[i], 3);
    }
}

/* ---- the memory limit ---- */

/* Below LEAST_LIMIT_BYTES a run cannot even be set up, and no query is to blame. */

static void the_memory_limit_says_where_it_was_reached(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        struct engine_case engine;
        struct engine_result expected;
        struct engine_options options = {.threads = 1, .chunk_bytes = 200};
        bool passed = false;
        uint32_t refused_count = 0;
        sample_open(&engine, &samples[i]);
        engine_run(&engine, &options, &expected);
        assert_int_equal(expected.code, STATUS_OK);
        for (uint64_t limit = LEAST_LIMIT_BYTES; !passed; limit += limit / 12) {
            struct engine_result found;
            options.memory_limit = limit;
            engine_run(&engine, &options, &found);
            passed = found.code == STATUS_OK;
            if (passed) {
                assert_same_rows(&expected, &found);
            } else {
                assert_int_equal(found.code, STATUS_MEMORY);
                bool has_place = strstr(found.err.text, "query q") != NULL ||
                                 strstr(found.err.text, "reading ") != NULL;
                bool is_told = strstr(found.err.text, "memory limit") != NULL;
                if (!has_place || !is_told) print_message("%s\n", found.err.text);
                assert_true(has_place && is_told);
                refused_count++;
                assert_int_equal(found.batch_count, 0);
            }
            engine_done(&found);
        }
        assert_true(refused_count > 3);
        engine_done(&expected);
        sample_close(&engine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(allocations_may_fail_among_threads),
        cmocka_unit_test(the_memory_limit_says_where_it_was_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
