/* SPDX-License-Identifier: Apache-2.0 */
/* operator.c - asks all monitors periodically until one has answered completely, or the deadline.
 *
 * The operator's name contains a random number and belongs to this process alone, so a datagram
 * with that receiver is an answer to it, and needs no challenge. Monitors challenge the operator as
 * any sender; it then asks again with the given number.
 *
 * A view consists of several datagrams, any of which may be lost or duplicated. They are collected
 * per monitor, by the names of the nodes, until there are as many nodes as the monitor announces.
 */
#include "cluster/supervise/operator.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "cluster/net/peer_addresses.h"
#include "engine/file/clock.h"
#include "cluster/net/datagram_socket.h"
#include "cluster/config/cluster_key.h"
#include "cluster/node/heartbeat_thread.h"
#include "cluster/role/replay_guard.h"

enum {
    ASK_PERIOD_MS = 150,    /* More than LINK_CHALLENGE_PAUSE_MS. */
    LEADER_GRACE_MS = 1000, /* How long to wait for the leader once another monitor has answered. */
    KILLED_WAIT_MS = 300,
    NODES_MAX = 512,
    OLD_MAX = 10000 /* A flood of datagrams must not keep us here. */
};

/* One monitor, and its answers to the current question. */
struct operator_monitor {
    char name[DATAGRAM_NAME_SIZE];
    struct replay_sender sender;
    bool has_answered; /* With a view, or a part of one. */
    struct term term;
    char leader[DATAGRAM_NAME_SIZE];
    uint32_t node_total;
    struct monitored *nodes; /* NODES_MAX of them. */
    uint32_t node_count;
};

struct operator_link {
    struct arena arena;
    char name[DATAGRAM_NAME_SIZE];
    uint64_t incarnation;
    struct datagram_key key;
    const char *key_file;
    struct datagram_socket *socket;
    struct peer_addresses *book;
    struct buf bytes;
    struct operator_monitor *monitors;
    uint32_t monitor_count;
};

/* A question to all monitors, repeated every ASK_PERIOD_MS. */
struct question {
    const struct ask *ask; /* Sent before the request for the view; NULL: nothing. */
    bool is_repeated;      /* Otherwise `ask` is sent again only after a challenge. */
    uint64_t begin_ms;
    uint64_t deadline_ms;
    uint64_t next_ask_ms;
};

/* ---- out ---- */

static void send_ask(struct operator_link *link, uint32_t index, const struct ask *ask)
{
    struct operator_monitor *monitor = &link->monitors[index];
    struct datagram datagram = {.kind = DATAGRAM_ASK, .ask = *ask};
    struct socket_address address;
    if (!peer_addresses_find(link->book, index, &address)) return;
    memcpy(datagram.from, link->name, sizeof datagram.from);
    memcpy(datagram.to, monitor->name, sizeof datagram.to);
    replay_guard_stamp(&monitor->sender, link->incarnation, &datagram);
    datagram_encode(&datagram, &link->key, &link->bytes);
    if (link->bytes.failed) return; /* Lost, as on any network. */
    (void)datagram_socket_send(link->socket, &address, link->bytes.bytes,
                               link->bytes.size); /* The same. */
}

/* The view that follows `ask` shows its effect. */
static void send_question(struct operator_link *link, uint32_t index, const struct ask *ask)
{
    const struct ask view = {.kind = ASK_VIEW};
    if (ask != NULL) send_ask(link, index, ask);
    send_ask(link, index, &view);
}

/* Late answers to an earlier question would be taken for answers to this one. */
static void throw_away_old(struct operator_link *link)
{
    char bytes[DATAGRAM_BYTES_MAX];
    struct socket_address from;
    for (int i = 0; i < OLD_MAX; i++) {
        if (datagram_socket_receive(link->socket, 0, bytes, sizeof bytes, &from) == 0) return;
    }
}

