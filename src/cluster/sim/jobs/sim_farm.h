/* sim_farm.h - many seeds, spread over several processes.
 *
 * Runs know nothing of each other, so each process takes every n-th seed. One that dies in a run
 * (which an assertion or a sanitizer does) has found something: its seed has failed, and another
 * process goes on with the next.
 *
 * Call it while the process has one thread. Failure: STATUS_IO when the system gives no process or
 * pipe; STATUS_CANCELLED.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_FARM_H
#define CLUSTER_SIM_JOBS_SIM_FARM_H

#include <stdatomic.h>

#include "cluster/sim/jobs/sim.h"

enum { SIM_FARM_PROCESSES_MAX = 64 };

struct sim_farm_options {
    uint64_t first_seed;
    uint64_t last_seed;
    uint32_t process_count;
    enum worker_mutation mutation;
    enum sim_profile profile;
    /* Runs one seed of another world instead, to which the two above mean nothing; may be NULL. */
    status (*run)(void *context, uint64_t seed, struct sim_report *out, struct error *err);
    const atomic_bool *cancelled; /* May be NULL. */
    void *context;
    /* After every run, in any order; false: that is enough. */
    bool (*ran)(void *context, uint64_t seed, const struct sim_report *report);
};

MUST_USE status sim_farm_run(const struct scenarios *scenarios,
                             const struct sim_farm_options *options, struct error *err);

#endif
