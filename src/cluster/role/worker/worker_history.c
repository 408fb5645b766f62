/* SPDX-License-Identifier: Apache-2.0 */
/* worker_history.c - milestones of a job on this worker, for its timeline.
 *
 * Only moments of this incarnation are recorded: the input log tells what happened, but the time of
 * its beginning only. Other workers remember what this one forgot, and a gateway takes the earliest
 * time that a worker knows.
 */
#include <stdio.h>

#include "cluster/role/worker/worker_state.h"

void worker_history_note(struct worker_job *job, enum milestone_kind kind, uint64_t number)
{
    struct job_history *history = &job->history;
    if (job->worker->replaying || history->count == WORKER_MILESTONES) return;
    history->reached[history->count++] =
        (struct reached){.kind = kind, .at_ms = job->worker->now_ms, .number = number};
}

void worker_history_begun(struct worker_job *job, uint64_t age_ms)
{
    struct job_history *history = &job->history;
    uint64_t now_ms = job->worker->now_ms;
    if (age_ms == 0 || history->count > 0) return;
    /* Clocks that begin with the machine may not reach so far back. */
    job->created_ms = age_ms < now_ms ? now_ms - age_ms : 0;
    history->reached[history->count++] =
        (struct reached){.kind = MILESTONE_STORED, .at_ms = job->created_ms};
}

void worker_history_phase(struct worker_job *job, uint32_t phase)
{
    uint64_t bit = phase < 64 ? (uint64_t)1 << phase : 0;
    if (bit == 0 || (job->history.phases & bit) != 0) return;
    job->history.phases |= bit; /* Also while a log is read back: this phase is not news. */
    worker_history_note(job, MILESTONE_PHASE, (uint64_t)phase + 1);
}

void worker_history_end(struct worker_job *job, enum milestone_kind kind)
{
    struct worker *worker = job->worker;
    /* There is always room for how it ended. */
    if (job->history.count == WORKER_MILESTONES) job->history.count--;
    worker_history_note(job, kind, 0);
    struct ended_job *ended = &worker->ended[worker->next_ended++ % WORKER_ENDED];
    ended->history = job->history;
    (void)snprintf(ended->id, sizeof ended->id, "%s", job->id);
}

/* A job that was begun anew under its id is the one that is meant. */
static const struct job_history *find(const struct worker *worker, const struct worker_job *job,
                                      struct text id)
{
    if (job != NULL) return &job->history;
    for (uint32_t i = 0; i < WORKER_ENDED && i < worker->next_ended; i++) {
        uint32_t place = (worker->next_ended - 1 - i) % WORKER_ENDED; /* The latest first. */
        if (text_equal(text_of(worker->ended[place].id), id)) return &worker->ended[place].history;
    }
    return NULL;
}

void worker_history_tell(struct worker *worker, const struct worker_job *job, struct text id,
                         struct message_jobs *jobs)
{
    const struct job_history *history = find(worker, job, id);
    if (history == NULL) return;
    struct milestone *milestones =
        arena_array(&worker->arena, struct milestone, history->count + 1u);
    if (milestones == NULL) return;
    for (uint32_t i = 0; i < history->count; i++) {
        const struct reached *reached = &history->reached[i];
        milestones[i] = (struct milestone){.kind = reached->kind,
                                           .age_ms = worker->now_ms - reached->at_ms,
                                           .number = reached->number};
    }
    jobs->milestones = milestones;
    jobs->milestone_count = history->count;
}
