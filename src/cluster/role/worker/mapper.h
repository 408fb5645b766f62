/* SPDX-License-Identifier: Apache-2.0 */
/* mapper.h - a chunk through the maps of its scan: one message for each worker comes out.
 *
 * A map is a stateless pipeline over one batch.
 *
 *     mapper_create -> mapper_run* (mapper_sweep between) -> mapper_destroy
 *
 * The outputs depend on the chunk, the layout and the copies of finished folds only: any worker,
 * however often it maps the chunk, makes the same bytes. So a chunk may be mapped twice.
 *
 * Memory: a task owns what it holds; map_task_destroy. A mapper keeps what it prepared for the jobs
 * it has worked for, until they end. Threads: one mapper per thread; a task belongs to one
 * thread at a time.
 */
#ifndef CLUSTER_ROLE_WORKER_MAPPER_H
#define CLUSTER_ROLE_WORKER_MAPPER_H

#include <stdatomic.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/exec/pipeline.h"
#include "cluster/role/job_layout.h"
#include "cluster/wire/message.h"

/* What maps of a job need; shared by the worker and its map threads. Entries of `finished` are
 * written before the first task that needs them is made. */
struct map_job {
    struct job_layout *layout;
    struct budget budget; /* Of the whole job on this worker. */
    struct finished finished;
    struct text worker; /* The sender's name in the messages. */
    char worker_name[65];
    atomic_bool ended;
    atomic_uint_fast32_t uses;
    void (*destroy)(struct map_job *job); /* At the last release. */
};

struct map_job *map_job_keep(struct map_job *job);
void map_job_release(struct map_job *job);

struct map_task {
    uint64_t id;
    struct map_job *job; /* Kept. */
    uint32_t scan;
    uint64_t number;
    uint64_t checksum;
    uint64_t item;      /* Names it in the intent record. */
    struct buf message; /* The CHUNK as it came, */
    struct text body;   /* and its body in there. */
    /* Afterwards: */
    bool is_damaged; /* The body is not what its checksum says: nothing was made of it. */
    status result;
    struct error error;  /* For the user: names the query, or file and line. */
    struct buf *outputs; /* By worker; empty: nothing goes there. */
    uint32_t output_count;
};

void map_task_destroy(struct map_task *task);

struct mapper;

MUST_USE status mapper_create(struct mapper **out, struct error *err);
void mapper_destroy(struct mapper *mapper);
/* Fills in the task's result. */
void mapper_run(struct mapper *mapper, struct map_task *task);
/* Frees what is kept for jobs that have ended. */
void mapper_sweep(struct mapper *mapper);

#endif
