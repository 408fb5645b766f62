/* SPDX-License-Identifier: Apache-2.0 */
/* test_message.c - messages survive as bytes, are written in one way only, and damage is noticed.
 *
 * Method: random messages of every kind, full of exchange values, are encoded, decoded and compared
 * field by field. One of each kind is cut and changed in every place, with and without a checksum
 * that fits.
 */
#include "unit/test.h"

#include "unit/cluster/wire/sealed_bytes.h"
#include "cluster/wire/manifest.h"
#include "cluster/wire/message.h"

enum { MOST = 4 }; /* Items of an array. */

static struct text text_from(const struct buf *bytes)
{
    return (struct text){(const char *)bytes->bytes, (uint32_t)bytes->size};
}

/* ---- random messages ---- */

struct maker {
    struct random random;
    struct arena arena;
};

static uint32_t any_u32(struct maker *maker)
{
    return sealed_random_u32(&maker->random);
}

static uint64_t any_u64(struct maker *maker)
{
    return sealed_random_u64(&maker->random);
}

static bool any_bool(struct maker *maker)
{
    return sealed_random_bool(&maker->random);
}

static struct text any_text(struct maker *maker)
{
    return sealed_random_text(&maker->random, &maker->arena);
}

static uint32_t any_count(struct maker *maker)
{
    return random_below(&maker->random, MOST + 1);
}

static const uint32_t *any_u32s(struct maker *maker, uint32_t *out_count)
{
    uint32_t *values = arena_array(&maker->arena, uint32_t, MOST);
    assert_non_null(values);
    for (uint32_t i = 0; i < MOST; i++) {
        values[i] = any_u32(maker);
    }
    *out_count = any_count(maker);
    return values;
}

static const uint64_t *any_u64s(struct maker *maker, uint32_t *out_count)
{
    uint64_t *values = arena_array(&maker->arena, uint64_t, MOST);
    assert_non_null(values);
    for (uint32_t i = 0; i < MOST; i++) {
        values[i] = any_u64(maker);
    }
    *out_count = any_count(maker);
    return values;
}

static struct message_sync any_sync(struct maker *maker)
{
    struct scan_sent *sent = arena_array(&maker->arena, struct scan_sent, MOST);
    assert_non_null(sent);
    for (uint32_t i = 0; i < MOST; i++) {
        sent[i] = (struct scan_sent){any_u32(maker), any_u64(maker)};
    }
    return (struct message_sync){
        .request = any_u64(maker),
        .renew = any_bool(maker),
        .needs_manifest = any_bool(maker),
        .sent = sent,
        .sent_count = any_count(maker),
    };
}

static struct message_status any_status(struct maker *maker)
{
    struct scan_state *scans = arena_array(&maker->arena, struct scan_state, MOST);
    struct rerequest *rerequests = arena_array(&maker->arena, struct rerequest, MOST);
    struct query_state *queries = arena_array(&maker->arena, struct query_state, MOST);
    struct chunk_held *held = arena_array(&maker->arena, struct chunk_held, MOST);
    assert_true(scans != NULL && rerequests != NULL && queries != NULL && held != NULL);
    for (uint32_t i = 0; i < MOST; i++) {
        scans[i] = (struct scan_state){any_u32(maker), any_bool(maker), any_bool(maker),
                                       any_u64(maker), any_u64(maker)};
        rerequests[i] = (struct rerequest){.scan = any_u32(maker), .attempt = any_u64(maker)};
        rerequests[i].numbers = any_u64s(maker, &rerequests[i].number_count);
        queries[i] = (struct query_state){any_u32(maker), any_u64(maker)};
        held[i] = (struct chunk_held){any_u32(maker), any_u64(maker)};
    }
    struct message_status report = {
        .request = any_u64(maker),
        .incarnation = any_u64(maker),
        .state = (enum worker_job_state)random_below(&maker->random, WORKER_JOB_FAILED + 1),
        .maps = any_bool(maker),
        .failure = random_below(&maker->random, STATUS_INTERNAL + 1),
        .text = any_text(maker),
        .scans = scans,
        .scan_count = any_count(maker),
        .rerequests = rerequests,
        .rerequest_count = any_count(maker),
        .queries = queries,
        .query_count = any_count(maker),
        .held = held,
        .held_count = any_count(maker),
        .duplicates = any_u64(maker),
        .replayed = any_u64(maker),
    };
    report.copies = any_u32s(maker, &report.copy_count);
    return report;
}

