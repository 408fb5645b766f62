/* SPDX-License-Identifier: Apache-2.0 */
/* driver_docker.c - nodes as containers that exist already, for example by `millrace compose`: they
 * are only started, killed and paused here. Docker Engine API 1.24 and later.
 */
#include <stdalign.h>
#include <stdio.h>

#include "cluster/net/docker_call.h"
#include "cluster/supervise/driver_parts.h"
#include "cluster/wire/json_schema.h"

enum {
    TARGET_SIZE = 256,
    MESSAGE_MAX = 16 << 10,
    HTTP_DONE = 204,
    HTTP_IS_SO_ALREADY = 304,
    HTTP_CONFLICT = 409
};

static const char *const verbs[DRIVER_ACTIONS] = {
    [DRIVER_START] = "start",    [DRIVER_KILL] = "kill?signal=KILL", [DRIVER_PAUSE] = "pause",
    [DRIVER_RESUME] = "unpause", [DRIVER_STOP] = "kill?signal=TERM",
};

struct docker_answer {
    struct text message;
};

static const struct json_member answer_members[] = {
    {"message", MEMBER_TEXT, .offset = offsetof(struct docker_answer, message),
     .limit = MESSAGE_MAX},
};
static const struct json_schema answer_schema = {JSON_SCHEMA(struct docker_answer, answer_members),
                                                 .is_open = true};

/* The engine's message; if the body is not the expected JSON, the body. */
static struct text message_of(const struct buf *body, struct arena *arena)
{
    struct text json = {(const char *)body->bytes, (uint32_t)body->size};
    struct docker_answer answer = {.message = {"", 0}};
    struct error ignored;
    status result =
        json_schema_decode(&answer_schema, json, arena, STATUS_CORRUPT, &answer, &ignored);
    return result == STATUS_OK ? answer.message : json;
}

static status judge(const struct driver_call *call, uint32_t code, const struct buf *body,
                    struct error *err)
{
    const struct cluster_config *config = call->driver->options.config;
    bool may_be_down = call->action == DRIVER_KILL || call->action == DRIVER_STOP;
    if (code == HTTP_DONE || code == HTTP_IS_SO_ALREADY) return STATUS_OK;
    if (code == HTTP_CONFLICT && may_be_down) return STATUS_OK; /* It does not run. */
    struct text message = message_of(body, call->arena);
    int size = message.size < ERROR_TEXT_SIZE / 2 ? (int)message.size : ERROR_TEXT_SIZE / 2;
    return error_set(err, STATUS_IO, "container %s-%s: Docker answers %u: %.*s", config->name,
                     call->node->name, code, size, message.bytes);
}

status driver_docker_do(const struct driver_call *call, struct error *err)
{
    const struct cluster_config *config = call->driver->options.config;
    char target[TARGET_SIZE];
    int size = snprintf(target, sizeof target, "/containers/%s-%s/%s", config->name,
                        call->node->name, verbs[call->action]);
    if (size < 0 || (size_t)size >= sizeof target) {
        return error_set(err, STATUS_USAGE, "the name %.100s is too long", call->node->name);
    }
    struct docker_call post = {
        .socket = config->docker_socket,
        .target = target,
        .timeout_ms = config->driver_timeout_ms,
    };
    uint32_t code = 0;
    struct buf body = {0};
    status result = docker_post(&post, &code, &body, err);
    if (result == STATUS_OK) result = judge(call, code, &body, err);
    buf_done(&body);
    return result;
}
