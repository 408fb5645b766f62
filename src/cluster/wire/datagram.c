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
#include "engine/data/codec.h"
#include "cluster/wire/manifest.h"

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

/* ---- out ---- */

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

static void put_name(struct codec_writer *writer, const char *name)
{
    put_short(writer, name, DATAGRAM_NAME_SIZE);
    ASSERT(manifest_name_valid(text_of(name)));
}

static void put_optional_name(struct codec_writer *writer, const char *name)
{
    if (name[0] != '\0') {
        put_name(writer, name);
    } else {
        codec_put_u8(writer, 0);
    }
}

static void put_message(struct codec_writer *writer, const char *message)
{
    char clean[DATAGRAM_TEXT_SIZE] = "";
    size_t size = strnlen(message, sizeof clean);
    ASSERT(size < sizeof clean);
    for (size_t i = 0; i < size; i++) {
        clean[i] = is_control(message[i]) ? ' ' : message[i];
    }
    put_short(writer, clean, sizeof clean);
}

static void put_term(struct codec_writer *writer, struct term term)
{
    codec_put_u64(writer, term.number);
    codec_put_u32(writer, term.holder);
}

static void put_place(struct codec_writer *writer, struct event_place place)
{
    codec_put_u64(writer, place.term);
    codec_put_u32(writer, place.sequence);
}

static void put_heartbeat(struct codec_writer *writer, const struct heartbeat *heartbeat)
{
    codec_put_choice(writer, heartbeat->role, NODE_ROLES);
    codec_put_choice(writer, heartbeat->state, HEARTBEAT_STATES);
    put_term(writer, heartbeat->seen);
    codec_put_u64(writer, heartbeat->progress);
    codec_put_u64(writer, heartbeat->uptime_ms);
    codec_put_u64(writer, heartbeat->replayed);
    codec_put_u64(writer, heartbeat->resident_bytes);
    codec_put_u32(writer, heartbeat->job_count);
    put_place(writer, heartbeat->events);
}

static void put_challenge(struct codec_writer *writer, const struct challenge *challenge)
{
    codec_put_u64(writer, challenge->incarnation);
    codec_put_u64(writer, challenge->sequence);
    codec_put_u64(writer, challenge->nonce);
}

static void put_election(struct codec_writer *writer, const struct election_message *election)
{
    codec_put_choice(writer, election->kind, ELECTION_KINDS);
    put_term(writer, election->term);
    codec_put_u64(writer, election->round);
    codec_put_bool(writer, election->eligible);
    codec_put_u64(writer, election->heard_ago);
    codec_put_u64(writer, election->cluster);
}

static void put_order(struct codec_writer *writer, const struct order *order)
{
    put_term(writer, order->term);
    codec_put_choice(writer, order->kind, ORDER_KINDS);
    codec_put_u64(writer, order->incarnation);
}

static void put_view(struct codec_writer *writer, const struct view *view)
{
    ASSERT(view->node_count <= DATAGRAM_NODES_MAX);
    put_term(writer, view->term);
    put_optional_name(writer, view->leader);
    codec_put_u32(writer, view->node_total);
    codec_put_u8(writer, (uint8_t)view->node_count);
    for (uint32_t i = 0; i < view->node_count; i++) {
        const struct monitored *node = &view->nodes[i];
        put_name(writer, node->name);
        codec_put_choice(writer, node->role, NODE_ROLES);
        codec_put_choice(writer, node->state, HEALTH_STATES);
        codec_put_u64(writer, node->incarnation);
        codec_put_u64(writer, node->uptime_ms);
        codec_put_u64(writer, node->silent_ms);
        codec_put_u32(writer, node->restarts);
        codec_put_u64(writer, node->resident_bytes);
        codec_put_u32(writer, node->job_count);
        put_message(writer, node->problem);
    }
}

static bool is_in_order(const struct event_list *list, uint32_t index)
{
    if (index == 0) return true;
    return event_place_compare(list->events[index - 1].place, list->events[index].place) < 0;
}

