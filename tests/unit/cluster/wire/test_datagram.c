/* SPDX-License-Identifier: Apache-2.0 */
/* test_datagram.c - datagrams survive as bytes, and nobody without the key can make one.
 *
 * Method: random datagrams of every kind, full of extreme values, are encoded, decoded and
 * compared field by field; the largest ones that there can be must fit. One of each kind is cut and
 * changed in every place, with the old code and with one that fits. Then a million datagrams that
 * are forged, cut, changed or of another cluster are all refused. One known datagram is compared
 * with what another implementation of BLAKE2b makes of it.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/buf.h"
#include "engine/base/random.h"
#include "unit/cluster/wire/datagram_seal.h"
#include "cluster/wire/datagram.h"

enum { ROUNDS = 2000, FORGERIES = 250000 };

static const struct datagram_key our_key = {"0123456789abcdef0123456789abcdef"};
static const struct datagram_key other_key = {"0123456789abcdef0123456789abcdeg"};

static struct text text_from(const struct buf *bytes)
{
    return (struct text){(const char *)bytes->bytes, (uint32_t)bytes->size};
}

/* ---- random datagrams ---- */

static uint64_t any_u64(struct random *random)
{
    static const uint64_t extremes[] = {0, 1, 255, 256, UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint32_t extreme = random_below(random, 8);
    return extreme < 7 ? extremes[extreme] : random_u64(random);
}

static uint32_t any_u32(struct random *random)
{
    return (uint32_t)any_u64(random);
}

static void any_name(struct random *random, char out[DATAGRAM_NAME_SIZE])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    uint32_t size = random_below(random, 2) == 0 ? DATAGRAM_NAME_SIZE - 1
                                                 : 1 + random_below(random, DATAGRAM_NAME_SIZE - 1);
    for (uint32_t i = 0; i < size; i++) {
        out[i] = letters[random_below(random, i == 0 ? 52 : sizeof letters - 1)];
    }
    out[size] = '\0';
}

static void any_optional_name(struct random *random, char out[DATAGRAM_NAME_SIZE])
{
    any_name(random, out);
    if (random_below(random, 4) == 0) out[0] = '\0';
}

static void any_text(struct random *random, char out[DATAGRAM_TEXT_SIZE])
{
    uint32_t size = random_below(random, 2) == 0 ? DATAGRAM_TEXT_SIZE - 1
                                                 : random_below(random, DATAGRAM_TEXT_SIZE);
    for (uint32_t i = 0; i < size; i++) {
        do {
            out[i] = (char)(' ' + random_below(random, 256 - ' '));
        } while (out[i] == 0x7f);
    }
    out[size] = '\0';
}

static struct term any_term(struct random *random)
{
    return (struct term){any_u64(random), any_u32(random)};
}

static void any_view(struct random *random, struct view *view)
{
    view->term = any_term(random);
    any_optional_name(random, view->leader);
    view->node_total = any_u32(random);
    view->node_count = random_below(random, DATAGRAM_NODES_MAX + 1);
    for (uint32_t i = 0; i < view->node_count; i++) {
        struct monitored *node = &view->nodes[i];
        any_name(random, node->name);
        node->role = (enum node_role)random_below(random, NODE_ROLES);
        node->state = (enum health)random_below(random, HEALTH_STATES);
        node->incarnation = any_u64(random);
        node->uptime_ms = any_u64(random);
        node->silent_ms = any_u64(random);
        node->restarts = any_u32(random);
        node->resident_bytes = any_u64(random);
        node->job_count = any_u32(random);
        any_text(random, node->problem);
    }
}

