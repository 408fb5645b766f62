/* SPDX-License-Identifier: Apache-2.0 */
/* test_mapper.c - a chunk gives the same bytes whichever worker maps it, and each shard one batch.
 *
 * Method: random chunks with all kinds of bad records go through every scan of a job with a side
 * table and scalars. What a new mapper makes of one chunk alone is compared with what others make
 * of them in any order, among other jobs, after sweeps and failures. Batches and reports are taken
 * apart and compared with one scan_run over all chunks.
 */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/exec/fold/fold.h"
#include "engine/exec/scan_run.h"
#include "cluster/role/worker/mapper.h"
#include "unit/cluster/role/shop_job.h"

enum { CHUNKS = 6, FOLDS_MAX = 32, SCANS_MAX = 8, FIRST_LINE = 2 };

/* ---- a job, as a worker has it ---- */

struct map_crew {
    struct map_job map; /* First: destroy gets it. */
    struct value scalars[FOLDS_MAX];
    struct join_table sides[FOLDS_MAX];
    struct fold_shard *side_rows;
    uint32_t destroyed_count;
};

static void crew_destroyed(struct map_job *job)
{
    ((struct map_crew *)job)->destroyed_count++;
}

static void crew_init(struct map_crew *crew, struct manifest manifest)
{
    *crew = (struct map_crew){.map = {.layout = shop_layout(manifest),
                                      .worker = TEXT_LITERAL("w2"),
                                      .uses = 1,
                                      .destroy = crew_destroyed}};
    const struct plan *plan = crew->map.layout->plan;
    assert_true(plan->fold_count <= FOLDS_MAX && plan->scan_count <= SCANS_MAX);
    crew->map.finished = (struct finished){.scalars = crew->scalars, .sides = crew->sides};
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        if (!plan->folds[i].is_scalar) continue;
        bool is_double = plan->folds[i].output.fields[0].type.kind == TYPE_DOUBLE;
        if (is_double) crew->scalars[i].number = 40;
        if (!is_double) crew->scalars[i].integer = 40;
    }
}

/* Nobody holds the job any more, and all its memory is back. */
static void crew_done(struct map_crew *crew)
{
    assert_int_equal(crew->destroyed_count, 0);
    map_job_release(&crew->map);
    assert_int_equal(crew->destroyed_count, 1);
    fold_shard_destroy(crew->side_rows);
    job_layout_release(crew->map.layout);
    assert_int_equal(atomic_load(&crew->map.budget.used_bytes), 0);
}

/* ---- chunks ---- */

static const uint32_t sales_maps[2][3] = {{0, 1, 2}, {2, 0, 1}};
static const uint32_t stores_map[2] = {0, 1};

static void put_value(struct buf *out, struct random *random, uint32_t bound)
{
    static const char *const bad[] = {"", "\"\"", "x", "7.5", "9999999999999999999"};
    uint32_t choice = random_below(random, 40);
    uint32_t value = random_below(random, bound);
    if (choice < 5) buf_put_string(out, bad[choice]);
    if (choice >= 5) buf_format(out, choice % 4 == 0 ? "\"%u\"" : "%u", value);
}

/* Some have no record at all. */
static void make_sales(struct buf *out, uint64_t seed)
{
    struct random random = {seed};
    uint32_t count = seed % 5 == 0 ? 0 : random_below(&random, 200);
    for (uint32_t i = 0; i < count; i++) {
        put_value(out, &random, 1000);
        buf_put_string(out, ",");
        put_value(out, &random, 30);
        buf_put_string(out, ",");
        put_value(out, &random, 100);
        if (random_below(&random, 50) == 0) buf_put_string(out, ",\"one\ntoo many\"");
        buf_put_string(out, "\n");
    }
}

static void make_stores(struct buf *out)
{
    for (uint32_t i = 0; i < 25; i++) {
        buf_format(out, "%u,\"store %u\"\n", i, i % 9);
    }
}

