/* SPDX-License-Identifier: Apache-2.0 */
/* broker_supervisor.h - starts and restarts a private broker.
 *
 *     broker_supervisor_open -> broker_supervisor_state* -> broker_supervisor_close
 *
 * Starting a broker takes seconds, and the owner has other processes to supervise. So the broker
 * has its own thread, which starts it and restarts it on the same ports when it has ended; and
 * since a broker dies with its thread, it never outlives this process.
 *
 * Threads: one owner; `say` is called from the supervisor's thread.
 */
#ifndef CLUSTER_SUPERVISE_BROKER_SUPERVISOR_H
#define CLUSTER_SUPERVISE_BROKER_SUPERVISOR_H

#include <stdint.h>

#include "engine/base/error.h"

struct broker_supervisor;

enum broker_state {
    BROKER_STARTING, /* For the first time. */
    BROKER_STARTED,  /* It has answered; it may be restarting now. */
    BROKER_FAILED    /* It can't be started. If it had answered before: it failed several times in a
                        row, and the supervisor keeps trying. */
};

struct broker_supervisor_options {
    const char *folder;   /* Its parent exists. */
    uint32_t deadline_ms; /* Of each start, until its first answer. */
    void *context;
    void (*say)(void *context, const char *line);
};

MUST_USE status broker_supervisor_open(const struct broker_supervisor_options *options,
                                       struct broker_supervisor **out, struct error *err);
/* BROKER_FAILED: `err` says why. */
enum broker_state broker_supervisor_state(struct broker_supervisor *supervisor, struct error *err);
/* Ends the broker, and returns when it has ended. Accepts NULL. */
void broker_supervisor_close(struct broker_supervisor *supervisor);

#endif
