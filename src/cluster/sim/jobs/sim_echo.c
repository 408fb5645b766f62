/* SPDX-License-Identifier: Apache-2.0 */
/* sim_echo.c - a ring of what was sent, of which something is sent again now and then. */
#include "cluster/sim/jobs/sim_echo.h"

#include <stdio.h>

#include "cluster/sim/jobs/cluster.h"

enum { GAP_MS = 150, SENT_MAX = 300 };

static const struct sim_client *client_of(const struct cluster *cluster)
{
    return &cluster->clients[cluster->settings.client_count - 1];
}

void sim_echo_keep(struct sim_node *node, const struct effect_send *sent,
                   const struct message *message)
{
    struct cluster *cluster = node->cluster;
    struct sim_echoes *echoes = &cluster->echoes;
    const struct sim_client *client = client_of(cluster);
    if (!cluster->settings.has_reuse || message->manifest == 0) return;
    if (!text_equal(message->job, text_of(client->job))) return;
    /* Questions and answers are most of all, and do least. */
    bool is_talk = message->kind == MESSAGE_SYNC || message->kind == MESSAGE_STATUS;
    if (is_talk && !world_chance(&cluster->world, 100)) return;
    struct sim_echo *echo = &echoes->kept[echoes->kept_count++ % SIM_ECHOES];
    buf_done(&echo->bytes);
    *echo = (struct sim_echo){
        .work = sent->work, .sender = node->number, .submission = client->submission};
    memcpy(echo->to, sent->to, sizeof echo->to);
    buf_put(&echo->bytes, sent->bytes.bytes, sent->bytes.size);
    if (echo->bytes.failed) world_fail(&cluster->world, "out of memory");
}

static void echo_timer(void *context, uint64_t number)
{
    struct cluster *cluster = context;
    struct world *world = &cluster->world;
    struct sim_echoes *echoes = &cluster->echoes;
    const struct sim_client *client = client_of(cluster);
    if (client->has_ended || echoes->sent_count == SENT_MAX) return;
    struct sim_echo *echo = &echoes->kept[world_below(world, SIM_ECHOES)];
    struct sim_node *sender = &cluster->nodes[echo->sender];
    if (echo->bytes.size > 0 && echo->submission < client->submission && sender->is_up) {
        struct bus_address to = {.kind = BUS_INBOX, .node = text_of(echo->to)};
        if (echo->to[0] == '\0') to = (struct bus_address){.kind = BUS_WORK, .work = echo->work};
        world_trace(world, "%s: sends once more what was for an earlier %s", sender->name,
                    client->job);
        sim_bus_send(&sender->bus, &to, &echo->bytes, 0);
        echo->bytes = (struct buf){0};
        echoes->sent_count++;
    }
    world_after(world, world_between(world, 1, GAP_MS), echo_timer, cluster, number);
}

void sim_echo_begin(struct cluster *cluster)
{
    world_after(&cluster->world, GAP_MS, echo_timer, cluster, 0);
}

void sim_echo_done(struct cluster *cluster)
{
    for (uint32_t i = 0; i < SIM_ECHOES; i++) {
        buf_done(&cluster->echoes.kept[i].bytes);
    }
}