static struct chunk_body chunk_body(const struct map_crew *crew, uint32_t scan, uint64_t number,
                                    struct buf *csv)
{
    const struct plan *plan = crew->map.layout->plan;
    bool is_sales = text_equal(plan->tables[plan->scans[scan].table].name, TEXT_LITERAL("sales"));
    uint32_t file = is_sales ? (uint32_t)(number % 2) : 0;
    if (is_sales) make_sales(csv, number);
    if (!is_sales && number == 0) make_stores(csv);
    assert_false(csv->failed);
    return (struct chunk_body){
        .file = file,
        .offset = 100 * number,
        .first_line = FIRST_LINE,
        .file_columns = is_sales ? 3 : 2,
        .column_map = is_sales ? sales_maps[file] : stores_map,
        .column_count = is_sales ? 3 : 2,
        .bytes = {(const char *)csv->bytes, (uint32_t)csv->size},
    };
}

static struct map_task *make_task(struct map_crew *crew, uint32_t scan, uint64_t number,
                                  const struct chunk_body *body)
{
    struct map_task *task = memory_alloc(NULL, sizeof *task);
    assert_non_null(task);
    *task = (struct map_task){.job = map_job_keep(&crew->map), .scan = scan, .number = number};
    chunk_body_encode(body, &task->message);
    assert_false(task->message.failed);
    task->body = (struct text){(const char *)task->message.bytes, (uint32_t)task->message.size};
    task->checksum = hash_bytes(task->body.bytes, task->body.size);
    return task;
}

static struct map_task *chunk_task(struct map_crew *crew, uint32_t scan, uint64_t number)
{
    struct buf csv = {0};
    struct chunk_body body = chunk_body(crew, scan, number, &csv);
    struct map_task *task = make_task(crew, scan, number, &body);
    buf_done(&csv);
    return task;
}

static struct mapper *new_mapper(void)
{
    struct mapper *mapper = NULL;
    struct error err;
    assert_int_equal(mapper_create(&mapper, &err), STATUS_OK);
    return mapper;
}

static void run_well(struct mapper *mapper, struct map_task *task)
{
    mapper_run(mapper, task);
    if (task->result != STATUS_OK) fail_msg("%s", task->error.text);
    assert_int_equal(task->output_count, task->job->layout->manifest.worker_count);
}

/* What a mapper makes that has seen nothing else. */
static struct map_task *run_alone(struct map_crew *crew, uint32_t scan, uint64_t number)
{
    struct mapper *mapper = new_mapper();
    struct map_task *task = chunk_task(crew, scan, number);
    run_well(mapper, task);
    mapper_destroy(mapper);
    return task;
}

static void check_same(const struct map_task *a, const struct map_task *b)
{
    assert_int_equal(a->output_count, b->output_count);
    for (uint32_t i = 0; i < a->output_count; i++) {
        assert_int_equal(a->outputs[i].size, b->outputs[i].size);
        if (a->outputs[i].size == 0) continue;
        assert_memory_equal(a->outputs[i].bytes, b->outputs[i].bytes, a->outputs[i].size);
    }
}

/* Decodes what goes to one worker; false: nothing does. */
static bool decode_output(const struct map_task *task, uint32_t worker, struct arena *arena,
                          struct message *out)
{
    const struct buf *bytes = &task->outputs[worker];
    struct error err;
    if (bytes->size == 0) return false;
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    assert_int_equal(message_decode(text, arena, out, &err), STATUS_OK);
    assert_int_equal(out->kind, MESSAGE_OUTPUT);
    return true;
}

