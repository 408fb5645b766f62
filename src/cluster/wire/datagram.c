/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.c - a head, the fields of its kind, and a MAC over all of it.
 *
 * The MAC is keyed BLAKE2b (RFC 7693) with the cluster's key, cut to 16 bytes, as libsodium's
 * generichash computes it: fast for short inputs, so that a flood of forged datagrams costs about a
 * microsecond each. Its personalisation separates it from other uses that the key may get.
 *
 * Names and texts have a byte for their size instead of four: a view of DATAGRAM_NODES_MAX nodes
 * with the longest names and texts just fits. Control bytes of a text become blanks, since texts
 * end in logs and on terminals, and decoding refuses texts that have any.
 */
#include "cluster/wire/datagram.h"

#include <assert.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/base/assert.h"
#include "cluster/wire/manifest.h"
#include "cluster/wire/transfer.h"

enum {
    VERSION = 1,
    MAC_BYTES = 16,
    NAME_BYTES = DATAGRAM_NAME_SIZE, /* A byte of size, and the name without its end. */
    TEXT_BYTES = DATAGRAM_TEXT_SIZE,
    HEAD_BYTES = 1 + 1 + 2 * NAME_BYTES + 3 * 8,
    TERM_BYTES = 8 + 4,
    VIEW_BYTES = TERM_BYTES + NAME_BYTES + 4 + 1,
    MONITORED_BYTES = NAME_BYTES + 1 + 1 + 3 * 8 + 4 + 8 + 4 + TEXT_BYTES,
    EVENT_BYTES = 8 + 4 + 1 + 8 + NAME_BYTES + 2 * 8 + TEXT_BYTES
};

static_assert(HEAD_BYTES + VIEW_BYTES + DATAGRAM_NODES_MAX * MONITORED_BYTES + MAC_BYTES <=
                  DATAGRAM_BYTES_MAX,
              "the largest view fits");
static_assert(HEAD_BYTES + 1 + DATAGRAM_EVENTS_MAX * EVENT_BYTES + MAC_BYTES <= DATAGRAM_BYTES_MAX,
              "the largest list of events fits");
static_assert(DATAGRAM_NAME_SIZE == MANIFEST_NAME_MAX + 1, "all names of nodes fit");
static_assert(DATAGRAM_NAME_SIZE <= UINT8_MAX && DATAGRAM_TEXT_SIZE <= UINT8_MAX,
              "a size is a byte");
static_assert((int)DATAGRAM_KEY_BYTES >= (int)crypto_generichash_blake2b_KEYBYTES_MIN &&
                  (int)DATAGRAM_KEY_BYTES <= (int)crypto_generichash_blake2b_KEYBYTES_MAX,
              "it is a key");
static_assert((int)MAC_BYTES >= (int)crypto_generichash_blake2b_BYTES_MIN, "it is a MAC");

const char *const health_names[HEALTH_STATES] = {
    [HEALTH_UNKNOWN] = "unknown",
    [HEALTH_STARTING] = "starting",
    [HEALTH_UP] = "up",
    [HEALTH_SUSPECTED] = "suspected",
    [HEALTH_RESTARTING] = "restarting",
    [HEALTH_BROKEN] = "broken",
    [HEALTH_STOPPED] = "stopped",
};

const char *const cluster_event_names[HAPPENED_KINDS] = {
    [HAPPENED_ELECTED] = "elected",
    [HAPPENED_SUSPECTED] = "suspected",
    [HAPPENED_HUNG] = "hung",
    [HAPPENED_KILLED] = "killed",
    [HAPPENED_RESTARTING] = "restarting",
    [HAPPENED_FAILED] = "failed",
    [HAPPENED_REPLAYED] = "replayed",
    [HAPPENED_RESUMED] = "resumed",
    [HAPPENED_STOPPED] = "stopped",
    [HAPPENED_BROKEN] = "broken",
};

int term_compare(struct term a, struct term b)
{
    if (a.number != b.number) return a.number < b.number ? -1 : 1;
    return (a.holder > b.holder) - (a.holder < b.holder);
}

int event_place_compare(struct event_place a, struct event_place b)
{
    if (a.term != b.term) return a.term < b.term ? -1 : 1;
    return (a.sequence > b.sequence) - (a.sequence < b.sequence);
}

/* ---- the MAC ---- */

static void mac_compute(const void *bytes, size_t size, const struct datagram_key *key,
                        uint8_t out[MAC_BYTES])
{
    static const unsigned char purpose[crypto_generichash_blake2b_PERSONALBYTES + 1] =
        "millrace-udp-v1.";
    static atomic_bool is_ready;
    /* Any thread may call it; without it the MAC is the same, only slower. */
    if (!atomic_load_explicit(&is_ready, memory_order_relaxed)) {
        atomic_store_explicit(&is_ready, sodium_init() >= 0, memory_order_relaxed);
    }
    int refused = crypto_generichash_blake2b_salt_personal(out, MAC_BYTES, bytes, size, key->bytes,
                                                           sizeof key->bytes, NULL, purpose);
    ASSERT(refused == 0); /* Only wrong sizes are refused. */
}

