/* sim.h - a whole cluster in one thread, under faults made from a seed.
 *
 *     scenarios_create -> sim_run_seed* -> scenarios_destroy
 *
 * The roles, codecs and folds are those of the real program; clock, broker, disks and network are
 * simulated. After every run the promises are checked: every client has its exact answer and audit
 * that balance, each row once and in order, or the error it must have; nothing is left behind. The
 * same seed is the same run.
 *
 * Threads: one run at a time per process.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_H
#define CLUSTER_SIM_JOBS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "cluster/role/worker/worker.h"

struct scenarios;

/* What may go wrong. */
enum sim_profile {
    SIM_MIXED, /* Everything. */
    SIM_CALM,  /* Nothing; nor in the next two, in which no chunk may be sent twice either. */
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
extern const char *const sim_mutation_names[SIM_MUTATIONS];

struct sim_options {
    uint64_t seed;
    enum worker_mutation mutation;
    enum sim_profile profile;
    int trace_fd; /* -1: none. */
};

struct sim_report {
    bool ok;
    char reason[512]; /* One line; empty if ok. */
    uint64_t history; /* Equal for equal runs. */
    uint64_t chunk_count;
    uint64_t resent_count; /* Chunks sent again, for whatever reason. */
    uint64_t message_count;
    uint64_t repair_count; /* Messages that ask for what is missing. */
    uint64_t crash_count;
    uint64_t fault_count;
    uint64_t job_count;
    uint64_t restart_count; /* Of monitors' runs: what drivers were told, */
    uint64_t settle_ms;     /* and how long it took until all was well. */
    uint64_t simulated_ms;
    uint64_t step_count;
};

/* Fails only when memory is out or the like; what is wrong with the run is in the report. */
MUST_USE status sim_run_seed(const struct scenarios *scenarios, const struct sim_options *options,
                             struct sim_report *out, struct error *err);

#endif
