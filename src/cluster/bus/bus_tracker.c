/* SPDX-License-Identifier: Apache-2.0 */
/* bus_tracker.c - an outbox ordered by age, and rings of outstanding messages and deliveries.
 *
 * Sequences and tags are dense, so outstanding ones lie in rings indexed by number: an answer of
 * the broker costs no search. Every message has an age, given once: a message that is refused, or
 * was unconfirmed when the connection was lost, returns to its old place in the queue. It is older
 * than nearly all others there, so a search from the front finds the place in a step or two.
 */
#include "cluster/bus/bus_tracker.h"

#include "engine/base/assert.h"
#include "engine/base/hash.h"

enum { FIRST_SLOTS = 64 };

struct tracked_message {
    struct tracked_message *next;       /* In the queue, which begins with the oldest. */
    struct tracked_message *next_token; /* In the same slot of the table of tokens. */
    uint64_t age;
    uint64_t token;
    struct bus_address to; /* Its text is `node` below. */
    struct buf bytes;
    bool is_waiting;
    bool is_revoked;
    char node[];
};

/* Published messages by number: sequence s is at slot s % capacity, NULL once it is settled. */
struct ring {
    struct tracked_message **slots;
    size_t capacity; /* A power of two. */
    uint64_t first;  /* The lowest sequence that is outstanding, or `next`. */
    uint64_t next;   /* The sequence of the next message. */
};

struct outbox {
    struct bus_limits limits;
    struct tracked_message *head; /* Of the queue of waiting messages. */
    struct tracked_message *tail;
    uint64_t waiting;
    struct ring published;
    uint64_t unconfirmed;
    uint64_t unconfirmed_bytes;
    struct tracked_message **tokens; /* Heads of chains, for messages with a token. */
    size_t token_slots;              /* A power of two. */
    size_t token_count;
    uint64_t next_age;
    bool failed;
};

status outbox_create(const struct bus_limits *limits, struct outbox **out, struct error *err)
{
    struct outbox *outbox = memory_alloc(NULL, sizeof *outbox);
    if (outbox == NULL) return error_memory(err);
    *outbox = (struct outbox){.limits = *limits, .published = {.first = 1, .next = 1}};
    *out = outbox;
    return STATUS_OK;
}

/* ---- the table of tokens ---- */

static struct tracked_message **token_slot(const struct outbox *outbox, uint64_t token)
{
    return &outbox->tokens[hash_u64(token) & (outbox->token_slots - 1)];
}

static bool tokens_grow(struct outbox *outbox)
{
    size_t slots = outbox->token_slots == 0 ? FIRST_SLOTS : outbox->token_slots * 2;
    struct tracked_message **table = memory_alloc(NULL, slots * sizeof *table);
    if (table == NULL) return false;
    for (size_t i = 0; i < slots; i++) {
        table[i] = NULL;
    }
    struct tracked_message **old = outbox->tokens;
    size_t old_slots = outbox->token_slots;
    outbox->tokens = table;
    outbox->token_slots = slots;
    for (size_t i = 0; i < old_slots; i++) {
        struct tracked_message *message = old[i];
        while (message != NULL) {
            struct tracked_message *next = message->next_token;
            struct tracked_message **slot = token_slot(outbox, message->token);
            message->next_token = *slot;
            *slot = message;
            message = next;
        }
    }
    memory_free(NULL, old, old_slots * sizeof *old);
    return true;
}

static void token_remove(struct outbox *outbox, const struct tracked_message *message)
{
    struct tracked_message **link = token_slot(outbox, message->token);
    while (*link != message) {
        link = &(*link)->next_token;
    }
    *link = message->next_token;
    outbox->token_count--;
}

/* ---- messages ---- */

static void message_free(struct tracked_message *message)
{
    buf_done(&message->bytes);
    memory_free(NULL, message, sizeof *message + message->to.node.size);
}

static void message_forget(struct outbox *outbox, struct tracked_message *message)
{
    if (message->token != 0) token_remove(outbox, message);
    message_free(message);
}

/* At its place in the queue, by age. */
static void wait_insert(struct outbox *outbox, struct tracked_message *message)
{
    message->is_waiting = true;
    outbox->waiting++;
    struct tracked_message **link = &outbox->head;
    if (outbox->tail != NULL && outbox->tail->age < message->age) link = &outbox->tail->next;
    while (*link != NULL && (*link)->age < message->age) {
        link = &(*link)->next;
    }
    message->next = *link;
    *link = message;
    if (message->next == NULL) outbox->tail = message;
}

