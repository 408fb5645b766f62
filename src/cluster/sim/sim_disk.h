/* SPDX-License-Identifier: Apache-2.0 */
/* sim_disk.h - a worker's disk: input logs of jobs, and intent records of items in flight.
 *
 * It outlives its process. A crash may tear the end of a log (writes that had not reached the
 * disk); a disk may be lost whole, or be full for one job. An intent record stays until the item is
 * done; each end of the process with the item in flight counts against it, as evidence of a poison
 * message.
 *
 * Memory: owned. Failure: memory that runs out makes the disk full.
 */
#ifndef CLUSTER_SIM_SIM_DISK_H
#define CLUSTER_SIM_SIM_DISK_H

#include "engine/base/buf.h"
#include "engine/base/text.h"
#include "cluster/sim/world.h"

enum { SIM_DISK_JOBS = 32, SIM_DISK_INTENTS = 16, SIM_DISK_NAME_SIZE = 65 };

struct sim_log {
    char job[SIM_DISK_NAME_SIZE]; /* Empty: the slot is free. */
    struct buf bytes;             /* Records: u64 size, bytes, padding to 8. */
};

struct sim_intent {
    uint64_t item;    /* 0: none. */
    uint32_t starts;  /* Starts that found it in flight. */
    uint32_t holders; /* Of this incarnation. */
};

struct sim_disk {
    struct sim_log logs[SIM_DISK_JOBS];
    struct sim_intent intents[SIM_DISK_INTENTS];
    char full_for[SIM_DISK_NAME_SIZE]; /* The disk is full for this job, */
    status full_code;                  /* or its log has reached its limit. */
};

void sim_disk_done(struct sim_disk *disk);

/* STATUS_IO, STATUS_LIMIT: it does not fit, and the log is unchanged. */
MUST_USE status sim_disk_append(struct sim_disk *disk, const char *job, struct text record,
                                struct error *err);
void sim_disk_remove(struct sim_disk *disk, const char *job);
uint32_t sim_disk_job_count(const struct sim_disk *disk);
/* NULL: there is none. Borrowed until the job is removed. */
const struct sim_log *sim_disk_find(const struct sim_disk *disk, const char *job);

/* The logs in the order of their names: the next one after job `after`, or NULL. Borrowed until the
 * job is removed. */
const struct sim_log *sim_disk_next(const struct sim_disk *disk, const char *after);
/* The record at *in_out_at, which moves on; false: there is none. */
bool sim_log_record(const struct sim_log *log, size_t *in_out_at, struct text *out);

void sim_disk_hold(struct sim_disk *disk, uint64_t item);
void sim_disk_release(struct sim_disk *disk, uint64_t item);

/* The process has ended: no item is in flight, and ends of logs may be torn. */
void sim_disk_crash(struct sim_disk *disk, struct world *world, uint32_t torn_per_mille);
/* The most crashes that count against one of the items in flight. */
uint32_t sim_disk_suspicion(const struct sim_disk *disk);
void sim_disk_lose(struct sim_disk *disk);

#endif