static void put_events(struct codec_writer *writer, const struct event_list *list)
{
    ASSERT(list->event_count <= DATAGRAM_EVENTS_MAX);
    codec_put_u8(writer, (uint8_t)list->event_count);
    for (uint32_t i = 0; i < list->event_count; i++) {
        const struct cluster_event *event = &list->events[i];
        ASSERT(is_in_order(list, i));
        put_place(writer, event->place);
        codec_put_choice(writer, event->kind, HAPPENED_KINDS);
        codec_put_u64(writer, event->age_ms);
        put_name(writer, event->node);
        codec_put_u64(writer, event->incarnation);
        codec_put_u64(writer, event->number);
        put_message(writer, event->text);
    }
}

static void put_ask(struct codec_writer *writer, const struct ask *ask)
{
    codec_put_choice(writer, ask->kind, ASK_KINDS);
    put_optional_name(writer, ask->node);
}

static void put_fields(struct codec_writer *writer, const struct datagram *datagram)
{
    switch (datagram->kind) {
    case DATAGRAM_HEARTBEAT:
        put_heartbeat(writer, &datagram->heartbeat);
        return;
    case DATAGRAM_CHALLENGE:
        put_challenge(writer, &datagram->challenge);
        return;
    case DATAGRAM_ELECTION:
        put_election(writer, &datagram->election);
        return;
    case DATAGRAM_ORDER:
        put_order(writer, &datagram->order);
        return;
    case DATAGRAM_VIEW:
        put_view(writer, &datagram->view);
        return;
    case DATAGRAM_EVENTS:
        put_events(writer, &datagram->events);
        return;
    case DATAGRAM_ASK:
        put_ask(writer, &datagram->ask);
        return;
    case DATAGRAM_KINDS:
        break;
    }
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
    put_name(&writer, datagram->from);
    put_name(&writer, datagram->to);
    codec_put_u64(&writer, datagram->incarnation);
    codec_put_u64(&writer, datagram->sequence);
    codec_put_u64(&writer, datagram->nonce);
    put_fields(&writer, datagram);
    if (out->failed) return;
    uint8_t mac[MAC_BYTES];
    mac_compute(out->bytes, out->size, key, mac);
    buf_put(out, mac, sizeof mac);
    ASSERT(out->size <= DATAGRAM_BYTES_MAX);
}

/* ---- in ---- */

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

static void get_optional_name(struct codec_reader *reader, char *name)
{
    struct text text = get_short(reader, name, DATAGRAM_NAME_SIZE);
    if (text.size > 0 && !manifest_name_valid(text)) codec_fail(reader, "a name is none");
}

static void get_name(struct codec_reader *reader, char *name)
{
    get_optional_name(reader, name);
    if (name[0] == '\0') codec_fail(reader, "a name is missing");
}

static void get_message(struct codec_reader *reader, char *message)
{
    struct text text = get_short(reader, message, DATAGRAM_TEXT_SIZE);
    for (uint32_t i = 0; i < text.size; i++) {
        if (is_control(text.bytes[i])) codec_fail(reader, "a text has control bytes");
    }
}

static uint32_t get_count(struct codec_reader *reader, uint32_t limit)
{
    uint32_t count = codec_get_u8(reader);
    if (count <= limit) return count;
    codec_fail(reader, "more items are announced than there can be");
    return 0;
}

static struct term get_term(struct codec_reader *reader)
{
    struct term term;
    term.number = codec_get_u64(reader);
    term.holder = codec_get_u32(reader);
    return term;
}

static struct event_place get_place(struct codec_reader *reader)
{
    struct event_place place;
    place.term = codec_get_u64(reader);
    place.sequence = codec_get_u32(reader);
    return place;
}

static void get_heartbeat(struct codec_reader *reader, struct heartbeat *heartbeat)
{
    heartbeat->role = (enum node_role)codec_get_choice(reader, NODE_ROLES);
    heartbeat->state = (enum heartbeat_state)codec_get_choice(reader, HEARTBEAT_STATES);
    heartbeat->seen = get_term(reader);
    heartbeat->progress = codec_get_u64(reader);
    heartbeat->uptime_ms = codec_get_u64(reader);
    heartbeat->replayed = codec_get_u64(reader);
    heartbeat->resident_bytes = codec_get_u64(reader);
    heartbeat->job_count = codec_get_u32(reader);
    heartbeat->events = get_place(reader);
}

