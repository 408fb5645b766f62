/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - the messages that go through the broker, and into the input log.
 *
 *     gateway -> worker    MANIFEST SYNC END FETCH REMOVE LIST
 *     worker -> gateway    STORED STATUS RESULT JOBS (MANIFEST, when asked for)
 *     gateway -> work queue -> worker    CHUNK
 *     worker -> work queue -> worker -> worker    BARRIER
 *     worker -> worker    OUTPUT PRODUCER_END ASK
 *
 * A stream is what one source sends to one worker: the outputs of a scan's chunks, whichever worker
 * maps them, or the batches that one shard of a fold emits. Its messages are numbered 0, 1, 2...
 * and its end is a count and a sum of batch_hash(number, checksum). Both are functions of the set
 * of messages, so order and duplicates do not matter, and no barrier among producers is needed.
 *
 * Every encoded message ends with a checksum of the bytes before it. Item bytes in OUTPUT and
 * RESULT start at multiples of 8 from the message's first byte, so that batches are decoded in
 * place.
 *
 * Memory: a decoded message borrows texts from the bytes and takes arrays from the arena.
 * Failure: bytes that no encoder wrote give STATUS_CORRUPT. A count is checked against the bytes
 * that are left before memory is allocated for it: a short message cannot ask for gigabytes.
 */
#ifndef CLUSTER_WIRE_MESSAGE_H
#define CLUSTER_WIRE_MESSAGE_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"

enum message_kind {
    MESSAGE_MANIFEST = 1, /* Store this job; or the answer to a SYNC that needs the manifest. */
    MESSAGE_STORED,       /* Whether the worker has stored it. */
    MESSAGE_SYNC,         /* What do you have of this job? Renews its lease. */
    MESSAGE_STATUS,       /* The answer: progress, and which chunks are missing. */
    MESSAGE_CHUNK,        /* Records of a file, for any worker to map. */
    MESSAGE_END,          /* So many chunks has a scan. */
    MESSAGE_OUTPUT,       /* What one chunk or one batch of a fold gives one worker. */
    MESSAGE_PRODUCER_END, /* So many batches has one shard of a fold. */
    MESSAGE_ASK,          /* Send these batches of a fold: missing ones, or the next window. */
    MESSAGE_BARRIER,      /* Follows earlier chunks through a work queue, back to its sender. */
    MESSAGE_FETCH,        /* Send batches of a result. */
    MESSAGE_RESULT,       /* The answer. */
    MESSAGE_REMOVE,       /* The job is over: delete it. */
    MESSAGE_LIST,         /* Which jobs do you have? */
    MESSAGE_JOBS,         /* The answer. */
    MESSAGE_KINDS
};

enum stream_source {
    STREAM_SCAN, /* Outputs of a scan's maps. */
    STREAM_FOLD, /* Outputs of maps over the batches that one shard of a fold emitted. */
    STREAM_COPY  /* Those batches themselves: a broadcast build side, copied to every worker. */
};

struct message_manifest {
    uint64_t request;
    bool order; /* Also beyond the limit of jobs: another worker holds it already. */
    struct text bytes;
};

enum stored_outcome {
    STORED_NEW,       /* Was not there, is now. */
    STORED_HELD,      /* Was there. */
    STORED_FULL,      /* No slot is free. */
    STORED_DIFFERS,   /* The id is taken by another manifest. */
    STORED_CANCELLED, /* Was there until it was cancelled, lately. */
    STORED_REFUSED    /* This worker cannot run it: another build, no memory; `text` says why. */
};

struct message_stored {
    uint64_t request;
    enum stored_outcome outcome;
    struct text text;
};

struct scan_sent {
    uint32_t scan;
    uint64_t count; /* Chunks 0..count-1 have been sent at least once. */
};

struct message_sync {
    uint64_t request;
    bool renew;          /* For the job's owner: renews the lease and drives repair. */
    bool needs_manifest; /* The gateway does not know the job: a worker that does sends MANIFEST. */
    const struct scan_sent *sent;
    uint32_t sent_count;
};

/* How far a worker is with a scan's stream. */
struct scan_state {
    uint32_t scan;
    bool relevant;       /* Some of its outputs come to this worker. */
    bool ended;          /* Its END is known. */
    uint64_t applied;    /* So many chunks' outputs are applied, */
    uint64_t contiguous; /* and all of 0..contiguous-1. */
};

