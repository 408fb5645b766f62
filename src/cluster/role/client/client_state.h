/* SPDX-License-Identifier: Apache-2.0 */
/* client_state.h - a client between two steps, shared by client*.c alone.
 *
 * Every event changes some of this; then client_step looks at all of it and does whatever can be
 * done now. So it does not matter what a request was held up by, nor in which order things happen.
 *
 *     client.c          the job: submitted, followed, left
 *     client_request.c  requests in flight, gateways, back-off
 *     client_scan.c     chunks, ends of scans, re-requests
 *     client_result.c   answers and audit
 */
#ifndef CLUSTER_ROLE_CLIENT_CLIENT_STATE_H
#define CLUSTER_ROLE_CLIENT_CLIENT_STATE_H

#include "engine/base/array.h"
#include "engine/base/random.h"
#include "cluster/role/client/client.h"

/* NEW --started--> ASKING <--lost, accepted--> WORKING --> LEAVING --> ENDED; any --> ENDED. */
enum client_stage {
    STAGE_NEW,
    STAGE_ASKING,  /* Until the job is accepted. */
    STAGE_WORKING, /* Chunks go, views and answers come. */
    STAGE_LEAVING, /* What comes of it is known; the job is being deleted. */
    STAGE_ENDED,
    STAGES
};

/* What requests are held up for after failures, each by itself: a gateway may well answer one kind
 * and fail at another. */
enum pause_kind { PAUSE_JOB, PAUSE_CHUNKS, PAUSE_RESULTS, PAUSES };

struct client_pause {
    uint32_t failures; /* One after the other. */
    uint64_t until_ms;
};

/* A request that is not answered. */
struct client_call {
    uint64_t id; /* 0: this place is free. */
    enum api_kind kind;
    uint32_t gateway;
    uint32_t index;      /* Slot of a chunk, scan of an end. */
    uint64_t acceptance; /* Of the job, when it was made: what it says is of that one. */
    uint64_t deadline_ms;
};

enum slot_state { SLOT_FREE, SLOT_READING, SLOT_READY, SLOT_FLYING };

/* A chunk that is in memory, or on its way into it or out of it. The bytes go with the request; a
 * chunk that has to be sent once more is read once more. */
struct chunk_slot {
    enum slot_state state;
    uint32_t scan;
    uint64_t number;
    bool is_again; /* Was accepted before, and is requested again. */
    struct buf body;
};

enum chunk_flag {
    CHUNK_ACCEPTED = 1,   /* By a gateway, at least once. */
    CHUNK_HELD = 2,       /* In a slot. */
    CHUNK_REREQUESTED = 4 /* To be sent again; only if accepted, and not held. */
};

/* What the client knows of a chunk. */
struct chunk_record {
    uint64_t checksum; /* Of its body, when it was read first. */
    uint32_t flags;
    uint32_t resent_quarter; /* When it was last sent again, in quarters of a second; 0: never. */
};

struct client_scan {
    /* As the last view has it. */
    bool is_open;
    bool is_full; /* A gateway took no more; until the next view, or for a while. */
    uint64_t full_until_ms;
    bool is_ended; /* All workers concerned know its end. */
    uint64_t limit;
    uint64_t applied;

    struct chunk_record *chunks; /* Of chunks that have been read, */
    uint64_t read_count;         /* which are those below this. */
    uint32_t chunk_capacity;
    bool is_reading_on; /* Chunk read_count is in a slot. */
    bool is_counted;    /* There are read_count chunks, and no more. */
    uint64_t sum;       /* Of their producer hashes. */
    uint64_t accepted_count;
    uint64_t sent;             /* Chunks below are accepted. */
    uint64_t fresh_from;       /* No chunk below waits to be sent for the first time. */
    uint64_t rerequested_from; /* No chunk below is requested again. */
    uint64_t rerequested_count;

    bool end_is_flying;
    bool end_is_told; /* A gateway has taken it. */
    uint64_t end_again_ms;
    uint32_t end_wait_ms;
};

/* The latest attempt that a worker made to get chunks of a scan. */
struct client_rerequest {
    char worker[ROLE_NAME_SIZE];
    uint32_t scan;
    uint64_t attempt;
};

