/* SPDX-License-Identifier: Apache-2.0 */
/* sim_http.h - HTTP between clients and gateways, and what the network does to it.
 *
 *     request -> deliver (at the gateway) -> sim_http_reply -> answered -> returned (at the sender)
 *
 * The network knows numbers of senders and gateways, not the processes behind them: those register
 * receivers. A gateway gets a request as EVENT_REQUEST, whose number is that of the call. The owner
 * of a process says when it dies; calls that it had part in fail.
 */
#ifndef CLUSTER_SIM_JOBS_SIM_HTTP_H
#define CLUSTER_SIM_JOBS_SIM_HTTP_H

#include "engine/base/arena.h"
#include "cluster/role/event.h"
#include "cluster/sim/world.h"
#include "cluster/wire/api.h"

/* Senders that are no clients; numbers of clients are lower. */
enum { SIM_HTTP_OBSERVER = 1000, SIM_HTTP_ADVERSARY };

enum sim_call_state {
    CALL_GOING,
    CALL_THERE, /* The gateway has it. */
    CALL_BACK
};

struct sim_call {
    struct sim_call *next;
    uint64_t id;
    uint32_t sender;
    uint32_t gateway;
    uint64_t request_id; /* The sender's. */
    enum sim_call_state state;
    bool failed; /* The sender gets no reply: the connection broke. */
    bool reply_is_lost;
    struct arena arena;
    struct api_line line;
    struct api_request request;
    struct api_reply reply;
};

struct sim_http {
    struct world *world;
    uint32_t delay_ms; /* At most, one way. */
    uint32_t loss_per_mille;
    struct sim_call *calls;
    uint64_t next_call;
    void *context; /* Of the receivers: */
    /* An event of a gateway; false: it is down. */
    bool (*deliver)(void *context, uint32_t gateway, struct event *event);
    /* A gateway has answered; the reply is not under way yet. */
    void (*answered)(void *context, const struct sim_call *call);
    /* The reply has reached its sender, or the call has failed. */
    void (*returned)(void *context, struct sim_call *call);
};

void sim_http_request(struct sim_http *http, uint32_t sender, uint32_t gateway, uint64_t request_id,
                      const struct api_request *request);
/* Takes the body over. */
void sim_http_reply(struct sim_http *http, uint64_t call, struct api_reply *reply);
/* Parsed, for the step of EVENT_REQUEST; NULL: the sender has gone. */
const struct api_request *sim_http_arrived(const struct sim_http *http, uint64_t call);
void sim_http_gateway_died(struct sim_http *http, uint32_t gateway);
void sim_http_sender_died(struct sim_http *http, uint32_t sender);
void sim_http_done(struct sim_http *http);

#endif
