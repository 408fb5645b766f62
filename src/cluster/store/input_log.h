/* input_log.h - the input logs of a node's jobs: DIR/jobs/ID/log, one append-only file per job.
 *
 *     input_log_open -> input_log_replay -> (input_log_append | input_log_remove)* ->
 * input_log_close
 *
 * What a log holds can be had again from whoever sent it: the store is a cache. So nothing is
 * brought to the disk with fsync. A killed process loses nothing, as the system has the bytes; a
 * machine that loses power may lose the end of a log, which is then cut off and asked for again.
 * Waiting for the disk at every message would cost much and save only that asking.
 *
 * Memory: of its own; of records, only the one in flight. Threads: one owner.
 * Failure: STATUS_IO names the path. A log that could not be written is as it was before the
 * append.
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

/* Makes DIR/jobs if it is not there; DIR is. */
MUST_USE status input_log_open(const char *dir, struct input_log_options options,
                               struct input_log **out, struct error *err);
/* Accepts NULL. */
void input_log_close(struct input_log *files);

enum input_log_notice_kind {
    INPUT_LOG_NOTICE_CUT,     /* A job's log had a damaged end: `lost_bytes` are cut off. */
    INPUT_LOG_NOTICE_REMOVED, /* A job's folder had no usable record, and is gone. */
    INPUT_LOG_NOTICE_JUNK     /* Something that is not ours was found in jobs/ and left alone. */
};

struct input_log_notice {
    enum input_log_notice_kind kind;
    const char *name; /* Of the job or the junk; borrowed for the call. */
    uint64_t kept_bytes;
    uint64_t lost_bytes;
    const char *reason;
};

/* Who hears what the logs hold. */
struct log_replay {
    /* One record; the bytes are aligned to 8 and may be moved away. The job that the record is of
     * may be removed from here, and is then not read on; nothing else may be called. */
    status (*record)(struct log_replay *replay, const char *job, struct buf *bytes,
                     struct error *err);
    void (*notice)(struct log_replay *replay, const struct input_log_notice *notice);
};

struct input_log_report {
    uint64_t job_count; /* Folders that are logs now. */
    uint64_t record_count;
    uint64_t payload_bytes;
    uint64_t cut_count;
    uint64_t lost_bytes;
    uint64_t removed_count;
    uint64_t junk_count;
};

/* Once, before anything is appended: all records of all jobs, by job id and then in the order in
 * which they were appended. What stands behind the first damage of a log is cut off and counted. */
MUST_USE status input_log_replay(struct input_log *files, struct log_replay *replay,
                                 struct input_log_report *out_report, struct error *err);

/* Appends a record (not empty), in one write. A job's first makes its folder. STATUS_LIMIT: the log
 * would be larger than `quota_bytes` (0: no limit), or the record is larger than the limit. */
MUST_USE status input_log_append(struct input_log *files, const char *job, struct text payload,
                                 uint64_t quota_bytes, struct error *err);
/* How large the job's log is; 0: there is none. */
uint64_t input_log_size(const struct input_log *files, const char *job);
/* When the job's log was begun, in ms since 1970; 0: there is none. Only as good as the clock was.
 */
int64_t input_log_begun_ms(const struct input_log *files, const char *job);
/* Removes the job's folder and all in it; one that is not there is fine. */
MUST_USE status input_log_remove(struct input_log *files, const char *job, struct error *err);

#endif