/* ---- fields ---- */

static bool is_control(char byte)
{
    return (unsigned char)byte < ' ' || byte == 0x7f;
}

static void put_short(struct codec_writer *writer, const char *string, size_t array_bytes)
{
    size_t size = strnlen(string, array_bytes);
    ASSERT(size < array_bytes);
    codec_put_u8(writer, (uint8_t)size);
    buf_put(writer->out, string, size);
}

/* Copies a text that is shorter than the array, which is zeroed, and returns it. */
static struct text get_short(struct codec_reader *reader, char *array, size_t array_bytes)
{
    size_t size = codec_get_u8(reader);
    if (size >= array_bytes) codec_fail(reader, "a name or text is too long");
    const char *bytes = buf_get(&reader->in, size);
    if (bytes == NULL || size == 0) return (struct text){array, 0};
    memcpy(array, bytes, size);
    return (struct text){array, (uint32_t)size};
}

/* A count is a byte. */
static uint32_t pass_count(const struct transfer *transfer, uint32_t count, uint32_t limit)
{
    if (transfer->writer != NULL) {
        ASSERT(count <= limit);
        codec_put_u8(transfer->writer, (uint8_t)count);
        return count;
    }
    count = codec_get_u8(transfer->reader);
    if (count <= limit) return count;
    codec_fail(transfer->reader, "more items are announced than there can be");
    return 0;
}

static void pass_optional_name(const struct transfer *transfer, char *name)
{
    if (transfer->writer != NULL) {
        put_short(transfer->writer, name, DATAGRAM_NAME_SIZE);
        ASSERT(name[0] == '\0' || manifest_name_valid(text_of(name)));
        return;
    }
    struct text text = get_short(transfer->reader, name, DATAGRAM_NAME_SIZE);
    if (text.size > 0 && !manifest_name_valid(text)) codec_fail(transfer->reader, "a name is none");
}

static void pass_name(const struct transfer *transfer, char *name)
{
    pass_optional_name(transfer, name);
    if (name[0] != '\0') return;
    ASSERT(transfer->writer == NULL);
    codec_fail(transfer->reader, "a name is missing");
}

static void pass_message(const struct transfer *transfer, char *message)
{
    if (transfer->writer == NULL) {
        struct text text = get_short(transfer->reader, message, DATAGRAM_TEXT_SIZE);
        for (uint32_t i = 0; i < text.size; i++) {
            if (is_control(text.bytes[i])) codec_fail(transfer->reader, "a text has control bytes");
        }
        return;
    }
    for (size_t i = 0; i < DATAGRAM_TEXT_SIZE && message[i] != '\0'; i++) {
        if (is_control(message[i])) message[i] = ' ';
    }
    put_short(transfer->writer, message, DATAGRAM_TEXT_SIZE);
}

static void pass_term(const struct transfer *transfer, struct term *term)
{
    pass_u64(transfer, &term->number);
    pass_u32(transfer, &term->holder);
}

static void pass_place(const struct transfer *transfer, struct event_place *place)
{
    pass_u64(transfer, &place->term);
    pass_u32(transfer, &place->sequence);
}

/* ---- kinds ---- */

static void pass_heartbeat(const struct transfer *transfer, struct heartbeat *heartbeat)
{
    PASS_CHOICE(transfer, heartbeat->role, NODE_ROLES);
    PASS_CHOICE(transfer, heartbeat->state, HEARTBEAT_STATES);
    pass_term(transfer, &heartbeat->seen);
    pass_u64(transfer, &heartbeat->progress);
    pass_u64(transfer, &heartbeat->uptime_ms);
    pass_u64(transfer, &heartbeat->replayed);
    pass_u64(transfer, &heartbeat->resident_bytes);
    pass_u32(transfer, &heartbeat->job_count);
    pass_place(transfer, &heartbeat->events);
}

static void pass_challenge(const struct transfer *transfer, struct challenge *challenge)
{
    pass_u64(transfer, &challenge->incarnation);
    pass_u64(transfer, &challenge->sequence);
    pass_u64(transfer, &challenge->nonce);
}

static void pass_election(const struct transfer *transfer, struct election_message *election)
{
    PASS_CHOICE(transfer, election->kind, ELECTION_KINDS);
    pass_term(transfer, &election->term);
    pass_u64(transfer, &election->round);
    pass_bool(transfer, &election->eligible);
    pass_u64(transfer, &election->heard_ago);
    pass_u64(transfer, &election->cluster);
}

static void pass_order(const struct transfer *transfer, struct order *order)
{
    pass_term(transfer, &order->term);
    PASS_CHOICE(transfer, order->kind, ORDER_KINDS);
    pass_u64(transfer, &order->incarnation);
}

