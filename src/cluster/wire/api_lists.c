/* SPDX-License-Identifier: Apache-2.0 */
/* api_lists.c - the schemas of the lists for people: jobs, nodes, and the timeline of a job.
 *
 * A gateway leaves out values that it does not know, and a reader skips keys that it does not know,
 * so that gateways and commands of different builds understand each other here.
 */
#include "cluster/wire/api.h"
#include "cluster/wire/json_schema.h"

enum {
    LISTED_JOBS_MAX = 1 << 16,
    LISTED_NODES_MAX = 4096,
    LISTED_QUEUES_MAX = 4096,
    LISTED_EVENTS_MAX = 1 << 16,
    LISTED_TEXT_MAX = 4096,  /* A text about one node, or in one event. */
    NAMES_TEXT_MAX = 1 << 16 /* All names of silent workers. */
};

_Static_assert(sizeof(enum node_role) == sizeof(uint32_t), "choices are stored in 32 bits");

const char *const node_role_names[NODE_ROLES] = {
    [NODE_GATEWAY] = "gateway",
    [NODE_WORKER] = "worker",
    [NODE_MONITOR] = "monitor",
    [NODE_BROKER] = "broker",
};

static const struct json_member job_members[] = {
    {"id", MEMBER_NAME, .offset = offsetof(struct job_entry, job)},
    {"state", MEMBER_CHOICE, .offset = offsetof(struct job_entry, state), .limit = JOB_STATES,
     .names = job_state_names},
    {"age_ms", MEMBER_COUNT, .offset = offsetof(struct job_entry, age_ms), .is_optional = true},
    {"lease_ms", MEMBER_COUNT, .offset = offsetof(struct job_entry, lease_ms), .is_optional = true},
    {"applied", MEMBER_COUNT, .offset = offsetof(struct job_entry, applied), .is_optional = true},
    {"worker_count", MEMBER_U32, .offset = offsetof(struct job_entry, worker_count),
     .is_optional = true},
};
static const struct json_schema job_schema = {JSON_SCHEMA(struct job_entry, job_members),
                                              .is_open = true};

static const struct json_member jobs_members[] = {
    {"jobs", MEMBER_ARRAY, .offset = offsetof(struct job_list, jobs),
     .count_offset = offsetof(struct job_list, job_count), .limit = LISTED_JOBS_MAX,
     .schema = &job_schema},
    {"silent", MEMBER_TEXT, .offset = offsetof(struct job_list, silent), .is_optional = true,
     .limit = NAMES_TEXT_MAX},
};
static const struct json_schema jobs_schema = {JSON_SCHEMA(struct job_list, jobs_members),
                                               .is_open = true};

static const struct json_member node_members[] = {
    {"name", MEMBER_NAME, .offset = offsetof(struct node_entry, name)},
    {"role", MEMBER_CHOICE, .offset = offsetof(struct node_entry, role), .limit = NODE_ROLES,
     .names = node_role_names},
    {"answers", MEMBER_BOOL, .offset = offsetof(struct node_entry, answers)},
    {"heard", MEMBER_BOOL, .offset = offsetof(struct node_entry, heard), .is_optional = true},
    {"answered_ms_ago", MEMBER_COUNT, .offset = offsetof(struct node_entry, answered_ms_ago),
     .is_optional = true},
    {"maps", MEMBER_BOOL, .offset = offsetof(struct node_entry, maps), .is_optional = true},
    {"folds", MEMBER_BOOL, .offset = offsetof(struct node_entry, folds), .is_optional = true},
    {"uptime_ms", MEMBER_COUNT, .offset = offsetof(struct node_entry, uptime_ms),
     .is_optional = true},
    {"job_count", MEMBER_U32, .offset = offsetof(struct node_entry, job_count),
     .is_optional = true},
    {"state", MEMBER_TEXT, .offset = offsetof(struct node_entry, state), .is_optional = true,
     .limit = LISTED_TEXT_MAX},
    {"incarnation", MEMBER_TEXT, .offset = offsetof(struct node_entry, incarnation),
     .is_optional = true, .limit = LISTED_TEXT_MAX},
    {"restarts", MEMBER_U32, .offset = offsetof(struct node_entry, restarts), .is_optional = true},
    {"silent_ms", MEMBER_COUNT, .offset = offsetof(struct node_entry, silent_ms),
     .is_optional = true},
    {"resident_bytes", MEMBER_COUNT, .offset = offsetof(struct node_entry, resident_bytes),
     .is_optional = true},
    {"problem", MEMBER_TEXT, .offset = offsetof(struct node_entry, problem), .is_optional = true,
     .limit = LISTED_TEXT_MAX},
};
static const struct json_schema node_schema = {JSON_SCHEMA(struct node_entry, node_members),
                                               .is_open = true};

static const struct json_member queue_members[] = {
    {"name", MEMBER_TEXT, .offset = offsetof(struct queue_entry, name), .limit = LISTED_TEXT_MAX},
    {"messages", MEMBER_COUNT, .offset = offsetof(struct queue_entry, messages)},
    {"consumers", MEMBER_U32, .offset = offsetof(struct queue_entry, consumers)},
};
static const struct json_schema queue_schema = {JSON_SCHEMA(struct queue_entry, queue_members),
                                                .is_open = true};