static void get_challenge(struct codec_reader *reader, struct challenge *challenge)
{
    challenge->incarnation = codec_get_u64(reader);
    challenge->sequence = codec_get_u64(reader);
    challenge->nonce = codec_get_u64(reader);
}

static void get_election(struct codec_reader *reader, struct election_message *election)
{
    election->kind = (enum election_kind)codec_get_choice(reader, ELECTION_KINDS);
    election->term = get_term(reader);
    election->round = codec_get_u64(reader);
    election->eligible = codec_get_bool(reader);
    election->heard_ago = codec_get_u64(reader);
    election->cluster = codec_get_u64(reader);
}

static void get_order(struct codec_reader *reader, struct order *order)
{
    order->term = get_term(reader);
    order->kind = (enum order_kind)codec_get_choice(reader, ORDER_KINDS);
    order->incarnation = codec_get_u64(reader);
}

static void get_view(struct codec_reader *reader, struct view *view)
{
    view->term = get_term(reader);
    get_optional_name(reader, view->leader);
    view->node_total = codec_get_u32(reader);
    view->node_count = get_count(reader, DATAGRAM_NODES_MAX);
    for (uint32_t i = 0; i < view->node_count; i++) {
        struct monitored *node = &view->nodes[i];
        get_name(reader, node->name);
        node->role = (enum node_role)codec_get_choice(reader, NODE_ROLES);
        node->state = (enum health)codec_get_choice(reader, HEALTH_STATES);
        node->incarnation = codec_get_u64(reader);
        node->uptime_ms = codec_get_u64(reader);
        node->silent_ms = codec_get_u64(reader);
        node->restarts = codec_get_u32(reader);
        node->resident_bytes = codec_get_u64(reader);
        node->job_count = codec_get_u32(reader);
        get_message(reader, node->problem);
    }
}

static void get_events(struct codec_reader *reader, struct event_list *list)
{
    list->event_count = get_count(reader, DATAGRAM_EVENTS_MAX);
    for (uint32_t i = 0; i < list->event_count; i++) {
        struct cluster_event *event = &list->events[i];
        event->place = get_place(reader);
        event->kind = (enum cluster_event_kind)codec_get_choice(reader, HAPPENED_KINDS);
        event->age_ms = codec_get_u64(reader);
        get_name(reader, event->node);
        event->incarnation = codec_get_u64(reader);
        event->number = codec_get_u64(reader);
        get_message(reader, event->text);
        if (!is_in_order(list, i)) codec_fail(reader, "its events are not in order");
    }
}

static void get_ask(struct codec_reader *reader, struct ask *ask)
{
    ask->kind = (enum ask_kind)codec_get_choice(reader, ASK_KINDS);
    get_optional_name(reader, ask->node);
}

static void get_fields(struct codec_reader *reader, struct datagram *datagram)
{
    switch (datagram->kind) {
    case DATAGRAM_HEARTBEAT:
        get_heartbeat(reader, &datagram->heartbeat);
        return;
    case DATAGRAM_CHALLENGE:
        get_challenge(reader, &datagram->challenge);
        return;
    case DATAGRAM_ELECTION:
        get_election(reader, &datagram->election);
        return;
    case DATAGRAM_ORDER:
        get_order(reader, &datagram->order);
        return;
    case DATAGRAM_VIEW:
        get_view(reader, &datagram->view);
        return;
    case DATAGRAM_EVENTS:
        get_events(reader, &datagram->events);
        return;
    case DATAGRAM_ASK:
        get_ask(reader, &datagram->ask);
        return;
    case DATAGRAM_KINDS:
        break;
    }
    codec_fail(reader, "its kind is not known");
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
    get_name(&reader, datagram.from);
    get_name(&reader, datagram.to);
    datagram.incarnation = codec_get_u64(&reader);
    datagram.sequence = codec_get_u64(&reader);
    datagram.nonce = codec_get_u64(&reader);
    get_fields(&reader, &datagram);
    TRY(codec_finish(&reader, "a datagram", err));
    *out = datagram;
    return STATUS_OK;
}
