/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_state.h - the memory of a gateway: its jobs, and the requests that wait.
 *
 * Private to gateway*.c; gateway_parts.h has the functions.
 *
 * A job without a layout is one that a client asks for and this gateway does not know: rounds with
 * needs_manifest are under way. Rounds, PUTs and FETCHes are numbered by one counter that starts at
 * a place chosen by the seed. So an answer to an earlier incarnation of this gateway is recognised,
 * and of two answers of one worker the one with the higher number is the later.
 */
#ifndef CLUSTER_ROLE_GATEWAY_GATEWAY_STATE_H
#define CLUSTER_ROLE_GATEWAY_GATEWAY_STATE_H

#include "engine/base/array.h"
#include "engine/base/random.h"
#include "cluster/role/cluster_history.h"
#include "cluster/role/event.h"
#include "cluster/role/gateway/gateway.h"
#include "cluster/role/job_layout.h"
#include "cluster/wire/api.h"
#include "cluster/wire/message.h"

enum {
    GATEWAY_ENDED_MAX = 64,
    GATEWAY_HEADROOM_BYTES = 4096, /* Of a message, beside the bytes it carries. */
    GATEWAY_PAGE_BYTES = 4 << 20,
    GATEWAY_STOP_MS = 5000,
    GATEWAY_NUMBER_BITS = 40, /* Of a chunk's number. */
    GATEWAY_RETRY_MS = 1000,
    GATEWAY_MEMBERS_MAX = 1024,         /* Nodes in the monitors' view. */
    GATEWAY_MEMBERSHIP_FRESH_MS = 5000, /* A view of the monitors is shown for so long. */
    GATEWAY_MEASURE_MS = 300,           /* How long a list waits for the depths of queues, */
    GATEWAY_MEASURED_MS = 1000,         /* and how long a measurement is reused. */
    GATEWAY_REFUSAL_SIZE = 512,         /* A worker's reason not to store a job. */
    GATEWAY_API_KINDS = API_METRICS + 1
};

/* What a worker of the configuration last said about a job. */
struct gateway_peer {
    bool heard;                         /* `status` holds something: */
    bool from_status;                   /* a STATUS, or only that the worker stored the job. */
    bool answered;                      /* In the round that is under way. */
    bool live;                          /* Answered the last round that is over. */
    bool is_refusing;                   /* Was told to store the job, and does not: */
    char refusal[GATEWAY_REFUSAL_SIZE]; /* this is why. */
    bool is_silent;                     /* Did not answer the owner's last rounds, */
    uint64_t silent_since_ms;           /* the first of which began then. */
    uint64_t request;                   /* The number that `status` answers. */
    uint64_t manifest;                  /* The hash that came with it. */
    struct message_status status;
    struct buf bytes;   /* The message that `status` borrows from, */
    struct arena arena; /* and its arrays. */
};

struct gateway_end {
    bool known;
    uint64_t count;
    uint64_t sum;
};

struct gateway_round {
    bool active;
    bool renew;
    uint64_t number;
    uint64_t started_ms;
    uint32_t answered_count;
};

/* For how many rounds in a row a worker has re-requested chunks of a scan by the same attempt. */
struct gateway_rerequest {
    uint64_t attempt;
    uint32_t rounds;
};

struct gateway_job {
    char id[ROLE_NAME_SIZE];
    struct job_layout *layout;  /* NULL: not known yet. */
    struct gateway_peer *peers; /* By number in the configuration. */
    uint32_t *peer_of;          /* By number in the manifest; worker_count: not configured here. */
    bool *concerned;            /* [scan * manifest's workers + worker] */
    struct gateway_rerequest *rerequested; /* [worker of the configuration * scans + scan] */
    uint64_t *sent;                        /* By scan. */
    struct gateway_end *ends;              /* By scan. */
    uint64_t *taken;                       /* By scan: chunks since the last round that is over. */
    bool needs_round;   /* Chunks arrive, and it is not known how far the workers are. */
    uint32_t pace_ms;   /* Between the owner's rounds: short while there is news. */
    uint64_t pace_hash; /* Of the view after the last round. */
    struct arena arena;
    struct gateway_round round;
    bool renewed; /* There was a round for the owner, */
    uint64_t renewed_ms;
    bool sought; /* one for the manifest, */
    uint64_t sought_ms;
    bool learnt; /* and one that is over. */
    uint64_t learnt_ms;
    uint64_t over_number; /* Of the last round that is over. */
    struct buf held[2];   /* struct chunk_held: in flight in the last round, and one before. */
    bool told;
    uint64_t told_hash; /* Of the last view sent to the owner: for a GET without `seen`. */
    uint32_t removals;  /* DELETEs under way: no round begins. */
    uint64_t asked_ms;  /* When a client last asked for it. */
};

/* What a request waits for. */
enum gateway_wait {
    WAIT_NOTHING, /* It is being looked at. */
    WAIT_JOB,     /* To know the job. */
    WAIT_STORED,  /* For every worker to store the manifest. */
    WAIT_CONFIRM, /* For the broker. */
    WAIT_VIEW,    /* For a round to be over, or for news. */
    WAIT_RESULT,  /* For a page of a result. */
    WAIT_LIST     /* For every worker to list its jobs. */
};