static const struct json_member nodes_members[] = {
    {"cluster", MEMBER_TEXT, .offset = offsetof(struct node_list, cluster), .is_optional = true,
     .limit = NAMES_TEXT_MAX},
    {"gateway", MEMBER_NAME, .offset = offsetof(struct node_list, gateway)},
    {"connected", MEMBER_BOOL, .offset = offsetof(struct node_list, connected)},
    {"nodes", MEMBER_ARRAY, .offset = offsetof(struct node_list, nodes),
     .count_offset = offsetof(struct node_list, node_count), .limit = LISTED_NODES_MAX,
     .schema = &node_schema},
    {"leader", MEMBER_TEXT, .offset = offsetof(struct node_list, leader), .is_optional = true,
     .limit = LISTED_TEXT_MAX},
    {"term", MEMBER_COUNT, .offset = offsetof(struct node_list, term), .is_optional = true},
    {"monitored", MEMBER_BOOL, .offset = offsetof(struct node_list, monitored),
     .is_optional = true},
    {"monitored_ms_ago", MEMBER_COUNT, .offset = offsetof(struct node_list, monitored_ms_ago),
     .is_optional = true},
    {"queues", MEMBER_ARRAY, .offset = offsetof(struct node_list, queues),
     .count_offset = offsetof(struct node_list, queue_count), .limit = LISTED_QUEUES_MAX,
     .is_optional = true, .schema = &queue_schema},
};
static const struct json_schema nodes_schema = {JSON_SCHEMA(struct node_list, nodes_members),
                                                .is_open = true};

static const struct json_member event_members[] = {
    {"ms_ago", MEMBER_COUNT, .offset = offsetof(struct timeline_event, ms_ago)},
    {"what", MEMBER_TEXT, .offset = offsetof(struct timeline_event, what),
     .limit = LISTED_TEXT_MAX},
    {"node", MEMBER_TEXT, .offset = offsetof(struct timeline_event, node), .is_optional = true,
     .limit = LISTED_TEXT_MAX},
    {"number", MEMBER_COUNT, .offset = offsetof(struct timeline_event, number),
     .is_optional = true},
    {"text", MEMBER_TEXT, .offset = offsetof(struct timeline_event, text), .is_optional = true,
     .limit = LISTED_TEXT_MAX},
};
static const struct json_schema event_schema = {JSON_SCHEMA(struct timeline_event, event_members),
                                                .is_open = true};

static const struct json_member timeline_members[] = {
    {"job", MEMBER_NAME, .offset = offsetof(struct timeline, job)},
    {"events", MEMBER_ARRAY, .offset = offsetof(struct timeline, events),
     .count_offset = offsetof(struct timeline, event_count), .limit = LISTED_EVENTS_MAX,
     .schema = &event_schema},
    {"silent", MEMBER_TEXT, .offset = offsetof(struct timeline, silent), .is_optional = true,
     .limit = NAMES_TEXT_MAX},
};
static const struct json_schema timeline_schema = {JSON_SCHEMA(struct timeline, timeline_members),
                                                   .is_open = true};

void job_list_encode(const struct job_list *list, struct buf *out)
{
    (void)json_schema_encode(&jobs_schema, list, out); /* Texts that were changed are legible. */
    buf_put_u8(out, '\n');
}

status job_list_decode(struct text json, struct arena *arena, struct job_list *out,
                       struct error *err)
{
    struct job_list list = {0};
    if (json_schema_decode(&jobs_schema, json, arena, STATUS_CORRUPT, &list, err) != STATUS_OK) {
        return error_prefix(err, "the gateway's list of jobs");
    }
    *out = list;
    return STATUS_OK;
}

void node_list_encode(const struct node_list *list, struct buf *out)
{
    (void)json_schema_encode(&nodes_schema, list, out); /* Texts that were changed are legible. */
    buf_put_u8(out, '\n');
}

status node_list_decode(struct text json, struct arena *arena, struct node_list *out,
                        struct error *err)
{
    struct node_list list = {0};
    if (json_schema_decode(&nodes_schema, json, arena, STATUS_CORRUPT, &list, err) != STATUS_OK) {
        return error_prefix(err, "the gateway's list of nodes");
    }
    *out = list;
    return STATUS_OK;
}

void timeline_encode(const struct timeline *timeline, struct buf *out)
{
    (void)json_schema_encode(&timeline_schema, timeline, out); /* Changed texts are legible. */
    buf_put_u8(out, '\n');
}

status timeline_decode(struct text json, struct arena *arena, struct timeline *out,
                       struct error *err)
{
    struct timeline timeline = {0};
    if (json_schema_decode(&timeline_schema, json, arena, STATUS_CORRUPT, &timeline, err) !=
        STATUS_OK) {
        return error_prefix(err, "the gateway's timeline");
    }
    *out = timeline;
    return STATUS_OK;
}
