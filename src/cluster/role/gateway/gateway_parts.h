/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_parts.h - the files of a gateway, from the lowest to the highest.
 *
 *     gateway_requests.c    requests that wait: found, sent for, answered
 *     gateway_jobs.c        the table of jobs, and those that have ended
 *     gateway_membership.c  nodes and events, as the monitors' leader reports them
 *     gateway_view.c        state and progress of a job, from what each worker last said
 *     gateway_rounds.c      rounds of asking the workers
 *     gateway_accept.c      PUT job, until every worker has stored it or one did not
 *     gateway_chunks.c      PUT chunk and PUT end
 *     gateway_progress.c    GET job: waits for news
 *     gateway_results.c     GET result
 *     gateway_removal.c     DELETE job, and what is answered about a job that is gone
 *     gateway_timeline.c    GET timeline: what happened to a job
 *     gateway_lists.c       GET jobs, GET nodes
 *     gateway_dispatch.c    from a request to its job; deadlines; what the end of a round means
 *     gateway.c             events in; health and metrics
 *
 * A file calls only what stands before it in this list: there is no circle. What a lower file finds
 * out for a higher one is its result (enum gateway_round_result, a job that has become known).
 *
 * Private to gateway*.c. A request is answered exactly once; answering frees it, so a function that
 * answers returns at once.
 */
#ifndef CLUSTER_ROLE_GATEWAY_GATEWAY_PARTS_H
#define CLUSTER_ROLE_GATEWAY_GATEWAY_PARTS_H

#include "cluster/role/gateway/gateway_state.h"

/* ---- gateway_requests.c ---- */

/* NULL: out of memory. */
struct gateway_request *gateway_request_add(struct gateway *gateway, uint64_t id,
                                            const struct api_request *api);

/* Readers of what belongs to one kind; they assert the kind. */
struct gateway_put_job *gateway_put_job_of(struct gateway_request *request);
struct gateway_get_job *gateway_get_job_of(struct gateway_request *request);
struct gateway_get_result *gateway_get_result_of(struct gateway_request *request);
struct gateway_put_chunk *gateway_put_chunk_of(struct gateway_request *request);
struct gateway_delete_job *gateway_delete_job_of(struct gateway_request *request);
/* Of GET jobs, GET nodes and GET timeline. */
struct gateway_list *gateway_list_of(struct gateway_request *request);

/* Is one of its job's `removals`. */
bool gateway_request_removes(const struct gateway_request *request);
/* Answers and frees; the body is moved. */
void gateway_request_reply(struct gateway *gateway, struct gateway_request *request,
                           uint32_t status_code, const char *content_type, struct buf *body);
void gateway_request_reply_empty(struct gateway *gateway, struct gateway_request *request,
                                 uint32_t status_code);
void gateway_request_refuse(struct gateway *gateway, struct gateway_request *request,
                            uint32_t status_code, status code, const char *format, ...)
    PRINTF_LIKE(5, 6);
void gateway_request_refuse_later(struct gateway *gateway, struct gateway_request *request,
                                  uint32_t status_code, uint32_t retry_ms, const char *text);
void gateway_request_refuse_error(struct gateway *gateway, struct gateway_request *request,
                                  uint32_t status_code, const struct error *err);
/* Answers one that never became a request that waits. */
void gateway_reply_refusal(struct gateway *gateway, uint64_t id, uint32_t status_code,
                           uint32_t retry_ms, const char *text);
/* Frees without an answer. */
void gateway_request_drop(struct gateway *gateway, struct gateway_request *request);
/* Keeps a copy of the request until its job is known; false: refused, memory is out. */
MUST_USE bool gateway_request_hold(struct gateway *gateway, struct gateway_request *request,
                                   const struct api_request *api);
/* Tokens for `count` messages; false: refused, memory is out. */
MUST_USE bool gateway_request_take_tokens(struct gateway *gateway, struct gateway_request *request,
                                          uint32_t count);
/* One message to every worker, each with a token; then the request waits. False: as above. */
bool gateway_request_send_all(struct gateway *gateway, struct gateway_request *request,
                              const struct message *message, enum gateway_wait wait);
struct gateway_request *gateway_request_by_id(struct gateway *gateway, uint64_t id);
struct gateway_request *gateway_request_by_token(struct gateway *gateway, uint64_t token);
struct gateway_request *gateway_request_by_number(struct gateway *gateway, enum gateway_wait wait,
                                                  uint64_t number);