static struct tracked_message *wait_take(struct outbox *outbox)
{
    struct tracked_message *message = outbox->head;
    outbox->head = message->next;
    if (outbox->head == NULL) outbox->tail = NULL;
    outbox->waiting--;
    message->is_waiting = false;
    message->next = NULL;
    return message;
}

static struct tracked_message *ring_at(const struct ring *ring, uint64_t sequence)
{
    if (sequence < ring->first || sequence >= ring->next) return NULL;
    return ring->slots[sequence & (ring->capacity - 1)];
}

static bool ring_reserve(struct ring *ring)
{
    if (ring->next - ring->first < ring->capacity) return true;
    size_t capacity = ring->capacity == 0 ? FIRST_SLOTS : ring->capacity * 2;
    struct tracked_message **slots =
        memory_alloc(NULL, capacity * sizeof(struct tracked_message *));
    if (slots == NULL) return false;
    for (uint64_t s = ring->first; s < ring->next; s++) {
        slots[s & (capacity - 1)] = ring->slots[s & (ring->capacity - 1)];
    }
    memory_free(NULL, ring->slots, ring->capacity * sizeof(struct tracked_message *));
    ring->slots = slots;
    ring->capacity = capacity;
    return true;
}

/* Takes a published message out of the ring; NULL: it is not outstanding. */
static struct tracked_message *ring_take(struct outbox *outbox, uint64_t sequence)
{
    struct ring *ring = &outbox->published;
    struct tracked_message *message = ring_at(ring, sequence);
    if (message == NULL) return NULL;
    ring->slots[sequence & (ring->capacity - 1)] = NULL;
    while (ring->first < ring->next && ring->slots[ring->first & (ring->capacity - 1)] == NULL) {
        ring->first++;
    }
    outbox->unconfirmed--;
    outbox->unconfirmed_bytes -= message->bytes.size;
    return message;
}

void outbox_destroy(struct outbox *outbox)
{
    if (outbox == NULL) return;
    while (outbox->head != NULL) {
        message_free(wait_take(outbox));
    }
    struct ring *ring = &outbox->published;
    for (uint64_t s = ring->first; s < ring->next; s++) {
        struct tracked_message *message = ring->slots[s & (ring->capacity - 1)];
        if (message != NULL) message_free(message);
    }
    memory_free(NULL, ring->slots, ring->capacity * sizeof(struct tracked_message *));
    memory_free(NULL, outbox->tokens, outbox->token_slots * sizeof(struct tracked_message *));
    memory_free(NULL, outbox, sizeof *outbox);
}

void outbox_add(struct outbox *outbox, const struct bus_address *to, struct buf *bytes,
                uint64_t token)
{
    struct buf moved = *bytes;
    *bytes = (struct buf){.limit = moved.limit, .budget = moved.budget};
    ASSERT(moved.size <= UINT32_MAX);
    uint32_t node_size = to->kind == BUS_INBOX ? to->node.size : 0;
    struct tracked_message *message = memory_alloc(NULL, sizeof *message + node_size);
    bool has_room = token == 0 || outbox->token_count < outbox->token_slots || tokens_grow(outbox);
    if (message == NULL || !has_room || moved.failed) {
        memory_free(NULL, message, sizeof *message + node_size);
        buf_done(&moved);
        outbox->failed = true;
        return;
    }
    *message = (struct tracked_message){
        .age = outbox->next_age++, .token = token, .to = *to, .bytes = moved};
    if (node_size > 0) memcpy(message->node, to->node.bytes, node_size);
    message->to.node = (struct text){message->node, node_size};
    if (token != 0) {
        struct tracked_message **slot = token_slot(outbox, token);
        message->next_token = *slot;
        *slot = message;
        outbox->token_count++;
    }
    wait_insert(outbox, message);
}

/* A revoked message stays in the queue, since unlinking would need a search, and is skipped when
 * its turn comes. Its bytes are freed now. */
void outbox_revoke(struct outbox *outbox, uint64_t token)
{
    if (token == 0 || outbox->token_slots == 0) return;
    struct tracked_message *message = *token_slot(outbox, token);
    while (message != NULL) {
        struct tracked_message *next = message->next_token;
        if (message->token == token && !message->is_revoked) {
            message->is_revoked = true;
            if (message->is_waiting) {
                outbox->waiting--;
                buf_done(&message->bytes);
                token_remove(outbox, message);
                message->token = 0;
            }
        }
        message = next;
    }
}

