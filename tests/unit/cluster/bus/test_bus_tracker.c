/* SPDX-License-Identifier: Apache-2.0 */
/* test_bus_tracker.c - what is owed to and by the broker is never lost, doubled or put out of
 * order.
 *
 * Method: random operations on the audit and on a model that keeps everything in plain arrays and
 * searches them; after every step both must say the same. The seeds are fixed.
 */
#include "unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/random.h"
#include "cluster/bus/bus_tracker.h"

enum { MESSAGES = 400, STEPS = 3000, ROUNDS = 60 };

enum model_state { MODEL_WAITS, MODEL_PUBLISHED, MODEL_SETTLED };

struct model_message {
    enum model_state state;
    bool revoked;
    uint64_t sequence;
    uint64_t token;
    uint32_t size;
};

/* Messages are numbered in the order in which they were added, which is the order they wait in. */
struct outbox_model {
    struct model_message messages[MESSAGES];
    uint32_t count;
    uint64_t next_sequence;
};

static struct error err;

static void model_settle(struct outbox_model *model, uint64_t from, uint64_t to,
                         struct buf *settled)
{
    for (uint64_t sequence = from; sequence <= to && sequence < model->next_sequence; sequence++) {
        for (uint32_t i = 0; i < model->count; i++) {
            struct model_message *message = &model->messages[i];
            if (message->state != MODEL_PUBLISHED || message->sequence != sequence) continue;
            message->state = MODEL_SETTLED;
            if (message->token != 0) buf_put(settled, &message->token, sizeof message->token);
        }
    }
}

static void model_wait_again(struct outbox_model *model, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < model->count; i++) {
        struct model_message *message = &model->messages[i];
        if (message->state != MODEL_PUBLISHED) continue;
        if (message->sequence < from || message->sequence > to) continue;
        message->state = message->revoked ? MODEL_SETTLED : MODEL_WAITS;
    }
}

static uint64_t model_count(const struct outbox_model *model, enum model_state state,
                            uint64_t *out_bytes)
{
    uint64_t count = 0;
    *out_bytes = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->messages[i].state != state) continue;
        count++;
        *out_bytes += model->messages[i].size;
    }
    return count;
}

static struct model_message *model_next(struct outbox_model *model, const struct bus_limits *limits)
{
    uint64_t bytes;
    uint64_t published = model_count(model, MODEL_PUBLISHED, &bytes);
    for (uint32_t i = 0; i < model->count; i++) {
        struct model_message *message = &model->messages[i];
        if (message->state != MODEL_WAITS) continue;
        bool fits = published < limits->confirm_window &&
                    bytes + message->size <= limits->confirm_window_bytes;
        return published == 0 || fits ? message : NULL;
    }
    return NULL;
}

/* A message says which one it is: its number, then as many bytes as its size wants. */
static void add_message(struct outbox *outbox, struct outbox_model *model, struct random *random)
{
    if (model->count == MESSAGES) return;
    uint32_t number = model->count++;
    struct model_message *message = &model->messages[number];
    *message = (struct model_message){.token = random_below(random, 4) == 0 ? 0 : number + 1,
                                      .size = 4 + random_below(random, 30)};
    struct buf bytes = {0};
    buf_put_u32(&bytes, number);
    for (uint32_t i = 4; i < message->size; i++) {
        buf_put_u8(&bytes, (uint8_t)number);
    }
    char name[16];
    snprintf(name, sizeof name, "node%u", number);
    struct bus_address to = {
        .kind = number % 2 == 0 ? BUS_INBOX : BUS_WORK, .node = text_of(name), .work = number};
    outbox_add(outbox, &to, &bytes, message->token);
    assert_null(bytes.bytes);
    memset(name, '?', sizeof name);
}