struct client_query {
    bool is_ready; /* By the last view, and no gateway has said otherwise since. */
    bool has_total;
    bool is_complete;
    uint64_t total;
    uint64_t next; /* Batches below are handed out. */
};

struct client {
    struct client_config config;
    struct arena arena;   /* What has a fixed size. */
    struct arena scratch; /* Of one step. */
    struct random random;
    enum client_stage stage;
    uint64_t now_ms;

    struct client_call *calls;
    uint32_t call_capacity;
    uint64_t last_id;
    uint32_t gateway; /* Where requests go until one fails there. */
    struct client_pause pauses[PAUSES];
    bool is_failing; /* No gateway has answered */
    uint64_t failing_since_ms;
    struct error last_error;

    uint64_t acceptance;   /* How often the job was accepted. */
    uint64_t next_view_ms; /* Not to be asked for before. */
    uint64_t view_hash;    /* Of the last one as it came; 0: none of this job yet. */
    enum job_state job_state;
    bool has_state;
    uint32_t phase;
    uint32_t phase_count;
    uint32_t worker_count;

    struct client_scan *scans; /* By the plan's scans. */
    struct chunk_slot *slots;
    uint32_t slot_count;
    uint32_t flying_count;
    uint64_t resent_count;
    ARRAY_OF(struct client_rerequest) rerequests;

    struct client_query *queries; /* By the plan's queries. */
    bool audit_are_ready;
    bool has_audit_total;
    uint32_t audit_total;
    uint32_t audit_next; /* Parts below are handed out. */

    struct error outcome;
    uint64_t leaving_since_ms;
    uint32_t delete_count;
    struct client_progress told; /* The last progress. */
};

/* ---- client.c ---- */

/* Ends at once; nothing is left behind in the cluster, or it is not ours, or out of reach. */
void client_end(struct client *client, const struct error *outcome, struct effects *effects);
/* Deletes the job, then ends. */
void client_leave(struct client *client, const struct error *outcome);
/* The cluster does not know the job any more: it is asked for again. */
void client_ask_again(struct client *client, struct effects *effects);

/* ---- client_request.c ---- */

/* NULL: none of that kind is in flight. */
const struct client_call *client_call_find(const struct client *client, enum api_kind kind);
void client_call_forget(struct client *client, enum api_kind kind);
/* Adds EFFECT_REQUEST to the current gateway; fill in what the kind needs before the next effect.
 */
struct effect *client_call_make(struct client *client, enum api_kind kind, uint32_t index,
                                struct effects *effects);
/* Takes the call out of those in flight; false: it is not (any more) among them. */
bool client_call_take(struct client *client, uint64_t id, struct client_call *out);
/* One whose time is over, if there is one. */
bool client_call_overdue(const struct client *client, uint64_t *out_id);

/* What a reply says about its gateway: one that failed is not asked next. */
void client_gateway_failed(struct client *client, const struct client_call *call,
                           const struct error *err, struct effects *effects);
void client_gateway_answered(struct client *client);

bool client_pause_over(const struct client *client, enum pause_kind kind);
/* After one more failure; no shorter than the gateway asked for. */
void client_pause_longer(struct client *client, enum pause_kind kind, uint32_t at_least_ms);
void client_pause_end(struct client *client, enum pause_kind kind);

/* ---- client_scan.c ---- */

void client_chunk_read(struct client *client, const struct client_read *read);
/* A reply is NULL when the request has failed; that was counted against its gateway already. */
void client_chunk_replied(struct client *client, const struct client_call *call,
                          const struct api_reply *reply, struct effects *effects);
void client_end_replied(struct client *client, const struct client_call *call,
                        const struct api_reply *reply, struct effects *effects);
void client_scans_view(struct client *client, const struct job_view *view);
/* The job begins anew: what views said does not hold any more. What was sent counts as sent. */
void client_scans_forget(struct client *client);
void client_scans_drive(struct client *client, struct effects *effects);
void client_scans_done(struct client *client);

/* ---- client_result.c ---- */

void client_result_replied(struct client *client, const struct client_call *call,
                           const struct api_reply *reply, struct effects *effects);
void client_results_view(struct client *client, const struct job_view *view);
void client_results_forget(struct client *client);
void client_results_drive(struct client *client, struct effects *effects);
bool client_results_complete(const struct client *client);

#endif