static struct message_output any_output(struct maker *maker)
{
    struct output_item *items = arena_array(&maker->arena, struct output_item, MOST);
    assert_non_null(items);
    for (uint32_t i = 0; i < MOST; i++) {
        items[i].kind = (enum item_kind)random_below(&maker->random, ITEM_REPORT + 1);
        items[i].index = any_u32(maker);
        items[i].shard = any_u32(maker);
        items[i].bytes = any_text(maker);
    }
    return (struct message_output){
        .source_kind = (enum stream_source)random_below(&maker->random, STREAM_COPY + 1),
        .source = any_u32(maker),
        .producer = any_u32(maker),
        .number = any_u64(maker),
        .checksum = any_u64(maker),
        .items = items,
        .item_count = any_count(maker),
    };
}

static struct message_result any_result(struct maker *maker)
{
    struct result_batch *batches = arena_array(&maker->arena, struct result_batch, MOST);
    assert_non_null(batches);
    for (uint32_t i = 0; i < MOST; i++) {
        batches[i] = (struct result_batch){any_u64(maker), any_text(maker)};
    }
    return (struct message_result){
        .request = any_u64(maker),
        .ready = any_bool(maker),
        .total = any_u64(maker),
        .batches = batches,
        .batch_count = any_count(maker),
    };
}

/* Only folds have producers. */
static enum stream_source any_producer(struct maker *maker)
{
    return any_bool(maker) ? STREAM_FOLD : STREAM_COPY;
}

static struct message_ask any_ask(struct maker *maker)
{
    struct message_ask ask = {
        .kind = any_producer(maker), .fold = any_u32(maker), .shard = any_u32(maker)};
    ask.numbers = any_u64s(maker, &ask.number_count);
    return ask;
}

static struct message_jobs any_jobs(struct maker *maker)
{
    struct listed_job *jobs = arena_array(&maker->arena, struct listed_job, MOST);
    assert_non_null(jobs);
    for (uint32_t i = 0; i < MOST; i++) {
        jobs[i].job = sealed_random_name(&maker->random, &maker->arena);
        jobs[i].state = (enum worker_job_state)random_below(&maker->random, WORKER_JOB_FAILED + 1);
        jobs[i].age_ms = any_u64(maker);
        jobs[i].lease_ms = any_u64(maker);
        jobs[i].applied = any_u64(maker);
    }
    struct milestone *milestones = arena_array(&maker->arena, struct milestone, MOST);
    assert_non_null(milestones);
    for (uint32_t i = 0; i < MOST; i++) {
        milestones[i].kind = (enum milestone_kind)random_below(&maker->random, MILESTONE_KINDS);
        milestones[i].age_ms = any_u64(maker);
        milestones[i].number = any_u64(maker);
    }
    return (struct message_jobs){
        .request = any_u64(maker),
        .incarnation = any_u64(maker),
        .uptime_ms = any_u64(maker),
        .maps = any_bool(maker),
        .folds = any_bool(maker),
        .jobs = jobs,
        .job_count = any_count(maker),
        .milestones = milestones,
        .milestone_count = any_count(maker),
    };
}