static void any_events(struct random *random, struct event_list *list)
{
    uint64_t term = any_u64(random) / 2;
    uint32_t sequence = any_u32(random) / 2;
    list->event_count = random_below(random, DATAGRAM_EVENTS_MAX + 1);
    for (uint32_t i = 0; i < list->event_count; i++) {
        struct cluster_event *event = &list->events[i];
        if (random_below(random, 2) == 0) {
            term += 1 + random_below(random, 3);
            sequence = random_below(random, 3);
        } else {
            sequence += 1 + random_below(random, 3);
        }
        event->place = (struct event_place){term, sequence};
        event->kind = (enum cluster_event_kind)random_below(random, HAPPENED_KINDS);
        event->age_ms = any_u64(random);
        any_name(random, event->node);
        event->incarnation = any_u64(random);
        event->number = any_u64(random);
        any_text(random, event->text);
    }
}

static void any_fields(struct random *random, struct datagram *out)
{
    switch (out->kind) {
    case DATAGRAM_HEARTBEAT:
        out->heartbeat.role = (enum node_role)random_below(random, NODE_ROLES);
        out->heartbeat.state = (enum heartbeat_state)random_below(random, HEARTBEAT_STATES);
        out->heartbeat.seen = any_term(random);
        out->heartbeat.progress = any_u64(random);
        out->heartbeat.uptime_ms = any_u64(random);
        out->heartbeat.replayed = any_u64(random);
        out->heartbeat.resident_bytes = any_u64(random);
        out->heartbeat.job_count = any_u32(random);
        out->heartbeat.events = (struct event_place){any_u64(random), any_u32(random)};
        return;
    case DATAGRAM_CHALLENGE:
        out->challenge.incarnation = any_u64(random);
        out->challenge.sequence = any_u64(random);
        out->challenge.nonce = any_u64(random);
        return;
    case DATAGRAM_ELECTION:
        out->election.kind = (enum election_kind)random_below(random, ELECTION_KINDS);
        out->election.term = any_term(random);
        out->election.round = any_u64(random);
        out->election.eligible = random_below(random, 2) == 1;
        out->election.heard_ago = any_u64(random);
        out->election.cluster = any_u64(random);
        return;
    case DATAGRAM_ORDER:
        out->order.term = any_term(random);
        out->order.kind = (enum order_kind)random_below(random, ORDER_KINDS);
        out->order.incarnation = any_u64(random);
        return;
    case DATAGRAM_VIEW:
        any_view(random, &out->view);
        return;
    case DATAGRAM_EVENTS:
        any_events(random, &out->events);
        return;
    case DATAGRAM_ASK:
        out->ask.kind = (enum ask_kind)random_below(random, ASK_KINDS);
        any_optional_name(random, out->ask.node);
        return;
    case DATAGRAM_KINDS:
        break;
    }
    fail();
}

static void any_datagram(struct random *random, enum datagram_kind kind, struct datagram *out)
{
    *out = (struct datagram){.kind = kind};
    any_name(random, out->from);
    any_name(random, out->to);
    out->incarnation = any_u64(random);
    out->sequence = any_u64(random);
    out->nonce = any_u64(random);
    any_fields(random, out);
}

/* ---- comparing ---- */

static void check_term(struct term a, struct term b)
{
    assert_int_equal(term_compare(a, b), 0);
}

static void check_heartbeat(const struct heartbeat *a, const struct heartbeat *b)
{
    assert_int_equal(a->role, b->role);
    assert_int_equal(a->state, b->state);
    check_term(a->seen, b->seen);
    assert_int_equal(a->progress, b->progress);
    assert_int_equal(a->uptime_ms, b->uptime_ms);
    assert_int_equal(a->replayed, b->replayed);
    assert_int_equal(a->resident_bytes, b->resident_bytes);
    assert_int_equal(a->job_count, b->job_count);
    assert_int_equal(event_place_compare(a->events, b->events), 0);
}

static void check_view(const struct view *a, const struct view *b)
{
    check_term(a->term, b->term);
    assert_string_equal(a->leader, b->leader);
    assert_int_equal(a->node_total, b->node_total);
    assert_int_equal(a->node_count, b->node_count);
    for (uint32_t i = 0; i < a->node_count; i++) {
        const struct monitored *x = &a->nodes[i];
        const struct monitored *y = &b->nodes[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->role, y->role);
        assert_int_equal(x->state, y->state);
        assert_int_equal(x->incarnation, y->incarnation);
        assert_int_equal(x->uptime_ms, y->uptime_ms);
        assert_int_equal(x->silent_ms, y->silent_ms);
        assert_int_equal(x->restarts, y->restarts);
        assert_int_equal(x->resident_bytes, y->resident_bytes);
        assert_int_equal(x->job_count, y->job_count);
        assert_string_equal(x->problem, y->problem);
    }
}

