/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - the layout of messages.
 *
 *     body, zeros up to a multiple of 8,
 *     u8 version, u8 kind, text job, u64 manifest, text from, the kind's fields,
 *     u32 size of the fields from the version on, u64 checksum of these and of their size
 *
 * Only a CHUNK has a body. It comes first so that a gateway makes a message of an uploaded body by
 * writing behind it. It has a checksum of its own among the fields, so that a node that only passes
 * it on does not hash megabytes.
 *
 * The fields of a kind are those of its struct in their order, as codec.h writes them. Each kind
 * has a function that writes them and, below it, one that reads them, line by line the same.
 */
#include "cluster/wire/message.h"

#include "engine/base/assert.h"
#include "engine/plan/plan.h"
#include "engine/data/codec.h"
#include "cluster/wire/manifest.h"

_Static_assert((int)STREAM_SCAN == (int)SOURCE_SCAN, "plans and messages name sources alike");
_Static_assert((int)STREAM_FOLD == (int)SOURCE_FOLD, "plans and messages name sources alike");

enum { VERSION = 2, TAIL_BYTES = 12 };

/* How many choices an enum has. */
enum {
    SOURCE_CHOICES = STREAM_COPY + 1,
    OUTCOME_CHOICES = STORED_REFUSED + 1,
    STATE_CHOICES = WORKER_JOB_FAILED + 1,
    STATUS_CHOICES = STATUS_INTERNAL + 1,
    ITEM_CHOICES = ITEM_REPORT + 1,
    REASON_CHOICES = REMOVE_REFUSED + 1
};

/* The fewest bytes that an item of an array takes. */
enum {
    SENT_BYTES = 12,
    SCAN_BYTES = 22,
    REREQUEST_BYTES = 16,
    QUERY_BYTES = 12,
    ITEM_BYTES = 13,
    BATCH_BYTES = 12,
    HELD_BYTES = 12,
    LISTED_BYTES = 30,
    MILESTONE_BYTES = 17
};

static void put_manifest(struct codec_writer *writer, const struct message *message)
{
    codec_put_u64(writer, message->store.request);
    codec_put_bool(writer, message->store.order);
    codec_put_text(writer, message->store.bytes);
}

static void get_manifest(struct codec_reader *reader, struct message *message)
{
    message->store.request = codec_get_u64(reader);
    message->store.order = codec_get_bool(reader);
    message->store.bytes = codec_get_text(reader);
}

static void put_stored(struct codec_writer *writer, const struct message *message)
{
    codec_put_u64(writer, message->stored.request);
    codec_put_choice(writer, message->stored.outcome, OUTCOME_CHOICES);
    codec_put_text(writer, message->stored.text);
}

static void get_stored(struct codec_reader *reader, struct message *message)
{
    message->stored.request = codec_get_u64(reader);
    message->stored.outcome = (enum stored_outcome)codec_get_choice(reader, OUTCOME_CHOICES);
    message->stored.text = codec_get_text(reader);
}

static void put_sync(struct codec_writer *writer, const struct message *message)
{
    const struct message_sync *sync = &message->sync;
    codec_put_u64(writer, sync->request);
    codec_put_bool(writer, sync->renew);
    codec_put_bool(writer, sync->needs_manifest);
    codec_put_u32(writer, sync->sent_count);
    for (uint32_t i = 0; i < sync->sent_count; i++) {
        codec_put_u32(writer, sync->sent[i].scan);
        codec_put_u64(writer, sync->sent[i].count);
    }
}

static void get_sync(struct codec_reader *reader, struct message *message)
{
    struct message_sync *sync = &message->sync;
    sync->request = codec_get_u64(reader);
    sync->renew = codec_get_bool(reader);
    sync->needs_manifest = codec_get_bool(reader);
    struct scan_sent *sent =
        CODEC_ARRAY(reader, struct scan_sent, SENT_BYTES, UINT32_MAX, &sync->sent_count);
    for (uint32_t i = 0; i < sync->sent_count; i++) {
        sent[i].scan = codec_get_u32(reader);
        sent[i].count = codec_get_u64(reader);
    }
    sync->sent = sent;
}

static void put_scans(struct codec_writer *writer, const struct message_status *report)
{
    codec_put_u32(writer, report->scan_count);
    for (uint32_t i = 0; i < report->scan_count; i++) {
        const struct scan_state *scan = &report->scans[i];
        codec_put_u32(writer, scan->scan);
        codec_put_bool(writer, scan->relevant);
        codec_put_bool(writer, scan->ended);
        codec_put_u64(writer, scan->applied);
        codec_put_u64(writer, scan->contiguous);
    }
}

