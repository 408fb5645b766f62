/* SPDX-License-Identifier: Apache-2.0 */
/* input_log.h - the input logs of a node's jobs: DIR/jobs/ID/log, one append-only file per job.
 *
 *     input_log_open -> input_log_replay -> (input_log_append | input_log_remove)* ->
 *     input_log_close
 *
 * The senders can send the contents of a log again: it is a cache. So it is never synced with
 * fsync. A killed process loses nothing, as the kernel has the bytes; a machine that loses power
 * may lose the end of a log, which is then cut off and re-requested. An fsync per message would
 * cost much and save only those re-requests.
 *
 * Memory: owned; of records, only the current one. Threads: one owner.
 * Failure: STATUS_IO names the path. A failed append leaves the log as it was.
 */
#ifndef CLUSTER_STORE_INPUT_LOG_H
#define CLUSTER_STORE_INPUT_LOG_H

#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

struct input_log;

struct input_log_options {
    uint32_t record_limit;     /* Bytes of the largest payload; 0: 1 GiB. */
    uint32_t descriptor_limit; /* Logs held open at a time; 0: 32. */
};

/* DIR exists; makes DIR/jobs if it is missing. */
MUST_USE status input_log_open(const char *dir, struct input_log_options options,
                               struct input_log **out, struct error *err);
/* Accepts NULL. */
void input_log_close(struct input_log *files);

enum input_log_notice_kind {
    INPUT_LOG_NOTICE_CUT,     /* A job's log had a damaged end: `lost_bytes` are cut off. */
    INPUT_LOG_NOTICE_REMOVED, /* A job's folder had no valid record, and was removed. */
    INPUT_LOG_NOTICE_JUNK     /* An unknown file in jobs/, which is left alone. */
};

struct input_log_notice {
    enum input_log_notice_kind kind;
    const char *name; /* Of the job or the junk; borrowed for the call. */
    uint64_t kept_bytes;
    uint64_t lost_bytes;
    const char *reason;
};

/* The receiver of a replay. */
struct log_replay {
    /* One record; the bytes are aligned to 8 and may be moved. The callback may remove the job of
     * the record, whose remaining records are then skipped, and call nothing else. */
    status (*record)(struct log_replay *replay, const char *job, struct buf *bytes,
                     struct error *err);
    void (*notice)(struct log_replay *replay, const struct input_log_notice *notice);
};

struct input_log_report {
    uint64_t job_count; /* Jobs that have a log now. */
    uint64_t record_count;
    uint64_t payload_bytes;
    uint64_t cut_count;
    uint64_t lost_bytes;
    uint64_t removed_count;
    uint64_t junk_count;
};

/* Once, before the first append: all records of all jobs, by job id and then in the order in which
 * they were appended. A log is cut at its first damaged record; the lost bytes are counted. */
MUST_USE status input_log_replay(struct input_log *files, struct log_replay *replay,
                                 struct input_log_report *out_report, struct error *err);

/* Appends a record (not empty), in one write. A job's first makes its folder. STATUS_LIMIT: the log
 * would be larger than `quota_bytes` (0: no limit), or the record is larger than the limit. */
MUST_USE status input_log_append(struct input_log *files, const char *job, struct text payload,
                                 uint64_t quota_bytes, struct error *err);
/* When the job's log was created, in ms since 1970 by the wall clock; 0: there is none. */
int64_t input_log_begun_ms(const struct input_log *files, const char *job);
/* Removes the job's folder and all in it; a missing one is fine. */
MUST_USE status input_log_remove(struct input_log *files, const char *job, struct error *err);

#endif