/* A worker's answer to a PUT job. */
struct gateway_stored {
    bool answered; /* `outcome` is known. */
    bool returned; /* It has no inbox: no answer will come. */
    bool ordered;  /* Was told to store the job beyond its limit. */
    enum stored_outcome outcome;
};

/* What a worker says of itself and its jobs. */
struct gateway_listed {
    bool answered;
    uint64_t uptime_ms;
    const struct listed_job *jobs;
    uint32_t job_count;
    const struct milestone *milestones;
    uint32_t milestone_count;
};

/* What a request of one kind knows beside what all of them know. */
struct gateway_put_job {
    struct buf manifest;
    uint64_t hash;
    struct gateway_stored *stored; /* By worker of the configuration. */
    char refusal[GATEWAY_REFUSAL_SIZE];
};

struct gateway_get_job {
    bool has_seen;
    uint64_t seen;    /* Hash of the view that the client knows. */
    uint64_t wait_ms; /* How long it waits for another one. */
};

struct gateway_get_result {
    bool is_audit;
    uint64_t part;       /* Number of the worker whose part of the audit it is, */
    uint64_t part_count; /* of so many. */
};

struct gateway_put_chunk {
    uint64_t size_bytes;
};

struct gateway_delete_job {
    bool was_done; /* Else the job is cancelled, and readers are told so for a while. */
};

struct gateway_list {
    struct gateway_listed *workers; /* By worker of the configuration; NULL: out of memory. */
};

struct gateway_request {
    uint64_t id;
    enum api_kind kind;
    enum gateway_wait wait;
    char job_id[ROLE_NAME_SIZE];
    struct gateway_job *job; /* WAIT_JOB, WAIT_VIEW and removals: while they wait, it stays. */
    bool gone;               /* The client has closed its connection. */
    bool is_owner;           /* Has shown the right key. */
    uint64_t arrived_ms;
    uint64_t deadline_ms;
    uint64_t round;         /* The first that began after it came; 0: none yet. */
    uint64_t number;        /* Under which workers answer. */
    uint64_t first_token;   /* Tokens from here on, */
    uint32_t token_count;   /* so many, */
    uint32_t settled;       /* of which so many are confirmed; which ones, is in */
    bool *confirmed;        /* [token - first_token] */
    struct api_request api; /* WAIT_JOB: a copy, in the arena. */
    struct arena arena;
    union {
        struct gateway_put_job put_job;
        struct gateway_get_job get_job;
        struct gateway_get_result get_result;
        struct gateway_put_chunk put_chunk;
        struct gateway_delete_job delete_job;
        struct gateway_list list; /* Of jobs or nodes, and a timeline. */
    } of_kind;                    /* Only through the readers of gateway_parts.h. */
};

/* When a message of a worker last came. */
struct gateway_heard {
    bool ever;
    uint64_t at_ms;
};

/* What the monitors last said of a node. */
struct gateway_member {
    struct monitored node;
    uint64_t at_ms;
};

/* The monitors' view of the cluster, and the depths of the broker's queues. */
struct gateway_membership {
    bool ever;      /* A view came, */
    uint64_t at_ms; /* the last one at this time. */
    struct term term;
    char leader[DATAGRAM_NAME_SIZE];
    ARRAY_OF(struct gateway_member) nodes;
    struct cluster_history history;
    struct buf queues; /* Of struct queue_depth. */
    bool is_measured;
    uint64_t measured_ms;
    bool is_measuring;
    uint64_t measuring_ms; /* When it was asked for. */
};

/* A job that has ended, as readers are told for a while. */
struct gateway_ended {
    char id[ROLE_NAME_SIZE]; /* Empty: none. */
    enum job_state state;    /* JOB_CANCELLED or JOB_EXPIRED. */
    uint64_t at_ms;
};

struct gateway {
    struct gateway_config config;
    struct random random;
    struct gateway_job **jobs;
    uint32_t job_count;
    struct gateway_request **requests; /* In the order in which they came. */
    uint32_t request_count;
    struct gateway_ended ended[GATEWAY_ENDED_MAX];
    uint32_t next_ended;
    struct gateway_heard *heard; /* By worker. */
    struct gateway_membership membership;
    bool is_begun;
    uint64_t begun_ms; /* The first step. */
    uint64_t first_number;
    uint64_t next_number;
    uint64_t next_token;
    bool connected;
    bool blocked; /* The broker takes no messages at present. */
    bool stopping;
    bool exited;
    uint64_t stopping_ms;
    uint64_t request_totals[GATEWAY_API_KINDS];
    uint64_t chunk_total;
    uint64_t byte_total;
    /* Of the step that is being made. */
    uint64_t now_ms;
    struct buf *request_body; /* Of the request that is stepped; NULL: none is. */
    struct effects *effects;
    struct arena scratch;
};

#endif