static void question_begin(struct operator_link *link, struct question *question,
                           uint32_t timeout_ms)
{
    throw_away_old(link);
    question->begin_ms = clock_ms();
    question->deadline_ms = question->begin_ms + timeout_ms;
    question->next_ask_ms = question->begin_ms + ASK_PERIOD_MS;
    for (uint32_t i = 0; i < link->monitor_count; i++) {
        link->monitors[i].has_answered = false;
        link->monitors[i].node_count = 0;
        link->monitors[i].node_total = 0;
        send_question(link, i, question->ask);
    }
}

static void question_repeat(struct operator_link *link, struct question *question)
{
    uint64_t now_ms = clock_ms();
    if (now_ms < question->next_ask_ms) return;
    question->next_ask_ms = now_ms + ASK_PERIOD_MS;
    for (uint32_t i = 0; i < link->monitor_count; i++) {
        send_question(link, i, question->is_repeated ? question->ask : NULL);
    }
}

/* ---- in ---- */

static struct monitored *node_find(const struct operator_monitor *monitor, const char *name)
{
    for (uint32_t i = 0; i < monitor->node_count; i++) {
        if (strcmp(monitor->nodes[i].name, name) == 0) return &monitor->nodes[i];
    }
    return NULL;
}

static void hear_view(struct operator_monitor *monitor, const struct view *view)
{
    if (view->node_total > NODES_MAX) return; /* No cluster file has as many. */
    if (view->node_total != monitor->node_total || term_compare(view->term, monitor->term) != 0 ||
        strcmp(view->leader, monitor->leader) != 0) {
        monitor->node_count = 0; /* Another view than the parts before. */
    }
    monitor->has_answered = true;
    monitor->term = view->term;
    monitor->node_total = view->node_total;
    memcpy(monitor->leader, view->leader, sizeof monitor->leader);
    for (uint32_t i = 0; i < view->node_count; i++) {
        struct monitored *node = node_find(monitor, view->nodes[i].name);
        if (node == NULL && monitor->node_count < monitor->node_total) {
            node = &monitor->nodes[monitor->node_count++];
        }
        if (node != NULL) *node = view->nodes[i];
    }
}

static void hear(struct operator_link *link, const struct question *question,
                 const struct datagram *datagram)
{
    if (strcmp(datagram->to, link->name) != 0) return;
    uint32_t index = 0;
    while (index < link->monitor_count && strcmp(datagram->from, link->monitors[index].name) != 0) {
        index++;
    }
    if (index == link->monitor_count) return;
    struct operator_monitor *monitor = &link->monitors[index];
    if (datagram->kind == DATAGRAM_VIEW) hear_view(monitor, &datagram->view);
    if (datagram->kind == DATAGRAM_CHALLENGE &&
        replay_guard_challenged(&monitor->sender, link->incarnation, &datagram->challenge)) {
        send_question(link, index, question->ask);
    }
}

/* False: time is up. */
static bool question_wait(struct operator_link *link, struct question *question)
{
    char bytes[DATAGRAM_BYTES_MAX + 1]; /* One more, so that a longer datagram is noticed. */
    struct socket_address from;
    struct datagram datagram;
    struct error err;
    uint64_t now_ms = clock_ms();
    if (now_ms >= question->deadline_ms) return false;
    question_repeat(link, question);
    uint64_t until_ms = question->next_ask_ms < question->deadline_ms ? question->next_ask_ms
                                                                      : question->deadline_ms;
    uint32_t wait_ms = until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0;
    size_t size = datagram_socket_receive(link->socket, wait_ms, bytes, sizeof bytes, &from);
    struct text text = {bytes, (uint32_t)size};
    if (size > 0 && datagram_decode(text, &link->key, &datagram, &err) == STATUS_OK) {
        hear(link, question, &datagram);
    }
    return true;
}

/* ---- evaluating answers ---- */