static void check_events(const struct event_list *a, const struct event_list *b)
{
    assert_int_equal(a->event_count, b->event_count);
    for (uint32_t i = 0; i < a->event_count; i++) {
        const struct cluster_event *x = &a->events[i];
        const struct cluster_event *y = &b->events[i];
        assert_int_equal(event_place_compare(x->place, y->place), 0);
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->age_ms, y->age_ms);
        assert_string_equal(x->node, y->node);
        assert_int_equal(x->incarnation, y->incarnation);
        assert_int_equal(x->number, y->number);
        assert_string_equal(x->text, y->text);
    }
}

static void check_fields(const struct datagram *a, const struct datagram *b)
{
    switch (a->kind) {
    case DATAGRAM_HEARTBEAT:
        check_heartbeat(&a->heartbeat, &b->heartbeat);
        return;
    case DATAGRAM_CHALLENGE:
        assert_int_equal(a->challenge.incarnation, b->challenge.incarnation);
        assert_int_equal(a->challenge.sequence, b->challenge.sequence);
        assert_int_equal(a->challenge.nonce, b->challenge.nonce);
        return;
    case DATAGRAM_ELECTION:
        assert_int_equal(a->election.kind, b->election.kind);
        check_term(a->election.term, b->election.term);
        assert_int_equal(a->election.round, b->election.round);
        assert_int_equal(a->election.eligible, b->election.eligible);
        assert_int_equal(a->election.heard_ago, b->election.heard_ago);
        assert_int_equal(a->election.cluster, b->election.cluster);
        return;
    case DATAGRAM_ORDER:
        check_term(a->order.term, b->order.term);
        assert_int_equal(a->order.kind, b->order.kind);
        assert_int_equal(a->order.incarnation, b->order.incarnation);
        return;
    case DATAGRAM_VIEW:
        check_view(&a->view, &b->view);
        return;
    case DATAGRAM_EVENTS:
        check_events(&a->events, &b->events);
        return;
    case DATAGRAM_ASK:
        assert_int_equal(a->ask.kind, b->ask.kind);
        assert_string_equal(a->ask.node, b->ask.node);
        return;
    case DATAGRAM_KINDS:
        break;
    }
    fail();
}

static void check_same(const struct datagram *a, const struct datagram *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_string_equal(a->from, b->from);
    assert_string_equal(a->to, b->to);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->nonce, b->nonce);
    check_fields(a, b);
}

/* ---- what may come ---- */

/* The bytes stand in a block of their own, so that a step past their end is noticed. What is
 * accepted is what an encoder would have written. */
static bool is_accepted(const unsigned char *bytes, size_t size)
{
    unsigned char *block = size > 0 ? memory_alloc(NULL, size) : NULL;
    struct buf again = {0};
    struct datagram datagram;
    struct error err = {.text = ""};
    assert_true(block != NULL || size == 0);
    if (size > 0) memcpy(block, bytes, size);
    struct text text = {(const char *)block, (uint32_t)size};
    status code = datagram_decode(text, &our_key, &datagram, &err);
    if (code == STATUS_OK) {
        datagram_encode(&datagram, &our_key, &again);
        assert_int_equal(again.size, size);
        assert_memory_equal(again.bytes, bytes, size);
    } else {
        assert_int_equal(code, STATUS_CORRUPT);
        assert_true(err.text[0] != '\0');
    }
    buf_done(&again);
    memory_free(NULL, block, size);
    return code == STATUS_OK;
}