static void publish_message(struct outbox *outbox, struct outbox_model *model,
                            const struct bus_limits *limits)
{
    struct model_message *expected = model_next(model, limits);
    struct outbox_message found;
    uint64_t sequence = 0;
    bool is_found = outbox_next(outbox, &found, &sequence);
    assert_int_equal(is_found, expected != NULL);
    if (!is_found) return;
    uint32_t number = (uint32_t)(expected - model->messages);
    expected->state = MODEL_PUBLISHED;
    expected->sequence = model->next_sequence++;
    assert_int_equal(sequence, expected->sequence);
    assert_int_equal(found.token, expected->token);
    assert_int_equal(found.bytes.size, expected->size);
    assert_int_equal((unsigned char)found.bytes.bytes[0], number & 255);
    assert_int_equal((unsigned char)found.bytes.bytes[1], number >> 8);
    if (number % 2 == 0) {
        char name[16];
        snprintf(name, sizeof name, "node%u", number);
        assert_int_equal(found.to.kind, BUS_INBOX);
        assert_true(text_equal(found.to.node, text_of(name)));
    } else {
        assert_int_equal(found.to.kind, BUS_WORK);
        assert_int_equal(found.to.work, number);
    }
}

/* Some sequences that are outstanding, some that never were. */
static uint64_t random_sequence(const struct outbox_model *model, struct random *random)
{
    uint64_t back = random_below(random, 12);
    return model->next_sequence + 1 > back ? model->next_sequence + 1 - back : 1;
}

static void answer_of_the_broker(struct outbox *outbox, struct outbox_model *model,
                                 struct random *random)
{
    struct buf settled = {0};
    struct buf expected = {0};
    uint64_t sequence = random_sequence(model, random);
    bool multiple = random_below(random, 3) == 0;
    switch (random_below(random, 5)) {
    case 0:
        outbox_refuse(outbox, sequence, multiple);
        model_wait_again(model, multiple ? 1 : sequence, sequence);
        break;
    case 1:
        model_settle(model, sequence, sequence, &expected);
        (void)outbox_return(outbox, sequence, &settled); /* Checked by what is settled. */
        break;
    default:
        outbox_confirm(outbox, sequence, multiple, &settled);
        model_settle(model, multiple ? 1 : sequence, sequence, &expected);
    }
    assert_int_equal(settled.size, expected.size);
    if (settled.size > 0) assert_memory_equal(settled.bytes, expected.bytes, settled.size);
    buf_done(&settled);
    buf_done(&expected);
}

static void revoke_message(struct outbox *outbox, struct outbox_model *model, struct random *random)
{
    uint64_t token = random_below(random, model->count + 2);
    outbox_revoke(outbox, token);
    for (uint32_t i = 0; i < model->count; i++) {
        struct model_message *message = &model->messages[i];
        if (token == 0 || message->token != token) continue;
        message->revoked = true;
        if (message->state == MODEL_WAITS) message->state = MODEL_SETTLED;
    }
}

static void reconnect(struct outbox *outbox, struct outbox_model *model)
{
    outbox_reconnect(outbox);
    model_wait_again(model, 1, model->next_sequence);
    model->next_sequence = 1;
}

static void the_outbox_does_what_a_naive_one_does(void **state)
{
    (void)state;
    static struct outbox_model model;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct random random = {seed};
        struct bus_limits limits = {.confirm_window = 1 + random_below(&random, 100),
                                    .confirm_window_bytes = random_below(&random, 2000)};
        struct outbox *outbox;
        assert_int_equal(outbox_create(&limits, &outbox, &err), STATUS_OK);
        model = (struct outbox_model){.next_sequence = 1};
        for (int step = 0; step < STEPS; step++) {
            uint32_t choice = random_below(&random, 100);
            if (choice < 25) {
                add_message(outbox, &model, &random);
            } else if (choice < 60) {
                publish_message(outbox, &model, &limits);
            } else if (choice < 94) {
                answer_of_the_broker(outbox, &model, &random);
            } else if (choice < 99) {
                revoke_message(outbox, &model, &random);
            } else {
                reconnect(outbox, &model);
            }
            uint64_t bytes;
            assert_int_equal(outbox_waiting(outbox), model_count(&model, MODEL_WAITS, &bytes));
            assert_int_equal(outbox_unconfirmed(outbox),
                             model_count(&model, MODEL_PUBLISHED, &bytes));
        }
        assert_false(outbox_failed(outbox));
        outbox_destroy(outbox);
    }
}