static bool window_has_room(const struct outbox *outbox, uint64_t size)
{
    if (outbox->unconfirmed == 0) return true;
    return outbox->unconfirmed < outbox->limits.confirm_window &&
           outbox->unconfirmed_bytes + size <= outbox->limits.confirm_window_bytes;
}

bool outbox_next(struct outbox *outbox, struct outbox_message *out, uint64_t *out_sequence)
{
    while (outbox->head != NULL && outbox->head->is_revoked) {
        outbox->waiting++; /* It was subtracted when it was revoked. */
        message_free(wait_take(outbox));
    }
    if (outbox->head == NULL || !window_has_room(outbox, outbox->head->bytes.size)) return false;
    struct ring *ring = &outbox->published;
    if (!ring_reserve(ring)) {
        outbox->failed = true;
        return false;
    }
    struct tracked_message *message = wait_take(outbox);
    uint64_t sequence = ring->next++;
    ring->slots[sequence & (ring->capacity - 1)] = message;
    outbox->unconfirmed++;
    outbox->unconfirmed_bytes += message->bytes.size;
    *out = (struct outbox_message){
        .to = message->to,
        .bytes = {(const char *)message->bytes.bytes, (uint32_t)message->bytes.size},
        .token = message->token};
    *out_sequence = sequence;
    return true;
}

static void settle(struct outbox *outbox, struct tracked_message *message, struct buf *settled)
{
    if (message->token != 0) {
        buf_put(settled, &message->token, sizeof message->token);
        if (settled->failed) outbox->failed = true;
    }
    message_forget(outbox, message);
}

void outbox_confirm(struct outbox *outbox, uint64_t sequence, bool multiple, struct buf *settled)
{
    struct ring *ring = &outbox->published;
    uint64_t s = multiple ? ring->first : sequence;
    for (; s <= sequence && s < ring->next; s++) {
        struct tracked_message *message = ring_take(outbox, s);
        if (message != NULL) settle(outbox, message, settled);
    }
}

/* Back to its place in the queue, unless it was revoked. */
static void wait_again(struct outbox *outbox, struct tracked_message *message)
{
    if (message->is_revoked) {
        message_forget(outbox, message);
    } else {
        wait_insert(outbox, message);
    }
}

void outbox_refuse(struct outbox *outbox, uint64_t sequence, bool multiple)
{
    struct ring *ring = &outbox->published;
    if (ring->next == ring->first) return;
    uint64_t first = multiple ? ring->first : sequence;
    uint64_t s = sequence < ring->next ? sequence : ring->next - 1;
    if (!multiple && s != sequence) return;
    /* The youngest first, so that each finds its place at the front. */
    for (; s >= first && s > 0; s--) {
        struct tracked_message *message = ring_take(outbox, s);
        if (message != NULL) wait_again(outbox, message);
    }
}

bool outbox_return(struct outbox *outbox, uint64_t sequence, struct buf *settled)
{
    struct tracked_message *message = ring_take(outbox, sequence);
    if (message == NULL) return false;
    settle(outbox, message, settled);
    return true;
}

void outbox_reconnect(struct outbox *outbox)
{
    struct ring *ring = &outbox->published;
    outbox_refuse(outbox, ring->next, true);
    ASSERT(outbox->unconfirmed == 0);
    ring->first = 1;
    ring->next = 1;
}

uint64_t outbox_waiting(const struct outbox *outbox)
{
    return outbox->waiting;
}

uint64_t outbox_unconfirmed(const struct outbox *outbox)
{
    return outbox->unconfirmed;
}

bool outbox_failed(const struct outbox *outbox)
{
    return outbox->failed;
}

/* ---- inbox ---- */

enum {
    CHANNEL_BITS = 4, /* An id is serial << 4 | channel; serials continue across connections. */
    CHANNELS = 1 << CHANNEL_BITS
};

enum delivery_state { DELIVERY_OPEN, DELIVERY_DONE, DELIVERY_TOLD };

struct delivery {
    uint64_t tag;
    enum delivery_state state;
};

/* The deliveries of one channel, by serial; those before `first` are acknowledged or void. */
struct channel {
    struct delivery *slots;
    size_t capacity; /* A power of two. */
    uint64_t first;
    uint64_t next;
    uint64_t done; /* That many are DELIVERY_DONE. */
    uint64_t hint; /* None before this serial is DELIVERY_DONE. */
};

struct inbox {
    struct channel channels[CHANNELS];
    bool failed;
};

