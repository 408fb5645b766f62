/* SPDX-License-Identifier: Apache-2.0 */
/* sim_farm.c - a pipe from each process: one record when a run begins and one when it is over, so
 * that the farm knows which seed a process has died of.
 */
#include "cluster/sim/sim_farm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/assert.h"

enum { POLL_MS = 200 };

struct farm_record {
    uint64_t seed;
    bool is_over;
    struct sim_report report;
};

_Static_assert(sizeof(struct farm_record) <= 4096, "a record is written at once");

struct farm_process {
    pid_t pid;
    int fd;       /* -1: it has done its part. */
    bool is_last; /* The caller has heard enough. */
    uint64_t next_seed;
    bool is_running; /* The run of next_seed has begun. */
};

static bool write_record(int fd, const struct farm_record *record)
{
    ssize_t size;
    do {
        size = write(fd, record, sizeof *record);
    } while (size < 0 && errno == EINTR);
    return size == (ssize_t)sizeof *record;
}

/* All that a process of the farm does. */
static void work(const struct sim_farm_options *options, uint64_t seed, int fd)
{
    for (;;) {
        struct farm_record record = {.seed = seed};
        struct error err;
        if (!write_record(fd, &record)) _exit(1);
        if (options->run(options->context, seed, -1, &record.report, &err) != STATUS_OK) {
            record.report = (struct sim_report){.ok = false};
            (void)snprintf(record.report.reason, sizeof record.report.reason, "%.500s",
                           err.text); /* May be cut. */
        }
        record.is_over = true;
        if (!write_record(fd, &record)) _exit(1);
        if (options->last_seed - seed < options->process_count) _exit(0);
        seed += options->process_count;
    }
}

static status process_start(struct farm_process *process, const struct sim_farm_options *options,
                            struct error *err)
{
    int ends[2];
    if (pipe(ends) != 0) return error_set(err, STATUS_IO, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0) {
        int number = errno;
        (void)close(ends[0]); /* Nothing was written. */
        (void)close(ends[1]);
        return error_set(err, STATUS_IO, "no process: %s", strerror(number));
    }
    if (pid == 0) {
        (void)close(ends[0]); /* The other side's. */
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
        work(options, process->next_seed, ends[1]);
    }
    (void)close(ends[1]); /* The other side's. */
    process->pid = pid;
    process->fd = ends[0];
    process->is_running = false;
    return STATUS_OK;
}

/* Says how the process ended. */
static void process_reap(struct farm_process *process, char *out, size_t size)
{
    int code = 0;
    pid_t pid;
    do {
        pid = waitpid(process->pid, &code, 0);
    } while (pid < 0 && errno == EINTR);
    (void)close(process->fd); /* It was only read. */
    process->fd = -1;
    if (WIFSIGNALED(code)) {
        (void)snprintf(out, size, "the process died of signal %d", WTERMSIG(code)); /* Fits. */
    } else {
        (void)snprintf(out, size, "the process ended with code %d", WEXITSTATUS(code)); /* Fits. */
    }
}

/* The process has closed its end. */
static status process_ended(struct farm_process *process, const struct sim_farm_options *options,
                            struct error *err)
{
    struct sim_report report = {.ok = false};
    process_reap(process, report.reason, sizeof report.reason);
    if (!process->is_running) {
        if (process->next_seed > options->last_seed) return STATUS_OK;
        return error_set(err, STATUS_IO, "%s between two runs", report.reason);
    }
    process->is_last = !options->ran(options->context, process->next_seed, &report);
    if (options->last_seed - process->next_seed < options->process_count) return STATUS_OK;
    process->next_seed += options->process_count;
    return process_start(process, options, err);
}

static status process_read(struct farm_process *process, const struct sim_farm_options *options,
                           struct error *err)
{
    struct farm_record record;
    ssize_t size;
    do {
        size = read(process->fd, &record, sizeof record);
    } while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof record) return process_ended(process, options, err);
    ASSERT(record.seed == process->next_seed);
    process->is_running = !record.is_over;
    if (!record.is_over) return STATUS_OK;
    process->is_last = !options->ran(options->context, record.seed, &record.report);
    bool is_last = options->last_seed - record.seed < options->process_count;
    process->next_seed = is_last ? UINT64_MAX : record.seed + options->process_count;
    return STATUS_OK;
}

static bool is_cancelled(const struct sim_farm_options *options)
{
    return options->cancelled != NULL && atomic_load(options->cancelled);
}

static status poll_all(struct farm_process *processes, const struct sim_farm_options *options,
                       struct error *err)
{
    for (;;) {
        struct pollfd polled[SIM_FARM_PROCESSES_MAX];
        uint32_t open_count = 0;
        for (uint32_t i = 0; i < options->process_count; i++) {
            polled[i] = (struct pollfd){.fd = processes[i].fd, .events = POLLIN};
            open_count += processes[i].fd >= 0;
        }
        if (open_count == 0) return STATUS_OK;
        if (is_cancelled(options)) return error_set(err, STATUS_CANCELLED, "interrupted");
        int ready = poll(polled, options->process_count, POLL_MS);
        if (ready < 0 && errno != EINTR) {
            return error_set(err, STATUS_IO, "poll: %s", strerror(errno));
        }
        for (uint32_t i = 0; ready > 0 && i < options->process_count; i++) {
            if (polled[i].fd < 0 || polled[i].revents == 0) continue;
            TRY(process_read(&processes[i], options, err));
            if (processes[i].is_last) return STATUS_OK;
        }
    }
}

status sim_farm_run(const struct sim_farm_options *options, struct error *err)
{
    struct farm_process processes[SIM_FARM_PROCESSES_MAX];
    struct sim_farm_options used = *options;
    uint64_t seed_count = used.last_seed - used.first_seed + 1;
    if (used.process_count > SIM_FARM_PROCESSES_MAX) used.process_count = SIM_FARM_PROCESSES_MAX;
    if (seed_count != 0 && used.process_count > seed_count) {
        used.process_count = (uint32_t)seed_count;
    }
    ASSERT(used.first_seed <= used.last_seed && used.process_count > 0);
    for (uint32_t i = 0; i < used.process_count; i++) {
        processes[i] = (struct farm_process){.fd = -1, .next_seed = used.first_seed + i};
    }
    status result = STATUS_OK;
    for (uint32_t i = 0; i < used.process_count && result == STATUS_OK; i++) {
        result = process_start(&processes[i], &used, err);
    }
    if (result == STATUS_OK) result = poll_all(processes, &used, err);
    for (uint32_t i = 0; i < used.process_count; i++) {
        char ignored[64];
        if (processes[i].fd < 0) continue;
        (void)kill(processes[i].pid, SIGKILL); /* It is ours, and not reaped yet. */
        process_reap(&processes[i], ignored, sizeof ignored);
    }
    return result;
}
