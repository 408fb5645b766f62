/* SPDX-License-Identifier: Apache-2.0 */
/* test_gateway_lists.c - what people get to see: all nodes, all queues, and what happened to a job.
 *
 * Method: views, events and milestones by hand, answers looked at (gateway_world.h). Events are
 * given in every order of a small set and in random ones of a large one, and held against a sorted
 * list.
 */
#include "unit/cluster/role/gateway/gateway_world.h"

#include "engine/base/random.h"

enum { FRESH_MS = 5000, MEASURE_MS = 300, KEPT = 256 };

/* ---- what monitors say ---- */

static struct monitored monitored_node(const char *name, enum node_role role, enum health state)
{
    struct monitored monitored = {.role = role,
                                  .state = state,
                                  .incarnation = 1700000000123,
                                  .uptime_ms = 2000,
                                  .silent_ms = 40,
                                  .restarts = 3,
                                  .resident_bytes = 1 << 20,
                                  .job_count = 2};
    (void)snprintf(monitored.name, sizeof monitored.name, "%s", name);
    return monitored;
}

static void tell_view(struct gateway_world *world, uint64_t term, const char *leader,
                      const struct monitored *nodes, uint32_t count)
{
    struct view view = {.term = {term, 0}, .node_total = count, .node_count = count};
    (void)snprintf(view.leader, sizeof view.leader, "%s", leader);
    for (uint32_t i = 0; i < count; i++) {
        view.nodes[i] = nodes[i];
    }
    struct event event = {.kind = EVENT_VIEW, .view = &view};
    world_step(world, &event);
}

static void tell_view_of_one(struct gateway_world *world, uint64_t term, const char *leader,
                             struct monitored node)
{
    tell_view(world, term, leader, &node, 1);
}

static void tell_happened(struct gateway_world *world, struct event_place place, uint64_t age_ms,
                          enum cluster_event_kind kind, const char *node)
{
    struct event_list list = {.event_count = 1};
    struct cluster_event *happened = &list.events[0];
    *happened = (struct cluster_event){
        .place = place, .kind = kind, .age_ms = age_ms, .number = place.sequence};
    (void)snprintf(happened->node, sizeof happened->node, "%s", node);
    (void)snprintf(happened->text, sizeof happened->text, "text %u", place.sequence);
    struct event event = {.kind = EVENT_HAPPENED, .happened = &list};
    world_step(world, &event);
}

static void answer_list(struct gateway_world *world, uint64_t number)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message message = world_message(world, MESSAGE_JOBS, i);
        message.jobs = (struct message_jobs){.request = number, .uptime_ms = 1000 + i};
        world_deliver(world, &message);
    }
}

static uint64_t list_number(struct gateway_world *world)
{
    struct message message;
    assert_non_null(world_sent(world, "w1", MESSAGE_LIST, &message));
    return message.list.request;
}

/* GET nodes, answered by all workers. */
static struct node_list nodes_now(struct gateway_world *world)
{
    struct api_request request = world_request(API_NODES);
    uint64_t id = world_ask(world, &request);
    answer_list(world, list_number(world));
    const struct effect_reply *reply = world_reply(world, id);
    assert_non_null(reply);
    struct error err;
    struct node_list list;
    char *copy = arena_copy_string(&world->arena, (struct text){(const char *)reply->api.body.bytes,
                                                                (uint32_t)reply->api.body.size});
    assert_int_equal(node_list_decode(text_of(copy), &world->arena, &list, &err), STATUS_OK);
    return list;
}

static const struct node_entry *entry_of(const struct node_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->node_count; i++) {
        if (text_equal(list->nodes[i].name, text_of(name))) return &list->nodes[i];
    }
    return NULL;
}

#define assert_text(text, expected) assert_true(text_equal((text), text_of(expected)))