/* The same with a code that fits. */
static bool is_accepted_sealed(const unsigned char *bytes, size_t size)
{
    struct buf sealed = {0};
    buf_put(&sealed, bytes, size);
    datagram_seal(&sealed, &our_key);
    bool accepted = is_accepted(sealed.bytes, sealed.size);
    buf_done(&sealed);
    return accepted;
}

static void all_kinds_survive_as_bytes(void **state)
{
    (void)state;
    struct random random = {1};
    struct buf bytes = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = DATAGRAM_HEARTBEAT; kind < DATAGRAM_KINDS; kind++) {
            struct datagram before;
            struct datagram after;
            struct error err;
            any_datagram(&random, (enum datagram_kind)kind, &before);
            datagram_encode(&before, &our_key, &bytes);
            assert_false(bytes.failed);
            assert_true(bytes.size <= DATAGRAM_BYTES_MAX);
            assert_int_equal(datagram_decode(text_from(&bytes), &our_key, &after, &err), STATUS_OK);
            check_same(&before, &after);
        }
    }
    buf_done(&bytes);
}

static void fill(char *array, size_t array_bytes)
{
    for (size_t i = 0; i + 1 < array_bytes; i++) {
        array[i] = 'x';
    }
    array[array_bytes - 1] = '\0';
}

static void the_largest_datagrams_fit(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct datagram largest = {.kind = DATAGRAM_VIEW};
    struct datagram after;
    struct error err;
    fill(largest.from, sizeof largest.from);
    fill(largest.to, sizeof largest.to);
    fill(largest.view.leader, sizeof largest.view.leader);
    largest.view.node_count = DATAGRAM_NODES_MAX;
    for (uint32_t i = 0; i < DATAGRAM_NODES_MAX; i++) {
        fill(largest.view.nodes[i].name, sizeof largest.view.nodes[i].name);
        fill(largest.view.nodes[i].problem, sizeof largest.view.nodes[i].problem);
    }
    datagram_encode(&largest, &our_key, &bytes);
    assert_true(bytes.size <= DATAGRAM_BYTES_MAX);
    assert_int_equal(datagram_decode(text_from(&bytes), &our_key, &after, &err), STATUS_OK);
    check_same(&largest, &after);

    largest.kind = DATAGRAM_EVENTS;
    largest.events = (struct event_list){.event_count = DATAGRAM_EVENTS_MAX};
    for (uint32_t i = 0; i < DATAGRAM_EVENTS_MAX; i++) {
        struct cluster_event *event = &largest.events.events[i];
        event->place.sequence = i;
        fill(event->node, sizeof event->node);
        fill(event->text, sizeof event->text);
    }
    datagram_encode(&largest, &our_key, &bytes);
    assert_true(bytes.size <= DATAGRAM_BYTES_MAX);
    assert_int_equal(datagram_decode(text_from(&bytes), &our_key, &after, &err), STATUS_OK);
    check_same(&largest, &after);
    buf_done(&bytes);
}

static void control_bytes_of_a_text_become_blanks(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct error err;
    struct datagram before = {.kind = DATAGRAM_VIEW, .from = "m1", .to = "g1"};
    struct datagram after;
    before.view.node_count = 1;
    (void)snprintf(before.view.nodes[0].name, DATAGRAM_NAME_SIZE, "w1");
    (void)snprintf(before.view.nodes[0].problem, DATAGRAM_TEXT_SIZE,
                   "\x1b[1mone\ntwo\x7f \xc3\xa9");
    datagram_encode(&before, &our_key, &bytes);
    assert_int_equal(datagram_decode(text_from(&bytes), &our_key, &after, &err), STATUS_OK);
    assert_string_equal(after.view.nodes[0].problem, " [1mone two  \xc3\xa9");
    buf_done(&bytes);
}