static void get_scans(struct codec_reader *reader, struct message_status *report)
{
    struct scan_state *scans =
        CODEC_ARRAY(reader, struct scan_state, SCAN_BYTES, UINT32_MAX, &report->scan_count);
    for (uint32_t i = 0; i < report->scan_count; i++) {
        scans[i].scan = codec_get_u32(reader);
        scans[i].relevant = codec_get_bool(reader);
        scans[i].ended = codec_get_bool(reader);
        scans[i].applied = codec_get_u64(reader);
        scans[i].contiguous = codec_get_u64(reader);
    }
    report->scans = scans;
}

static void put_rerequests(struct codec_writer *writer, const struct message_status *report)
{
    codec_put_u32(writer, report->rerequest_count);
    for (uint32_t i = 0; i < report->rerequest_count; i++) {
        const struct rerequest *rerequest = &report->rerequests[i];
        codec_put_u32(writer, rerequest->scan);
        codec_put_u64(writer, rerequest->attempt);
        codec_put_u64s(writer, rerequest->numbers, rerequest->number_count);
    }
}

static void get_rerequests(struct codec_reader *reader, struct message_status *report)
{
    struct rerequest *rerequests = CODEC_ARRAY(reader, struct rerequest, REREQUEST_BYTES,
                                               UINT32_MAX, &report->rerequest_count);
    for (uint32_t i = 0; i < report->rerequest_count; i++) {
        rerequests[i].scan = codec_get_u32(reader);
        rerequests[i].attempt = codec_get_u64(reader);
        rerequests[i].numbers = codec_get_u64s(reader, &rerequests[i].number_count);
    }
    report->rerequests = rerequests;
}

static void put_queries(struct codec_writer *writer, const struct message_status *report)
{
    codec_put_u32(writer, report->query_count);
    for (uint32_t i = 0; i < report->query_count; i++) {
        codec_put_u32(writer, report->queries[i].query);
        codec_put_u64(writer, report->queries[i].batch_count);
    }
}

static void get_queries(struct codec_reader *reader, struct message_status *report)
{
    struct query_state *queries =
        CODEC_ARRAY(reader, struct query_state, QUERY_BYTES, UINT32_MAX, &report->query_count);
    for (uint32_t i = 0; i < report->query_count; i++) {
        queries[i].query = codec_get_u32(reader);
        queries[i].batch_count = codec_get_u64(reader);
    }
    report->queries = queries;
}

static void put_held(struct codec_writer *writer, const struct message_status *report)
{
    codec_put_u32(writer, report->held_count);
    for (uint32_t i = 0; i < report->held_count; i++) {
        codec_put_u32(writer, report->held[i].scan);
        codec_put_u64(writer, report->held[i].number);
    }
}

static void get_held(struct codec_reader *reader, struct message_status *report)
{
    struct chunk_held *held =
        CODEC_ARRAY(reader, struct chunk_held, HELD_BYTES, UINT32_MAX, &report->held_count);
    for (uint32_t i = 0; i < report->held_count; i++) {
        held[i].scan = codec_get_u32(reader);
        held[i].number = codec_get_u64(reader);
    }
    report->held = held;
}

static void put_status(struct codec_writer *writer, const struct message *message)
{
    const struct message_status *report = &message->status;
    codec_put_u64(writer, report->request);
    codec_put_u64(writer, report->incarnation);
    codec_put_choice(writer, report->state, STATE_CHOICES);
    codec_put_bool(writer, report->maps);
    codec_put_choice(writer, report->failure, STATUS_CHOICES);
    codec_put_text(writer, report->text);
    put_scans(writer, report);
    put_rerequests(writer, report);
    codec_put_u32s(writer, report->copies, report->copy_count);
    put_queries(writer, report);
    put_held(writer, report);
    codec_put_u64(writer, report->duplicates);
    codec_put_u64(writer, report->replayed);
}

static void get_status(struct codec_reader *reader, struct message *message)
{
    struct message_status *report = &message->status;
    report->request = codec_get_u64(reader);
    report->incarnation = codec_get_u64(reader);
    report->state = (enum worker_job_state)codec_get_choice(reader, STATE_CHOICES);
    report->maps = codec_get_bool(reader);
    report->failure = codec_get_choice(reader, STATUS_CHOICES);
    report->text = codec_get_text(reader);
    get_scans(reader, report);
    get_rerequests(reader, report);
    report->copies = codec_get_u32s(reader, &report->copy_count);
    get_queries(reader, report);
    get_held(reader, report);
    report->duplicates = codec_get_u64(reader);
    report->replayed = codec_get_u64(reader);
}

