/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the HTTP interface between clients and gateways.
 *
 * A request is a struct here: api_request_parse makes one of method, path, query and headers, and
 * api_request_format does the reverse, so that client and server cannot disagree. A reply is a
 * status code and a body: JSON but for results, which are binary pages.
 *
 * Numbers are decimal and at most API_NUMBER_MAX, which every reader of JSON holds exactly (RFC
 * 8259, 6: integers up to 2^53). Values of all 64 bits (hashes, sums, attempts) are 16 lower-case
 * hex digits, in JSON a string.
 *
 * Memory: a parsed request borrows from its source and takes the rest from the arena; so does a
 * page. Values decoded from JSON live in the arena alone.
 * Failure: a client's mistake is STATUS_INPUT, too large a value STATUS_LIMIT; a gateway's mistake
 * is STATUS_CORRUPT.
 */
#ifndef CLUSTER_WIRE_API_H
#define CLUSTER_WIRE_API_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/wire/manifest.h"
#include "cluster/wire/message.h"

enum api_kind {
    API_PUT_JOB,    /* PUT /v1/jobs/ID                      body: JSON, struct job_request */
    API_PUT_CHUNK,  /* PUT /v1/jobs/ID/scans/S/chunks/N     body: struct chunk_body, encoded */
    API_PUT_END,    /* PUT /v1/jobs/ID/scans/S/end          body: JSON {"count":N,"sum":"hex"} */
    API_GET_JOB,    /* GET /v1/jobs/ID?wait=SECONDS&sent=0:12,1:3&seen=HASH */
    API_GET_RESULT, /* GET /v1/jobs/ID/results/Q?from=N     Q is a query's name, or .audit */
    API_TIMELINE,   /* GET /v1/jobs/ID/timeline */
    API_DELETE_JOB, /* DELETE /v1/jobs/ID */
    API_LIST_JOBS,  /* GET /v1/jobs */
    API_NODES,      /* GET /v1/nodes */
    API_HEALTH,     /* GET /healthz */
    API_METRICS,    /* GET /metrics */
    API_KINDS
};

#define API_AUDIT ".audit" /* No query's name begins with a point. */

/* Headers of our own. */
#define API_HEADER_OWNER    "X-Millrace-Owner"    /* The owner key: 32 lower-case hex digits. */
#define API_HEADER_CHECKSUM "X-Millrace-Checksum" /* hash_bytes of the body: 16 such digits. */
#define API_HEADER_TOKEN    "Authorization"       /* Bearer TOKEN, where one is configured. */

#define API_NUMBER_MAX ((uint64_t)1 << 53)
enum {
    API_WAIT_MAX_S = 60,
    API_SENT_MAX = 256, /* Scans of a job that can be reported on. */
    API_OWNER_KEY_SIZE = 32,
    API_JSON_MAX = 16 << 20 /* Bytes of one body in JSON. */
};

struct api_request {
    enum api_kind kind;
    struct text job;
    uint32_t scan;
    uint64_t number; /* Chunk, or first batch of a result. */
    struct text query;
    uint32_t wait_ms;
    bool has_owner;
    uint64_t owner;        /* hash_bytes of the key: the key itself goes no further. */
    struct text owner_key; /* Only for formatting. */
    bool has_checksum;
    uint64_t checksum;
    struct text token;
    const struct scan_sent *sent;
    uint32_t sent_count;
    bool has_seen;
    uint64_t seen;      /* hash_bytes of the last view received: another one is news; 0: none. */
    uint64_t end_count; /* API_PUT_END */
    uint64_t end_sum;
    struct text body;
};

/* As a server sees it; header values are empty when absent. */
struct api_http {
    struct text method;
    struct text path;  /* Without the query. */
    struct text query; /* After the `?`, still encoded. */
    struct text owner;
    struct text checksum;
    struct text token;
    struct text body;
};