static void without_monitors_a_node_is_as_it_answers(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world_tick(&world, 500);
    struct node_list list = nodes_now(&world);
    assert_int_equal(list.node_count, WORKERS + 1);
    assert_false(list.monitored);
    assert_int_equal(list.leader.size, 0);
    assert_text(entry_of(&list, "g1")->state, "up");
    assert_int_equal(entry_of(&list, "g1")->uptime_ms, 500);
    assert_text(entry_of(&list, "w2")->state, "up");
    struct api_request request = world_request(API_NODES);
    uint64_t id = world_ask(&world, &request);
    world_tick(&world, ROUND_DEADLINE_MS);
    assert_true(world_says(&world, id, "\"state\":\"suspected\""));
    world_close(&world);
}

static void the_list_has_every_node_that_monitors_tell_of(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    struct monitored some[] = {monitored_node("m1", NODE_MONITOR, HEALTH_UP),
                               monitored_node("broker", NODE_BROKER, HEALTH_STARTING),
                               monitored_node("w10", NODE_WORKER, HEALTH_BROKEN)};
    struct monitored more[] = {monitored_node("w2", NODE_WORKER, HEALTH_RESTARTING),
                               monitored_node("g1", NODE_GATEWAY, HEALTH_UP),
                               monitored_node("g2", NODE_GATEWAY, HEALTH_SUSPECTED)};
    (void)snprintf(some[2].problem, sizeof some[2].problem, "no such program");
    tell_view(&world, 7, "m1", some, 3);
    tell_view(&world, 7, "m1", more, 3);
    world_tick(&world, 100);
    struct node_list list = nodes_now(&world);
    static const char *const order[] = {"g1", "g2", "w2", "w10", "m1", "broker", "w1", "w3"};
    assert_int_equal(list.node_count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_text(list.nodes[i].name, order[i]);
    }
    assert_true(list.monitored);
    assert_int_equal(list.monitored_ms_ago, 100);
    assert_text(list.leader, "m1");
    assert_int_equal(list.term, 7);
    const struct node_entry *entry = entry_of(&list, "w10");
    assert_text(entry->state, "broken");
    assert_text(entry->problem, "no such program");
    assert_text(entry->incarnation, "1700000000123");
    assert_int_equal(entry->restarts, 3);
    assert_int_equal(entry->silent_ms, 140);
    assert_int_equal(entry->uptime_ms, 2100);
    entry = entry_of(&list, "w2"); /* Its own word goes with the monitors'. */
    assert_text(entry->state, "restarting");
    assert_true(entry->answers);
    assert_true(entry->maps);
    assert_int_equal(entry->uptime_ms, 1001);
    assert_text(entry_of(&list, "w3")->state, "up");
    world_close(&world);
}

static void an_older_term_is_not_heard(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    tell_view_of_one(&world, 5, "m2", monitored_node("w1", NODE_WORKER, HEALTH_UP));
    tell_view_of_one(&world, 4, "m1", monitored_node("w1", NODE_WORKER, HEALTH_BROKEN));
    tell_view_of_one(&world, 0, "", monitored_node("w1", NODE_WORKER, HEALTH_BROKEN));
    struct node_list list = nodes_now(&world);
    assert_text(list.leader, "m2");
    assert_text(entry_of(&list, "w1")->state, "up");
    tell_view_of_one(&world, 6, "m3", monitored_node("w1", NODE_WORKER, HEALTH_STOPPED));
    list = nodes_now(&world);
    assert_text(list.leader, "m3");
    assert_int_equal(list.term, 6);
    assert_text(entry_of(&list, "w1")->state, "stopped");
    world_close(&world);
}

static void what_monitors_said_long_ago_does_not_count(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    tell_view_of_one(&world, 5, "m2", monitored_node("w1", NODE_WORKER, HEALTH_STOPPED));
    world_tick(&world, FRESH_MS - 1);
    struct node_list list = nodes_now(&world);
    assert_text(list.leader, "m2");
    assert_text(entry_of(&list, "w1")->state, "stopped");
    world_tick(&world, 1);
    list = nodes_now(&world);
    assert_int_equal(list.leader.size, 0);
    assert_int_equal(list.monitored_ms_ago, FRESH_MS);
    assert_text(entry_of(&list, "w1")->state, "up");
    world_close(&world);
}