status inbox_create(struct inbox **out, struct error *err)
{
    struct inbox *inbox = memory_alloc(NULL, sizeof *inbox);
    if (inbox == NULL) return error_memory(err);
    *inbox = (struct inbox){0};
    for (size_t i = 0; i < CHANNELS; i++) {
        inbox->channels[i] = (struct channel){.first = 1, .next = 1, .hint = 1};
    }
    *out = inbox;
    return STATUS_OK;
}

void inbox_destroy(struct inbox *inbox)
{
    if (inbox == NULL) return;
    for (size_t i = 0; i < CHANNELS; i++) {
        struct channel *channel = &inbox->channels[i];
        memory_free(NULL, channel->slots, channel->capacity * sizeof *channel->slots);
    }
    memory_free(NULL, inbox, sizeof *inbox);
}

static struct delivery *delivery_at(const struct channel *channel, uint64_t serial)
{
    return &channel->slots[serial & (channel->capacity - 1)];
}

static bool channel_reserve(struct channel *channel)
{
    if (channel->next - channel->first < channel->capacity) return true;
    size_t capacity = channel->capacity == 0 ? FIRST_SLOTS : channel->capacity * 2;
    struct delivery *slots = memory_alloc(NULL, capacity * sizeof *slots);
    if (slots == NULL) return false;
    for (uint64_t s = channel->first; s < channel->next; s++) {
        slots[s & (capacity - 1)] = *delivery_at(channel, s);
    }
    memory_free(NULL, channel->slots, channel->capacity * sizeof *slots);
    channel->slots = slots;
    channel->capacity = capacity;
    return true;
}

uint64_t inbox_deliver(struct inbox *inbox, uint32_t channel_number, uint64_t tag)
{
    ASSERT(channel_number < CHANNELS);
    struct channel *channel = &inbox->channels[channel_number];
    uint64_t serial = channel->next;
    if (!channel_reserve(channel)) {
        inbox->failed = true;
        /* An id that inbox_acknowledge ignores. */
        channel->first = channel->next = channel->hint = serial + 1;
        channel->done = 0;
    } else {
        channel->next++;
        *delivery_at(channel, serial) = (struct delivery){.tag = tag, .state = DELIVERY_OPEN};
    }
    return serial << CHANNEL_BITS | channel_number;
}

void inbox_acknowledge(struct inbox *inbox, uint64_t id)
{
    struct channel *channel = &inbox->channels[id & (CHANNELS - 1)];
    uint64_t serial = id >> CHANNEL_BITS;
    if (serial < channel->first || serial >= channel->next) return;
    struct delivery *delivery = delivery_at(channel, serial);
    if (delivery->state != DELIVERY_OPEN) return;
    delivery->state = DELIVERY_DONE;
    channel->done++;
    if (serial < channel->hint) channel->hint = serial;
}

/* The last of an unbroken run from the front stands for the whole run; deliveries beyond a gap are
 * acknowledged one by one. The broker rejects a tag that was acknowledged before, so the run must
 * end with one that was not. */
static void channel_take_ack(struct channel *channel, uint32_t number, struct inbox_ack *out)
{
    uint64_t run = 0;
    uint64_t serial = channel->first;
    for (; serial < channel->next; serial++) {
        const struct delivery *delivery = delivery_at(channel, serial);
        if (delivery->state == DELIVERY_OPEN) break;
        if (delivery->state == DELIVERY_DONE) {
            run++;
            *out = (struct inbox_ack){.channel = number, .tag = delivery->tag, .multiple = run > 1};
        }
    }
    channel->first = serial;
    channel->done -= run;
    if (channel->hint < serial) channel->hint = serial;
    if (run > 0) return;
    while (delivery_at(channel, channel->hint)->state != DELIVERY_DONE) {
        channel->hint++;
    }
    struct delivery *delivery = delivery_at(channel, channel->hint++);
    delivery->state = DELIVERY_TOLD;
    channel->done--;
    *out = (struct inbox_ack){.channel = number, .tag = delivery->tag, .multiple = false};
}

bool inbox_next_ack(struct inbox *inbox, struct inbox_ack *out)
{
    for (uint32_t i = 0; i < CHANNELS; i++) {
        if (inbox->channels[i].done > 0) {
            channel_take_ack(&inbox->channels[i], i, out);
            return true;
        }
    }
    return false;
}

void inbox_reconnect(struct inbox *inbox)
{
    for (size_t i = 0; i < CHANNELS; i++) {
        struct channel *channel = &inbox->channels[i];
        channel->first = channel->next;
        channel->hint = channel->next;
        channel->done = 0;
    }
}

bool inbox_failed(const struct inbox *inbox)
{
    return inbox->failed;
}
