/* SPDX-License-Identifier: Apache-2.0 */
/* scenario.h - small queries over small dirty tables, and their right answers.
 *
 *     scenarios_create -> (any number of runs, in any number of forked processes)* ->
 * scenarios_destroy
 *
 * The right answer is that of one undisturbed process: job_run over the same files, which stand in
 * a temporary folder while this is made and are gone afterwards. Chunks are cut once, so that a
 * simulated client has only to copy them.
 *
 * Memory: owned; read-only once made.
 */
#ifndef CLUSTER_SIM_JOBS_SCENARIO_H
#define CLUSTER_SIM_JOBS_SCENARIO_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/local/job.h"
#include "engine/plan/plan.h"
#include "engine/plan/counters.h"
#include "cluster/wire/api.h"

/* Mapping a chunk with this text in it kills the process. */
#define SCENARIO_POISON "arsenic"

struct scenario_chunk {
    struct buf body; /* As in cluster/wire/message.h. */
    uint64_t checksum;
};

struct scenario_table {
    struct scenario_chunk *chunks;
    uint64_t chunk_count;
    uint32_t *chunk_lines;
};

struct scenario {
    const char *name;
    bool is_poisoned; /* Has no answer in a cluster. */
    struct job *job;  /* Its plan and its files. */
    const struct plan *plan;
    struct job_request request;
    struct scenario_table *tables; /* By the plan's tables. */
    uint32_t *shard_counts;        /* By fold. */
    uint64_t chunk_count;          /* Of all scans. */
    struct buf *answers;           /* By query: CSV. */
    struct buf audit;              /* As text. */
};

struct scenarios {
    struct arena arena;
    struct scenario *items; /* Poisoned ones last. */
    uint32_t count;
    uint32_t healthy_count;
};

MUST_USE status scenarios_create(struct scenarios **out, struct error *err);
/* Accepts NULL. */
void scenarios_destroy(struct scenarios *scenarios);

/* Adds the rows of a batch, as the cluster encodes those of the query's result, to CSV. */
MUST_USE status scenario_put_rows(const struct scenario *scenario, uint32_t query,
                                  const struct buf *bytes, struct arena *arena, struct buf *out,
                                  struct error *err);
/* Checks that the counts reconcile and writes the audit. */
MUST_USE status scenario_check_counters(const struct scenario *scenario,
                                        const struct counters *counters, struct arena *arena,
                                        struct buf *out, struct error *err);

#endif