static void pass_view(const struct transfer *transfer, struct view *view)
{
    pass_term(transfer, &view->term);
    pass_optional_name(transfer, view->leader);
    pass_u32(transfer, &view->node_total);
    view->node_count = pass_count(transfer, view->node_count, DATAGRAM_NODES_MAX);
    for (uint32_t i = 0; i < view->node_count; i++) {
        struct monitored *node = &view->nodes[i];
        pass_name(transfer, node->name);
        PASS_CHOICE(transfer, node->role, NODE_ROLES);
        PASS_CHOICE(transfer, node->state, HEALTH_STATES);
        pass_u64(transfer, &node->incarnation);
        pass_u64(transfer, &node->uptime_ms);
        pass_u64(transfer, &node->silent_ms);
        pass_u32(transfer, &node->restarts);
        pass_u64(transfer, &node->resident_bytes);
        pass_u32(transfer, &node->job_count);
        pass_message(transfer, node->problem);
    }
}

static bool is_in_order(const struct event_list *list, uint32_t index)
{
    if (index == 0) return true;
    return event_place_compare(list->events[index - 1].place, list->events[index].place) < 0;
}

static void pass_events(const struct transfer *transfer, struct event_list *list)
{
    list->event_count = pass_count(transfer, list->event_count, DATAGRAM_EVENTS_MAX);
    for (uint32_t i = 0; i < list->event_count; i++) {
        struct cluster_event *event = &list->events[i];
        pass_place(transfer, &event->place);
        PASS_CHOICE(transfer, event->kind, HAPPENED_KINDS);
        pass_u64(transfer, &event->age_ms);
        pass_name(transfer, event->node);
        pass_u64(transfer, &event->incarnation);
        pass_u64(transfer, &event->number);
        pass_message(transfer, event->text);
        if (is_in_order(list, i)) continue;
        ASSERT(transfer->writer == NULL);
        codec_fail(transfer->reader, "its events are not in order");
    }
}

static void pass_ask(const struct transfer *transfer, struct ask *ask)
{
    PASS_CHOICE(transfer, ask->kind, ASK_KINDS);
    pass_optional_name(transfer, ask->node);
}

/* All after the kind. */
static void pass_datagram(const struct transfer *transfer, struct datagram *datagram)
{
    pass_name(transfer, datagram->from);
    pass_name(transfer, datagram->to);
    pass_u64(transfer, &datagram->incarnation);
    pass_u64(transfer, &datagram->sequence);
    pass_u64(transfer, &datagram->nonce);
    switch (datagram->kind) {
    case DATAGRAM_HEARTBEAT:
        pass_heartbeat(transfer, &datagram->heartbeat);
        return;
    case DATAGRAM_CHALLENGE:
        pass_challenge(transfer, &datagram->challenge);
        return;
    case DATAGRAM_ELECTION:
        pass_election(transfer, &datagram->election);
        return;
    case DATAGRAM_ORDER:
        pass_order(transfer, &datagram->order);
        return;
    case DATAGRAM_VIEW:
        pass_view(transfer, &datagram->view);
        return;
    case DATAGRAM_EVENTS:
        pass_events(transfer, &datagram->events);
        return;
    case DATAGRAM_ASK:
        pass_ask(transfer, &datagram->ask);
        return;
    case DATAGRAM_KINDS:
        break;
    }
    codec_fail(transfer->reader, "its kind is not known");
}

void datagram_encode(const struct datagram *datagram, const struct datagram_key *key,
                     struct buf *out)
{
    ASSERT(datagram->kind >= DATAGRAM_HEARTBEAT);
    ASSERT(datagram->kind < DATAGRAM_KINDS);
    buf_reset(out);
    struct codec_writer writer = codec_begin(out);
    codec_put_u8(&writer, VERSION);
    codec_put_u8(&writer, (uint8_t)datagram->kind);
    struct datagram copy = *datagram; /* pass_message cleans its texts. */
    pass_datagram(&(struct transfer){.writer = &writer}, &copy);
    if (out->failed) return;
    uint8_t mac[MAC_BYTES];
    mac_compute(out->bytes, out->size, key, mac);
    buf_put(out, mac, sizeof mac);
    ASSERT(out->size <= DATAGRAM_BYTES_MAX);
}

static bool mac_matches(struct text bytes, const struct datagram_key *key)
{
    if (bytes.size < MAC_BYTES || bytes.size > DATAGRAM_BYTES_MAX) return false;
    uint8_t mac[MAC_BYTES];
    size_t size = bytes.size - MAC_BYTES;
    mac_compute(bytes.bytes, size, key, mac);
    return sodium_memcmp(mac, bytes.bytes + size, MAC_BYTES) == 0;
}

status datagram_decode(struct text bytes, const struct datagram_key *key, struct datagram *out,
                       struct error *err)
{
    if (!mac_matches(bytes, key)) {
        return error_set(err, STATUS_CORRUPT, "a datagram was not authenticated with our key");
    }
    struct codec_reader reader =
        codec_open((struct text){bytes.bytes, bytes.size - MAC_BYTES}, NULL);
    struct datagram datagram = {0}; /* So that names and texts are terminated. */
    if (codec_get_u8(&reader) != VERSION) codec_fail(&reader, "its version is not known");
    datagram.kind = (enum datagram_kind)codec_get_u8(&reader);
    pass_datagram(&(struct transfer){.reader = &reader}, &datagram);
    TRY(codec_finish(&reader, "a datagram", err));
    *out = datagram;
    return STATUS_OK;
}
