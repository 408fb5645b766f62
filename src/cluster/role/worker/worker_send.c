/* SPDX-License-Identifier: Apache-2.0 */
/* worker_send.c - messages and log records of a worker. */
#include "cluster/role/worker/worker_state.h"

#include <stdio.h>

void worker_alive(const struct worker *worker)
{
    if (worker->config.alive != NULL) worker->config.alive(worker->config.alive_context);
}

struct message worker_message(const struct worker *worker, enum message_kind kind,
                              const struct worker_job *job)
{
    struct message message = {.kind = kind, .from = text_of(worker->name)};
    if (job != NULL) {
        message.job = text_of(job->id);
        message.manifest = job->map.layout->hash;
    }
    return message;
}

void worker_send(struct effects *effects, struct text to, const struct message *message)
{
    struct effect *effect = effects_add(effects, EFFECT_SEND);
    (void)snprintf(effect->send.to, sizeof effect->send.to, "%.*s", TEXT_ARGS(to));
    message_encode(message, &effect->send.bytes);
    if (effect->send.bytes.failed) effects->failed = true;
}

void worker_log(const char *job, struct buf *bytes, struct effects *effects)
{
    struct effect *effect = effects_add(effects, EFFECT_LOG);
    (void)snprintf(effect->log.job, sizeof effect->log.job, "%s", job);
    effect->log.bytes = *bytes;
    *bytes = (struct buf){0};
}
