/* gateway_parts.h - what the parts of a gateway do for each other.
 *
 * Private to gateway*.c. They are:
 *
 *     gateway.c           events in; health and metrics
 *     gateway_lists.c     all jobs, all nodes
 *     gateway_timeline.c  what happened to a job
 *     gateway_membership.c     what monitors say
 *     gateway_accept.c    PUT of a job, until every worker has stored it or one did not
 *     gateway_calls.c     all other requests about a job
 *     gateway_sync.c      rounds of asking the workers, and what they say
 *     gateway_requests.c  requests that wait: found, failed, answered
 *     gateway_jobs.c      what is known of a job, and the view that clients get
 *
 * A request is answered exactly once; answering frees it, so whoever answers returns at once.
 */
#ifndef CLUSTER_ROLE_GATEWAY_GATEWAY_PARTS_H
#define CLUSTER_ROLE_GATEWAY_GATEWAY_PARTS_H

#include "cluster/role/gateway/gateway_state.h"

/* ---- gateway_requests.c ---- */

/* NULL: out of memory. */
struct gateway_request *gateway_request_add(struct gateway *gateway, uint64_t id,
                                            const struct api_request *api);
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
/* Keeps a copy of what was asked until the job is known; false: it was refused for want of memory.
 */
MUST_USE bool gateway_request_hold(struct gateway *gateway, struct gateway_request *request,
                                   const struct api_request *api);
/* Tokens for `count` messages; false: refused. */
MUST_USE bool gateway_request_take_tokens(struct gateway *gateway, struct gateway_request *request,
                                          uint32_t count);
struct gateway_request *gateway_request_by_id(struct gateway *gateway, uint64_t id);
struct gateway_request *gateway_request_by_token(struct gateway *gateway, uint64_t token);
struct gateway_request *gateway_request_by_number(struct gateway *gateway, enum gateway_wait wait,
                                                  uint64_t number);
/* Unanswered messages of it are not to be published (again). */
void gateway_request_revoke(struct gateway *gateway, struct gateway_request *request);
void gateway_requests_destroy(struct gateway *gateway);

/* The number of the worker in the configuration, or worker_count. */
uint32_t gateway_worker_named(const struct gateway *gateway, struct text name);
/* Encodes to inbox `to`; token 0: nobody waits. */
void gateway_send(struct gateway *gateway, struct text to, const struct message *message,
                  uint64_t token);
uint64_t gateway_next_number(struct gateway *gateway);

/* ---- gateway_jobs.c ---- */

struct gateway_job *gateway_job_find(struct gateway *gateway, struct text id);
/* Makes room by forgetting the one that was asked for least recently; NULL: all are being waited
 * for, or memory is out. */
struct gateway_job *gateway_job_add(struct gateway *gateway, struct text id);
/* Takes the shape over, also on failure. */
MUST_USE status gateway_job_learn(struct gateway *gateway, struct gateway_job *job,
                                  struct layout *layout, struct error *err);
/* Nothing may wait for it. */
void gateway_job_forget(struct gateway *gateway, struct gateway_job *job);
bool gateway_job_is_waited_for(const struct gateway *gateway, const struct gateway_job *job);
/* Somebody else speaks of a job of this name. Unless there are signs of incarnation of the one that
 * we know, it is forgotten (true), so that the workers say whose it is. */
MUST_USE bool gateway_job_forget_old(struct gateway *gateway, struct gateway_job *job);
void gateway_jobs_destroy(struct gateway *gateway);
void gateway_jobs_expire(struct gateway *gateway);

/* The worker has this very job. */
bool gateway_peer_knows(const struct gateway_job *job, const struct gateway_peer *peer);
bool gateway_job_is_fresh(const struct gateway *gateway, const struct gateway_job *job);
bool gateway_job_scan_open(const struct gateway *gateway, const struct gateway_job *job,
                           uint32_t scan);
/* False: some worker concerned has not told yet. */
bool gateway_job_scan_limit(const struct gateway *gateway, const struct gateway_job *job,
                            uint32_t scan, uint64_t *out_limit);