/* Maps the stores, and makes of what comes out the build side that the others need. */
static void fill_sides(struct map_crew *crew)
{
    const struct plan *plan = crew->map.layout->plan;
    uint32_t stores[2];
    assert_int_equal(shop_scans(plan, "stores", stores), 1);
    assert_int_equal(plan->scans[stores[0]].pipeline_count, 1);
    uint32_t fold = plan->pipelines[plan->scans[stores[0]].pipelines[0]].target;
    struct error err;
    assert_true(plan->folds[fold].is_build_side);
    assert_int_equal(fold_shard_create(&plan->folds[fold], NULL, NULL, &crew->side_rows, &err),
                     STATUS_OK);
    struct map_task *task = run_alone(crew, stores[0], 0);
    struct arena arena = {0};
    for (uint32_t worker = 0; worker < task->output_count; worker++) {
        struct message message;
        if (!decode_output(task, worker, &arena, &message)) continue;
        for (uint32_t i = 0; i < message.output.item_count; i++) {
            const struct output_item *item = &message.output.items[i];
            struct buf bytes = {0};
            uint64_t rows = 0;
            if (item->kind != ITEM_BATCH) continue;
            buf_put_text(&bytes, item->bytes);
            assert_int_equal(
                fold_shard_apply(crew->side_rows, (struct batch_identity){0}, &bytes, &rows, &err),
                STATUS_OK);
            assert_int_equal(rows, 25);
            buf_done(&bytes);
        }
    }
    assert_int_equal(fold_shard_finish(crew->side_rows, &err), STATUS_OK);
    crew->sides[fold] = *fold_shard_join_table(crew->side_rows);
    arena_done(&arena);
    map_task_destroy(task);
}

static void crew_open(struct map_crew *crew)
{
    crew_init(crew, shop_manifest());
    fill_sides(crew);
}

/* ---- the same bytes ---- */

static void other_mappers_make_the_same_bytes_in_any_order(void **state)
{
    (void)state;
    struct map_crew crew;
    struct map_task *alone[SCANS_MAX][CHUNKS];
    struct random random = {11};
    crew_open(&crew);
    uint32_t scan_count = crew.map.layout->plan->scan_count;
    for (uint32_t scan = 0; scan < scan_count; scan++) {
        for (uint64_t number = 0; number < CHUNKS; number++) {
            alone[scan][number] = run_alone(&crew, scan, number);
        }
    }
    struct mapper *mappers[2] = {new_mapper(), new_mapper()};
    for (uint32_t round = 0; round < 150; round++) {
        uint32_t scan = random_below(&random, scan_count);
        uint64_t number = random_below(&random, CHUNKS);
        struct mapper *mapper = mappers[random_below(&random, 2)];
        struct map_task *task = chunk_task(&crew, scan, number);
        run_well(mapper, task);
        check_same(task, alone[scan][number]);
        map_task_destroy(task);
        if (random_below(&random, 10) == 0) mapper_sweep(mapper);
    }
    for (uint32_t scan = 0; scan < scan_count; scan++) {
        for (uint64_t number = 0; number < CHUNKS; number++) {
            map_task_destroy(alone[scan][number]);
        }
    }
    mapper_destroy(mappers[0]);
    mapper_destroy(mappers[1]);
    crew_done(&crew);
}

/* More jobs than a mapper keeps things for, of which some end. */
static void jobs_among_each_other_do_not_matter(void **state)
{
    (void)state;
    enum { JOBS = 20 };
    static struct map_crew crews[JOBS];
    struct map_task *alone[JOBS];
    struct random random = {12};
    struct mapper *mapper = new_mapper();
    for (uint32_t i = 0; i < JOBS; i++) {
        struct manifest manifest = shop_manifest_of(SHOP_TOTALS);
        manifest.shard_count = 1 + i;
        crew_init(&crews[i], manifest);
        alone[i] = run_alone(&crews[i], 0, 1);
    }
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t i = random_below(&random, JOBS);
        struct map_task *task = chunk_task(&crews[i], 0, 1);
        run_well(mapper, task);
        check_same(task, alone[i]);
        map_task_destroy(task);
        if (random_below(&random, 20) == 0) {
            atomic_store(&crews[i].map.ended, true);
            mapper_sweep(mapper);
            /* What was kept for it is gone: only the test itself and its task hold it. */
            assert_int_equal(atomic_load(&crews[i].map.uses), 2);
            atomic_store(&crews[i].map.ended, false);
        }
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        map_task_destroy(alone[i]);
        atomic_store(&crews[i].map.ended, true);
    }
    mapper_sweep(mapper);
    for (uint32_t i = 0; i < JOBS; i++) {
        crew_done(&crews[i]);
    }
    mapper_destroy(mapper);
    mapper_destroy(NULL);
    map_task_destroy(NULL);
}

