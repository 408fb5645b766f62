/* broker_supervisor.h - keeps a private broker alive.
 *
 *     broker_supervisor_open -> broker_supervisor_state* -> broker_supervisor_close
 *
 * Starting a broker takes seconds, and nobody may wait for that who has other processes to look
 * after. So the broker has a thread of its own, which starts it, looks after it, and starts it
 * again on the same ports when it has ended; and since a broker dies with its thread, it never
 * outlives this process.
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
    BROKER_STARTED,  /* It has answered; since then it may have ended and be on its way back. */
    BROKER_FAILED    /* It can't be started; once it has answered: it failed several times on end,
                        and is tried for further. */
};

struct broker_supervisor_options {
    const char *folder;   /* The one above it is there. */
    uint32_t deadline_ms; /* Until it has to answer, whenever it is started. */
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
