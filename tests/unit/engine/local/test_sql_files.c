/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql_files.c - every question of tests/sql/ has the answer that stands beside it.
 *
 * Method: each question is asked of one thread that reads whole files, and of three threads that
 * read chunks of a record or so and apply batches in a shuffled order, with several numbers of
 * shards; all must give the expected bytes, or the expected message. One result per question is
 * printed as TAP. SQL_TESTS names a single file to run.
 */

#include "engine/base/arena.h"
#include "engine/file/file.h"
#include "unit/engine/local/engine_case.h"
#include "unit/engine/local/sql_file.h"

enum { WAYS = 5 };

struct suite {
    struct engine_case engine;
    struct text file; /* "joins.test" */
    uint32_t test_count;
    uint32_t failed_count;
};

static const char *way_name(int way)
{
    static const char *const names[WAYS] = {"one thread, whole files", "three threads, tiny chunks",
                                            "two threads, small chunks, 16 shards",
                                            "two threads, every join by shards",
                                            "two threads, some joins by shards, with sieves"};
    return names[way];
}

static struct engine_options way_options(int way, uint32_t number)
{
    switch (way) {
    case 0:
        return (struct engine_options){.threads = 1, .chunk_bytes = 1 << 20};
    case 1:
        return (struct engine_options){
            .threads = 3, .chunk_bytes = 1 + number % 64, .shuffle_seed = number + 1};
    case 2:
        return (struct engine_options){.threads = 2,
                                       .chunk_bytes = 64 + number % 200,
                                       .shard_count = 16,
                                       .shuffle_seed = number * 31 + 7};
    default:
        return (struct engine_options){.threads = 2,
                                       .chunk_bytes = 64 + number % 100,
                                       .broadcast_limit = way == 3 ? 1 : 30,
                                       .shuffle_seed = number * 17 + 3};
    }
}

static void print_block(const char *title, struct text text)
{
    (void)printf("# %s\n", title);
    while (text.size > 0) {
        const char *end = memchr(text.bytes, '\n', text.size);
        uint32_t size = end == NULL ? text.size : (uint32_t)(end - text.bytes);
        (void)printf("# | ");
        (void)fwrite(text.bytes, 1, size, stdout); /* Zeros too. */
        (void)printf("\n");
        size += end != NULL;
        text = (struct text){text.bytes + size, text.size - size};
    }
}

/* The lines of the expected text stand in the message, in this order. */
static bool message_has(const char *message, struct text lines)
{
    const char *from = message;
    while (lines.size > 0) {
        const char *end = memchr(lines.bytes, '\n', lines.size);
        uint32_t size = (uint32_t)(end - lines.bytes);
        const char *found = memmem(from, strlen(from), lines.bytes, size);
        if (found == NULL) return false;
        from = found + size;
        lines = (struct text){end + 1, lines.size - size - 1};
    }
    return true;
}

static bool answer_is_right(const struct sql_case *query, const struct engine_result *result)
{
    struct text expected = engine_text(&query->expected);
    if (query->answer == SQL_ANSWER_ERROR) {
        return result->code != STATUS_OK && result->code != STATUS_INTERNAL &&
               result->batch_count == 0 && message_has(result->err.text, expected);
    }
    return result->code == STATUS_OK && result->balanced &&
           text_equal(engine_text(&result->rows[0]), expected);
}

static bool run_way(const struct suite *suite, const struct sql_case *query, int way)
{
    struct job_setting settings[SQL_SETTINGS_LIMIT];
    struct engine_options options = way_options(way, suite->test_count);
    struct engine_result result;
    for (uint32_t i = 0; i < query->set_count; i++) {
        settings[i] = (struct job_setting){query->set_names[i], query->set_values[i]};
    }
    options.settings = settings;
    options.setting_count = query->set_count;
    engine_run(&suite->engine, &options, &result);
    bool right = answer_is_right(query, &result);
    if (!right) {
        (void)printf("# %s\n", way_name(way));
        print_block("expected", engine_text(&query->expected));
        if (result.code == STATUS_OK) {
            print_block("answer", engine_text(&result.rows[0]));
        } else {
            print_block("message", text_of(result.err.text));
        }
    }
    engine_done(&result);
    return right;
}

static void report(struct suite *suite, struct text name, bool right)
{
    suite->test_count++;
    suite->failed_count += !right;
    (void)printf("%sok %u - %.*s: %.*s\n", right ? "" : "not ", suite->test_count,
                 TEXT_ARGS(suite->file), TEXT_ARGS(name));
}

static void run_query(struct suite *suite, const struct sql_case *query)
{
    bool right = true;
    engine_write(suite->engine.analysis, "q.sql", query->sql);
    for (int way = 0; way < WAYS && right; way++) {
        right = run_way(suite, query, way);
    }
    report(suite, query->name, right);
}

static void run_file(struct suite *suite, struct text text)
{
    struct sql_file file = {.rest = text};
    for (enum sql_block block = sql_file_next(&file); block != SQL_BLOCK_END;
         block = sql_file_next(&file)) {
        char name[ENGINE_PATH_SIZE];
        if (file.problem != NULL) break;
        if (block == SQL_BLOCK_TABLES) {
            engine_empty(suite->engine.data);
            engine_write(suite->engine.analysis, "tables.sql", engine_text(&file.text));
        } else if (block == SQL_BLOCK_FILE) {
            (void)snprintf(name, sizeof name, "%.*s", TEXT_ARGS(file.name));
            engine_write(suite->engine.data, name, engine_text(&file.text));
        } else {
            run_query(suite, &file.query);
        }
    }
    if (file.problem != NULL) {
        (void)printf("# line %u: %s\n", file.line, file.problem);
        report(suite, TEXT_LITERAL("can be read"), false);
    }
    sql_file_done(&file);
}

static bool is_wanted(struct text name)
{
    const char *only = getenv("SQL_TESTS");
    if (only != NULL) return text_equal(name, text_of(only));
    return name.size > 5 && memcmp(name.bytes + name.size - 5, ".test", 5) == 0;
}

int main(void)
{
    const char *source = getenv("SOURCE_DIR");
    char folder[ENGINE_PATH_SIZE];
    struct suite suite = {0};
    struct arena arena;
    struct file_entry *entries;
    uint32_t entry_count;
    struct error err;
    arena_init(&arena, NULL);
    (void)engine_path(source == NULL ? MILLRACE_SOURCE_DIR : source, "tests/sql", folder);
    engine_open(&suite.engine);
    engine_require(file_list(folder, &arena, &entries, &entry_count, &err) == STATUS_OK, folder);
    for (uint32_t i = 0; i < entry_count; i++) {
        struct text text;
        if (!is_wanted(entries[i].name)) continue;
        const char *path = file_path(folder, entries[i].name, &arena);
        engine_require(path != NULL, folder);
        engine_require(file_read_whole(path, 1 << 20, &arena, &text, &err) == STATUS_OK, path);
        suite.file = entries[i].name;
        engine_write_string(suite.engine.analysis, "tables.sql", "");
        engine_empty(suite.engine.data);
        run_file(&suite, text);
    }
    engine_close(&suite.engine);
    arena_done(&arena);
    (void)printf("1..%u\n", suite.test_count);
    return suite.failed_count > 0;
}