/* ---- what is in the bytes ---- */

struct seen {
    uint32_t batches[FOLDS_MAX * 4][8]; /* By pipeline and shard. */
    uint32_t reports;
};

static void check_head(const struct map_task *task, const struct message *message)
{
    const struct job_layout *layout = task->job->layout;
    assert_true(text_equal(message->job, layout->manifest.job));
    assert_true(text_equal(message->from, TEXT_LITERAL("w2")));
    assert_true(message->manifest == layout->hash);
    assert_int_equal(message->output.source_kind, STREAM_SCAN);
    assert_int_equal(message->output.source, task->scan);
    assert_int_equal(message->output.producer, 0);
    assert_true(message->output.number == task->number);
    assert_true(message->output.checksum == task->checksum);
}

/* Counts items; those of the report go to `account`, batches to its other end. */
static void take_apart(const struct map_task *task, struct counters *counters, struct seen *seen)
{
    const struct job_layout *layout = task->job->layout;
    struct arena arena = {0};
    struct error err;
    for (uint32_t worker = 0; worker < task->output_count; worker++) {
        struct message message;
        bool goes_there = decode_output(task, worker, &arena, &message);
        assert_int_equal(goes_there, job_layout_feeds(layout, STREAM_SCAN, task->scan, worker));
        if (!goes_there) continue;
        check_head(task, &message);
        for (uint32_t i = 0; i < message.output.item_count; i++) {
            const struct output_item *item = &message.output.items[i];
            if (item->kind == ITEM_REPORT) {
                assert_int_equal(worker, job_layout_counter_owner(layout, task->scan));
                assert_int_equal(counters_add(counters, layout->plan, item->bytes, &err),
                                 STATUS_OK);
                seen->reports++;
                continue;
            }
            assert_int_equal(item->kind, ITEM_BATCH);
            assert_true(item->index < layout->plan->pipeline_count);
            const struct pipeline *pipeline = &layout->plan->pipelines[item->index];
            assert_true(item->shard < layout->shard_counts[pipeline->target]);
            assert_int_equal(worker, job_layout_owner(layout, pipeline->target, item->shard));
            seen->batches[item->index][item->shard]++;
            struct batch_place place = {.shard = item->shard, .number = task->number};
            exchange_count_add(&counters->applied[item->index], place, 0, item->bytes);
        }
    }
    arena_done(&arena);
}

static bool is_read_first(const struct plan *plan, uint32_t scan)
{
    uint32_t first = 0;
    while (plan->scans[first].table != plan->scans[scan].table) {
        first++;
    }
    return first == scan;
}