static bool is_complete(const struct operator_monitor *monitor)
{
    return monitor->node_total > 0 && monitor->node_count == monitor->node_total;
}

/* The monitor that claims to lead in the highest term; its view may be incomplete. */
static const struct operator_monitor *find_leader(const struct operator_link *link)
{
    const struct operator_monitor *leader = NULL;
    for (uint32_t i = 0; i < link->monitor_count; i++) {
        const struct operator_monitor *monitor = &link->monitors[i];
        if (!monitor->has_answered || monitor->term.number == 0) continue;
        if (strcmp(monitor->leader, monitor->name) != 0) continue;
        if (leader == NULL || term_compare(monitor->term, leader->term) > 0) leader = monitor;
    }
    return leader;
}

/* Of the monitors with complete views, the one that knows the highest term. */
static const struct operator_monitor *find_any(const struct operator_link *link)
{
    const struct operator_monitor *best = NULL;
    for (uint32_t i = 0; i < link->monitor_count; i++) {
        const struct operator_monitor *monitor = &link->monitors[i];
        if (!is_complete(monitor)) continue;
        if (best == NULL || term_compare(monitor->term, best->term) > 0) best = monitor;
    }
    return best;
}

static bool has_any_answered(const struct operator_link *link)
{
    for (uint32_t i = 0; i < link->monitor_count; i++) {
        if (link->monitors[i].has_answered) return true;
    }
    return false;
}

static status fail_unanswered(const struct operator_link *link, uint32_t timeout_ms,
                              struct error *err)
{
    if (has_any_answered(link)) {
        return error_set(err, STATUS_UNREACHABLE,
                         "the monitors have no leader: a majority of them has to run and reach "
                         "each other");
    }
    return error_set(err, STATUS_UNREACHABLE,
                     "no monitor answered within %u ms: do they run, and is %.500s the key that "
                     "they use?",
                     timeout_ms, link->key_file);
}

static status copy_view(const struct operator_monitor *monitor, struct arena *arena,
                        struct cluster_view *out, struct error *err)
{
    struct monitored *nodes = arena_array(arena, struct monitored, monitor->node_count);
    if (nodes == NULL) return error_memory(err);
    memcpy(nodes, monitor->nodes, monitor->node_count * sizeof *nodes);
    *out = (struct cluster_view){
        .term = monitor->term, .nodes = nodes, .node_count = monitor->node_count};
    memcpy(out->leader, monitor->leader, sizeof out->leader);
    return STATUS_OK;
}

status operator_view(struct operator_link *link, uint32_t timeout_ms, struct arena *arena,
                     struct cluster_view *out, struct error *err)
{
    struct question question = {.ask = NULL};
    const struct operator_monitor *found = NULL;
    question_begin(link, &question, timeout_ms);
    while (question_wait(link, &question)) {
        found = find_leader(link);
        if (found != NULL && is_complete(found)) return copy_view(found, arena, out, err);
        found = find_any(link);
        if (found != NULL && clock_ms() - question.begin_ms >= LEADER_GRACE_MS) break;
    }
    if (found == NULL) found = find_any(link);
    if (found == NULL) return fail_unanswered(link, timeout_ms, err);
    return copy_view(found, arena, out, err);
}

static status ask_stop(struct operator_link *link, const struct ask *ask, uint32_t timeout_ms,
                       struct error *err)
{
    struct question question = {.ask = ask, .is_repeated = true};
    const struct operator_monitor *leader = NULL;
    const struct monitored *node = NULL;
    question_begin(link, &question, timeout_ms);
    while (question_wait(link, &question)) {
        leader = find_leader(link);
        if (leader == NULL || !is_complete(leader)) continue;
        node = node_find(leader, ask->node);
        if (node == NULL) {
            return error_set(err, STATUS_USAGE, "the cluster has no node %s", ask->node);
        }
        if (node->state == HEALTH_STOPPED) return STATUS_OK;
    }
    if (leader == NULL || node == NULL) return fail_unanswered(link, timeout_ms, err);
    return error_set(err, STATUS_UNREACHABLE,
                     "%s was told to stop, but is still %s after %u ms: see its log", ask->node,
                     health_names[node->state], timeout_ms);
}

