/* SPDX-License-Identifier: Apache-2.0 */
/* broker_supervisor.c - one thread, one broker; the owner reads a copy of its state. */
#include "cluster/supervise/broker_supervisor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/memory.h"
#include "cluster/supervise/broker_process.h"
#include "engine/file/clock.h"
#include "cluster/supervise/backoff.h"

enum { LOOK_MS = 100, STOP_MS = 10000, LINE_SIZE = 1024, FAILURES_MAX = 5 };

struct broker_supervisor {
    struct broker_supervisor_options options;
    pthread_t thread;
    atomic_bool stop;

    pthread_mutex_t mutex; /* Guards what follows. */
    pthread_cond_t changed;
    enum broker_state state;
    struct error failure;
};

static void state_set(struct broker_supervisor *supervisor, enum broker_state state,
                      const struct error *failure)
{
    pthread_mutex_lock(&supervisor->mutex);
    supervisor->state = state;
    if (failure != NULL) supervisor->failure = *failure;
    pthread_mutex_unlock(&supervisor->mutex);
}

/* Until the time has passed or the supervisor closes. */
static void pause_for(struct broker_supervisor *supervisor, uint32_t wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t nanoseconds = (uint64_t)until.tv_nsec + (uint64_t)wait_ms * 1000000;
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    int result = 0;
    pthread_mutex_lock(&supervisor->mutex);
    while (!atomic_load(&supervisor->stop) && result == 0) {
        result = pthread_cond_timedwait(&supervisor->changed, &supervisor->mutex, &until);
    }
    pthread_mutex_unlock(&supervisor->mutex);
}

static void say(struct broker_supervisor *supervisor, const char *what, uint32_t wait_ms)
{
    char line[LINE_SIZE];
    (void)snprintf(line, sizeof line, "broker: %.900s; restarting it in %.1f s", what,
                   wait_ms / 1000.0); /* Cut at the limit. */
    supervisor->options.say(supervisor->options.context, line);
}

/* Returns when the supervisor closes. The owner decides how many failures are too many. */
static void keep(struct broker_supervisor *supervisor, struct broker_process *broker)
{
    struct backoff backoff = {0};
    struct error err = {.text = "it has ended"};
    uint32_t failures = 0;
    uint64_t started_ms = clock_ms();
    while (!atomic_load(&supervisor->stop)) {
        pause_for(supervisor, LOOK_MS);
        if (atomic_load(&supervisor->stop) || !broker_process_has_ended(broker)) continue;
        uint32_t wait_ms = backoff_next(&backoff, clock_ms() - started_ms);
        say(supervisor, err.text, wait_ms);
        pause_for(supervisor, wait_ms);
        if (atomic_load(&supervisor->stop)) return;
        started_ms = clock_ms();
        broker_process_kill(broker); /* Reaps it and ends its process group. */
        if (broker_process_restart(broker, &err) == STATUS_OK) {
            failures = 0;
            state_set(supervisor, BROKER_STARTED, NULL);
            supervisor->options.say(supervisor->options.context, "broker: restarted");
            error_write(&err, STATUS_OK, "it has ended");
        } else if (++failures == FAILURES_MAX) {
            state_set(supervisor, BROKER_FAILED, &err);
        }
    }
}

static void *supervisor_run(void *argument)
{
    struct broker_supervisor *supervisor = argument;
    struct broker_process *broker = NULL;
    struct error err;
    struct broker_process_options options = {
        .folder = supervisor->options.folder,
        .deadline_ms = supervisor->options.deadline_ms,
        .cancelled = &supervisor->stop,
    };
    if (broker_process_start(&options, &broker, &err) != STATUS_OK) {
        state_set(supervisor, BROKER_FAILED, &err);
        return NULL;
    }
    pthread_mutex_lock(&supervisor->mutex);
    supervisor->state = BROKER_STARTED;
    pthread_mutex_unlock(&supervisor->mutex);
    keep(supervisor, broker);
    broker_process_stop(broker, STOP_MS);
    return NULL;
}

status broker_supervisor_open(const struct broker_supervisor_options *options,
                              struct broker_supervisor **out, struct error *err)
{
    struct broker_supervisor *supervisor = memory_alloc(NULL, sizeof *supervisor);
    if (supervisor == NULL) return error_memory(err);
    *supervisor = (struct broker_supervisor){.options = *options, .state = BROKER_STARTING};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&supervisor->mutex, NULL);
    pthread_cond_init(&supervisor->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int problem = pthread_create(&supervisor->thread, NULL, supervisor_run, supervisor);
    if (problem != 0) {
        pthread_cond_destroy(&supervisor->changed);
        pthread_mutex_destroy(&supervisor->mutex);
        memory_free(NULL, supervisor, sizeof *supervisor);
        return error_set(err, STATUS_IO, "cannot start a thread for the broker: %s",
                         strerror(problem));
    }
    *out = supervisor;
    return STATUS_OK;
}

enum broker_state broker_supervisor_state(struct broker_supervisor *supervisor, struct error *err)
{
    pthread_mutex_lock(&supervisor->mutex);
    enum broker_state state = supervisor->state;
    if (state == BROKER_FAILED) *err = supervisor->failure;
    pthread_mutex_unlock(&supervisor->mutex);
    return state;
}

void broker_supervisor_close(struct broker_supervisor *supervisor)
{
    if (supervisor == NULL) return;
    pthread_mutex_lock(&supervisor->mutex);
    atomic_store(&supervisor->stop, true);
    pthread_cond_broadcast(&supervisor->changed);
    pthread_mutex_unlock(&supervisor->mutex);
    pthread_join(supervisor->thread, NULL);
    pthread_cond_destroy(&supervisor->changed);
    pthread_mutex_destroy(&supervisor->mutex);
    memory_free(NULL, supervisor, sizeof *supervisor);
}