/* One scan_run over all chunks, without any mapper. */
static void count_directly(struct map_crew *crew, uint32_t scan_id, struct counters *counters)
{
    const struct job_layout *layout = crew->map.layout;
    const struct scan *scan = &layout->plan->scans[scan_id];
    struct scan_run_options options = {.plan = layout->plan,
                                       .scan = scan,
                                       .finished = &crew->map.finished,
                                       .shard_counts = layout->shard_counts,
                                       .field_limit = layout->manifest.field_limit};
    struct scan_run *run = NULL;
    struct error err;
    uint32_t culprit;
    assert_int_equal(scan_run_create(&options, &run, &culprit, &err), STATUS_OK);
    for (uint64_t number = 0; number < CHUNKS; number++) {
        struct buf csv = {0};
        struct chunk_body body = chunk_body(crew, scan_id, number, &csv);
        struct chunk chunk = {.bytes = body.bytes.bytes,
                              .size = body.bytes.size,
                              .file_columns = body.file_columns,
                              .column_map = body.column_map};
        assert_int_equal(scan_run_chunk(run, &chunk, &culprit, &err), STATUS_OK);
        if (is_read_first(layout->plan, scan_id)) {
            table_counters_add(&counters->tables[scan->table], number, scan_run_counters(run));
        }
        for (uint32_t i = 0; i < scan->pipeline_count; i++) {
            uint32_t id = scan->pipelines[i];
            uint32_t shards = layout->shard_counts[layout->plan->pipelines[id].target];
            struct pipeline_output outputs[8] = {{.row_count = 0}};
            assert_int_equal(pipeline_run_flush(scan_run_pipeline(run, i), outputs, &err),
                             STATUS_OK);
            for (uint32_t shard = 0; shard < shards; shard++) {
                struct buf *bytes = &outputs[shard].bytes;
                struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
                struct batch_place place = {.shard = shard, .number = number};
                exchange_count_add(&counters->sent[id], place, outputs[shard].row_count, text);
                exchange_count_add(&counters->applied[id], place, 0, text);
                buf_done(bytes);
            }
        }
        buf_done(&csv);
    }
    for (uint32_t i = 0; i < scan->pipeline_count; i++) {
        const struct pipeline_counts *counts = pipeline_run_counts(scan_run_pipeline(run, i));
        counters->maps[scan->pipelines[i]] = (struct stage_counts){.rows_in = counts->rows_in,
                                                                   .rows_out = counts->rows_out,
                                                                   .malformed = counts->malformed};
    }
    scan_run_destroy(run);
}

static void check_counters(const struct plan *plan, const struct counters *a,
                           const struct counters *b)
{
    struct buf bytes[2] = {{0}};
    counters_encode(a, plan, &bytes[0]);
    counters_encode(b, plan, &bytes[1]);
    assert_true(bytes[0].size > 0);
    assert_int_equal(bytes[0].size, bytes[1].size);
    assert_memory_equal(bytes[0].bytes, bytes[1].bytes, bytes[0].size);
    buf_done(&bytes[0]);
    buf_done(&bytes[1]);
}

static void every_shard_gets_one_batch_and_reports_add_up(void **state)
{
    (void)state;
    struct map_crew crew;
    struct arena arena = {0};
    struct mapper *mapper = new_mapper();
    crew_open(&crew);
    const struct job_layout *layout = crew.map.layout;
    for (uint32_t scan = 0; scan < layout->plan->scan_count; scan++) {
        struct counters reported;
        struct counters direct;
        assert_true(counters_init(&reported, layout->plan, &arena));
        assert_true(counters_init(&direct, layout->plan, &arena));
        for (uint64_t number = CHUNKS; number-- > 0;) {
            struct map_task *task = chunk_task(&crew, scan, number);
            struct seen seen = {0};
            run_well(mapper, task);
            take_apart(task, &reported, &seen);
            assert_int_equal(seen.reports, 1);
            for (uint32_t i = 0; i < layout->plan->pipeline_count; i++) {
                const struct pipeline *pipeline = &layout->plan->pipelines[i];
                bool is_mapped = pipeline->source_kind == SOURCE_SCAN && pipeline->source == scan;
                for (uint32_t shard = 0; shard < 8; shard++) {
                    bool is_there = is_mapped && shard < layout->shard_counts[pipeline->target];
                    assert_int_equal(seen.batches[i][shard], is_there);
                }
            }
            map_task_destroy(task);
        }
        count_directly(&crew, scan, &direct);
        check_counters(layout->plan, &reported, &direct);
    }
    mapper_destroy(mapper);
    arena_done(&arena);
    crew_done(&crew);
}

