/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat_thread.c - one thread that sends heartbeats, receives orders, and never blocks.
 *
 * role/monitor/heartbeat_sender.c decides; here are the socket, the clock and the thread. The
 * thread of peer_addresses.h resolves the names of monitors: a resolver that hangs must not make
 * this node look dead. The main loop writes to atomics, so it never waits for this thread either.
 */
#include "cluster/node/heartbeat_thread.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "cluster/net/address.h"
#include "cluster/net/peer_addresses.h"
#include "engine/file/clock.h"
#include "cluster/net/datagram_socket.h"
#include "engine/file/process_memory.h"
#include "cluster/config/cluster_key.h"
#include "cluster/role/monitor/heartbeat_sender.h"

enum {
    FAREWELLS = 3,
    FAREWELL_PAUSE_MS = 20,
    TELL_PERIOD_MS = 10000,
    ENDING_NOT = -1 /* Else an enum heartbeat_thread_end. */
};

static_assert((int)HEARTBEAT_SENDER_MONITORS_MAX == (int)CONFIG_MONITORS_MAX,
              "all monitors get heartbeats");

struct heartbeat_thread {
    struct heartbeat_thread_options
        options; /* Without config, of which the next fields are copies. */
    uint32_t period_ms;
    uint64_t opened_ms;
    struct datagram_key key;
    struct datagram_socket *socket;
    struct peer_addresses *book;
    pthread_t thread;

    atomic_uint_least64_t progress;
    atomic_uint_least64_t replayed;
    atomic_uint_least32_t job_count;
    atomic_int state;  /* An enum heartbeat_state. */
    atomic_int ending; /* ENDING_NOT, or an enum heartbeat_thread_end. */

    /* The thread's own. */
    struct heartbeat_sender heartbeat_sender;
    struct buf bytes;
    uint64_t next_heartbeat_ms;
    enum heartbeat_state said_state; /* In the last round of heartbeats. */
    bool was_told_to_stop;
    uint64_t refused_count; /* Since the last log line about it. */
    uint64_t next_tell_ms;  /* When the next such line may be written. */
};

/* ---- out ---- */

static void send_to(struct heartbeat_thread *heartbeat_thread, uint32_t monitor,
                    const struct datagram *datagram)
{
    struct socket_address address;
    if (!peer_addresses_find(heartbeat_thread->book, monitor, &address)) return;
    datagram_encode(datagram, &heartbeat_thread->key, &heartbeat_thread->bytes);
    if (heartbeat_thread->bytes.failed) return; /* Lost, as on any network. */
    (void)datagram_socket_send(heartbeat_thread->socket, &address, heartbeat_thread->bytes.bytes,
                               heartbeat_thread->bytes.size); /* The same. */
}

static enum heartbeat_state state_now(struct heartbeat_thread *heartbeat_thread)
{
    if (atomic_load(&heartbeat_thread->ending) == HEARTBEAT_THREAD_PLANNED)
        return HEARTBEAT_STOPPED;
    return (enum heartbeat_state)atomic_load(&heartbeat_thread->state);
}

static struct heartbeat heartbeat_now(struct heartbeat_thread *heartbeat_thread)
{
    return (struct heartbeat){
        .role = heartbeat_thread->options.role,
        .state = state_now(heartbeat_thread),
        .progress = atomic_load_explicit(&heartbeat_thread->progress, memory_order_relaxed),
        .uptime_ms = clock_ms() - heartbeat_thread->opened_ms,
        .replayed = atomic_load_explicit(&heartbeat_thread->replayed, memory_order_relaxed),
        .resident_bytes = process_memory_bytes(),
        .job_count = atomic_load_explicit(&heartbeat_thread->job_count, memory_order_relaxed),
    };
}

static void heartbeat_to(struct heartbeat_thread *heartbeat_thread, uint32_t monitor,
                         const struct heartbeat *heartbeat)
{
    struct datagram datagram;
    heartbeat_sender_make(&heartbeat_thread->heartbeat_sender, monitor, heartbeat, &datagram);
    send_to(heartbeat_thread, monitor, &datagram);
}