enum job_state gateway_job_state_of(const struct gateway *gateway, const struct gateway_job *job);
enum gateway_reader { READER_ANYBODY, READER_OWNER };
/* In the scratch arena; the owner's has wants. False: out of memory. */
MUST_USE bool gateway_job_view_make(struct gateway *gateway, const struct gateway_job *job,
                                    enum gateway_reader reader, struct job_view *out);

/* Notes at the end of a round what is in flight anywhere, and what is wanted; false: out of memory.
 */
MUST_USE bool gateway_job_note_round(const struct gateway *gateway, struct gateway_job *job);

void gateway_ended_add(struct gateway *gateway, struct text id, enum job_state state);
void gateway_ended_remove(struct gateway *gateway, struct text id);
/* False: it did not end lately, as far as we know. */
bool gateway_ended_state(struct gateway *gateway, struct text id, enum job_state *out_state);
/* Nobody has the job any more, because its owner has not asked for it for too long. */
void gateway_job_note_expired(struct gateway *gateway, const struct gateway_job *job);

/* ---- gateway_sync.c ---- */

/* Begins a round if one is due. */
void gateway_sync_consider(struct gateway *gateway, struct gateway_job *job);
void gateway_sync_tick(struct gateway *gateway);
/* Moves the bytes of the event if they are worth keeping. */
void gateway_sync_take_status(struct gateway *gateway, const struct message *message,
                              struct event *event);
void gateway_sync_take_manifest(struct gateway *gateway, const struct message *message);
/* The broker is gone, and the rounds with it. */
void gateway_sync_abandon(struct gateway *gateway);

/* ---- gateway_lists.c ---- */

/* GET jobs, GET nodes, GET timeline. */
void gateway_list_begin(struct gateway *gateway, struct gateway_request *request);
void gateway_list_take_jobs(struct gateway *gateway, const struct message *message);
/* The broker has said how long its queues are. */
void gateway_list_take_measured(struct gateway *gateway, struct event *event);
/* Those that waited long enough. */
void gateway_list_tick(struct gateway *gateway);
/* With what has come so far. */
void gateway_list_reply(struct gateway *gateway, struct gateway_request *request);
/* Names of those who did not answer, for people; in the scratch arena. `listed` may be NULL. */
struct text gateway_list_silent(struct gateway *gateway, const struct gateway_listed *listed);

/* ---- gateway_timeline.c ---- */

void gateway_timeline_reply(struct gateway *gateway, struct gateway_request *request);

/* ---- gateway_membership.c ---- */

void gateway_membership_take_view(struct gateway *gateway, const struct view *view);
void gateway_membership_take_events(struct gateway *gateway, const struct event_list *list);
/* There are monitors, and their leader spoke lately. */
bool gateway_membership_is_fresh(const struct gateway *gateway);
void gateway_membership_done(struct gateway *gateway);

/* ---- gateway_accept.c ---- */

void gateway_accept_begin(struct gateway *gateway, struct gateway_request *request,
                          const struct api_request *api);
void gateway_accept_take_stored(struct gateway *gateway, const struct message *message);
void gateway_accept_returned(struct gateway *gateway, struct gateway_request *request,
                             uint32_t worker);
/* The time is over. */
void gateway_accept_give_up(struct gateway *gateway, struct gateway_request *request);

/* ---- gateway_calls.c ---- */

/* What is asked of a job, but PUT. */
void gateway_call_begin(struct gateway *gateway, struct gateway_request *request,
                        const struct api_request *api);
void gateway_call_confirmed(struct gateway *gateway, struct gateway_request *request);
void gateway_call_take_result(struct gateway *gateway, const struct message *message);
/* A round is over: answers those who can be. */
void gateway_call_tell(struct gateway *gateway, struct gateway_job *job);
/* The job is known now: goes on with those who waited for that. */
void gateway_call_resume(struct gateway *gateway, struct gateway_job *job);
/* No worker knows the job: answers all who wait for it, and forgets it. */
void gateway_call_job_gone(struct gateway *gateway, struct gateway_job *job);
/* There is no such job: 404, or that it was cancelled. */
void gateway_call_no_job(struct gateway *gateway, struct gateway_request *request);
/* The time of those that wait for it is over, or the gateway stops. */
void gateway_call_tick(struct gateway *gateway);
void gateway_call_stop(struct gateway *gateway);

#endif