static void put_chunk(struct codec_writer *writer, const struct message *message)
{
    codec_put_u32(writer, message->chunk.scan);
    codec_put_u64(writer, message->chunk.number);
    codec_put_u64(writer, message->chunk.checksum);
    codec_put_u32(writer, message->chunk.body.size);
}

static void get_chunk(struct codec_reader *reader, struct message *message)
{
    message->chunk.scan = codec_get_u32(reader);
    message->chunk.number = codec_get_u64(reader);
    message->chunk.checksum = codec_get_u64(reader);
    message->chunk.body.size = codec_get_u32(reader); /* Its bytes are before the fields. */
}

static void put_end(struct codec_writer *writer, const struct message *message)
{
    codec_put_u32(writer, message->end.scan);
    codec_put_u64(writer, message->end.count);
    codec_put_u64(writer, message->end.sum);
}

static void get_end(struct codec_reader *reader, struct message *message)
{
    message->end.scan = codec_get_u32(reader);
    message->end.count = codec_get_u64(reader);
    message->end.sum = codec_get_u64(reader);
}

static void put_output(struct codec_writer *writer, const struct message *message)
{
    const struct message_output *output = &message->output;
    codec_put_choice(writer, output->source_kind, SOURCE_CHOICES);
    codec_put_u32(writer, output->source);
    codec_put_u32(writer, output->producer);
    codec_put_u64(writer, output->number);
    codec_put_u64(writer, output->checksum);
    codec_put_u32(writer, output->item_count);
    for (uint32_t i = 0; i < output->item_count; i++) {
        codec_put_choice(writer, output->items[i].kind, ITEM_CHOICES);
        codec_put_u32(writer, output->items[i].index);
        codec_put_u32(writer, output->items[i].shard);
        codec_put_aligned(writer, output->items[i].bytes);
    }
}

static void get_output(struct codec_reader *reader, struct message *message)
{
    struct message_output *output = &message->output;
    output->source_kind = (enum stream_source)codec_get_choice(reader, SOURCE_CHOICES);
    output->source = codec_get_u32(reader);
    output->producer = codec_get_u32(reader);
    output->number = codec_get_u64(reader);
    output->checksum = codec_get_u64(reader);
    struct output_item *items =
        CODEC_ARRAY(reader, struct output_item, ITEM_BYTES, UINT32_MAX, &output->item_count);
    for (uint32_t i = 0; i < output->item_count; i++) {
        items[i].kind = (enum item_kind)codec_get_choice(reader, ITEM_CHOICES);
        items[i].index = codec_get_u32(reader);
        items[i].shard = codec_get_u32(reader);
        items[i].bytes = codec_get_aligned(reader);
    }
    output->items = items;
}

/* Only folds have producers. */
static void put_producer_kind(struct codec_writer *writer, enum stream_source kind)
{
    ASSERT(kind != STREAM_SCAN);
    codec_put_choice(writer, kind, SOURCE_CHOICES);
}

static enum stream_source get_producer_kind(struct codec_reader *reader)
{
    enum stream_source kind = (enum stream_source)codec_get_choice(reader, SOURCE_CHOICES);
    if (kind == STREAM_SCAN) codec_fail(reader, "a scan has no producers");
    return kind;
}

static void put_producer_end(struct codec_writer *writer, const struct message *message)
{
    put_producer_kind(writer, message->producer_end.kind);
    codec_put_u32(writer, message->producer_end.fold);
    codec_put_u32(writer, message->producer_end.shard);
    codec_put_u64(writer, message->producer_end.count);
    codec_put_u64(writer, message->producer_end.sum);
}

static void get_producer_end(struct codec_reader *reader, struct message *message)
{
    message->producer_end.kind = get_producer_kind(reader);
    message->producer_end.fold = codec_get_u32(reader);
    message->producer_end.shard = codec_get_u32(reader);
    message->producer_end.count = codec_get_u64(reader);
    message->producer_end.sum = codec_get_u64(reader);
}

static void put_ask(struct codec_writer *writer, const struct message *message)
{
    put_producer_kind(writer, message->ask.kind);
    codec_put_u32(writer, message->ask.fold);
    codec_put_u32(writer, message->ask.shard);
    codec_put_u64s(writer, message->ask.numbers, message->ask.number_count);
}