static void heartbeat_to_all(struct heartbeat_thread *heartbeat_thread)
{
    struct heartbeat heartbeat = heartbeat_now(heartbeat_thread);
    for (uint32_t i = 0; i < heartbeat_thread->heartbeat_sender.monitor_count; i++) {
        heartbeat_to(heartbeat_thread, i, &heartbeat);
    }
    heartbeat_thread->said_state = heartbeat.state;
}

/* ---- in ---- */

static void tell_refused(struct heartbeat_thread *heartbeat_thread, uint64_t now_ms)
{
    if (heartbeat_thread->refused_count == 0 || now_ms < heartbeat_thread->next_tell_ms) return;
    node_log_say(heartbeat_thread->options.log, SAY_WARN, "event=datagrams-refused count=%llu",
                 (unsigned long long)heartbeat_thread->refused_count);
    heartbeat_thread->refused_count = 0;
    heartbeat_thread->next_tell_ms = now_ms + TELL_PERIOD_MS;
}

static void obey_stop(struct heartbeat_thread *heartbeat_thread, const struct datagram *datagram)
{
    if (heartbeat_thread->was_told_to_stop) return; /* Repeated until our state is stopping. */
    heartbeat_thread->was_told_to_stop = true;
    node_log_say(heartbeat_thread->options.log, SAY_INFO, "event=stop-ordered by=%s term=%llu",
                 datagram->from, (unsigned long long)datagram->order.term.number);
    heartbeat_thread->options.stop(heartbeat_thread->options.context);
}

static void obey_kill(struct heartbeat_thread *heartbeat_thread, const struct datagram *datagram)
{
    node_log_say(heartbeat_thread->options.log, SAY_ERROR, "event=kill-ordered by=%s term=%llu",
                 datagram->from, (unsigned long long)datagram->order.term.number);
    (void)kill(getpid(), SIGKILL); /* Can't fail. */
}

static void hear(struct heartbeat_thread *heartbeat_thread, const struct datagram *datagram,
                 uint64_t now_ms)
{
    const struct heartbeat_thread_options *options = &heartbeat_thread->options;
    uint32_t monitor = 0;
    struct datagram reply;
    enum heartbeat_sender_answer answer = heartbeat_sender_hear(&heartbeat_thread->heartbeat_sender,
                                                                datagram, now_ms, &monitor, &reply);
    switch (answer) {
    case HEARTBEAT_SENDER_NOTHING:
        return;
    case HEARTBEAT_SENDER_AGAIN: {
        struct heartbeat heartbeat = heartbeat_now(heartbeat_thread);
        heartbeat_to(heartbeat_thread, monitor, &heartbeat);
        return;
    }
    case HEARTBEAT_SENDER_CHALLENGE:
        send_to(heartbeat_thread, monitor, &reply);
        return;
    case HEARTBEAT_SENDER_STOP:
        obey_stop(heartbeat_thread, datagram);
        return;
    case HEARTBEAT_SENDER_KILL:
        obey_kill(heartbeat_thread, datagram);
        return;
    case HEARTBEAT_SENDER_VIEW:
        if (options->view != NULL) options->view(options->context, &datagram->view);
        return;
    case HEARTBEAT_SENDER_EVENTS:
        if (options->events != NULL) options->events(options->context, &datagram->events);
        return;
    }
}

/* Waits for one datagram, at most until `until_ms`. */
static void hear_until(struct heartbeat_thread *heartbeat_thread, uint64_t until_ms)
{
    char bytes[DATAGRAM_BYTES_MAX + 1]; /* One more, so that a longer datagram is noticed. */
    struct socket_address from;
    struct datagram datagram;
    struct error err;
    uint64_t now_ms = clock_ms();
    uint32_t timeout_ms = until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0;
    size_t size =
        datagram_socket_receive(heartbeat_thread->socket, timeout_ms, bytes, sizeof bytes, &from);
    if (size == 0) return;
    struct text text = {bytes, (uint32_t)size};
    if (datagram_decode(text, &heartbeat_thread->key, &datagram, &err) != STATUS_OK) {
        heartbeat_thread->refused_count++;
        return;
    }
    hear(heartbeat_thread, &datagram, clock_ms());
}

