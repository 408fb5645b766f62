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
 * The fields of a kind are those of its struct in their order, as codec.h writes them.
 */
#include "cluster/wire/message.h"

#include "engine/base/assert.h"
#include "engine/plan/plan.h"
#include "cluster/wire/manifest.h"
#include "cluster/wire/transfer.h"

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

static void pass_manifest(const struct transfer *transfer, struct message *message)
{
    pass_u64(transfer, &message->store.request);
    pass_bool(transfer, &message->store.order);
    pass_text(transfer, &message->store.bytes);
}

static void pass_stored(const struct transfer *transfer, struct message *message)
{
    pass_u64(transfer, &message->stored.request);
    PASS_CHOICE(transfer, message->stored.outcome, OUTCOME_CHOICES);
    pass_text(transfer, &message->stored.text);
}

static void pass_sync(const struct transfer *transfer, struct message *message)
{
    struct message_sync *sync = &message->sync;
    pass_u64(transfer, &sync->request);
    pass_bool(transfer, &sync->renew);
    pass_bool(transfer, &sync->needs_manifest);
    struct scan_sent *sent = PASS_ARRAY(transfer, &sync->sent, struct scan_sent, SENT_BYTES,
                                        UINT32_MAX, &sync->sent_count);
    for (uint32_t i = 0; i < sync->sent_count; i++) {
        pass_u32(transfer, &sent[i].scan);
        pass_u64(transfer, &sent[i].count);
    }
}

static void pass_scans(const struct transfer *transfer, struct message_status *report)
{
    struct scan_state *scans = PASS_ARRAY(transfer, &report->scans, struct scan_state, SCAN_BYTES,
                                          UINT32_MAX, &report->scan_count);
    for (uint32_t i = 0; i < report->scan_count; i++) {
        pass_u32(transfer, &scans[i].scan);
        pass_bool(transfer, &scans[i].relevant);
        pass_bool(transfer, &scans[i].ended);
        pass_u64(transfer, &scans[i].applied);
        pass_u64(transfer, &scans[i].contiguous);
    }
}

static void pass_rerequests(const struct transfer *transfer, struct message_status *report)
{
    struct rerequest *rerequests =
        PASS_ARRAY(transfer, &report->rerequests, struct rerequest, REREQUEST_BYTES, UINT32_MAX,
                   &report->rerequest_count);
    for (uint32_t i = 0; i < report->rerequest_count; i++) {
        pass_u32(transfer, &rerequests[i].scan);
        pass_u64(transfer, &rerequests[i].attempt);
        pass_u64s(transfer, &rerequests[i].numbers, &rerequests[i].number_count);
    }
}

static void pass_queries(const struct transfer *transfer, struct message_status *report)
{
    struct query_state *queries = PASS_ARRAY(transfer, &report->queries, struct query_state,
                                             QUERY_BYTES, UINT32_MAX, &report->query_count);
    for (uint32_t i = 0; i < report->query_count; i++) {
        pass_u32(transfer, &queries[i].query);
        pass_u64(transfer, &queries[i].batch_count);
    }
}

static void pass_held(const struct transfer *transfer, struct message_status *report)
{
    struct chunk_held *held = PASS_ARRAY(transfer, &report->held, struct chunk_held, HELD_BYTES,
                                         UINT32_MAX, &report->held_count);
    for (uint32_t i = 0; i < report->held_count; i++) {
        pass_u32(transfer, &held[i].scan);
        pass_u64(transfer, &held[i].number);
    }
}

static void pass_status(const struct transfer *transfer, struct message *message)
{
    struct message_status *report = &message->status;
    pass_u64(transfer, &report->request);
    pass_u64(transfer, &report->incarnation);
    PASS_CHOICE(transfer, report->state, STATE_CHOICES);
    pass_bool(transfer, &report->maps);
    PASS_CHOICE(transfer, report->failure, STATUS_CHOICES);
    pass_text(transfer, &report->text);
    pass_scans(transfer, report);
    pass_rerequests(transfer, report);
    pass_u32s(transfer, &report->copies, &report->copy_count);
    pass_queries(transfer, report);
    pass_held(transfer, report);
    pass_u64(transfer, &report->duplicates);
    pass_u64(transfer, &report->replayed);
}

static void pass_chunk(const struct transfer *transfer, struct message *message)
{
    pass_u32(transfer, &message->chunk.scan);
    pass_u64(transfer, &message->chunk.number);
    pass_u64(transfer, &message->chunk.checksum);
    pass_u32(transfer, &message->chunk.body.size); /* Its bytes are before the fields. */
}

static void pass_end(const struct transfer *transfer, struct message *message)
{
    pass_u32(transfer, &message->end.scan);
    pass_u64(transfer, &message->end.count);
    pass_u64(transfer, &message->end.sum);
}

static void pass_output(const struct transfer *transfer, struct message *message)
{
    struct message_output *output = &message->output;
    PASS_CHOICE(transfer, output->source_kind, SOURCE_CHOICES);
    pass_u32(transfer, &output->source);
    pass_u32(transfer, &output->producer);
    pass_u64(transfer, &output->number);
    pass_u64(transfer, &output->checksum);
    struct output_item *items = PASS_ARRAY(transfer, &output->items, struct output_item, ITEM_BYTES,
                                           UINT32_MAX, &output->item_count);
    for (uint32_t i = 0; i < output->item_count; i++) {
        PASS_CHOICE(transfer, items[i].kind, ITEM_CHOICES);
        pass_u32(transfer, &items[i].index);
        pass_u32(transfer, &items[i].shard);
        pass_aligned(transfer, &items[i].bytes);
    }
}