static void a_message_larger_than_the_window_goes_alone(void **state)
{
    (void)state;
    struct bus_limits limits = {.confirm_window = 10, .confirm_window_bytes = 1};
    struct outbox *outbox;
    assert_int_equal(outbox_create(&limits, &outbox, &err), STATUS_OK);
    struct bus_address to = {.kind = BUS_WORK};
    for (uint64_t token = 1; token <= 2; token++) {
        struct buf bytes = {0};
        buf_put_string(&bytes, "two");
        outbox_add(outbox, &to, &bytes, token);
    }
    struct outbox_message message;
    uint64_t sequence;
    struct buf settled = {0};
    assert_true(outbox_next(outbox, &message, &sequence));
    assert_false(outbox_next(outbox, &message, &sequence));
    outbox_confirm(outbox, 1, false, &settled);
    assert_true(outbox_next(outbox, &message, &sequence));
    assert_int_equal(message.token, 2);
    buf_done(&settled);
    outbox_destroy(outbox);
}

static void an_outbox_without_memory_says_so(void **state)
{
    (void)state;
    for (size_t count = 0; count < 40; count++) {
        struct bus_limits limits = {.confirm_window = 100, .confirm_window_bytes = 1000};
        struct outbox *outbox = NULL;
        struct buf settled = {0};
        bool failed = false;
        memory_fail_after(count);
        if (outbox_create(&limits, &outbox, &err) == STATUS_OK) {
            struct bus_address to = {.kind = BUS_WORK};
            for (uint64_t token = 1; token <= 8; token++) {
                struct buf bytes = {0};
                buf_put_u64(&bytes, token);
                struct outbox_message message;
                uint64_t sequence;
                outbox_add(outbox, &to, &bytes, token);
                (void)outbox_next(outbox, &message, &sequence); /* Either way is fine. */
            }
            outbox_confirm(outbox, 8, true, &settled);
            failed = outbox_failed(outbox);
        } else {
            failed = true;
        }
        assert_int_equal(failed, memory_was_refused());
        memory_fail_never();
        buf_done(&settled);
        outbox_destroy(outbox);
    }
}

/* ---- inbox ---- */

enum { DELIVERIES = 2000, CHANNELS = 3 };

struct model_delivery {
    uint64_t id;
    uint32_t channel;
    uint64_t tag;
    bool is_done;
    bool is_told;
    bool is_void;
};

struct model_inbox {
    struct model_delivery deliveries[DELIVERIES];
    uint32_t count;
    uint64_t next_tags[CHANNELS];
};

static void model_inbox_reconnect(struct model_inbox *model)
{
    for (uint32_t i = 0; i < model->count; i++) {
        model->deliveries[i].is_void = true;
    }
    for (uint32_t channel = 0; channel < CHANNELS; channel++) {
        model->next_tags[channel] = 1;
    }
}

/* As a broker hears it: the tag must be known; nothing that is not done may be acknowledged. */
static void model_hear(struct model_inbox *model, struct inbox_ack ack)
{
    bool is_known = false;
    for (uint32_t i = 0; i < model->count; i++) {
        struct model_delivery *delivery = &model->deliveries[i];
        if (delivery->is_void || delivery->channel != ack.channel || delivery->is_told) continue;
        if (ack.multiple ? delivery->tag > ack.tag : delivery->tag != ack.tag) continue;
        assert_true(delivery->is_done);
        if (delivery->tag == ack.tag) is_known = true;
        delivery->is_told = true;
    }
    assert_true(is_known);
}

