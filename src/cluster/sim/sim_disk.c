/* SPDX-License-Identifier: Apache-2.0 */
/* sim_disk.c - a few logs in memory, searched from the beginning: there are never many. */
#include "cluster/sim/sim_disk.h"

#include <stdio.h>

#include "engine/base/assert.h"

static uint32_t log_place(const struct sim_disk *disk, const char *job)
{
    uint32_t i = 0;
    while (i < SIM_DISK_JOBS && strcmp(disk->logs[i].job, job) != 0) {
        i++;
    }
    return i;
}

static struct sim_log *log_find(struct sim_disk *disk, const char *job)
{
    uint32_t place = log_place(disk, job);
    return place < SIM_DISK_JOBS ? &disk->logs[place] : NULL;
}

static void log_clear(struct sim_log *log)
{
    buf_done(&log->bytes);
    *log = (struct sim_log){0};
}

void sim_disk_done(struct sim_disk *disk)
{
    for (uint32_t i = 0; i < SIM_DISK_JOBS; i++) {
        log_clear(&disk->logs[i]);
    }
}

static status disk_full(status code, struct error *err)
{
    if (code == STATUS_LIMIT) return error_set(err, code, "the log has reached its limit");
    return error_set(err, STATUS_IO, "no space left on device");
}

status sim_disk_append(struct sim_disk *disk, const char *job, struct text record,
                       struct error *err)
{
    static const unsigned char zeros[8] = {0};
    ASSERT(job[0] != '\0' && record.size > 0);
    if (strcmp(disk->full_for, job) == 0) return disk_full(disk->full_code, err);
    struct sim_log *log = log_find(disk, job);
    if (log == NULL) {
        log = log_find(disk, "");
        if (log == NULL) return disk_full(STATUS_IO, err);
        (void)snprintf(log->job, sizeof log->job, "%s", job); /* Names of jobs fit. */
    }
    size_t before = log->bytes.size;
    buf_put_u64(&log->bytes, record.size);
    buf_put_text(&log->bytes, record);
    buf_put(&log->bytes, zeros, (8 - record.size % 8) % 8);
    if (log->bytes.failed) {
        log->bytes.failed = false;
        log->bytes.size = before;
        return disk_full(STATUS_IO, err);
    }
    return STATUS_OK;
}

void sim_disk_remove(struct sim_disk *disk, const char *job)
{
    struct sim_log *log = log_find(disk, job);
    if (log != NULL) log_clear(log);
}

uint32_t sim_disk_job_count(const struct sim_disk *disk)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SIM_DISK_JOBS; i++) {
        count += disk->logs[i].job[0] != '\0';
    }
    return count;
}

const struct sim_log *sim_disk_find(const struct sim_disk *disk, const char *job)
{
    uint32_t place = log_place(disk, job);
    return place < SIM_DISK_JOBS ? &disk->logs[place] : NULL;
}

const struct sim_log *sim_disk_next(const struct sim_disk *disk, const char *after)
{
    const struct sim_log *best = NULL;
    for (uint32_t i = 0; i < SIM_DISK_JOBS; i++) {
        const struct sim_log *log = &disk->logs[i];
        if (strcmp(log->job, after) <= 0) continue;
        if (best == NULL || strcmp(log->job, best->job) < 0) best = log;
    }
    return best;
}

bool sim_log_record(const struct sim_log *log, size_t *in_out_at, struct text *out)
{
    struct buf_reader reader = {
        .bytes = log->bytes.bytes, .size = log->bytes.size, .position = *in_out_at};
    if (buf_left(&reader) == 0) return false;
    uint64_t size = buf_get_u64(&reader);
    const void *bytes = buf_get(&reader, (size_t)size);
    ASSERT(!reader.failed);
    *out = (struct text){bytes, (uint32_t)size};
    *in_out_at = (reader.position + 7) & ~(size_t)7;
    return true;
}

/* ---- intent records ---- */

static struct sim_intent *intent_find(struct sim_disk *disk, uint64_t item)
{
    for (uint32_t i = 0; i < SIM_DISK_INTENTS; i++) {
        if (disk->intents[i].item == item) return &disk->intents[i];
    }
    return NULL;
}

static struct sim_intent *intent_for_new(struct sim_disk *disk)
{
    struct sim_intent *best = intent_find(disk, 0);
    if (best != NULL) return best;
    for (uint32_t i = 0; i < SIM_DISK_INTENTS; i++) {
        struct sim_intent *intent = &disk->intents[i];
        if (intent->holders > 0) continue;
        if (best == NULL || intent->starts < best->starts) best = intent;
    }
    return best;
}

void sim_disk_hold(struct sim_disk *disk, uint64_t item)
{
    if (item == 0) return;
    struct sim_intent *intent = intent_find(disk, item);
    if (intent == NULL) {
        intent = intent_for_new(disk);
        if (intent == NULL) return;
        *intent = (struct sim_intent){.item = item};
    }
    intent->holders++;
}

void sim_disk_release(struct sim_disk *disk, uint64_t item)
{
    if (item == 0) return;
    struct sim_intent *intent = intent_find(disk, item);
    if (intent == NULL) return;
    if (intent->holders > 0) intent->holders--;
    if (intent->holders == 0) *intent = (struct sim_intent){0};
}

/* ---- faults ---- */

/* Removes the last `count` records (at most 3), or all. */
static void log_tear(struct sim_log *log, uint32_t count)
{
    size_t ends[4] = {0}; /* Of the last records, the latest first. */
    size_t at = 0;
    struct text record;
    while (sim_log_record(log, &at, &record)) {
        for (uint32_t i = 3; i > 0; i--) {
            ends[i] = ends[i - 1];
        }
        ends[0] = at;
    }
    log->bytes.size = ends[count < 3 ? count : 3];
    if (log->bytes.size == 0) log_clear(log);
}

void sim_disk_crash(struct sim_disk *disk, struct world *world, uint32_t torn_per_mille)
{
    for (uint32_t i = 0; i < SIM_DISK_INTENTS; i++) {
        if (disk->intents[i].holders > 0) disk->intents[i].starts++;
        disk->intents[i].holders = 0;
    }
    for (uint32_t i = 0; i < SIM_DISK_JOBS; i++) {
        struct sim_log *log = &disk->logs[i];
        if (log->job[0] == '\0' || !world_chance(world, torn_per_mille)) continue;
        world_trace(world, "disk: the log of %s is torn", log->job);
        log_tear(log, world_between(world, 1, 3));
    }
}

uint32_t sim_disk_suspicion(const struct sim_disk *disk)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < SIM_DISK_INTENTS; i++) {
        const struct sim_intent *intent = &disk->intents[i];
        if (intent->holders > 0 && intent->starts > most) most = intent->starts;
    }
    return most;
}

void sim_disk_lose(struct sim_disk *disk)
{
    sim_disk_done(disk);
    for (uint32_t i = 0; i < SIM_DISK_INTENTS; i++) {
        disk->intents[i] = (struct sim_intent){0};
    }
}