/* Only folds have producers. */
static void pass_producer_kind(const struct transfer *transfer, enum stream_source *kind)
{
    PASS_CHOICE(transfer, *kind, SOURCE_CHOICES);
    if (*kind != STREAM_SCAN) return;
    ASSERT(transfer->writer == NULL);
    codec_fail(transfer->reader, "a scan has no producers");
}

static void pass_producer_end(const struct transfer *transfer, struct message *message)
{
    pass_producer_kind(transfer, &message->producer_end.kind);
    pass_u32(transfer, &message->producer_end.fold);
    pass_u32(transfer, &message->producer_end.shard);
    pass_u64(transfer, &message->producer_end.count);
    pass_u64(transfer, &message->producer_end.sum);
}

static void pass_ask(const struct transfer *transfer, struct message *message)
{
    pass_producer_kind(transfer, &message->ask.kind);
    pass_u32(transfer, &message->ask.fold);
    pass_u32(transfer, &message->ask.shard);
    pass_u64s(transfer, &message->ask.numbers, &message->ask.number_count);
}

static void pass_barrier(const struct transfer *transfer, struct message *message)
{
    pass_u32(transfer, &message->barrier.scan);
    pass_u32(transfer, &message->barrier.queue);
    pass_u64(transfer, &message->barrier.attempt);
    pass_bool(transfer, &message->barrier.returned);
}

static void pass_fetch(const struct transfer *transfer, struct message *message)
{
    pass_u64(transfer, &message->fetch.request);
    pass_u32(transfer, &message->fetch.query);
    pass_u64(transfer, &message->fetch.from);
    pass_u64(transfer, &message->fetch.limit_bytes);
}

static void pass_result(const struct transfer *transfer, struct message *message)
{
    struct message_result *result = &message->result;
    pass_u64(transfer, &result->request);
    pass_bool(transfer, &result->ready);
    pass_u64(transfer, &result->total);
    struct result_batch *batches = PASS_ARRAY(transfer, &result->batches, struct result_batch,
                                              BATCH_BYTES, UINT32_MAX, &result->batch_count);
    for (uint32_t i = 0; i < result->batch_count; i++) {
        pass_u64(transfer, &batches[i].number);
        pass_aligned(transfer, &batches[i].bytes);
    }
}

static void pass_remove(const struct transfer *transfer, struct message *message)
{
    PASS_CHOICE(transfer, message->remove.reason, REASON_CHOICES);
}

static void pass_list(const struct transfer *transfer, struct message *message)
{
    pass_u64(transfer, &message->list.request);
}

static void pass_jobs(const struct transfer *transfer, struct message *message)
{
    struct message_jobs *jobs = &message->jobs;
    pass_u64(transfer, &jobs->request);
    pass_u64(transfer, &jobs->incarnation);
    pass_u64(transfer, &jobs->uptime_ms);
    pass_bool(transfer, &jobs->maps);
    pass_bool(transfer, &jobs->folds);
    struct listed_job *listed = PASS_ARRAY(transfer, &jobs->jobs, struct listed_job, LISTED_BYTES,
                                           UINT32_MAX, &jobs->job_count);
    for (uint32_t i = 0; i < jobs->job_count; i++) {
        pass_text(transfer, &listed[i].job);
        if (!manifest_name_valid(listed[i].job)) {
            ASSERT(transfer->writer == NULL);
            codec_fail(transfer->reader, "a job's name is none");
        }
        PASS_CHOICE(transfer, listed[i].state, STATE_CHOICES);
        pass_u64(transfer, &listed[i].age_ms);
        pass_u64(transfer, &listed[i].lease_ms);
        pass_u64(transfer, &listed[i].applied);
    }
    struct milestone *milestones = PASS_ARRAY(transfer, &jobs->milestones, struct milestone,
                                              MILESTONE_BYTES, UINT32_MAX, &jobs->milestone_count);
    for (uint32_t i = 0; i < jobs->milestone_count; i++) {
        PASS_CHOICE(transfer, milestones[i].kind, MILESTONE_KINDS);
        pass_u64(transfer, &milestones[i].age_ms);
        pass_u64(transfer, &milestones[i].number);
    }
}

struct kind_class {
    const char *name;
    void (*pass)(const struct transfer *transfer, struct message *message);
};

static const struct kind_class classes[MESSAGE_KINDS] = {
    [MESSAGE_MANIFEST] = {"MANIFEST", pass_manifest},
    [MESSAGE_STORED] = {"STORED", pass_stored},
    [MESSAGE_SYNC] = {"SYNC", pass_sync},
    [MESSAGE_STATUS] = {"STATUS", pass_status},
    [MESSAGE_CHUNK] = {"CHUNK", pass_chunk},
    [MESSAGE_END] = {"END", pass_end},
    [MESSAGE_OUTPUT] = {"OUTPUT", pass_output},
    [MESSAGE_PRODUCER_END] = {"PRODUCER_END", pass_producer_end},
    [MESSAGE_ASK] = {"ASK", pass_ask},
    [MESSAGE_BARRIER] = {"BARRIER", pass_barrier},
    [MESSAGE_FETCH] = {"FETCH", pass_fetch},
    [MESSAGE_RESULT] = {"RESULT", pass_result},
    [MESSAGE_REMOVE] = {"REMOVE", pass_remove},
    [MESSAGE_LIST] = {"LIST", pass_list},
    [MESSAGE_JOBS] = {"JOBS", pass_jobs},
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
    struct message copy = *message; /* What it points to is only read. */
    classes[message->kind].pass(&(struct transfer){.writer = &writer}, &copy);
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
        classes[kind].pass(&(struct transfer){.reader = &reader}, &message);
        if (codec_get_u32(&reader) != size) codec_fail(&reader, "its fields are of another size");
        get_body(&reader, before, &message);
    }
    TRY(codec_finish(&reader, "a message", err));
    *out = message;
    return STATUS_OK;
}