static void get_ask(struct codec_reader *reader, struct message *message)
{
    message->ask.kind = get_producer_kind(reader);
    message->ask.fold = codec_get_u32(reader);
    message->ask.shard = codec_get_u32(reader);
    message->ask.numbers = codec_get_u64s(reader, &message->ask.number_count);
}

static void put_barrier(struct codec_writer *writer, const struct message *message)
{
    codec_put_u32(writer, message->barrier.scan);
    codec_put_u32(writer, message->barrier.queue);
    codec_put_u64(writer, message->barrier.attempt);
    codec_put_bool(writer, message->barrier.returned);
}

static void get_barrier(struct codec_reader *reader, struct message *message)
{
    message->barrier.scan = codec_get_u32(reader);
    message->barrier.queue = codec_get_u32(reader);
    message->barrier.attempt = codec_get_u64(reader);
    message->barrier.returned = codec_get_bool(reader);
}

static void put_fetch(struct codec_writer *writer, const struct message *message)
{
    codec_put_u64(writer, message->fetch.request);
    codec_put_u32(writer, message->fetch.query);
    codec_put_u64(writer, message->fetch.from);
    codec_put_u64(writer, message->fetch.limit_bytes);
}

static void get_fetch(struct codec_reader *reader, struct message *message)
{
    message->fetch.request = codec_get_u64(reader);
    message->fetch.query = codec_get_u32(reader);
    message->fetch.from = codec_get_u64(reader);
    message->fetch.limit_bytes = codec_get_u64(reader);
}

static void put_result(struct codec_writer *writer, const struct message *message)
{
    const struct message_result *result = &message->result;
    codec_put_u64(writer, result->request);
    codec_put_bool(writer, result->ready);
    codec_put_u64(writer, result->total);
    codec_put_u32(writer, result->batch_count);
    for (uint32_t i = 0; i < result->batch_count; i++) {
        codec_put_u64(writer, result->batches[i].number);
        codec_put_aligned(writer, result->batches[i].bytes);
    }
}

static void get_result(struct codec_reader *reader, struct message *message)
{
    struct message_result *result = &message->result;
    result->request = codec_get_u64(reader);
    result->ready = codec_get_bool(reader);
    result->total = codec_get_u64(reader);
    struct result_batch *batches =
        CODEC_ARRAY(reader, struct result_batch, BATCH_BYTES, UINT32_MAX, &result->batch_count);
    for (uint32_t i = 0; i < result->batch_count; i++) {
        batches[i].number = codec_get_u64(reader);
        batches[i].bytes = codec_get_aligned(reader);
    }
    result->batches = batches;
}

static void put_remove(struct codec_writer *writer, const struct message *message)
{
    codec_put_choice(writer, message->remove.reason, REASON_CHOICES);
}

static void get_remove(struct codec_reader *reader, struct message *message)
{
    message->remove.reason = (enum remove_reason)codec_get_choice(reader, REASON_CHOICES);
}

static void put_list(struct codec_writer *writer, const struct message *message)
{
    codec_put_u64(writer, message->list.request);
}

static void get_list(struct codec_reader *reader, struct message *message)
{
    message->list.request = codec_get_u64(reader);
}

static void put_jobs(struct codec_writer *writer, const struct message *message)
{
    const struct message_jobs *jobs = &message->jobs;
    codec_put_u64(writer, jobs->request);
    codec_put_u64(writer, jobs->incarnation);
    codec_put_u64(writer, jobs->uptime_ms);
    codec_put_bool(writer, jobs->maps);
    codec_put_bool(writer, jobs->folds);
    codec_put_u32(writer, jobs->job_count);
    for (uint32_t i = 0; i < jobs->job_count; i++) {
        ASSERT(manifest_name_valid(jobs->jobs[i].job));
        codec_put_text(writer, jobs->jobs[i].job);
        codec_put_choice(writer, jobs->jobs[i].state, STATE_CHOICES);
        codec_put_u64(writer, jobs->jobs[i].age_ms);
        codec_put_u64(writer, jobs->jobs[i].lease_ms);
        codec_put_u64(writer, jobs->jobs[i].applied);
    }
    codec_put_u32(writer, jobs->milestone_count);
    for (uint32_t i = 0; i < jobs->milestone_count; i++) {
        codec_put_choice(writer, jobs->milestones[i].kind, MILESTONE_KINDS);
        codec_put_u64(writer, jobs->milestones[i].age_ms);
        codec_put_u64(writer, jobs->milestones[i].number);
    }
}

