/* api_lists.c - the shapes of the two lists that people look at: jobs and nodes.
 *
 * What a gateway does not know it leaves out, and readers skip what they don't know, so that
 * gateways and commands of different builds understand each other here.
 */
#include "wire/api.h"
#include "wire/json_shape.h"

enum {
    LISTED_JOBS_MAX = 1 << 16,
    LISTED_NODES_MAX = 4096,
    NAMES_TEXT_MAX = 1 << 16 /* All names of silent workers. */
};

_Static_assert(sizeof(enum node_role) == sizeof(uint32_t), "choices are stored in 32 bits");

const char *const node_role_names[NODE_ROLES] = {
    [NODE_GATEWAY] = "gateway",
    [NODE_WORKER] = "worker",
    [NODE_MONITOR] = "monitor",
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
static const struct json_shape job_shape = {JSON_SHAPE(struct job_entry, job_members),
                                            .is_open = true};

static const struct json_member jobs_members[] = {
    {"jobs", MEMBER_ARRAY, .offset = offsetof(struct job_list, jobs),
     .count_offset = offsetof(struct job_list, job_count), .limit = LISTED_JOBS_MAX,
     .shape = &job_shape},
    {"silent", MEMBER_TEXT, .offset = offsetof(struct job_list, silent), .is_optional = true,
     .limit = NAMES_TEXT_MAX},
};
static const struct json_shape jobs_shape = {JSON_SHAPE(struct job_list, jobs_members),
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
};
static const struct json_shape node_shape = {JSON_SHAPE(struct node_entry, node_members),
                                             .is_open = true};

static const struct json_member nodes_members[] = {
    {"cluster", MEMBER_TEXT, .offset = offsetof(struct node_list, cluster), .is_optional = true,
     .limit = NAMES_TEXT_MAX},
    {"gateway", MEMBER_NAME, .offset = offsetof(struct node_list, gateway)},
    {"connected", MEMBER_BOOL, .offset = offsetof(struct node_list, connected)},
    {"nodes", MEMBER_ARRAY, .offset = offsetof(struct node_list, nodes),
     .count_offset = offsetof(struct node_list, node_count), .limit = LISTED_NODES_MAX,
     .shape = &node_shape},
};
static const struct json_shape nodes_shape = {JSON_SHAPE(struct node_list, nodes_members),
                                              .is_open = true};

void job_list_encode(const struct job_list *list, struct buf *out)
{
    (void)json_shape_encode(&jobs_shape, list, out); /* Texts that were changed are legible. */
    buf_put_u8(out, '\n');
}

status job_list_decode(struct text json, struct arena *arena, struct job_list *out,
                       struct error *err)
{
    struct job_list list = {0};
    if (json_shape_decode(&jobs_shape, json, arena, STATUS_CORRUPT, &list, err) != STATUS_OK) {
        return error_prefix(err, "the gateway's list of jobs");
    }
    *out = list;
    return STATUS_OK;
}

void node_list_encode(const struct node_list *list, struct buf *out)
{
    (void)json_shape_encode(&nodes_shape, list, out); /* Texts that were changed are legible. */
    buf_put_u8(out, '\n');
}

status node_list_decode(struct text json, struct arena *arena, struct node_list *out,
                        struct error *err)
{
    struct node_list list = {0};
    if (json_shape_decode(&nodes_shape, json, arena, STATUS_CORRUPT, &list, err) != STATUS_OK) {
        return error_prefix(err, "the gateway's list of nodes");
    }
    *out = list;
    return STATUS_OK;
}
