/* SPDX-License-Identifier: Apache-2.0 */
/* sim_farm.h - many seeds, spread over several processes.
 *
 * Runs are independent, so each process takes every n-th seed. A process that dies in a run (an
 * assertion or a sanitizer ends it) has found a mistake: its seed has failed, and another process
 * continues with the next one.
 *
 * Call it while the process has one thread. Failure: STATUS_IO when the system gives no process or
 * pipe; STATUS_CANCELLED.
 */
#ifndef CLUSTER_SIM_SIM_FARM_H
#define CLUSTER_SIM_SIM_FARM_H

#include <stdatomic.h>

#include "cluster/sim/world.h"

enum { SIM_FARM_PROCESSES_MAX = 64 };

struct sim_farm_options {
    uint64_t first_seed;
    uint64_t last_seed;
    uint32_t process_count;
    const atomic_bool *cancelled; /* May be NULL. */
    void *context;
    /* Runs one seed, in a process of the farm; trace_fd is -1. */
    status (*run)(void *context, uint64_t seed, int trace_fd, struct sim_report *out,
                  struct error *err);
    /* After every run, in any order, in the calling process; false: no more runs. */
    bool (*ran)(void *context, uint64_t seed, const struct sim_report *report);
};

MUST_USE status sim_farm_run(const struct sim_farm_options *options, struct error *err);

#endif
