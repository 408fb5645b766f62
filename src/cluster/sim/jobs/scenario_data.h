/* SPDX-License-Identifier: Apache-2.0 */
/* scenario_data.h - the tables and questions of the simulator's scenarios. */
#ifndef CLUSTER_SIM_JOBS_SCENARIO_DATA_H
#define CLUSTER_SIM_JOBS_SCENARIO_DATA_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"

enum { SCENARIO_QUERIES_MAX = 4 };

struct scenario_spec {
    const char *name;
    const char *queries[SCENARIO_QUERIES_MAX]; /* NULL: no more. */
    uint32_t chunk_bytes;
    bool is_poisoned;
    uint64_t broadcast_limit; /* 0: the default. */
};

/* Poisoned ones last. */
extern const struct scenario_spec scenario_specs[];
extern const uint32_t scenario_spec_count;

/* Writes tables.sql, the queries and the data into a folder. */
MUST_USE status scenario_data_write(const char *folder, struct arena *arena, struct error *err);
/* Removes them, and the folder. */
void scenario_data_remove(const char *folder, struct arena *arena);

#endif
