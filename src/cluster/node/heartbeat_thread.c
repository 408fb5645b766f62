/* heartbeat_thread.c - one thread that beats, hears, and does nothing that could keep it waiting.
 *
 * cluster/role/monitor/heartbeat_sender.c decides; here are the socket, the clock and the thread.
 * Names of monitors are looked up by the peer book's thread: a resolver that hangs must not make
 * this node look dead. What the main loop says goes through atomics: it never waits for this thread
 * either.
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
    ENDING_NOT = -1 /* Else an enum heartbeat_end. */
};

static_assert((int)BEATER_MONITORS_MAX == (int)CONFIG_MONITORS_MAX, "all monitors get beats");

struct heartbeat {
    struct heartbeat_options options; /* Of config only what is needed is kept, as follows. */
    uint32_t period_ms;
    uint64_t opened_ms;
    struct datagram_key key;
    struct datagram_socket *socket;
    struct peer_book *book;
    pthread_t thread;

    atomic_uint_least64_t progress;
    atomic_uint_least64_t replayed;
    atomic_uint_least32_t job_count;
    atomic_int state;  /* An enum beat_state. */
    atomic_int ending; /* ENDING_NOT, or an enum heartbeat_end. */

    /* The thread's own. */
    struct beater beater;
    struct buf bytes;
    uint64_t next_beat_ms;
    enum beat_state said_state; /* In the last round of beats. */
    bool was_told_to_stop;
    uint64_t refused_count; /* Since it was told last, */
    uint64_t next_tell_ms;  /* and when it may be told again. */
};

/* ---- out ---- */

static void send_to(struct heartbeat *heartbeat, uint32_t monitor, const struct datagram *datagram)
{
    struct socket_address address;
    if (!peer_book_find(heartbeat->book, monitor, &address)) return;
    datagram_encode(datagram, &heartbeat->key, &heartbeat->bytes);
    if (heartbeat->bytes.failed) return; /* Lost, as on any network. */
    (void)datagram_socket_send(heartbeat->socket, &address, heartbeat->bytes.bytes,
                               heartbeat->bytes.size); /* The same. */
}

static enum beat_state state_now(struct heartbeat *heartbeat)
{
    if (atomic_load(&heartbeat->ending) == HEARTBEAT_PLANNED) return BEAT_STOPPED;
    return (enum beat_state)atomic_load(&heartbeat->state);
}

static struct beat beat_now(struct heartbeat *heartbeat)
{
    return (struct beat){
        .role = heartbeat->options.role,
        .state = state_now(heartbeat),
        .progress = atomic_load_explicit(&heartbeat->progress, memory_order_relaxed),
        .uptime_ms = clock_ms() - heartbeat->opened_ms,
        .replayed = atomic_load_explicit(&heartbeat->replayed, memory_order_relaxed),
        .resident_bytes = process_memory_bytes(),
        .job_count = atomic_load_explicit(&heartbeat->job_count, memory_order_relaxed),
    };
}

static void beat_to(struct heartbeat *heartbeat, uint32_t monitor, const struct beat *beat)
{
    struct datagram datagram;
    beater_beat(&heartbeat->beater, monitor, beat, &datagram);
    send_to(heartbeat, monitor, &datagram);
}

static void beat_to_all(struct heartbeat *heartbeat)
{
    struct beat beat = beat_now(heartbeat);
    for (uint32_t i = 0; i < heartbeat->beater.monitor_count; i++) {
        beat_to(heartbeat, i, &beat);
    }
    heartbeat->said_state = beat.state;
}

/* ---- in ---- */

static void tell_refused(struct heartbeat *heartbeat, uint64_t now_ms)
{
    if (heartbeat->refused_count == 0 || now_ms < heartbeat->next_tell_ms) return;
    node_log_say(heartbeat->options.log, SAY_WARN, "event=datagrams-refused count=%llu",
                 (unsigned long long)heartbeat->refused_count);
    heartbeat->refused_count = 0;
    heartbeat->next_tell_ms = now_ms + TELL_PERIOD_MS;
}

static void obey_stop(struct heartbeat *heartbeat, const struct datagram *datagram)
{
    if (heartbeat->was_told_to_stop) return; /* It is repeated until we say that we stop. */
    heartbeat->was_told_to_stop = true;
    node_log_say(heartbeat->options.log, SAY_INFO, "event=stop-ordered by=%s term=%llu",
                 datagram->from, (unsigned long long)datagram->order.term.number);
    heartbeat->options.stop(heartbeat->options.context);
}

