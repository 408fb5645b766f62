/* sim_disk.h - a worker's disk: logs of jobs, and notes of what is in flight.
 *
 * It outlives its process. A crash may tear the end of a log; a disk may be lost whole, or have no
 * room for one job. A note stays until its item was dealt with; only ends of the process with the
 * item in flight count against it.
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
    char job[SIM_DISK_NAME_SIZE]; /* Empty: there is none. */
    struct buf bytes;             /* Records: u64 size, bytes, padding to 8. */
};

struct sim_note {
    uint64_t item;    /* 0: none. */
    uint32_t starts;  /* That found it: it was in flight when the incarnation before ended. */
    uint32_t holders; /* Of this incarnation. */
};

struct sim_disk {
    struct sim_log logs[SIM_DISK_JOBS];
    struct sim_note intents[SIM_DISK_INTENTS];
    char full_for[SIM_DISK_NAME_SIZE]; /* There is no room for this job, */
    status full_code;                  /* or its log has reached its limit. */
};

void sim_disk_done(struct sim_disk *disk);

/* STATUS_IO, STATUS_LIMIT: there is no room, and the log is as it was. */
MUST_USE status sim_disk_append(struct sim_disk *disk, const char *job, struct text record,
                                struct error *err);
void sim_disk_remove(struct sim_disk *disk, const char *job);
uint32_t sim_disk_job_count(const struct sim_disk *disk);
uint64_t sim_disk_size(const struct sim_disk *disk, const char *job);

/* The logs in the order of their names: the next one after job `after`, or NULL. It is borrowed,
 * and empty when it is removed. */
const struct sim_log *sim_disk_next(const struct sim_disk *disk, const char *after);
/* The record at *in_out_at, which moves on; false: there is none. */
bool sim_log_record(const struct sim_log *log, size_t *in_out_at, struct text *out);

void sim_disk_hold(struct sim_disk *disk, uint64_t item);
void sim_disk_release(struct sim_disk *disk, uint64_t item);

/* The process has ended: nothing is in flight, and ends of logs may be torn. */
void sim_disk_crash(struct sim_disk *disk, struct world *world, uint32_t torn_per_mille);
/* How many crashes are held against what is in flight now, at most. */
uint32_t sim_disk_suspicion(const struct sim_disk *disk);
void sim_disk_lose(struct sim_disk *disk);

#endif