/* Its unconfirmed messages are not to be published (again). */
void gateway_request_revoke(struct gateway *gateway, struct gateway_request *request);
void gateway_requests_destroy(struct gateway *gateway);

/* The number of the worker in the configuration, or worker_count. */
uint32_t gateway_worker_named(const struct gateway *gateway, struct text name);
/* Encodes to inbox `to`; token 0: its confirmation is of no interest. */
void gateway_send(struct gateway *gateway, struct text to, const struct message *message,
                  uint64_t token);
/* To every worker; to worker i with token first_token + i, unless it is 0. */
void gateway_send_all(struct gateway *gateway, const struct message *message, uint64_t first_token);
/* The head of a message; its fields are to be filled in. */
struct message gateway_message(const struct gateway *gateway, enum message_kind kind,
                               struct text job, uint64_t manifest);
uint64_t gateway_next_number(struct gateway *gateway);

/* ---- gateway_jobs.c ---- */

struct gateway_job *gateway_job_find(struct gateway *gateway, struct text id);
/* Makes room by forgetting the job that was asked for least recently; NULL: requests wait for all
 * of them, or memory is out. */
struct gateway_job *gateway_job_add(struct gateway *gateway, struct text id);
/* Takes the layout over, also on failure. */
MUST_USE status gateway_job_learn(struct gateway *gateway, struct gateway_job *job,
                                  struct job_layout *layout, struct error *err);
/* No request but removals may wait for it. */
void gateway_job_forget(struct gateway *gateway, struct gateway_job *job);
bool gateway_job_is_waited_for(const struct gateway *gateway, const struct gateway_job *job);
/* Another client speaks of a job of this name. Unless the job that we know was asked for lately, it
 * is forgotten (true), so that the workers say whose it is. */
MUST_USE bool gateway_job_forget_old(struct gateway *gateway, struct gateway_job *job);
void gateway_jobs_destroy(struct gateway *gateway);
void gateway_jobs_expire(struct gateway *gateway);
/* A round was over lately. */
bool gateway_job_is_fresh(const struct gateway *gateway, const struct gateway_job *job);
/* The worker has this very job. */
bool gateway_peer_knows(const struct gateway_job *job, const struct gateway_peer *peer);

void gateway_ended_add(struct gateway *gateway, struct text id, enum job_state state);
/* False: it did not end lately, as far as we know. */
bool gateway_ended_state(struct gateway *gateway, struct text id, enum job_state *out_state);
/* The job is gone from all workers; remembers it as expired if its owner was silent for long. */
void gateway_job_note_expired(struct gateway *gateway, const struct gateway_job *job);

/* ---- gateway_membership.c ---- */

void gateway_membership_take_view(struct gateway *gateway, const struct view *view);
void gateway_membership_take_events(struct gateway *gateway, const struct event_list *list);
/* There are monitors, and their leader spoke lately. */
bool gateway_membership_is_fresh(const struct gateway *gateway);
void gateway_membership_done(struct gateway *gateway);

/* ---- gateway_view.c ---- */

bool gateway_job_scan_open(const struct gateway *gateway, const struct gateway_job *job,
                           uint32_t scan);
/* False: a worker concerned has not answered yet. */
bool gateway_job_scan_limit(const struct gateway *gateway, const struct gateway_job *job,
                            uint32_t scan, uint64_t *out_limit);
enum job_state gateway_job_state_of(const struct gateway *gateway, const struct gateway_job *job);
enum gateway_reader { READER_OTHER, READER_OWNER };
/* In the scratch arena; the owner's has re-requests. False: out of memory. */
MUST_USE bool gateway_job_view_make(struct gateway *gateway, const struct gateway_job *job,
                                    enum gateway_reader reader, struct job_view *out);

/* ---- gateway_rounds.c ---- */

/* Begins a round if one is due. */
void gateway_round_consider(struct gateway *gateway, struct gateway_job *job);
/* Moves the bytes of the event if they are worth keeping. Returns the job whose round has now been
 * answered by all, or NULL. */
struct gateway_job *gateway_round_take_status(struct gateway *gateway,
                                              const struct message *message, struct buf *bytes);
bool gateway_round_is_late(const struct gateway *gateway, const struct gateway_job *job);

/* What the workers have said in a round. */
enum gateway_round_result {
    ROUND_NEWS,    /* Of a job that is known. */
    ROUND_SEEKING, /* The job is not known here yet, and a worker may have it. */
    ROUND_NO_JOB   /* Every worker has answered, and none has the job. */
};
enum gateway_round_result gateway_round_end(struct gateway *gateway, struct gateway_job *job);
/* The connection to the broker is lost, and the rounds with it. */
void gateway_rounds_abandon(struct gateway *gateway);