/* Sent once to each monitor; one that answers with a view has received it. */
static status ask_killed(struct operator_link *link, const struct ask *ask, uint32_t timeout_ms,
                         struct error *err)
{
    struct question question = {.ask = ask};
    uint32_t wait_ms = timeout_ms < KILLED_WAIT_MS ? timeout_ms : KILLED_WAIT_MS;
    question_begin(link, &question, wait_ms);
    while (question_wait(link, &question)) {
        if (find_leader(link) != NULL) return STATUS_OK;
    }
    return fail_unanswered(link, wait_ms, err);
}

status operator_ask(struct operator_link *link, const struct ask *ask, uint32_t timeout_ms,
                    struct error *err)
{
    if (ask->kind == ASK_KILLED) return ask_killed(link, ask, timeout_ms, err);
    return ask_stop(link, ask, timeout_ms, err);
}

/* ---- opening ---- */

static status open_monitors(struct operator_link *link, const struct cluster_config *config,
                            struct error *err)
{
    struct peer_addresses_entry entries[CONFIG_MONITORS_MAX];
    link->monitors = arena_array(&link->arena, struct operator_monitor, config->monitor_count);
    if (link->monitors == NULL) return error_memory(err);
    for (uint32_t i = 0; i < config->monitor_count; i++) {
        struct operator_monitor *monitor = &link->monitors[i];
        entries[i] =
            (struct peer_addresses_entry){config->monitors[i].host, config->monitors[i].port};
        (void)snprintf(monitor->name, sizeof monitor->name, "%s",
                       config->monitors[i].name); /* Fits: it is a name. */
        monitor->nodes = arena_array(&link->arena, struct monitored, NODES_MAX);
        if (monitor->nodes == NULL) return error_memory(err);
    }
    link->monitor_count = config->monitor_count;
    return peer_addresses_open(entries, config->monitor_count, &link->book, err);
}

static status open_parts(struct operator_link *link, const struct cluster_config *config,
                         struct error *err)
{
    uint64_t number;
    if (config->monitor_count == 0) {
        return error_set(err, STATUS_USAGE, "%.500s has no [monitors] to ask", config->path);
    }
    if (sodium_init() < 0) {
        return error_set(err, STATUS_IO, "cannot get random bytes");
    }
    randombytes_buf(&number, sizeof number);
    (void)snprintf(link->name, sizeof link->name, "operator-%ld-%016llx", (long)getpid(),
                   (unsigned long long)number); /* Fits. */
    link->incarnation = (uint64_t)clock_wall_ms();
    link->key_file = arena_copy_string(&link->arena, text_of(config->key_file));
    if (link->key_file == NULL) return error_memory(err);
    TRY(cluster_key_read(config->key_file, &link->key, err));
    TRY(open_monitors(link, config, err));
    return datagram_socket_open(heartbeat_thread_host(config), 0, &link->socket, err);
}

status operator_open(const struct cluster_config *config, struct operator_link **out,
                     struct error *err)
{
    struct operator_link *link = memory_alloc(NULL, sizeof *link);
    if (link == NULL) return error_memory(err);
    *link = (struct operator_link){0};
    status result = open_parts(link, config, err);
    if (result != STATUS_OK) {
        operator_close(link);
        return result;
    }
    *out = link;
    return STATUS_OK;
}

void operator_close(struct operator_link *link)
{
    if (link == NULL) return;
    datagram_socket_close(link->socket);
    peer_addresses_close(link->book);
    buf_done(&link->bytes);
    arena_done(&link->arena);
    sodium_memzero(link, sizeof *link);
    memory_free(NULL, link, sizeof *link);
}