static void get_jobs(struct codec_reader *reader, struct message *message)
{
    struct message_jobs *jobs = &message->jobs;
    jobs->request = codec_get_u64(reader);
    jobs->incarnation = codec_get_u64(reader);
    jobs->uptime_ms = codec_get_u64(reader);
    jobs->maps = codec_get_bool(reader);
    jobs->folds = codec_get_bool(reader);
    struct listed_job *listed =
        CODEC_ARRAY(reader, struct listed_job, LISTED_BYTES, UINT32_MAX, &jobs->job_count);
    for (uint32_t i = 0; i < jobs->job_count; i++) {
        listed[i].job = codec_get_text(reader);
        if (!manifest_name_valid(listed[i].job)) codec_fail(reader, "a job's name is none");
        listed[i].state = (enum worker_job_state)codec_get_choice(reader, STATE_CHOICES);
        listed[i].age_ms = codec_get_u64(reader);
        listed[i].lease_ms = codec_get_u64(reader);
        listed[i].applied = codec_get_u64(reader);
    }
    jobs->jobs = listed;
    struct milestone *milestones =
        CODEC_ARRAY(reader, struct milestone, MILESTONE_BYTES, UINT32_MAX, &jobs->milestone_count);
    for (uint32_t i = 0; i < jobs->milestone_count; i++) {
        milestones[i].kind = (enum milestone_kind)codec_get_choice(reader, MILESTONE_KINDS);
        milestones[i].age_ms = codec_get_u64(reader);
        milestones[i].number = codec_get_u64(reader);
    }
    jobs->milestones = milestones;
}

struct kind_class {
    const char *name;
    void (*put)(struct codec_writer *writer, const struct message *message);
    void (*get)(struct codec_reader *reader, struct message *message);
};

static const struct kind_class classes[MESSAGE_KINDS] = {
    [MESSAGE_MANIFEST] = {"MANIFEST", put_manifest, get_manifest},
    [MESSAGE_STORED] = {"STORED", put_stored, get_stored},
    [MESSAGE_SYNC] = {"SYNC", put_sync, get_sync},
    [MESSAGE_STATUS] = {"STATUS", put_status, get_status},
    [MESSAGE_CHUNK] = {"CHUNK", put_chunk, get_chunk},
    [MESSAGE_END] = {"END", put_end, get_end},
    [MESSAGE_OUTPUT] = {"OUTPUT", put_output, get_output},
    [MESSAGE_PRODUCER_END] = {"PRODUCER_END", put_producer_end, get_producer_end},
    [MESSAGE_ASK] = {"ASK", put_ask, get_ask},
    [MESSAGE_BARRIER] = {"BARRIER", put_barrier, get_barrier},
    [MESSAGE_FETCH] = {"FETCH", put_fetch, get_fetch},
    [MESSAGE_RESULT] = {"RESULT", put_result, get_result},
    [MESSAGE_REMOVE] = {"REMOVE", put_remove, get_remove},
    [MESSAGE_LIST] = {"LIST", put_list, get_list},
    [MESSAGE_JOBS] = {"JOBS", put_jobs, get_jobs},
};

static bool kind_is_known(uint32_t kind)
{
    return kind >= MESSAGE_MANIFEST && kind < MESSAGE_KINDS;
}

const char *message_name(enum message_kind kind)
{
    return kind_is_known(kind) ? classes[kind].name : "UNKNOWN";
}

/* At least the size of a large message, so that its bytes are not moved while it grows. */
static size_t bulk_bytes(const struct message *message)
{
    size_t size = 256;
    if (message->kind == MESSAGE_CHUNK) size += message->chunk.body.size;
    if (message->kind == MESSAGE_MANIFEST) size += message->store.bytes.size;
    for (uint32_t i = 0; message->kind == MESSAGE_OUTPUT && i < message->output.item_count; i++) {
        size += ITEM_BYTES + 7 + (size_t)message->output.items[i].bytes.size;
    }
    for (uint32_t i = 0; message->kind == MESSAGE_RESULT && i < message->result.batch_count; i++) {
        size += BATCH_BYTES + 7 + (size_t)message->result.batches[i].bytes.size;
    }
    return size;
}