/* ---- gateway_accept.c ---- */

void gateway_accept_begin(struct gateway *gateway, struct gateway_request *request,
                          const struct api_request *api);
/* Returns the job that is now accepted, or NULL. */
struct gateway_job *gateway_accept_take_stored(struct gateway *gateway,
                                               const struct message *message);
void gateway_accept_returned(struct gateway *gateway, struct gateway_request *request,
                             uint32_t worker);
/* The deadline has passed. */
void gateway_accept_give_up(struct gateway *gateway, struct gateway_request *request);

/* ---- gateway_chunks.c ---- */

/* What can be checked without knowing the job; false: refused. */
MUST_USE bool gateway_chunk_check(struct gateway *gateway, struct gateway_request *request,
                                  const struct api_request *api);
void gateway_chunk_put(struct gateway *gateway, struct gateway_request *request,
                       const struct api_request *api, struct gateway_job *job);
void gateway_chunk_confirmed(struct gateway *gateway, struct gateway_request *request);
void gateway_end_put(struct gateway *gateway, struct gateway_request *request,
                     const struct api_request *api, struct gateway_job *job);

/* ---- gateway_progress.c ---- */

void gateway_progress_begin(struct gateway_request *request, const struct api_request *api,
                            struct gateway_job *job);
/* Answers with what is known now. */
void gateway_progress_reply(struct gateway *gateway, struct gateway_request *request);
void gateway_progress_reply_ended(struct gateway *gateway, struct gateway_request *request,
                                  enum job_state state);
/* A round is over: answers those for whom it has news. */
void gateway_progress_tell(struct gateway *gateway, struct gateway_job *job);
/* Answers once the client's own time is over. */
void gateway_progress_tick(struct gateway *gateway, struct gateway_request *request);

/* ---- gateway_results.c ---- */

void gateway_result_begin(struct gateway *gateway, struct gateway_request *request,
                          const struct api_request *api, const struct gateway_job *job);
void gateway_result_take(struct gateway *gateway, const struct message *message);

/* ---- gateway_removal.c ---- */

/* `job` NULL: not known here. */
void gateway_removal_begin(struct gateway *gateway, struct gateway_request *request,
                           const struct api_request *api, struct gateway_job *job);
void gateway_removal_confirmed(struct gateway *gateway, struct gateway_request *request);
/* No worker has the job: answers all who wait for it, and forgets it. */
void gateway_removal_job_gone(struct gateway *gateway, struct gateway_job *job);
/* There is no such job: 404, or how it ended. */
void gateway_removal_no_job(struct gateway *gateway, struct gateway_request *request);

/* ---- gateway_timeline.c ---- */

/* `silent`: names of the workers that did not answer. */
void gateway_timeline_reply(struct gateway *gateway, struct gateway_request *request,
                            struct text silent);

/* ---- gateway_lists.c ---- */

/* GET jobs, GET nodes, GET timeline. */
void gateway_list_begin(struct gateway *gateway, struct gateway_request *request);
void gateway_list_take_jobs(struct gateway *gateway, const struct message *message);
/* The broker has said how long its queues are. */
void gateway_list_take_measured(struct gateway *gateway, struct buf *depths);
/* Those that waited long enough for it. */
void gateway_list_tick(struct gateway *gateway);
/* With what has come so far. */
void gateway_list_reply(struct gateway *gateway, struct gateway_request *request);

/* ---- gateway_dispatch.c ---- */

/* A request about a job, but PUT job and GET timeline. */
void gateway_dispatch_begin(struct gateway *gateway, struct gateway_request *request,
                            const struct api_request *api);
/* The job has become known: continues with the requests that waited for that. */
void gateway_dispatch_job_known(struct gateway *gateway, struct gateway_job *job);
void gateway_dispatch_take_manifest(struct gateway *gateway, const struct message *message);
void gateway_dispatch_take_status(struct gateway *gateway, const struct message *message,
                                  struct buf *bytes);
/* The broker has confirmed all messages of the request. */
void gateway_dispatch_confirmed(struct gateway *gateway, struct gateway_request *request);
/* Ends rounds and requests whose time is over. */
void gateway_dispatch_tick(struct gateway *gateway);
/* Answers what needs no confirmation: the gateway stops. */
void gateway_dispatch_stop(struct gateway *gateway);

#endif