/* ---- the thread ---- */

static void say_farewell(struct heartbeat_thread *heartbeat_thread)
{
    for (int i = 0; i < FAREWELLS; i++) {
        uint64_t until_ms = clock_ms() + FAREWELL_PAUSE_MS;
        heartbeat_to_all(heartbeat_thread);
        while (clock_ms() < until_ms) {
            hear_until(heartbeat_thread, until_ms); /* May be a challenge. */
        }
    }
}

/* A node must not outlive its `up`, and the main loop has had time to stop. */
static void look_at_supervisor(struct heartbeat_thread *heartbeat_thread, uint64_t now_ms)
{
    struct supervisor_link *supervisor_link = &heartbeat_thread->options.supervisor_link;
    if (!supervisor_link_look(supervisor_link, now_ms) ||
        !supervisor_link_is_overdue(supervisor_link, now_ms))
        return;
    node_log_say(heartbeat_thread->options.log, SAY_ERROR, "event=killed reason=supervisor-gone");
    (void)kill(getpid(), SIGKILL); /* Can't fail. */
}

static void *heartbeat_run(void *context)
{
    struct heartbeat_thread *heartbeat_thread = context;
    while (atomic_load(&heartbeat_thread->ending) == ENDING_NOT) {
        uint64_t now_ms = clock_ms();
        if (now_ms >= heartbeat_thread->next_heartbeat_ms ||
            state_now(heartbeat_thread) != heartbeat_thread->said_state) {
            heartbeat_to_all(heartbeat_thread);
            heartbeat_thread->next_heartbeat_ms = now_ms + heartbeat_thread->period_ms;
        }
        look_at_supervisor(heartbeat_thread, now_ms);
        tell_refused(heartbeat_thread, now_ms);
        hear_until(heartbeat_thread, heartbeat_thread->next_heartbeat_ms);
    }
    if (atomic_load(&heartbeat_thread->ending) == HEARTBEAT_THREAD_PLANNED)
        say_farewell(heartbeat_thread);
    return NULL;
}

/* ---- interface ---- */

/* Whether it is a numeric loopback address of the same family. */
static bool is_loopback_of(const char *host, const char *loopback)
{
    struct socket_address address;
    struct socket_address same;
    struct error ignored;
    bool is_loopback = false;
    if (!socket_address_parse(host, 0, &address)) return false;
    if (!socket_address_parse(loopback, 0, &same) || address.size != same.size) return false;
    return address_is_loopback(host, &is_loopback, &ignored) == STATUS_OK && is_loopback;
}

const char *heartbeat_thread_host(const struct cluster_config *config)
{
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        uint32_t count = 0;
        while (count < config->monitor_count &&
               is_loopback_of(config->monitors[count].host, hosts[i])) {
            count++;
        }
        if (count == config->monitor_count) return hosts[i];
    }
    return NULL;
}

static void name_copy(char out[DATAGRAM_NAME_SIZE], const char *name)
{
    ASSERT(strlen(name) < DATAGRAM_NAME_SIZE); /* The cluster file has no longer ones. */
    (void)snprintf(out, DATAGRAM_NAME_SIZE, "%s", name);
}

static void heartbeat_free(struct heartbeat_thread *heartbeat_thread)
{
    datagram_socket_close(heartbeat_thread->socket);
    peer_addresses_close(heartbeat_thread->book);
    buf_done(&heartbeat_thread->bytes);
    sodium_memzero(heartbeat_thread, sizeof *heartbeat_thread);
    memory_free(NULL, heartbeat_thread, sizeof *heartbeat_thread);
}

static void prepare_sender(struct heartbeat_thread *heartbeat_thread)
{
    const struct cluster_config *config = heartbeat_thread->options.config;
    struct heartbeat_sender *heartbeat_sender = &heartbeat_thread->heartbeat_sender;
    name_copy(heartbeat_sender->name, heartbeat_thread->options.name);
    heartbeat_sender->incarnation = heartbeat_thread->options.incarnation;
    heartbeat_sender->monitor_count = config->monitor_count;
    for (uint32_t i = 0; i < config->monitor_count; i++) {
        name_copy(heartbeat_sender->monitors[i], config->monitors[i].name);
    }
    randombytes_buf(&heartbeat_sender->random, sizeof heartbeat_sender->random);
}