/* ---- queues ---- */

static void tell_measured(struct gateway_world *world, const char *name, uint64_t messages)
{
    struct queue_depth depth = {.messages = messages, .consumers = 2};
    (void)snprintf(depth.name, sizeof depth.name, "%s", name);
    struct event event = {.kind = EVENT_BUS, .bus = {.kind = BUS_MEASURED, .depths = {0}}};
    buf_put(&event.bus.depths, &depth, sizeof depth);
    world_step(world, &event);
}

static void a_list_of_nodes_waits_a_little_for_the_queues(void **state)
{
    (void)state;
    struct gateway_world world;
    struct gateway_config config = world_config();
    config.measures_queues = true;
    world_open_with(&world, &config);
    struct api_request request = world_request(API_NODES);
    uint64_t id = world_ask(&world, &request);
    assert_int_equal(world_count(&world, EFFECT_MEASURE), 1);
    answer_list(&world, list_number(&world));
    assert_null(world_reply(&world, id));
    tell_measured(&world, "work.0", 12);
    assert_true(world_says(&world, id, "{\"name\":\"work.0\",\"messages\":12,\"consumers\":2}"));
    id = world_ask(&world, &request); /* That is good for a while. */
    assert_int_equal(world_count(&world, EFFECT_MEASURE), 0);
    answer_list(&world, list_number(&world));
    assert_true(world_says(&world, id, "\"messages\":12"));
    world_tick(&world, 1000);
    id = world_ask(&world, &request);
    assert_int_equal(world_count(&world, EFFECT_MEASURE), 1);
    answer_list(&world, list_number(&world));
    world_tick(&world, MEASURE_MS - 1);
    assert_null(world_reply(&world, id));
    world_tick(&world, 1);
    assert_int_equal(world_answer(&world, id), 200);
    world_close(&world);
}

/* ---- timelines ---- */

struct told {
    uint32_t worker;
    struct milestone milestones[4];
    uint32_t count;
};

static uint64_t ask_timeline(struct gateway_world *world)
{
    struct api_request request = world_request(API_TIMELINE);
    request.has_owner = false;
    uint64_t id = world_ask(world, &request);
    assert_int_equal(world_sent_count(world, MESSAGE_LIST), WORKERS);
    return id;
}

static void tell_milestones(struct gateway_world *world, uint64_t number, const struct told *told)
{
    struct message message = world_message(world, MESSAGE_JOBS, told->worker);
    message.jobs = (struct message_jobs){
        .request = number, .milestones = told->milestones, .milestone_count = told->count};
    world_deliver(world, &message);
}

static struct timeline timeline_of(struct gateway_world *world, uint64_t id)
{
    const struct effect_reply *reply = world_reply(world, id);
    assert_non_null(reply);
    assert_int_equal(reply->api.status, 200);
    struct error err;
    struct timeline timeline;
    char *copy = arena_copy_string(&world->arena, (struct text){(const char *)reply->api.body.bytes,
                                                                (uint32_t)reply->api.body.size});
    assert_int_equal(timeline_decode(text_of(copy), &world->arena, &timeline, &err), STATUS_OK);
    return timeline;
}

static struct timeline timeline_now(struct gateway_world *world, const struct told *told)
{
    uint64_t id = ask_timeline(world);
    uint64_t number = list_number(world);
    for (uint32_t i = 0; i < WORKERS; i++) {
        tell_milestones(world, number, &told[i]);
    }
    return timeline_of(world, id);
}

static void assert_event(const struct timeline *timeline, uint32_t place, const char *what,
                         const char *node, uint64_t ms_ago)
{
    assert_true(place < timeline->event_count);
    const struct timeline_event *event = &timeline->events[place];
    if (!text_equal(event->what, text_of(what)) || event->ms_ago != ms_ago) {
        fail_msg("event %u: %.*s %llu ms ago, expected %s %llu", place, TEXT_ARGS(event->what),
                 (unsigned long long)event->ms_ago, what, (unsigned long long)ms_ago);
    }
    assert_text(event->node, node);
}