static void damage_at_any_place_is_refused(void **state)
{
    (void)state;
    static const unsigned char extremes[] = {0, 1, 5, 64, 65, 128, 129, 255};
    struct random random = {2};
    struct buf whole = {0};
    for (int kind = DATAGRAM_HEARTBEAT; kind < DATAGRAM_KINDS; kind++) {
        struct datagram datagram;
        any_datagram(&random, (enum datagram_kind)kind, &datagram);
        datagram_encode(&datagram, &our_key, &whole);
        size_t unsealed = whole.size - DATAGRAM_SEAL_BYTES;
        assert_true(is_accepted(whole.bytes, whole.size));
        assert_true(is_accepted_sealed(whole.bytes, unsealed));
        for (size_t size = 0; size < whole.size; size++) {
            assert_false(is_accepted(whole.bytes, size));
            if (size != unsealed) assert_false(is_accepted_sealed(whole.bytes, size));
        }
        for (size_t bit = 0; bit < whole.size * 8; bit++) {
            unsigned char mask = (unsigned char)(1u << bit % 8);
            whole.bytes[bit / 8] ^= mask;
            assert_false(is_accepted(whole.bytes, whole.size));
            if (bit / 8 < unsealed) (void)is_accepted_sealed(whole.bytes, unsealed);
            whole.bytes[bit / 8] ^= mask;
        }
        for (size_t at = 0; at < unsealed; at++) {
            unsigned char saved = whole.bytes[at];
            for (size_t i = 0; i < sizeof extremes; i++) {
                whole.bytes[at] = extremes[i];
                (void)is_accepted_sealed(whole.bytes, unsealed);
            }
            whole.bytes[at] = saved;
        }
    }
    buf_done(&whole);
}

static void every_forgery_is_refused(void **state)
{
    (void)state;
    struct random random = {3};
    struct buf ours = {0};
    struct buf theirs = {0};
    struct buf noise = {0};
    struct datagram datagram;
    struct error err;
    buf_put(&noise, (const unsigned char[DATAGRAM_BYTES_MAX]){0}, DATAGRAM_BYTES_MAX);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < FORGERIES; i++) {
        if (i % 64 == 0) {
            enum datagram_kind kind =
                (enum datagram_kind)(1 + random_below(&random, DATAGRAM_KINDS - 1));
            any_datagram(&random, kind, &datagram);
            datagram_encode(&datagram, &our_key, &ours);
            datagram_encode(&datagram, &other_key, &theirs);
        }
        uint32_t size = (uint32_t)ours.size;
        uint32_t bit = random_below(&random, size * 8);
        theirs.bytes[bit / 8] ^= (unsigned char)(i & 1 ? 0 : 1u << bit % 8);
        refused += datagram_decode(text_from(&theirs), &our_key, &datagram, &err) != STATUS_OK;

        struct text cut = {(const char *)ours.bytes, random_below(&random, size)};
        refused += datagram_decode(cut, &our_key, &datagram, &err) != STATUS_OK;

        ours.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        refused += datagram_decode(text_from(&ours), &our_key, &datagram, &err) != STATUS_OK;
        ours.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);

        uint64_t word = random_u64(&random);
        memcpy(noise.bytes + 8 * random_below(&random, DATAGRAM_BYTES_MAX / 8), &word, 8);
        struct text random_bytes = {(const char *)noise.bytes,
                                    random_below(&random, DATAGRAM_BYTES_MAX + 1)};
        refused += datagram_decode(random_bytes, &our_key, &datagram, &err) != STATUS_OK;
    }
    assert_int_equal(refused, 4 * FORGERIES);
    buf_done(&ours);
    buf_done(&theirs);
    buf_done(&noise);
}

static void what_is_too_long_is_refused_although_it_is_sealed(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct datagram datagram = {.kind = DATAGRAM_ASK, .from = "operator-1-2", .to = "m1"};
    struct error err;
    datagram_encode(&datagram, &our_key, &bytes);
    bytes.size -= DATAGRAM_SEAL_BYTES;
    while (bytes.size < 2 * DATAGRAM_BYTES_MAX) {
        buf_put_u8(&bytes, 0);
    }
    datagram_seal(&bytes, &our_key);
    assert_int_equal(datagram_decode(text_from(&bytes), &our_key, &datagram, &err), STATUS_CORRUPT);
    buf_done(&bytes);
}