/* ---- what goes wrong ---- */

struct wrong_chunk {
    uint32_t file;
    const char *csv;
    status code;
    const char *text;
};

static const struct wrong_chunk wrongs[] = {
    {0, "\"1,2,3\n", STATUS_INPUT, "sales1.csv:2: a quoted field begins here and is never closed"},
    {0, "1,2,3\n1,2,3\n5,\"6,7\n8,9,0\n", STATUS_INPUT,
     "sales1.csv:4: a quoted field begins here and is never closed"},
    {1, "1,\"2\n\n2\",3\n1,2,3\n5,6,\"7\n8,9,0\n", STATUS_INPUT,
     "2024/sales2.csv:6: a quoted field begins here and is never closed"},
    {9, "1,2,\"", STATUS_INPUT, "?:2: a quoted field begins here and is never closed"},
    {1, "1,2,3\n1,2,12345678901234567\n", STATUS_LIMIT,
     "2024/sales2.csv:3: a field has 17 bytes; the limit is 16, see --field-limit"},
    {0, "1,2,9\n", STATUS_OVERFLOW, "query big: "},
};

static void failures_name_the_file_and_line_or_the_query(void **state)
{
    (void)state;
    static const struct manifest_query queries[] = {
        {TEXT_INIT("all"), TEXT_INIT("SELECT id, store, amount FROM sales")},
        {TEXT_INIT("big"), TEXT_INIT("SELECT amount * 4611686018427387904 AS x FROM sales")},
    };
    struct manifest manifest = shop_manifest();
    struct map_crew crew;
    struct mapper *mapper = new_mapper();
    manifest.queries = queries;
    manifest.query_count = 2;
    manifest.field_limit = 16;
    crew_init(&crew, manifest);
    struct chunk_body good = {.file_columns = 3,
                              .first_line = FIRST_LINE,
                              .column_map = sales_maps[0],
                              .column_count = 3,
                              .bytes = TEXT_LITERAL("1,2,1\n3,4,x\n")};
    struct map_task *before = make_task(&crew, 0, 0, &good);
    run_well(mapper, before);
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        struct chunk_body bad = good;
        bad.file = wrongs[i].file;
        bad.bytes = text_of(wrongs[i].csv);
        struct map_task *task = make_task(&crew, 0, 1 + i, &bad);
        mapper_run(mapper, task);
        if (strncmp(task->error.text, wrongs[i].text, strlen(wrongs[i].text)) != 0) {
            fail_msg("%s", task->error.text);
        }
        assert_int_equal(task->result, wrongs[i].code);
        assert_int_equal(task->error.code, wrongs[i].code);
        map_task_destroy(task);
        /* Nothing of it is left in what comes next. */
        struct map_task *after = make_task(&crew, 0, 0, &good);
        run_well(mapper, after);
        check_same(before, after);
        map_task_destroy(after);
    }
    map_task_destroy(before);
    mapper_destroy(mapper);
    crew_done(&crew);
}

static void bodies_that_are_none_are_refused(void **state)
{
    (void)state;
    struct map_crew crew;
    struct mapper *mapper = new_mapper();
    crew_init(&crew, shop_manifest_of(SHOP_TOTALS));
    /* A whole chunk, but of a table with fewer columns. */
    struct chunk_body other = {.file_columns = 2,
                               .first_line = FIRST_LINE,
                               .column_map = stores_map,
                               .column_count = 2,
                               .bytes = TEXT_LITERAL("1,2\n")};
    struct map_task *task = make_task(&crew, 0, 0, &other);
    mapper_run(mapper, task);
    assert_int_equal(task->result, STATUS_CORRUPT);
    assert_true(task->error.text[0] != '\0');
    map_task_destroy(task);
    task = chunk_task(&crew, 0, 1);
    uint32_t whole = task->body.size;
    map_task_destroy(task);
    for (uint32_t size = 0; size < whole; size += 1 + size / 16) {
        task = chunk_task(&crew, 0, 1);
        task->body.size = size;
        task->checksum = hash_bytes(task->body.bytes, size);
        mapper_run(mapper, task);
        assert_int_equal(task->result, STATUS_CORRUPT);
        for (uint32_t i = 0; i < task->output_count; i++) {
            assert_int_equal(task->outputs[i].size, 0);
        }
        map_task_destroy(task);
    }
    mapper_destroy(mapper);
    crew_done(&crew);
}

