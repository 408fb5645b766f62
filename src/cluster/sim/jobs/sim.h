/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - jobs in a whole cluster in one thread, under faults drawn from a seed.
 *
 *     scenarios_create -> sim_run_seed* -> scenarios_destroy
 *
 * The roles, codecs and folds are those of the real program; clock, broker, disks and network are
 * simulated. After every run the promises are checked: every client has its exact answer, each row
 * once and in order, and an audit whose counts reconcile, or the error it must have; no job and no
 * message is left behind. The same seed is the same run.
 *
 * Threads: one run at a time per process.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_H
#define CLUSTER_SIM_JOBS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/fault_injection.h"
#include "cluster/role/worker/worker.h"
#include "cluster/sim/world.h"

struct scenarios;

/* Which faults a run has. */
enum sim_profile {
    SIM_MIXED, /* Everything. */
    SIM_CALM,  /* None, as in the next two: no chunk may be sent twice. */
    SIM_SLOW_MAPS,
    SIM_FULL_QUEUES,
    SIM_WORKER_DEATH, /* One kind of fault from here on, a few times. */
    SIM_GATEWAY_DEATH,
    SIM_BROKER_DEATH,
    SIM_PAUSE,
    SIM_LOST_DISK,
    SIM_PROFILES
};
extern const char *const sim_profile_names[SIM_PROFILES];

/* By enum worker_mutation. */
enum { SIM_MUTATIONS = WORKER_SENDS_ONE_BARRIER + 1 };
#if FAULT_INJECTION
extern const char *const sim_mutation_names[SIM_MUTATIONS];
#endif

struct sim_options {
    uint64_t seed;
    enum worker_mutation mutation;
    enum sim_profile profile;
    int trace_fd; /* -1: none. */
};

/* Fails only when the run can't begin, for want of memory; the report says what is wrong with it.
 */
MUST_USE status sim_run_seed(const struct scenarios *scenarios, const struct sim_options *options,
                             struct sim_report *out, struct error *err);

#endif