static void obey_kill(struct heartbeat *heartbeat, const struct datagram *datagram)
{
    node_log_say(heartbeat->options.log, SAY_ERROR, "event=kill-ordered by=%s term=%llu",
                 datagram->from, (unsigned long long)datagram->order.term.number);
    (void)kill(getpid(), SIGKILL); /* Can't fail. */
}

static void hear(struct heartbeat *heartbeat, const struct datagram *datagram, uint64_t now_ms)
{
    const struct heartbeat_options *options = &heartbeat->options;
    uint32_t monitor = 0;
    struct datagram reply;
    enum beater_answer answer = beater_hear(&heartbeat->beater, datagram, now_ms, &monitor, &reply);
    switch (answer) {
    case BEATER_NOTHING:
        return;
    case BEATER_BEAT: {
        struct beat beat = beat_now(heartbeat);
        beat_to(heartbeat, monitor, &beat);
        return;
    }
    case BEATER_CHALLENGE:
        send_to(heartbeat, monitor, &reply);
        return;
    case BEATER_STOP:
        obey_stop(heartbeat, datagram);
        return;
    case BEATER_KILL:
        obey_kill(heartbeat, datagram);
        return;
    case BEATER_VIEW:
        if (options->view != NULL) options->view(options->context, &datagram->view);
        return;
    case BEATER_EVENTS:
        if (options->events != NULL) options->events(options->context, &datagram->events);
        return;
    }
}

/* Waits for one datagram until then at the latest. */
static void hear_until(struct heartbeat *heartbeat, uint64_t until_ms)
{
    char bytes[DATAGRAM_BYTES_MAX + 1]; /* So that what is too long is seen to be. */
    struct socket_address from;
    struct datagram datagram;
    struct error err;
    uint64_t now_ms = clock_ms();
    uint32_t timeout_ms = until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0;
    size_t size =
        datagram_socket_receive(heartbeat->socket, timeout_ms, bytes, sizeof bytes, &from);
    if (size == 0) return;
    struct text text = {bytes, (uint32_t)size};
    if (datagram_decode(text, &heartbeat->key, &datagram, &err) != STATUS_OK) {
        heartbeat->refused_count++;
        return;
    }
    hear(heartbeat, &datagram, clock_ms());
}

/* ---- the thread ---- */

static void say_farewell(struct heartbeat *heartbeat)
{
    for (int i = 0; i < FAREWELLS; i++) {
        uint64_t until_ms = clock_ms() + FAREWELL_PAUSE_MS;
        beat_to_all(heartbeat);
        while (clock_ms() < until_ms) {
            hear_until(heartbeat, until_ms); /* A challenge, perhaps. */
        }
    }
}

/* An `up` that is gone must not be outlived, and the main loop has had its time. */
static void look_at_leash(struct heartbeat *heartbeat, uint64_t now_ms)
{
    struct leash *leash = &heartbeat->options.leash;
    if (!leash_look(leash, now_ms) || !leash_is_overdue(leash, now_ms)) return;
    node_log_say(heartbeat->options.log, SAY_ERROR, "event=killed reason=leash-lost");
    (void)kill(getpid(), SIGKILL); /* Can't fail. */
}

static void *heartbeat_run(void *context)
{
    struct heartbeat *heartbeat = context;
    while (atomic_load(&heartbeat->ending) == ENDING_NOT) {
        uint64_t now_ms = clock_ms();
        if (now_ms >= heartbeat->next_beat_ms || state_now(heartbeat) != heartbeat->said_state) {
            beat_to_all(heartbeat);
            heartbeat->next_beat_ms = now_ms + heartbeat->period_ms;
        }
        look_at_leash(heartbeat, now_ms);
        tell_refused(heartbeat, now_ms);
        hear_until(heartbeat, heartbeat->next_beat_ms);
    }
    if (atomic_load(&heartbeat->ending) == HEARTBEAT_PLANNED) say_farewell(heartbeat);
    return NULL;
}

/* ---- for the others ---- */

/* Whether it is an address in digits of loopback, and of the same family. */
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

const char *heartbeat_host(const struct cluster_config *config)
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