static void fill_small(struct maker *maker, struct message *message)
{
    if (message->kind == MESSAGE_MANIFEST) {
        message->store =
            (struct message_manifest){any_u64(maker), any_bool(maker), any_text(maker)};
    } else if (message->kind == MESSAGE_STORED) {
        uint32_t outcome = random_below(&maker->random, STORED_REFUSED + 1);
        message->stored =
            (struct message_stored){any_u64(maker), (enum stored_outcome)outcome, any_text(maker)};
    } else if (message->kind == MESSAGE_CHUNK) {
        message->chunk =
            (struct message_chunk){any_u32(maker), any_u64(maker), any_u64(maker), any_text(maker)};
    } else if (message->kind == MESSAGE_END) {
        message->end = (struct message_end){any_u32(maker), any_u64(maker), any_u64(maker)};
    } else if (message->kind == MESSAGE_PRODUCER_END) {
        message->producer_end = (struct message_producer_end){
            any_producer(maker), any_u32(maker), any_u32(maker), any_u64(maker), any_u64(maker)};
    } else if (message->kind == MESSAGE_BARRIER) {
        message->barrier = (struct message_barrier){any_u32(maker), any_u32(maker), any_u64(maker),
                                                    any_bool(maker)};
    } else if (message->kind == MESSAGE_FETCH) {
        message->fetch =
            (struct message_fetch){any_u64(maker), any_u32(maker), any_u64(maker), any_u64(maker)};
    } else if (message->kind == MESSAGE_REMOVE) {
        uint32_t reason = random_below(&maker->random, REMOVE_REFUSED + 1);
        message->remove.reason = (enum remove_reason)reason;
    } else if (message->kind == MESSAGE_LIST) {
        message->list.request = any_u64(maker);
    } else {
        fail();
    }
}

static struct message any_message(struct maker *maker, enum message_kind kind)
{
    struct message message = {
        .kind = kind,
        .job = sealed_random_name(&maker->random, &maker->arena),
        .manifest = any_u64(maker),
        .from = sealed_random_name(&maker->random, &maker->arena),
    };
    if (kind == MESSAGE_SYNC) {
        message.sync = any_sync(maker);
    } else if (kind == MESSAGE_STATUS) {
        message.status = any_status(maker);
    } else if (kind == MESSAGE_OUTPUT) {
        message.output = any_output(maker);
    } else if (kind == MESSAGE_ASK) {
        message.ask = any_ask(maker);
    } else if (kind == MESSAGE_RESULT) {
        message.result = any_result(maker);
    } else if (kind == MESSAGE_JOBS) {
        message.jobs = any_jobs(maker);
    } else {
        fill_small(maker, &message);
    }
    return message;
}

/* ---- comparison ---- */

#define SAME(field)      assert_true(a->field == b->field)
#define SAME_TEXT(field) assert_true(text_equal(a->field, b->field))

static void compare_sync(const struct message_sync *a, const struct message_sync *b)
{
    SAME(request);
    SAME(renew);
    SAME(needs_manifest);
    SAME(sent_count);
    for (uint32_t i = 0; i < a->sent_count; i++) {
        SAME(sent[i].scan);
        SAME(sent[i].count);
    }
}

static void compare_status_arrays(const struct message_status *a, const struct message_status *b)
{
    SAME(scan_count);
    for (uint32_t i = 0; i < a->scan_count; i++) {
        SAME(scans[i].scan);
        SAME(scans[i].relevant);
        SAME(scans[i].ended);
        SAME(scans[i].applied);
        SAME(scans[i].contiguous);
    }
    SAME(rerequest_count);
    for (uint32_t i = 0; i < a->rerequest_count; i++) {
        SAME(rerequests[i].scan);
        SAME(rerequests[i].attempt);
        SAME(rerequests[i].number_count);
        for (uint32_t j = 0; j < a->rerequests[i].number_count; j++) {
            SAME(rerequests[i].numbers[j]);
        }
    }
    SAME(copy_count);
    for (uint32_t i = 0; i < a->copy_count; i++) {
        SAME(copies[i]);
    }
    SAME(query_count);
    for (uint32_t i = 0; i < a->query_count; i++) {
        SAME(queries[i].query);
        SAME(queries[i].batch_count);
    }
    SAME(held_count);
    for (uint32_t i = 0; i < a->held_count; i++) {
        SAME(held[i].scan);
        SAME(held[i].number);
    }
}

static void compare_status(const struct message_status *a, const struct message_status *b)
{
    SAME(request);
    SAME(incarnation);
    SAME(state);
    SAME(maps);
    SAME(failure);
    SAME_TEXT(text);
    compare_status_arrays(a, b);
    SAME(duplicates);
    SAME(replayed);
}

static void compare_output(const struct message_output *a, const struct message_output *b)
{
    SAME(source_kind);
    SAME(source);
    SAME(producer);
    SAME(number);
    SAME(checksum);
    SAME(item_count);
    for (uint32_t i = 0; i < a->item_count; i++) {
        SAME(items[i].kind);
        SAME(items[i].index);
        SAME(items[i].shard);
        SAME_TEXT(items[i].bytes);
        assert_int_equal((uintptr_t)b->items[i].bytes.bytes % 8, 0);
    }
}