/* python3: hashlib.blake2b(bytes, digest_size=16, key=b'0123456789abcdef' * 2,
 *                          person=b'millrace-udp-v1.') */
static void a_known_datagram_has_the_bytes_that_are_documented(void **state)
{
    (void)state;
    static const char expected[] =
        "0102026d3102773101000000000000000200000000000000030000000000000004000000000000000500000000"
        "0000000600000000000000c4ea14bf617e10c3f13ad8558408fc06";
    struct datagram datagram = {
        .kind = DATAGRAM_CHALLENGE,
        .from = "m1",
        .to = "w1",
        .incarnation = 1,
        .sequence = 2,
        .nonce = 3,
        .challenge = {.incarnation = 4, .sequence = 5, .nonce = 6},
    };
    struct buf bytes = {0};
    struct buf hex = {0};
    datagram_encode(&datagram, &our_key, &bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        buf_format(&hex, "%02x", bytes.bytes[i]);
    }
    buf_put_u8(&hex, 0);
    assert_string_equal((const char *)hex.bytes, expected);
    buf_done(&bytes);
    buf_done(&hex);
}

static void events_out_of_order_are_refused(void **state)
{
    (void)state;
    struct datagram datagram = {.kind = DATAGRAM_EVENTS, .from = "m1", .to = "g1"};
    struct buf bytes = {0};
    datagram.events.event_count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        datagram.events.events[i].place = (struct event_place){7, i + 1};
        datagram.events.events[i].node[0] = 'n';
    }
    datagram_encode(&datagram, &our_key, &bytes);
    /* The second event's sequence is behind its term; the event ends with an empty text. */
    size_t second_sequence = bytes.size - DATAGRAM_SEAL_BYTES - (4 + 1 + 8 + 2 + 16 + 1);
    assert_int_equal(bytes.bytes[second_sequence], 2);
    for (unsigned value = 0; value < 4; value++) {
        bytes.bytes[second_sequence] = (unsigned char)value;
        assert_int_equal(is_accepted_sealed(bytes.bytes, bytes.size - DATAGRAM_SEAL_BYTES),
                         value > 1);
    }
    buf_done(&bytes);
}

static void terms_and_places_are_ordered_as_pairs(void **state)
{
    (void)state;
    static const uint64_t firsts[] = {0, 1, UINT64_MAX};
    static const uint32_t seconds[] = {0, 1, UINT32_MAX};
    for (int a = 0; a < 9; a++) {
        for (int b = 0; b < 9; b++) {
            struct term x = {firsts[a / 3], seconds[a % 3]};
            struct term y = {firsts[b / 3], seconds[b % 3]};
            struct event_place p = {firsts[a / 3], seconds[a % 3]};
            struct event_place q = {firsts[b / 3], seconds[b % 3]};
            int order = (a > b) - (a < b);
            assert_int_equal((term_compare(x, y) > 0) - (term_compare(x, y) < 0), order);
            int places = event_place_compare(p, q);
            assert_int_equal((places > 0) - (places < 0), order);
        }
    }
}

static void everything_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < HEALTH_STATES; i++) {
        assert_non_null(health_names[i]);
    }
    for (int i = 0; i < HAPPENED_KINDS; i++) {
        assert_non_null(cluster_event_names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_survive_as_bytes),
        cmocka_unit_test(the_largest_datagrams_fit),
        cmocka_unit_test(control_bytes_of_a_text_become_blanks),
        cmocka_unit_test(damage_at_any_place_is_refused),
        cmocka_unit_test(every_forgery_is_refused),
        cmocka_unit_test(what_is_too_long_is_refused_although_it_is_sealed),
        cmocka_unit_test(a_known_datagram_has_the_bytes_that_are_documented),
        cmocka_unit_test(events_out_of_order_are_refused),
        cmocka_unit_test(terms_and_places_are_ordered_as_pairs),
        cmocka_unit_test(everything_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
