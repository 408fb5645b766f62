/* SPDX-License-Identifier: Apache-2.0 */
/* http_slot.c - every move of a slot is one that the table allows. */
#include "cluster/net/http_slot.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "engine/base/assert.h"
#include "engine/file/clock.h"

#define TO(state) (1u << (state))
static const unsigned moves[SLOT_STATES] = {
    [SLOT_FREE] = TO(SLOT_IDLE),
    [SLOT_IDLE] = TO(SLOT_READING) | TO(SLOT_FREE),
    [SLOT_READING] = TO(SLOT_WAITING) | TO(SLOT_SENDING) | TO(SLOT_IDLE),
    [SLOT_WAITING] = TO(SLOT_ANSWERED) | TO(SLOT_LOST),
    [SLOT_ANSWERED] = TO(SLOT_SENDING) | TO(SLOT_IDLE),
    [SLOT_LOST] = TO(SLOT_IDLE),
    [SLOT_SENDING] = TO(SLOT_IDLE),
};

uint64_t http_now_ms(void)
{
    return (uint64_t)(clock_seconds() * 1000.0);
}

void http_server_wake(struct http_server *server)
{
    int failure = eventfd_write(server->wake_fd, 1);
    ASSERT(failure == 0 || errno == EAGAIN); /* Full: readable as well. */
}

void http_slots_lock(struct http_server *server)
{
    int failure = pthread_mutex_lock(&server->lock);
    ASSERT(failure == 0);
}

void http_slots_unlock(struct http_server *server)
{
    int failure = pthread_mutex_unlock(&server->lock);
    ASSERT(failure == 0);
}

void http_slot_move_locked(struct http_slot *slot, enum http_slot_state state)
{
    ASSERT((moves[slot->state] & TO(state)) != 0);
    slot->state = state;
    slot->since_ms = http_now_ms();
}

void http_slot_move(struct http_server *server, struct http_slot *slot, enum http_slot_state state)
{
    http_slots_lock(server);
    http_slot_move_locked(slot, state);
    http_slots_unlock(server);
}

enum http_slot_state http_slot_state(struct http_server *server, const struct http_slot *slot)
{
    http_slots_lock(server);
    enum http_slot_state state = slot->state;
    http_slots_unlock(server);
    return state;
}

bool http_slot_leave(struct http_server *server, struct http_slot *slot, enum http_slot_state from,
                     enum http_slot_state to)
{
    http_slots_lock(server);
    bool moved = slot->state == from;
    if (moved) http_slot_move_locked(slot, to);
    http_slots_unlock(server);
    return moved;
}

uint64_t http_slot_id(const struct http_server *server, const struct http_slot *slot)
{
    return slot->serial * server->slot_count + (uint64_t)(slot - server->slots);
}

struct http_slot *http_slot_take(struct http_server *server)
{
    struct http_slot *taken = NULL;
    http_slots_lock(server);
    for (uint32_t i = 0; i < server->slot_count && taken == NULL; i++) {
        uint32_t index = (server->next_slot + i) % server->slot_count;
        if (server->slots[index].state != SLOT_FREE) continue;
        server->next_slot = index + 1;
        taken = &server->slots[index];
        http_slot_move_locked(taken, SLOT_IDLE);
    }
    http_slots_unlock(server);
    return taken;
}

void http_slot_resume(struct http_server *server, struct http_slot *slot)
{
    MHD_resume_connection(slot->connection);
    http_server_wake(server);
}

void http_slot_end_request(struct http_server *server, struct http_slot *slot)
{
    http_slot_move(server, slot, SLOT_IDLE);
    http_request_done(&slot->request);
    buf_done(&slot->reply.body);
    slot->reply = (struct http_reply){0};
    slot->begun = false;
    slot->refusal = 0;
    slot->discarded = 0;
    buf_reset(&slot->uri);
}