static void hear_all(struct inbox *inbox, struct model_inbox *model)
{
    struct inbox_ack ack;
    while (inbox_next_ack(inbox, &ack)) {
        model_hear(model, ack);
    }
    for (uint32_t i = 0; i < model->count; i++) {
        const struct model_delivery *delivery = &model->deliveries[i];
        if (!delivery->is_void) assert_int_equal(delivery->is_done, delivery->is_told);
    }
}

static void acknowledge_some(struct inbox *inbox, struct model_inbox *model, struct random *random)
{
    if (model->count == 0) return;
    uint32_t back = random_below(random, 30);
    uint32_t index = back < model->count ? model->count - 1 - back : 0;
    inbox_acknowledge(inbox, model->deliveries[index].id);
    model->deliveries[index].is_done = true;
}

static void deliver(struct inbox *inbox, struct model_inbox *model, struct random *random)
{
    if (model->count == DELIVERIES) return;
    uint32_t channel = random_below(random, CHANNELS);
    struct model_delivery *delivery = &model->deliveries[model->count++];
    *delivery = (struct model_delivery){.channel = channel, .tag = model->next_tags[channel]++};
    delivery->id = inbox_deliver(inbox, channel, delivery->tag);
    assert_int_not_equal(delivery->id, 0);
    for (uint32_t i = 0; i + 1 < model->count; i++) {
        assert_int_not_equal(model->deliveries[i].id, delivery->id);
    }
}

static void acknowledgements_are_told_once_and_only_for_what_is_done(void **state)
{
    (void)state;
    static struct model_inbox model;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct random random = {seed};
        struct inbox *inbox;
        assert_int_equal(inbox_create(&inbox, &err), STATUS_OK);
        model = (struct model_inbox){.count = 0};
        model_inbox_reconnect(&model);
        for (int step = 0; step < STEPS; step++) {
            uint32_t choice = random_below(&random, 100);
            struct inbox_ack ack;
            if (choice < 45) {
                deliver(inbox, &model, &random);
            } else if (choice < 85) {
                acknowledge_some(inbox, &model, &random);
            } else if (choice < 97) {
                if (inbox_next_ack(inbox, &ack)) model_hear(&model, ack);
            } else if (choice < 99) {
                hear_all(inbox, &model);
            } else {
                inbox_reconnect(inbox);
                model_inbox_reconnect(&model);
            }
        }
        inbox_acknowledge(inbox, 0);
        inbox_acknowledge(inbox, UINT64_MAX);
        hear_all(inbox, &model);
        assert_false(inbox_failed(inbox));
        inbox_destroy(inbox);
    }
}

static void an_unbroken_run_is_one_acknowledgement(void **state)
{
    (void)state;
    struct inbox *inbox;
    assert_int_equal(inbox_create(&inbox, &err), STATUS_OK);
    uint64_t ids[100];
    for (uint64_t i = 0; i < 100; i++) {
        ids[i] = inbox_deliver(inbox, 1, i + 1);
    }
    for (uint64_t i = 0; i < 100; i++) {
        inbox_acknowledge(inbox, ids[(i * 37) % 100]);
    }
    struct inbox_ack ack;
    assert_true(inbox_next_ack(inbox, &ack));
    assert_int_equal(ack.channel, 1);
    assert_int_equal(ack.tag, 100);
    assert_true(ack.multiple);
    assert_false(inbox_next_ack(inbox, &ack));
    inbox_destroy(inbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_outbox_does_what_a_naive_one_does),
        cmocka_unit_test(a_message_larger_than_the_window_goes_alone),
        cmocka_unit_test(an_outbox_without_memory_says_so),
        cmocka_unit_test(acknowledgements_are_told_once_and_only_for_what_is_done),
        cmocka_unit_test(an_unbroken_run_is_one_acknowledgement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