/* `out_http` is set by a failure only: 404 for an unknown path, 405 for a known one with another
 * method, else what api_reply_error chooses. The body's checksum is read, not checked. */
MUST_USE status api_request_parse(const struct api_http *http, struct arena *arena,
                                  struct api_request *out, uint32_t *out_http, struct error *err);
/* Writes method, target (path?query) and header lines ("Name: value") into the arena; the body of
 * API_PUT_END is made here too. */
struct api_line {
    struct text method;
    struct text target;
    const char **headers; /* Terminated strings. */
    uint32_t header_count;
    struct text body;
};
MUST_USE status api_request_format(const struct api_request *request, struct arena *arena,
                                   struct api_line *out, struct error *err);

struct api_reply {
    uint32_t status;          /* As HTTP has it. */
    uint32_t retry_after_ms;  /* 0: no such header. Sent as whole seconds, rounded up. */
    const char *content_type; /* A literal. */
    struct buf body;
};

/* {"error":{"code":"input","message":"..."}}; `http` 0: chosen by the code. Replaces the reply's
 * status, type and body. */
void api_reply_error(struct api_reply *reply, uint32_t http, const struct error *err);
/* Code and message of such a body, or a few words about the status; never STATUS_OK. */
void api_reply_error_text(const struct api_reply *reply, struct error *err);

/* ---- PUT job ---- */

struct job_request {
    struct text build;
    struct text analysis; /* Empty, or one that the gateway has; then no SQL is given. */
    struct text tables_sql;
    const struct manifest_query *queries;
    uint32_t query_count;
    const struct manifest_setting *settings;
    uint32_t setting_count;
    const struct manifest_table *tables;
    uint32_t table_count;
    uint32_t chunk_bytes;
    uint32_t field_limit;
    uint64_t broadcast_limit; /* The one the client planned with; 0: the cluster's. */
};

/* STATUS_INPUT: a text is not UTF-8, and JSON would change it. */
MUST_USE status job_request_encode(const struct job_request *request, struct buf *out,
                                   struct error *err);
MUST_USE status job_request_decode(struct text json, struct arena *arena, struct job_request *out,
                                   struct error *err);

/* ---- GET job, and the reply to PUT job ---- */

enum job_state {
    JOB_WAITING, /* For a slot. */
    JOB_ACCEPTED,
    JOB_RUNNING,
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_EXPIRED,
    JOB_STATES
};
extern const char *const job_state_names[JOB_STATES];

struct view_scan {
    uint32_t scan;
    struct text table;
    uint32_t phase; /* 1.. */
    bool open;
    bool ended;          /* Every worker concerned knows its end. */
    uint64_t sent;       /* As the owner last said. */
    uint64_t applied;    /* By all workers concerned. */
    uint64_t contiguous; /* Chunks 0.. up to here are applied by all. */
    uint64_t limit;      /* Chunks from this number on are not taken yet. */
};

struct view_query {
    struct text name;
    bool done;
    uint64_t batch_count;
};

/* Chunks to be sent again: once per (worker, scan, attempt). */
struct view_rerequest {
    struct text worker;
    struct rerequest rerequest;
};

struct job_view {
    struct text job;
    enum job_state state;
    uint64_t manifest; /* As 16 hex digits. */
    uint32_t phase;
    uint32_t phase_count;
    const struct view_scan *scans;
    uint32_t scan_count;
    const struct view_query *queries;
    uint32_t query_count;
    const struct view_rerequest *rerequests; /* For the owner only. */
    uint32_t rerequest_count;
    uint32_t worker_count;
    uint32_t workers_answering;
    struct text silent; /* Names of the workers that do not answer, for people. */
    status failure;     /* Of a failed job. */
    struct text text;
};

/* For people too: bytes that are not UTF-8 are replaced, and counts are cut to API_NUMBER_MAX. */
void job_view_encode(const struct job_view *view, struct buf *out);
MUST_USE status job_view_decode(struct text json, struct arena *arena, struct job_view *out,
                                struct error *err);

