/* SPDX-License-Identifier: Apache-2.0 */
/* submission.h - the identity of a job: its id and owner key, new or from the client journal of an
 * earlier incarnation.
 *
 *     submission_begin -> (the job runs) -> submission_end
 *
 * The journal exists before the first request, so that a client that is killed at any moment can
 * resume. It is removed when the job has ended, whatever its result, or was never accepted, and
 * kept when the job can be resumed.
 *
 * Memory: all lives in the given arena. Threads: one owner.
 */
#ifndef CLI_CLUSTER_SUBMISSION_H
#define CLI_CLUSTER_SUBMISSION_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "cli/cluster/gateways.h"
#include "engine/local/job.h"
#include "cluster/node/client_journal.h"

struct submission_options {
    const char *id; /* As the user gave it; NULL: any. */
    struct job *job;
    const struct job_options *job_options;
    const struct gateways *gateways;
};

struct submission {
    const char *id;
    const char *owner_key;
    struct client_journal *journal; /* NULL: there is none; `journal_failure` says why. */
    struct error journal_failure;
    bool resumed;
    const struct client_sent_chunk *sent;
    uint64_t sent_count;
};

/* STATUS_USAGE: the journal of that id belongs to another question, or another client uses it. */
MUST_USE status submission_begin(struct submission *submission,
                                 const struct submission_options *options, struct arena *arena,
                                 struct error *err);
/* How the job ended. */
struct submission_outcome {
    status result;
    bool was_taken; /* By some gateway, in this incarnation. */
};
/* Whether it can be resumed later. Accepts a zeroed one. */
bool submission_end(struct submission *submission, struct submission_outcome outcome);

/* Removes the journal of a cancelled job; false: there is none, or a client that still runs uses it
 * and will remove it. */
MUST_USE status submission_forget(const char *id, struct arena *arena, bool *out_removed,
                                  struct error *err);

#endif