static void a_timeline_has_the_earliest_that_anybody_knows(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    static const struct told told[WORKERS] = {
        {0,
         {{MILESTONE_STORED, 900, 0}, {MILESTONE_PHASE, 700, 1}, {MILESTONE_COMPLETE, 200, 0}},
         3},
        {1,
         {{MILESTONE_STORED, 910, 0},
          {MILESTONE_PHASE, 720, 1},
          {MILESTONE_PHASE, 400, 2},
          {MILESTONE_COMPLETE, 100, 0}},
         4},
        {2, {{MILESTONE_REPLAYED, 500, 77}, {MILESTONE_COMPLETE, 300, 0}}, 2},
    };
    struct timeline timeline = timeline_now(&world, told);
    assert_int_equal(timeline.event_count, 5);
    assert_event(&timeline, 0, "submitted", "", 910);
    assert_event(&timeline, 1, "phase", "", 720);
    assert_event(&timeline, 2, "replayed", "w3", 500);
    assert_int_equal(timeline.events[2].number, 77);
    assert_event(&timeline, 3, "phase", "", 400);
    assert_event(&timeline, 4, "complete", "", 100); /* The latest of all. */
    world_close(&world);
}

static void a_job_is_not_complete_before_all_of_it_is(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    static const struct told told[WORKERS] = {
        {0, {{MILESTONE_STORED, 900, 0}, {MILESTONE_COMPLETE, 200, 0}}, 2},
        {1, {{MILESTONE_STORED, 900, 0}}, 1},
        {.worker = 2},
    };
    struct timeline timeline = timeline_now(&world, told);
    assert_int_equal(timeline.event_count, 1);
    assert_event(&timeline, 0, "submitted", "", 900);
    world_close(&world);
}

static void a_timeline_has_what_happened_meanwhile(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world.now_ms = 100000;
    tell_happened(&world, (struct event_place){1, 1}, 90000, HAPPENED_ELECTED, "m1");
    tell_happened(&world, (struct event_place){1, 2}, 60000, HAPPENED_KILLED, "w2");
    tell_happened(&world, (struct event_place){1, 4}, 58000, HAPPENED_FAILED, "w2");
    tell_happened(&world, (struct event_place){1, 5}, 57000, HAPPENED_REPLAYED, "w2");
    tell_happened(&world, (struct event_place){1, 6}, 56000, HAPPENED_REPLAYED, "w1");
    tell_happened(&world, (struct event_place){1, 3}, 59000, HAPPENED_SUSPECTED, "w2");
    tell_happened(&world, (struct event_place){1, 7}, 10000, HAPPENED_KILLED, "w3");
    static const struct told told[WORKERS] = {
        {0, {{MILESTONE_STORED, 61000, 0}, {MILESTONE_DONE, 50000, 0}}, 2},
        {1, {{MILESTONE_REPLAYED, 57100, 5}, {MILESTONE_DONE, 50001, 0}}, 2},
        {.worker = 2},
    };
    struct timeline timeline = timeline_now(&world, told);
    assert_int_equal(timeline.event_count, 7);
    assert_event(&timeline, 0, "submitted", "", 61000);
    assert_event(&timeline, 1, "killed", "w2", 60000);
    assert_event(&timeline, 2, "suspected", "w2", 59000);
    assert_event(&timeline, 3, "not-started", "w2", 58000);
    assert_text(timeline.events[3].text, "text 4");
    assert_event(&timeline, 4, "replayed", "w2", 57100);
    assert_event(&timeline, 5, "replayed", "w1", 56000);
    assert_event(&timeline, 6, "done", "", 50001);
    world_close(&world);
}