/* Chunks of a scan that are missing, for the client to send again. */
struct rerequest {
    uint32_t scan;
    uint64_t attempt; /* Changes whenever the numbers are to be sent once more. */
    const uint64_t *numbers;
    uint32_t number_count;
};

enum worker_job_state {
    WORKER_JOB_UNKNOWN,
    WORKER_JOB_RUNNING,
    WORKER_JOB_COMPLETE,
    WORKER_JOB_FAILED
};

struct query_state {
    uint32_t query;
    uint64_t batch_count; /* Its result is here, in so many batches. */
};

/* A chunk that a worker has taken and whose outputs are not all confirmed. */
struct chunk_held {
    uint32_t scan;
    uint64_t number;
};

struct message_status {
    uint64_t request;
    uint64_t incarnation;
    enum worker_job_state state;
    bool maps;
    uint32_t failure; /* A status code, when failed; */
    struct text text; /* and its text. */
    const struct scan_state *scans;
    uint32_t scan_count;
    const struct rerequest *rerequests;
    uint32_t rerequest_count;
    const uint32_t *copies; /* Folds whose copy is complete here. */
    uint32_t copy_count;
    const struct query_state *queries;
    uint32_t query_count;
    const struct chunk_held *held;
    uint32_t held_count;
    uint64_t duplicates; /* Messages discarded because they had been applied. */
    uint64_t replayed;   /* Records read back from the log at the last start. */
};

struct message_chunk {
    uint32_t scan;
    uint64_t number;
    uint64_t checksum; /* hash_bytes of the body. */
    struct text body;  /* See chunk_body below. Decoding does not compare it with its checksum. */
};

struct message_end {
    uint32_t scan;
    uint64_t count;
    uint64_t sum;
};

enum item_kind {
    ITEM_BATCH, /* For shard `shard` of pipeline `index`'s target fold. */
    ITEM_COPY,  /* Rows of finished fold `index`, for maps to join with. */
    ITEM_REPORT /* Counters of the mapping of a chunk: see engine/data/counters.h. */
};

struct output_item {
    enum item_kind kind;
    uint32_t index;
    uint32_t shard;
    struct text bytes;
};

/* What one chunk, or one batch that a fold emitted, gives one worker: for all exchanges of all
 * queries one message. */
struct message_output {
    enum stream_source source_kind;
    uint32_t source;
    uint32_t producer; /* The fold's shard; 0 for a scan. */
    uint64_t number;
    uint64_t checksum; /* Of the chunk; of a fold's output, of all items. */
    const struct output_item *items;
    uint32_t item_count;
};

struct message_producer_end {
    enum stream_source kind; /* STREAM_FOLD or STREAM_COPY. */
    uint32_t fold;
    uint32_t shard;
    uint64_t count;
    uint64_t sum;
};

struct message_ask {
    enum stream_source kind; /* STREAM_FOLD or STREAM_COPY. */
    uint32_t fold;
    uint32_t shard;
    const uint64_t *numbers; /* None: only the end is asked for. */
    uint32_t number_count;
};

/* The asker puts one on each work queue. It returns after the chunks that were ahead of it, so a
 * chunk that is still missing then is lost, not late: order of a channel tells what is in flight,
 * as in the snapshots of Chandy and Lamport (1985). */
struct message_barrier {
    uint32_t scan;
    uint32_t queue; /* The work queue it was put on. */
    uint64_t attempt;
    bool returned; /* On its way back to the asker. */
};

struct message_fetch {
    uint64_t request;
    uint32_t query; /* query_count of the plan: the audit. */
    uint64_t from;
    uint64_t limit_bytes; /* At least one batch comes, more while they fit. */
};

struct result_batch {
    uint64_t number;
    struct text bytes;
};

struct message_result {
    uint64_t request;
    bool ready; /* False: not (any more) here. */
    uint64_t total;
    const struct result_batch *batches;
    uint32_t batch_count;
};

enum remove_reason { REMOVE_DONE, REMOVE_CANCELLED, REMOVE_REFUSED };

struct message_remove {
    enum remove_reason reason;
};