/* ---- GET jobs and GET nodes ---- */

/* A job, from what the workers that hold it say. */
struct job_entry {
    struct text job;
    enum job_state state;
    uint64_t age_ms;       /* Since the first of them heard of it. */
    uint64_t lease_ms;     /* Left; when it ends, the job of a silent client is removed. */
    uint64_t applied;      /* Messages, of all streams on all workers. */
    uint32_t worker_count; /* How many hold it. */
};

struct job_list {
    const struct job_entry *jobs;
    uint32_t job_count;
    struct text silent; /* Names of workers that did not answer, for people. */
};

enum node_role { NODE_GATEWAY, NODE_WORKER, NODE_MONITOR, NODE_BROKER, NODE_ROLES };
extern const char *const node_role_names[NODE_ROLES];

struct node_entry {
    struct text name;
    enum node_role role;
    bool answers; /* Lately; */
    bool heard;   /* ever, */
    uint64_t answered_ms_ago;
    bool maps; /* Workers only. */
    bool folds;
    uint64_t uptime_ms;
    uint32_t job_count;
    struct text state;       /* As the monitors see it; without monitors, whether it answers. */
    struct text incarnation; /* When it was started: wall clock in ms; empty: not known. */
    uint32_t restarts;       /* By monitors. */
    uint64_t silent_ms;      /* Since the monitors last heard of it. */
    uint64_t resident_bytes; /* Of memory. */
    struct text problem;     /* Why it could not be started lately. */
};

/* A queue at the broker. */
struct queue_entry {
    struct text name;  /* inbox.NODE or work.K */
    uint64_t messages; /* Waiting, without those in flight to a consumer. */
    uint32_t consumers;
};

struct node_list {
    struct text cluster;
    struct text gateway; /* The one that answers. */
    bool connected;      /* It has a broker. */
    const struct node_entry *nodes;
    uint32_t node_count;
    struct text leader;        /* Of the monitors; empty: there is none, or it is not known. */
    uint64_t term;             /* Its term; 0: none. */
    bool monitored;            /* The monitors have sent this gateway a view, */
    uint64_t monitored_ms_ago; /* so long ago. */
    const struct queue_entry *queues;
    uint32_t queue_count;
};

/* ---- GET timeline ---- */

/* An event of a job, or of the cluster while it ran. */
struct timeline_event {
    uint64_t ms_ago;
    struct text what; /* submitted, phase, complete, done...; or one of cluster_event_names. */
    struct text node; /* Empty: all of them. */
    uint64_t number;  /* Of a phase, of records, of ms. */
    struct text text;
};

struct timeline {
    struct text job;
    const struct timeline_event *events; /* The oldest first. */
    uint32_t event_count;
    struct text silent; /* Names of workers that did not answer, for people. */
};

/* As with views, bytes that are not UTF-8 are replaced. */
void job_list_encode(const struct job_list *list, struct buf *out);
MUST_USE status job_list_decode(struct text json, struct arena *arena, struct job_list *out,
                                struct error *err);
void node_list_encode(const struct node_list *list, struct buf *out);
MUST_USE status node_list_decode(struct text json, struct arena *arena, struct node_list *out,
                                 struct error *err);
void timeline_encode(const struct timeline *timeline, struct buf *out);
MUST_USE status timeline_decode(struct text json, struct arena *arena, struct timeline *out,
                                struct error *err);

/* ---- results: binary pages ---- */

struct result_page {
    uint64_t total;
    const struct result_batch *batches; /* Consecutive. */
    uint32_t batch_count;
};

void result_page_encode(const struct result_page *page, struct buf *out);
/* The bytes must be 8-byte aligned, and so are those of the batches. */
MUST_USE status result_page_decode(struct text bytes, struct arena *arena, struct result_page *out,
                                   struct error *err);

#endif