static void compare_result(const struct message_result *a, const struct message_result *b)
{
    SAME(request);
    SAME(ready);
    SAME(total);
    SAME(batch_count);
    for (uint32_t i = 0; i < a->batch_count; i++) {
        SAME(batches[i].number);
        SAME_TEXT(batches[i].bytes);
        assert_int_equal((uintptr_t)b->batches[i].bytes.bytes % 8, 0);
    }
}

static void compare_jobs(const struct message_jobs *a, const struct message_jobs *b)
{
    SAME(request);
    SAME(incarnation);
    SAME(uptime_ms);
    SAME(maps);
    SAME(folds);
    SAME(job_count);
    for (uint32_t i = 0; i < a->job_count; i++) {
        SAME_TEXT(jobs[i].job);
        SAME(jobs[i].state);
        SAME(jobs[i].age_ms);
        SAME(jobs[i].lease_ms);
        SAME(jobs[i].applied);
    }
    SAME(milestone_count);
    for (uint32_t i = 0; i < a->milestone_count; i++) {
        SAME(milestones[i].kind);
        SAME(milestones[i].age_ms);
        SAME(milestones[i].number);
    }
}

static void compare_streams(const struct message *a, const struct message *b)
{
    if (a->kind == MESSAGE_CHUNK) {
        SAME(chunk.scan);
        SAME(chunk.number);
        SAME(chunk.checksum);
        SAME_TEXT(chunk.body);
    } else if (a->kind == MESSAGE_END) {
        SAME(end.scan);
        SAME(end.count);
        SAME(end.sum);
    } else if (a->kind == MESSAGE_PRODUCER_END) {
        SAME(producer_end.kind);
        SAME(producer_end.fold);
        SAME(producer_end.shard);
        SAME(producer_end.count);
        SAME(producer_end.sum);
    } else if (a->kind == MESSAGE_ASK) {
        SAME(ask.kind);
        SAME(ask.fold);
        SAME(ask.shard);
        SAME(ask.number_count);
        for (uint32_t i = 0; i < a->ask.number_count; i++) {
            SAME(ask.numbers[i]);
        }
    } else if (a->kind == MESSAGE_BARRIER) {
        SAME(barrier.scan);
        SAME(barrier.queue);
        SAME(barrier.attempt);
        SAME(barrier.returned);
    } else {
        fail();
    }
}

static void compare(const struct message *a, const struct message *b)
{
    SAME(kind);
    SAME_TEXT(job);
    SAME(manifest);
    SAME_TEXT(from);
    if (a->kind == MESSAGE_MANIFEST) {
        SAME(store.request);
        SAME(store.order);
        SAME_TEXT(store.bytes);
    } else if (a->kind == MESSAGE_STORED) {
        SAME(stored.request);
        SAME(stored.outcome);
        SAME_TEXT(stored.text);
    } else if (a->kind == MESSAGE_SYNC) {
        compare_sync(&a->sync, &b->sync);
    } else if (a->kind == MESSAGE_STATUS) {
        compare_status(&a->status, &b->status);
    } else if (a->kind == MESSAGE_OUTPUT) {
        compare_output(&a->output, &b->output);
    } else if (a->kind == MESSAGE_FETCH) {
        SAME(fetch.request);
        SAME(fetch.query);
        SAME(fetch.from);
        SAME(fetch.limit_bytes);
    } else if (a->kind == MESSAGE_RESULT) {
        compare_result(&a->result, &b->result);
    } else if (a->kind == MESSAGE_REMOVE) {
        SAME(remove.reason);
    } else if (a->kind == MESSAGE_LIST) {
        SAME(list.request);
    } else if (a->kind == MESSAGE_JOBS) {
        compare_jobs(&a->jobs, &b->jobs);
    } else {
        compare_streams(a, b);
    }
}

/* ---- tests of messages ---- */

