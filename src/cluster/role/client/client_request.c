/* SPDX-License-Identifier: Apache-2.0 */
/* client_request.c - requests in flight, the gateway they go to, and when to try again.
 *
 * A gateway that fails loses its turn once, however many requests were with it: only the failure of
 * a request to the current one moves on. A request that is not answered in time has failed, and an
 * answer that comes later is one to nothing.
 */
#include "cluster/role/client/client_state.h"

#include "engine/base/assert.h"
#include "engine/base/hash.h"

const struct client_call *client_call_find(const struct client *client, enum api_kind kind)
{
    for (uint32_t i = 0; i < client->call_capacity; i++) {
        const struct client_call *call = &client->calls[i];
        if (call->id != 0 && call->kind == kind) return call;
    }
    return NULL;
}

void client_call_forget(struct client *client, enum api_kind kind)
{
    for (uint32_t i = 0; i < client->call_capacity; i++) {
        if (client->calls[i].kind == kind) client->calls[i].id = 0;
    }
}

static struct client_call *call_place(struct client *client)
{
    uint32_t place = 0;
    while (place < client->call_capacity && client->calls[place].id != 0) {
        place++;
    }
    ASSERT(place < client->call_capacity);
    return &client->calls[place];
}

struct effect *client_call_make(struct client *client, enum api_kind kind, uint32_t index,
                                struct effects *effects)
{
    const struct client_config *config = &client->config;
    struct client_call *call = call_place(client);
    *call = (struct client_call){
        .id = ++client->last_id,
        .kind = kind,
        .gateway = client->gateway,
        .index = index,
        .acceptance = client->acceptance,
        .deadline_ms = client->now_ms + config->request_timeout_ms +
                       (kind == API_GET_JOB ? config->wait_ms : 0),
    };
    struct effect *effect = effects_add(effects, EFFECT_REQUEST);
    effect->request.id = call->id;
    effect->request.gateway = call->gateway;
    effect->request.api = (struct api_request){
        .kind = kind,
        .job = config->job,
        .has_owner = true,
        .owner = hash_bytes(config->owner_key.bytes, config->owner_key.size),
        .owner_key = config->owner_key,
        .token = config->token,
    };
    return effect;
}

bool client_call_take(struct client *client, uint64_t id, struct client_call *out)
{
    for (uint32_t i = 0; id != 0 && i < client->call_capacity; i++) {
        if (client->calls[i].id != id) continue;
        *out = client->calls[i];
        client->calls[i].id = 0;
        return true;
    }
    return false;
}

bool client_call_overdue(const struct client *client, uint64_t *out_id)
{
    for (uint32_t i = 0; i < client->call_capacity; i++) {
        const struct client_call *call = &client->calls[i];
        if (call->id == 0 || call->deadline_ms > client->now_ms) continue;
        *out_id = call->id;
        return true;
    }
    return false;
}

void client_gateway_failed(struct client *client, const struct client_call *call,
                           const struct error *err, struct effects *effects)
{
    client->last_error = *err;
    if (!client->is_failing) {
        client->is_failing = true;
        client->failing_since_ms = client->now_ms;
    }
    if (call->gateway != client->gateway) return;
    client->gateway = (client->gateway + 1) % client->config.gateway_count;
    effects_say(effects, SAY_DEBUG, "gateway=%u next=%u failed=\"%.500s\"", call->gateway,
                client->gateway, err->text);
}

void client_gateway_answered(struct client *client)
{
    client->is_failing = false;
}

bool client_pause_over(const struct client *client, enum pause_kind kind)
{
    return client->now_ms >= client->pauses[kind].until_ms;
}

void client_pause_longer(struct client *client, enum pause_kind kind, uint32_t at_least_ms)
{
    struct client_pause *pause = &client->pauses[kind];
    /* Requests that fail together are one failure. */
    if (client->now_ms < pause->until_ms) return;
    uint64_t delay_ms = client->config.retry_first_ms;
    for (uint32_t i = 0; i < pause->failures && delay_ms < client->config.retry_max_ms; i++) {
        delay_ms *= 2;
    }
    if (delay_ms > client->config.retry_max_ms) delay_ms = client->config.retry_max_ms;
    if (delay_ms < at_least_ms) delay_ms = at_least_ms;
    /* Up to half as long again, so that clients that failed together don't return together. */
    delay_ms += random_below(&client->random, (uint32_t)(delay_ms / 2 + 1));
    pause->failures++;
    pause->until_ms = client->now_ms + delay_ms;
}

void client_pause_end(struct client *client, enum pause_kind kind)
{
    client->pauses[kind] = (struct client_pause){0};
}