static void heartbeat_free(struct heartbeat *heartbeat)
{
    datagram_socket_close(heartbeat->socket);
    peer_book_close(heartbeat->book);
    buf_done(&heartbeat->bytes);
    sodium_memzero(heartbeat, sizeof *heartbeat);
    memory_free(NULL, heartbeat, sizeof *heartbeat);
}

static void beater_make(struct heartbeat *heartbeat)
{
    const struct cluster_config *config = heartbeat->options.config;
    struct beater *beater = &heartbeat->beater;
    name_copy(beater->name, heartbeat->options.name);
    beater->incarnation = heartbeat->options.incarnation;
    beater->monitor_count = config->monitor_count;
    for (uint32_t i = 0; i < config->monitor_count; i++) {
        name_copy(beater->monitors[i], config->monitors[i].name);
    }
    randombytes_buf(&beater->random, sizeof beater->random);
}

static status open_parts(struct heartbeat *heartbeat, struct error *err)
{
    const struct cluster_config *config = heartbeat->options.config;
    struct peer_book_entry entries[CONFIG_MONITORS_MAX];
    if (sodium_init() < 0) {
        return error_set(err, STATUS_IO, "this system gives no random numbers");
    }
    TRY(cluster_key_read(config->key_file, &heartbeat->key, err));
    for (uint32_t i = 0; i < config->monitor_count; i++) {
        entries[i] = (struct peer_book_entry){config->monitors[i].host, config->monitors[i].port};
    }
    TRY(peer_book_open(entries, config->monitor_count, &heartbeat->book, err));
    TRY(datagram_socket_open(heartbeat_host(config), 0, &heartbeat->socket, err));
    beater_make(heartbeat);
    return STATUS_OK;
}

static status start_thread(struct heartbeat *heartbeat, struct error *err)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* Signals are the main loop's business. */
    int problem = pthread_create(&heartbeat->thread, NULL, heartbeat_run, heartbeat);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem == 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot start the thread of heartbeats");
}

status heartbeat_open(const struct heartbeat_options *options, struct heartbeat **out,
                      struct error *err)
{
    if (options->config->monitor_count == 0) {
        *out = NULL;
        return STATUS_OK;
    }
    struct heartbeat *heartbeat = memory_alloc(NULL, sizeof *heartbeat);
    if (heartbeat == NULL) return error_memory(err);
    *heartbeat = (struct heartbeat){
        .options = *options,
        .period_ms = options->config->beat_period_ms,
        .opened_ms = clock_ms(),
        .state = BEAT_STARTING,
        .ending = ENDING_NOT,
    };
    status result = open_parts(heartbeat, err);
    heartbeat->options.config = NULL; /* Borrowed until here. */
    heartbeat->options.name = NULL;
    if (result == STATUS_OK) result = start_thread(heartbeat, err);
    if (result != STATUS_OK) {
        heartbeat_free(heartbeat);
        return result;
    }
    *out = heartbeat;
    return STATUS_OK;
}

void heartbeat_progress(struct heartbeat *heartbeat)
{
    if (heartbeat == NULL) return;
    (void)atomic_fetch_add_explicit(&heartbeat->progress, 1, memory_order_relaxed);
}

void heartbeat_state(struct heartbeat *heartbeat, enum beat_state state)
{
    if (heartbeat == NULL) return;
    ASSERT(state < BEAT_STATES);
    if (atomic_exchange(&heartbeat->state, (int)state) == (int)state) return;
    datagram_socket_wake(heartbeat->socket);
}

void heartbeat_jobs(struct heartbeat *heartbeat, uint32_t job_count)
{
    if (heartbeat == NULL) return;
    atomic_store_explicit(&heartbeat->job_count, job_count, memory_order_relaxed);
}

void heartbeat_replayed(struct heartbeat *heartbeat, uint64_t record_count)
{
    if (heartbeat == NULL) return;
    atomic_store_explicit(&heartbeat->replayed, record_count, memory_order_relaxed);
}

void heartbeat_close(struct heartbeat *heartbeat, enum heartbeat_end end)
{
    if (heartbeat == NULL) return;
    atomic_store(&heartbeat->ending, (int)end);
    datagram_socket_wake(heartbeat->socket);
    int problem = pthread_join(heartbeat->thread, NULL);
    ASSERT(problem == 0);
    heartbeat_free(heartbeat);
}