static void decoded_messages_are_those_encoded(void **state)
{
    (void)state;
    for (uint32_t kind = MESSAGE_MANIFEST; kind < MESSAGE_KINDS; kind++) {
        struct maker maker = {.random = {kind}};
        for (uint32_t round = 0; round < 300; round++) {
            struct buf bytes = {0};
            struct message decoded;
            struct error err;
            struct message message = any_message(&maker, (enum message_kind)kind);
            message_encode(&message, &bytes);
            assert_false(bytes.failed);
            assert_int_equal(message_decode(text_from(&bytes), &maker.arena, &decoded, &err),
                             STATUS_OK);
            compare(&message, &decoded);
            buf_done(&bytes);
            arena_reset(&maker.arena);
        }
        arena_done(&maker.arena);
    }
}

static status message_again(struct text bytes, struct buf *out, struct error *err)
{
    struct arena arena = {0};
    struct message message;
    status code = message_decode(bytes, &arena, &message, err);
    if (code == STATUS_OK) message_encode(&message, out);
    arena_done(&arena);
    return code;
}

static void damage_is_refused_or_is_another_message(void **state)
{
    (void)state;
    for (uint32_t kind = MESSAGE_MANIFEST; kind < MESSAGE_KINDS; kind++) {
        struct maker maker = {.random = {100 + kind}};
        struct buf bytes = {0};
        /* Long enough that arrays have items, short enough to try everything. */
        for (size_t fewest = 250; bytes.size < fewest; fewest--) {
            struct message message = any_message(&maker, (enum message_kind)kind);
            if (kind == MESSAGE_CHUNK) message.chunk.body.size = 0; /* Bodies have no seal. */
            buf_reset(&bytes);
            message_encode(&message, &bytes);
        }
        sealed_check_damage(&bytes, message_again);
        buf_done(&bytes);
        arena_done(&maker.arena);
    }
}

/* Whoever has a body makes it a message without copying it; and whether it is the one that its
 * checksum is of is a question for whoever uses it. All else is under the seal. */