/* With MESSAGE_NO_JOB as the message's `job`: all jobs of the worker. With a job, also one that has
 * ended lately: its milestones too. */
struct message_list {
    uint64_t request;
};

/* A milestone of a job on a worker. */
enum milestone_kind {
    MILESTONE_STORED,
    MILESTONE_PHASE,    /* The first chunk of phase `number` (1..) was applied. */
    MILESTONE_REPLAYED, /* `number` records were read back after a restart. */
    MILESTONE_COMPLETE, /* This worker has computed its part. */
    MILESTONE_FAILED,
    MILESTONE_DONE,      /* Removed: its client has the answer. */
    MILESTONE_CANCELLED, /* Removed by an operator. */
    MILESTONE_REFUSED,   /* Removed: another worker did not take it. */
    MILESTONE_EXPIRED,   /* Removed: its client was silent for too long. */
    MILESTONE_KINDS
};

struct milestone {
    enum milestone_kind kind;
    uint64_t age_ms; /* An age, since clocks of two hosts differ. */
    uint64_t number;
};

struct listed_job {
    struct text job;
    enum worker_job_state state;
    uint64_t age_ms;
    uint64_t lease_ms; /* Left. */
    uint64_t applied;  /* Messages, of all streams. */
};

struct message_jobs {
    uint64_t request;
    uint64_t incarnation;
    uint64_t uptime_ms;
    bool maps;
    bool folds;
    const struct listed_job *jobs;
    uint32_t job_count;
    const struct milestone *milestones; /* Of the job that was asked for. */
    uint32_t milestone_count;
};

#define MESSAGE_NO_JOB "-"

struct message {
    enum message_kind kind;
    struct text job;
    uint64_t manifest; /* Its hash; 0 where the sender does not know it (SYNC, REMOVE). */
    struct text from;  /* The sender's name. */
    union {
        struct message_manifest store;
        struct message_stored stored;
        struct message_sync sync;
        struct message_status status;
        struct message_chunk chunk;
        struct message_end end;
        struct message_output output;
        struct message_producer_end producer_end;
        struct message_ask ask;
        struct message_barrier barrier;
        struct message_fetch fetch;
        struct message_result result;
        struct message_remove remove;
        struct message_list list;
        struct message_jobs jobs;
    };
};

enum { MESSAGE_ROOM_BYTES = 256 }; /* All of a CHUNK but its body takes less. */

void message_encode(const struct message *message, struct buf *out);
/* The same for a CHUNK whose body is the content of the buf: the body is not copied if there is
 * room for MESSAGE_ROOM_BYTES more. */
void message_encode_behind(const struct message *message, struct buf *body);
/* The bytes must be 8-byte aligned. */
MUST_USE status message_decode(struct text bytes, struct arena *arena, struct message *out,
                               struct error *err);
const char *message_name(enum message_kind kind);
/* The identity of an encoded message: the checksum that it ends with; 0 if it is too short. */
uint64_t message_item(struct text bytes);

/* One message's part of a stream's sum: a hash of a set, where addition makes order irrelevant
 * (Bellare and Micciancio 1997, AdHash). */
static inline uint64_t batch_hash(uint64_t number, uint64_t checksum)
{
    return hash_combine(hash_u64(number), checksum);
}

/* The body of a chunk as the client makes it: its origin, then whole CSV records. */
struct chunk_body {
    uint32_t file;
    uint64_t offset;            /* Of its first byte in the file. */
    uint64_t first_line;        /* 1-based. */
    uint32_t file_columns;      /* Of the records: the client does not upload unused columns. */
    const uint32_t *column_map; /* Table column -> column of the records. */
    uint32_t column_count;
    struct text bytes;
};

enum { CHUNK_COLUMNS_MAX = 1 << 16 }; /* Of a file; readers lay out memory by it. */

void chunk_body_encode(const struct chunk_body *body, struct buf *out);
/* All but the records, which follow. */
void chunk_body_encode_head(const struct chunk_body *body, struct buf *out);
static inline size_t chunk_body_head_bytes(uint32_t column_count)
{
    return 34 + 4 * (size_t)column_count;
}
MUST_USE status chunk_body_decode(struct text bytes, struct arena *arena, struct chunk_body *out,
                                  struct error *err);

#endif