static void nothing_is_made_of_a_chunk_that_is_not_what_its_checksum_says(void **state)
{
    (void)state;
    struct map_crew crew;
    struct mapper *mapper = new_mapper();
    crew_init(&crew, shop_manifest_of(SHOP_TOTALS));
    struct map_task *task = chunk_task(&crew, 0, 1);
    uint32_t size = task->body.size;
    map_task_destroy(task);
    for (uint32_t bit = 0; bit < size * 8; bit += 5) {
        task = chunk_task(&crew, 0, 1);
        task->message.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        mapper_run(mapper, task);
        assert_true(task->is_damaged);
        for (uint32_t i = 0; i < task->output_count; i++) {
            assert_int_equal(task->outputs[i].size, 0);
        }
        map_task_destroy(task);
    }
    mapper_destroy(mapper);
    crew_done(&crew);
}

/* A mapper that ran out of memory anywhere makes the right bytes the next time. */
static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct map_crew crew;
    crew_open(&crew);
    uint32_t scan_count = crew.map.layout->plan->scan_count;
    for (uint32_t scan = 0; scan < scan_count; scan++) {
        struct map_task *alone = run_alone(&crew, scan, 2);
        struct mapper *mapper = new_mapper();
        bool refused = true;
        for (size_t count = 0; refused; count++) {
            struct map_task *task = chunk_task(&crew, scan, 2);
            memory_fail_after(count);
            mapper_run(mapper, task);
            refused = memory_was_refused();
            memory_fail_never();
            assert_int_equal(task->result, refused ? STATUS_MEMORY : STATUS_OK);
            if (refused) assert_non_null(strstr(task->error.text, "memory"));
            if (!refused) check_same(task, alone);
            map_task_destroy(task);
        }
        mapper_destroy(mapper);
        map_task_destroy(alone);
    }
    struct mapper *mapper = NULL;
    struct error err;
    memory_fail_after(0);
    assert_int_equal(mapper_create(&mapper, &err), STATUS_MEMORY);
    memory_fail_never();
    crew_done(&crew);
}

static void a_job_that_is_too_large_fails_and_no_other(void **state)
{
    (void)state;
    struct map_crew small;
    struct map_crew other;
    struct mapper *mapper = new_mapper();
    crew_init(&small, shop_manifest_of(SHOP_TOTALS));
    crew_init(&other, shop_manifest_of(SHOP_TOTALS));
    small.map.budget.limit_bytes = 1000;
    struct map_task *task = chunk_task(&small, 0, 1);
    mapper_run(mapper, task);
    assert_int_equal(task->result, STATUS_MEMORY);
    map_task_destroy(task);
    assert_int_equal(atomic_load(&small.map.budget.used_bytes), 0);
    task = chunk_task(&other, 0, 1);
    run_well(mapper, task);
    map_task_destroy(task);
    mapper_destroy(mapper);
    crew_done(&small);
    crew_done(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_mappers_make_the_same_bytes_in_any_order),
        cmocka_unit_test(jobs_among_each_other_do_not_matter),
        cmocka_unit_test(every_shard_gets_one_batch_and_reports_add_up),
        cmocka_unit_test(failures_name_the_file_and_line_or_the_query),
        cmocka_unit_test(bodies_that_are_none_are_refused),
        cmocka_unit_test(nothing_is_made_of_a_chunk_that_is_not_what_its_checksum_says),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(a_job_that_is_too_large_fails_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