static status open_parts(struct heartbeat_thread *heartbeat_thread, struct error *err)
{
    const struct cluster_config *config = heartbeat_thread->options.config;
    struct peer_addresses_entry entries[CONFIG_MONITORS_MAX];
    if (sodium_init() < 0) {
        return error_set(err, STATUS_IO, "cannot get random bytes");
    }
    TRY(cluster_key_read(config->key_file, &heartbeat_thread->key, err));
    for (uint32_t i = 0; i < config->monitor_count; i++) {
        entries[i] =
            (struct peer_addresses_entry){config->monitors[i].host, config->monitors[i].port};
    }
    TRY(peer_addresses_open(entries, config->monitor_count, &heartbeat_thread->book, err));
    TRY(datagram_socket_open(heartbeat_thread_host(config), 0, &heartbeat_thread->socket, err));
    prepare_sender(heartbeat_thread);
    return STATUS_OK;
}

static status start_thread(struct heartbeat_thread *heartbeat_thread, struct error *err)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* The main loop handles signals. */
    int problem = pthread_create(&heartbeat_thread->thread, NULL, heartbeat_run, heartbeat_thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem == 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot start a thread for heartbeats");
}

status heartbeat_thread_open(const struct heartbeat_thread_options *options,
                             struct heartbeat_thread **out, struct error *err)
{
    if (options->config->monitor_count == 0) {
        *out = NULL;
        return STATUS_OK;
    }
    struct heartbeat_thread *heartbeat_thread = memory_alloc(NULL, sizeof *heartbeat_thread);
    if (heartbeat_thread == NULL) return error_memory(err);
    *heartbeat_thread = (struct heartbeat_thread){
        .options = *options,
        .period_ms = options->config->heartbeat_period_ms,
        .opened_ms = clock_ms(),
        .state = HEARTBEAT_STARTING,
        .ending = ENDING_NOT,
    };
    status result = open_parts(heartbeat_thread, err);
    heartbeat_thread->options.config = NULL; /* Borrowed until here. */
    heartbeat_thread->options.name = NULL;
    if (result == STATUS_OK) result = start_thread(heartbeat_thread, err);
    if (result != STATUS_OK) {
        heartbeat_free(heartbeat_thread);
        return result;
    }
    *out = heartbeat_thread;
    return STATUS_OK;
}

void heartbeat_thread_progress(struct heartbeat_thread *heartbeat_thread)
{
    if (heartbeat_thread == NULL) return;
    (void)atomic_fetch_add_explicit(&heartbeat_thread->progress, 1, memory_order_relaxed);
}

void heartbeat_thread_state(struct heartbeat_thread *heartbeat_thread, enum heartbeat_state state)
{
    if (heartbeat_thread == NULL) return;
    ASSERT(state < HEARTBEAT_STATES);
    if (atomic_exchange(&heartbeat_thread->state, (int)state) == (int)state) return;
    datagram_socket_wake(heartbeat_thread->socket);
}

void heartbeat_thread_jobs(struct heartbeat_thread *heartbeat_thread, uint32_t job_count)
{
    if (heartbeat_thread == NULL) return;
    atomic_store_explicit(&heartbeat_thread->job_count, job_count, memory_order_relaxed);
}

void heartbeat_thread_replayed(struct heartbeat_thread *heartbeat_thread, uint64_t record_count)
{
    if (heartbeat_thread == NULL) return;
    atomic_store_explicit(&heartbeat_thread->replayed, record_count, memory_order_relaxed);
}

void heartbeat_thread_close(struct heartbeat_thread *heartbeat_thread,
                            enum heartbeat_thread_end end)
{
    if (heartbeat_thread == NULL) return;
    atomic_store(&heartbeat_thread->ending, (int)end);
    datagram_socket_wake(heartbeat_thread->socket);
    int problem = pthread_join(heartbeat_thread->thread, NULL);
    ASSERT(problem == 0);
    heartbeat_free(heartbeat_thread);
}