uint64_t message_item(struct text bytes)
{
    if (bytes.size < sizeof(uint64_t)) return 0;
    struct buf_reader reader = {.bytes = (const unsigned char *)bytes.bytes + bytes.size -
                                         sizeof(uint64_t),
                                .size = sizeof(uint64_t)};
    return buf_get_u64(&reader);
}

/* `body`: has written the body. */
static void put_fields(const struct message *message, struct codec_writer *body)
{
    struct buf *out = body->out;
    ASSERT(kind_is_known(message->kind));
    ASSERT(manifest_name_valid(message->job));
    ASSERT(manifest_name_valid(message->from));
    codec_put_padding(body);
    struct codec_writer writer = codec_begin(out);
    codec_put_u8(&writer, VERSION);
    codec_put_u8(&writer, (uint8_t)message->kind);
    codec_put_text(&writer, message->job);
    codec_put_u64(&writer, message->manifest);
    codec_put_text(&writer, message->from);
    classes[message->kind].put(&writer, message);
    codec_put_u32(&writer, (uint32_t)(out->size - writer.start));
    codec_seal(&writer);
    if (out->size - body->start > UINT32_MAX) out->failed = true;
}

void message_encode(const struct message *message, struct buf *out)
{
    /* A limit may be met exactly: then there is no room for more than is needed. */
    if (out->limit == 0 && !buf_reserve(out, bulk_bytes(message))) return;
    struct codec_writer writer = codec_begin(out);
    if (message->kind == MESSAGE_CHUNK) buf_put_text(out, message->chunk.body);
    put_fields(message, &writer);
}

void message_encode_behind(const struct message *message, struct buf *body)
{
    ASSERT(message->kind == MESSAGE_CHUNK);
    ASSERT(message->chunk.body.size == body->size);
    struct codec_writer writer = {.out = body};
    put_fields(message, &writer);
}

/* The size of the fields in bytes; 0: impossible. */
static uint32_t fields_size(struct text bytes)
{
    if (bytes.size < TAIL_BYTES) return 0;
    struct buf_reader tail = {.bytes =
                                  (const unsigned char *)bytes.bytes + (bytes.size - TAIL_BYTES),
                              .size = TAIL_BYTES};
    uint32_t size = buf_get_u32(&tail);
    return size <= bytes.size - TAIL_BYTES ? size : 0;
}

/* Finds the body in the bytes before the fields. */
static void get_body(struct codec_reader *reader, struct text before, struct message *message)
{
    uint32_t size = message->kind == MESSAGE_CHUNK ? message->chunk.body.size : 0;
    bool fits = size <= before.size && before.size - size == codec_padding(size);
    for (uint32_t i = size; fits && i < before.size; i++) {
        fits = before.bytes[i] == 0;
    }
    if (!fits) codec_fail(reader, "its body is of another size");
    if (message->kind != MESSAGE_CHUNK) return;
    message->chunk.body = fits ? (struct text){before.bytes, size} : (struct text){0};
}

status message_decode(struct text bytes, struct arena *arena, struct message *out,
                      struct error *err)
{
    ASSERT((uintptr_t)bytes.bytes % CODEC_ALIGNMENT == 0);
    uint32_t size = fields_size(bytes);
    uint32_t own_bytes = size + TAIL_BYTES <= bytes.size ? size + TAIL_BYTES : bytes.size;
    struct text before = {bytes.bytes, bytes.size - own_bytes};
    struct text fields = bytes; /* There may be none at all. */
    if (before.size > 0) fields = (struct text){bytes.bytes + before.size, own_bytes};
    struct codec_reader reader = codec_open_sealed(fields, arena);
    struct message message = {0};
    if (codec_get_u8(&reader) != VERSION) codec_fail(&reader, "it is of another version");
    uint8_t kind = codec_get_u8(&reader);
    if (!kind_is_known(kind)) codec_fail(&reader, "it is of no known kind");
    message.job = codec_get_text(&reader);
    message.manifest = codec_get_u64(&reader);
    message.from = codec_get_text(&reader);
    if (!manifest_name_valid(message.job)) codec_fail(&reader, "the job's name is none");
    if (!manifest_name_valid(message.from)) codec_fail(&reader, "the sender's name is none");
    if (!reader.in.failed) {
        message.kind = (enum message_kind)kind;
        classes[kind].get(&reader, &message);
        if (codec_get_u32(&reader) != size) codec_fail(&reader, "its fields are of another size");
        get_body(&reader, before, &message);
    }
    TRY(codec_finish(&reader, "a message", err));
    *out = message;
    return STATUS_OK;
}
