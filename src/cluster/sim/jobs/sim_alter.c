/* SPDX-License-Identifier: Apache-2.0 */
/* sim_alter.c - a message is decoded, changed in one place, and encoded again. */
#include "cluster/sim/jobs/sim_alter.h"

#include "cluster/sim/jobs/cluster.h"
#include "cluster/wire/message.h"

/* Copies are few, and have no counters of their own: they are altered more often. */
enum { ALTERATIONS_MAX = 3, ALTERED_PER_MILLE = 15, ALTERED_COPIES_PER_MILLE = 300 };

/* One bit of what a chunk or an item holds; false: it holds nothing. */
static bool alter_bytes(struct cluster *cluster, struct text *bytes)
{
    struct world *world = &cluster->world;
    char *copy = arena_alloc(&cluster->scratch, (size_t)bytes->size + 1, 8);
    if (copy == NULL || bytes->size == 0) return false;
    memcpy(copy, bytes->bytes, bytes->size);
    uint32_t place = world_below(world, bytes->size);
    copy[place] = (char)((unsigned char)copy[place] ^ 1u << world_below(world, 8));
    bytes->bytes = copy;
    return true;
}

static bool alter_output(struct cluster *cluster, struct message_output *output)
{
    struct world *world = &cluster->world;
    struct output_item *items =
        arena_array(&cluster->scratch, struct output_item, output->item_count + 1);
    if (items == NULL || output->item_count == 0) return false;
    if (world_chance(world, 200)) {
        output->checksum++;
        return true;
    }
    memcpy(items, output->items, output->item_count * sizeof *items);
    output->items = items;
    struct output_item *item = &items[world_below(world, output->item_count)];
    /* What was counted is nowhere else: only its maker could know that it is wrong. */
    return item->kind != ITEM_REPORT && alter_bytes(cluster, &item->bytes);
}

static bool alter_message(struct cluster *cluster, struct message *message)
{
    switch (message->kind) {
    case MESSAGE_OUTPUT:
        return alter_output(cluster, &message->output);
    case MESSAGE_PRODUCER_END:
        message->producer_end.sum++;
        return true;
    case MESSAGE_END:
        message->end.sum++;
        return true;
    case MESSAGE_CHUNK:
        return alter_bytes(cluster, &message->chunk.body);
    default:
        return false;
    }
}

void sim_alter(struct cluster *cluster, struct buf *bytes)
{
    if (!cluster->settings.has_altered || cluster->alteration_count == ALTERATIONS_MAX) return;
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    struct message message;
    struct error err;
    arena_reset(&cluster->scratch);
    if (message_decode(text, &cluster->scratch, &message, &err) != STATUS_OK) return;
    if (!text_equal(message.job, text_of(cluster->clients[0].job))) return;
    bool is_copy = message.kind == MESSAGE_OUTPUT && message.output.source_kind == STREAM_COPY;
    uint32_t chance = is_copy ? ALTERED_COPIES_PER_MILLE : ALTERED_PER_MILLE;
    if (!world_chance(&cluster->world, chance)) return;
    if (!alter_message(cluster, &message)) return;
    struct buf altered = {0};
    message_encode(&message, &altered);
    if (altered.failed) {
        buf_done(&altered);
        return;
    }
    world_trace(&cluster->world, "a message is altered: %s", message_name(message.kind));
    cluster->alteration_count++;
    buf_done(bytes);
    *bytes = altered;
}