static void where_the_beginning_is_forgotten_what_happened_before_is_told(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    world.now_ms = 200000;
    tell_happened(&world, (struct event_place){1, 1}, 100000, HAPPENED_KILLED, "w1");
    tell_happened(&world, (struct event_place){1, 2}, 59000, HAPPENED_KILLED, "w2");
    struct told told[WORKERS] = {
        {0, {{MILESTONE_REPLAYED, 1000, 3}}, 1}, {.worker = 1}, {.worker = 2}};
    struct timeline timeline = timeline_now(&world, told);
    assert_int_equal(timeline.event_count, 2);
    assert_event(&timeline, 0, "killed", "w2", 59000);
    told[1] = (struct told){1, {{MILESTONE_STORED, 2000, 0}}, 1};
    timeline = timeline_now(&world, told);
    assert_int_equal(timeline.event_count, 2);
    assert_event(&timeline, 0, "submitted", "", 2000);
    world_close(&world);
}

static void a_job_that_nobody_knows_has_no_timeline(void **state)
{
    (void)state;
    struct gateway_world world;
    world_open(&world);
    uint64_t id = ask_timeline(&world);
    answer_list(&world, list_number(&world));
    assert_int_equal(world_answer(&world, id), 404);
    id = ask_timeline(&world);
    world_tick(&world, ROUND_DEADLINE_MS);
    assert_int_equal(world_answer(&world, id), 503);
    struct told told = {1, {{MILESTONE_STORED, 5, 0}}, 1};
    id = ask_timeline(&world);
    tell_milestones(&world, list_number(&world), &told);
    world_tick(&world, ROUND_DEADLINE_MS);
    assert_int_equal(world_answer(&world, id), 200);
    assert_true(world_says(&world, id, "\"silent\":\"w1, w3\""));
    world_close(&world);
}

static void the_latest_events_are_kept_in_order_however_they_come(void **state)
{
    (void)state;
    struct gateway_world world;
    struct random random = {11};
    enum { TOLD = 3 * KEPT };
    uint32_t order[TOLD];
    world_open(&world);
    world.now_ms = 10000000;
    for (uint32_t i = 0; i < TOLD; i++) {
        order[i] = i;
    }
    for (uint32_t i = TOLD - 1; i > 0; i--) { /* Near its place, as datagrams come. */
        uint32_t other = i - random_below(&random, i < 16 ? i + 1 : 16);
        uint32_t moved = order[i];
        order[i] = order[other];
        order[other] = moved;
    }
    for (uint32_t i = 0; i < TOLD; i++) {
        struct event_place place = {1 + order[i] / 100, 1 + order[i] % 100};
        tell_happened(&world, place, (TOLD - order[i]) * 10, HAPPENED_KILLED, "w1");
        if (i % 3 == 0) {
            tell_happened(&world, place, (TOLD - order[i]) * 10, HAPPENED_KILLED, "w1");
        }
    }
    struct told told[WORKERS] = {
        {0, {{MILESTONE_STORED, 1000000, 0}}, 1}, {.worker = 1}, {.worker = 2}};
    struct timeline timeline = timeline_now(&world, told);
    assert_int_equal(timeline.event_count, KEPT + 1);
    for (uint32_t i = 0; i < KEPT; i++) {
        assert_event(&timeline, i + 1, "killed", "w1", (KEPT - i) * 10);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_monitors_a_node_is_as_it_answers),
        cmocka_unit_test(the_list_has_every_node_that_monitors_tell_of),
        cmocka_unit_test(an_older_term_is_not_heard),
        cmocka_unit_test(what_monitors_said_long_ago_does_not_count),
        cmocka_unit_test(a_list_of_nodes_waits_a_little_for_the_queues),
        cmocka_unit_test(a_timeline_has_the_earliest_that_anybody_knows),
        cmocka_unit_test(a_job_is_not_complete_before_all_of_it_is),
        cmocka_unit_test(a_timeline_has_what_happened_meanwhile),
        cmocka_unit_test(where_the_beginning_is_forgotten_what_happened_before_is_told),
        cmocka_unit_test(a_job_that_nobody_knows_has_no_timeline),
        cmocka_unit_test(the_latest_events_are_kept_in_order_however_they_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