static void a_chunks_body_comes_first_and_is_not_under_the_seal(void **state)
{
    (void)state;
    for (uint32_t size = 0; size < 20; size++) {
        struct maker maker = {.random = {200 + size}};
        struct message message = any_message(&maker, MESSAGE_CHUNK);
        char body[20];
        memset(body, 'b', sizeof body);
        message.chunk.body = (struct text){body, size};
        struct buf bytes = {0};
        struct buf behind = {0};
        message_encode(&message, &bytes);
        buf_put(&behind, body, size);
        assert_true(buf_reserve(&behind, MESSAGE_ROOM_BYTES));
        const unsigned char *before = behind.bytes;
        message_encode_behind(&message, &behind);
        assert_ptr_equal(behind.bytes, before);
        assert_int_equal(behind.size, bytes.size);
        assert_memory_equal(behind.bytes, bytes.bytes, bytes.size);
        assert_memory_equal(bytes.bytes, body, size);
        assert_true(sealed_accepted(bytes.bytes, bytes.size, message_again));
        for (size_t bit = 0; bit < bytes.size * 8; bit++) {
            bytes.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_int_equal(sealed_accepted(bytes.bytes, bytes.size, message_again),
                             bit / 8 < size);
            bytes.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        for (size_t cut = 1; cut <= bytes.size; cut++) {
            assert_false(sealed_accepted(bytes.bytes + cut, bytes.size - cut, message_again));
            assert_false(sealed_accepted(bytes.bytes, bytes.size - cut, message_again));
        }
        buf_done(&bytes);
        buf_done(&behind);
        arena_done(&maker.arena);
    }
}

static void a_body_before_another_kind_is_refused(void **state)
{
    (void)state;
    struct maker maker = {.random = {3}};
    for (uint32_t kind = MESSAGE_MANIFEST; kind < MESSAGE_KINDS; kind++) {
        struct message message = any_message(&maker, (enum message_kind)kind);
        struct buf bytes = {0};
        buf_put_u64(&bytes, 0);
        message_encode(&message, &bytes);
        assert_false(sealed_accepted(bytes.bytes, bytes.size, message_again));
        buf_done(&bytes);
    }
    arena_done(&maker.arena);
}

static void a_message_behind_other_bytes_is_the_same(void **state)
{
    (void)state;
    struct maker maker = {.random = {1}};
    for (uint32_t kind = MESSAGE_MANIFEST; kind < MESSAGE_KINDS; kind++) {
        struct message message = any_message(&maker, (enum message_kind)kind);
        struct buf alone = {0};
        struct buf behind = {0};
        message_encode(&message, &alone);
        buf_put_string(&behind, "abc");
        message_encode(&message, &behind);
        assert_int_equal(behind.size, alone.size + 3);
        assert_memory_equal(behind.bytes + 3, alone.bytes, alone.size);
        buf_done(&alone);
        buf_done(&behind);
    }
    arena_done(&maker.arena);
}

static void no_kind_but_those_named_is_accepted(void **state)
{
    (void)state;
    struct maker maker = {.random = {2}};
    struct message message = any_message(&maker, MESSAGE_REMOVE);
    struct buf bytes = {0};
    message_encode(&message, &bytes);
    for (uint32_t kind = 0; kind < 256; kind++) {
        bytes.bytes[1] = (unsigned char)kind;
        bool accepted =
            sealed_accepted_resealed(bytes.bytes, bytes.size - SEAL_BYTES, message_again);
        assert_int_equal(accepted, kind == MESSAGE_REMOVE);
        bool named = strcmp(message_name((enum message_kind)kind), "UNKNOWN") != 0;
        assert_int_equal(named, kind >= MESSAGE_MANIFEST && kind < MESSAGE_KINDS);
    }
    bytes.bytes[1] = MESSAGE_REMOVE;
    for (uint32_t version = 0; version < 256; version++) {
        bytes.bytes[0] = (unsigned char)version;
        bool accepted =
            sealed_accepted_resealed(bytes.bytes, bytes.size - SEAL_BYTES, message_again);
        assert_int_equal(accepted, version == 2);
    }
    buf_done(&bytes);
    arena_done(&maker.arena);
}

/* Where the kind's own fields begin. */
static size_t fields_at(const struct message *message)
{
    return 2 + 4 + message->job.size + 8 + 4 + message->from.size;
}

static void a_scan_has_no_producers(void **state)
{
    (void)state;
    static const enum message_kind kinds[] = {MESSAGE_PRODUCER_END, MESSAGE_ASK, MESSAGE_OUTPUT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct maker maker = {.random = {7 + i}};
        struct message message = any_message(&maker, kinds[i]);
        struct buf bytes = {0};
        message_encode(&message, &bytes);
        for (uint32_t kind = 0; kind < 256; kind++) {
            bytes.bytes[fields_at(&message)] = (unsigned char)kind;
            bool accepted =
                sealed_accepted_resealed(bytes.bytes, bytes.size - SEAL_BYTES, message_again);
            bool has_producers = kind == STREAM_FOLD || kind == STREAM_COPY;
            bool is_scan = kind == STREAM_SCAN && kinds[i] == MESSAGE_OUTPUT;
            assert_int_equal(accepted, has_producers || is_scan);
        }
        buf_done(&bytes);
        arena_done(&maker.arena);
    }
}

static void listed_jobs_have_names_that_are_names(void **state)
{
    (void)state;
    enum { NAME_AT = 8 + 8 + 8 + 1 + 1 + 4 + 4 };
    struct maker maker = {.random = {8}};
    struct listed_job job = {.job = TEXT_LITERAL("ab")};
    struct message message = any_message(&maker, MESSAGE_JOBS);
    struct buf bytes = {0};
    message.jobs.jobs = &job;
    message.jobs.job_count = 1;
    message_encode(&message, &bytes);
    unsigned char *name = bytes.bytes + fields_at(&message) + NAME_AT;
    assert_memory_equal(name, "ab", 2);
    for (uint32_t byte = 0; byte < 256; byte++) {
        char changed[2] = {(char)byte, 'b'};
        name[0] = (unsigned char)byte;
        assert_int_equal(
            sealed_accepted_resealed(bytes.bytes, bytes.size - SEAL_BYTES, message_again),
            manifest_name_valid((struct text){changed, 2}));
    }
    buf_done(&bytes);
    arena_done(&maker.arena);
}

static void an_item_is_the_checksum_at_the_end(void **state)
{
    (void)state;
    struct maker maker = {.random = {9}};
    for (uint32_t kind = MESSAGE_MANIFEST; kind < MESSAGE_KINDS; kind++) {
        struct message message = any_message(&maker, (enum message_kind)kind);
        struct buf bytes = {0};
        message_encode(&message, &bytes);
        size_t body = kind == MESSAGE_CHUNK ? (message.chunk.body.size + 7u) / 8 * 8 : 0;
        assert_true(message_item(text_from(&bytes)) ==
                    hash_bytes(bytes.bytes + body, bytes.size - body - SEAL_BYTES));
        for (uint32_t size = 0; size < SEAL_BYTES; size++) {
            struct text end = {(const char *)bytes.bytes + bytes.size - size, size};
            assert_true(message_item(end) == 0);
        }
        struct text seal = {(const char *)bytes.bytes + bytes.size - SEAL_BYTES, SEAL_BYTES};
        assert_true(message_item(seal) == message_item(text_from(&bytes)));
        buf_done(&bytes);
    }
    assert_true(message_item((struct text){0}) == 0);
    arena_done(&maker.arena);
}

static void a_limit_may_be_met_exactly(void **state)
{
    (void)state;
    struct maker maker = {.random = {3}};
    for (uint32_t kind = MESSAGE_MANIFEST; kind < MESSAGE_KINDS; kind++) {
        struct message message = any_message(&maker, (enum message_kind)kind);
        struct buf free_size = {0};
        message_encode(&message, &free_size);
        for (size_t less = 0; less <= 1; less++) {
            struct buf limited = {.limit = free_size.size - less};
            message_encode(&message, &limited);
            assert_int_equal(limited.failed, less == 1);
            buf_done(&limited);
        }
        buf_done(&free_size);
    }
    arena_done(&maker.arena);
}

static void large_messages_are_not_moved_while_they_grow(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct text large = {arena_array(&arena, char, 1000000), 1000000};
    struct output_item items[3] = {{.bytes = large}, {.bytes = large}, {.bytes = large}};
    struct message message = {
        .kind = MESSAGE_OUTPUT,
        .job = TEXT_LITERAL("job"),
        .from = TEXT_LITERAL("w1"),
        .output = {.items = items, .item_count = 3},
    };
    struct buf bytes = {0};
    message_encode(&message, &bytes);
    assert_false(bytes.failed);
    assert_true(bytes.capacity - bytes.size < 1000);
    buf_done(&bytes);
    message.kind = MESSAGE_CHUNK;
    message.chunk = (struct message_chunk){.body = large};
    message_encode(&message, &bytes);
    assert_false(bytes.failed);
    assert_true(bytes.capacity - bytes.size < 1000);
    buf_done(&bytes);
    arena_done(&arena);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct maker maker = {.random = {4}};
    struct message message;
    struct buf bytes = {0};
    struct buf none = {0};
    do {
        message = any_message(&maker, MESSAGE_STATUS);
    } while (message.status.rerequest_count == 0);
    message_encode(&message, &bytes);
    for (size_t count = 0;; count++) {
        struct arena small = {0};
        struct message decoded;
        struct error err;
        memory_fail_after(count);
        status code = message_decode(text_from(&bytes), &small, &decoded, &err);
        bool refused = memory_was_refused();
        memory_fail_never();
        arena_done(&small);
        assert_int_equal(code, refused ? STATUS_MEMORY : STATUS_OK);
        if (!refused) break;
    }
    memory_fail_after(0);
    message_encode(&message, &none);
    memory_fail_never();
    assert_true(none.failed);
    buf_done(&none);
    buf_done(&bytes);
    arena_done(&maker.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_messages_are_those_encoded),
        cmocka_unit_test(damage_is_refused_or_is_another_message),
        cmocka_unit_test(a_chunks_body_comes_first_and_is_not_under_the_seal),
        cmocka_unit_test(a_body_before_another_kind_is_refused),
        cmocka_unit_test(a_message_behind_other_bytes_is_the_same),
        cmocka_unit_test(no_kind_but_those_named_is_accepted),
        cmocka_unit_test(a_scan_has_no_producers),
        cmocka_unit_test(listed_jobs_have_names_that_are_names),
        cmocka_unit_test(an_item_is_the_checksum_at_the_end),
        cmocka_unit_test(a_limit_may_be_met_exactly),
        cmocka_unit_test(large_messages_are_not_moved_while_they_grow),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
