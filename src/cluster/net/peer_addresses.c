/* SPDX-License-Identifier: Apache-2.0 */
/* peer_addresses.c - the owner and the thread share one object; the last user frees it. */
#include "cluster/net/peer_addresses.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/file/clock.h"

struct addresses_line {
    const char *host;
    uint16_t port;
    bool is_name;                  /* Not numeric: the thread resolves it. */
    struct socket_address address; /* Size 0: not known. */
};

struct peer_addresses {
    struct arena arena;
    struct addresses_line *lines;
    uint32_t count;
    pthread_mutex_t mutex; /* Guards what follows, and the lines. */
    pthread_cond_t closed;
    bool is_closed;
    uint32_t users; /* The owner, and the thread if there is one. */
};

static void addresses_free(struct peer_addresses *addresses)
{
    (void)pthread_cond_destroy(&addresses->closed); /* No thread uses them any more. */
    (void)pthread_mutex_destroy(&addresses->mutex);
    arena_done(&addresses->arena);
    memory_free(NULL, addresses, sizeof *addresses);
}

static void addresses_leave(struct peer_addresses *addresses)
{
    pthread_mutex_lock(&addresses->mutex);
    bool is_last = --addresses->users == 0;
    pthread_mutex_unlock(&addresses->mutex);
    if (is_last) addresses_free(addresses);
}

/* ---- the thread; it holds the lock except while it resolves ---- */

static void line_look_up(struct peer_addresses *addresses, struct addresses_line *line)
{
    struct socket_address found = {.size = 0};
    struct error err;
    pthread_mutex_unlock(&addresses->mutex);
    bool is_known = socket_address_find(line->host, line->port, &found, &err) == STATUS_OK;
    pthread_mutex_lock(&addresses->mutex);
    if (is_known) line->address = found; /* Otherwise the old one may still be right. */
}

static void addresses_pause(struct peer_addresses *addresses)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* Cannot fail: POSIX requires it. */
    until.tv_sec += PEER_ADDRESSES_AGAIN_MS / 1000;
    int problem = 0;
    while (!addresses->is_closed && problem == 0) {
        problem = pthread_cond_timedwait(&addresses->closed, &addresses->mutex, &until);
    }
}

static void *addresses_run(void *context)
{
    struct peer_addresses *addresses = context;
    pthread_mutex_lock(&addresses->mutex);
    while (!addresses->is_closed) {
        for (uint32_t i = 0; i < addresses->count && !addresses->is_closed; i++) {
            if (addresses->lines[i].is_name) line_look_up(addresses, &addresses->lines[i]);
        }
        addresses_pause(addresses);
    }
    pthread_mutex_unlock(&addresses->mutex);
    addresses_leave(addresses);
    return NULL;
}

static status addresses_start(struct peer_addresses *addresses, struct error *err)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int problem = pthread_attr_init(&attributes);
    ASSERT(problem == 0);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED); /* A valid value. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* Other threads handle signals. */
    addresses->users++;
    problem = pthread_create(&thread, &attributes, addresses_run, addresses);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (problem == 0) return STATUS_OK;
    addresses->users--;
    return error_set(err, STATUS_IO, "cannot start a thread to resolve names");
}

/* ---- the owner ---- */

static void mutex_init(struct peer_addresses *addresses)
{
    pthread_condattr_t attributes;
    int problem = pthread_mutex_init(&addresses->mutex, NULL);
    ASSERT(problem == 0); /* A plain mutex allocates nothing. */
    problem = pthread_condattr_init(&attributes);
    ASSERT(problem == 0);
    problem = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* As addresses_pause. */
    ASSERT(problem == 0);
    problem = pthread_cond_init(&addresses->closed, &attributes);
    ASSERT(problem == 0);
    (void)pthread_condattr_destroy(&attributes); /* Nothing was kept in it. */
}

static status addresses_fill(struct peer_addresses *addresses,
                             const struct peer_addresses_entry *entries, uint32_t count,
                             struct error *err)
{
    bool has_names = false;
    addresses->lines = arena_array(&addresses->arena, struct addresses_line, count);
    if (addresses->lines == NULL && count > 0) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        struct addresses_line *line = &addresses->lines[i];
        if (entries[i].host == NULL) continue;
        line->host = arena_copy_string(&addresses->arena, text_of(entries[i].host));
        if (line->host == NULL) return error_memory(err);
        line->port = entries[i].port;
        line->is_name = !socket_address_parse(line->host, line->port, &line->address);
        has_names = has_names || line->is_name;
    }
    addresses->count = count;
    return has_names ? addresses_start(addresses, err) : STATUS_OK;
}

status peer_addresses_open(const struct peer_addresses_entry *entries, uint32_t count,
                           struct peer_addresses **out, struct error *err)
{
    struct peer_addresses *addresses = memory_alloc(NULL, sizeof *addresses);
    if (addresses == NULL) return error_memory(err);
    *addresses = (struct peer_addresses){.users = 1};
    mutex_init(addresses);
    status result = addresses_fill(addresses, entries, count, err);
    if (result != STATUS_OK) {
        addresses_leave(addresses);
        return result;
    }
    *out = addresses;
    return STATUS_OK;
}

bool peer_addresses_find(struct peer_addresses *addresses, uint32_t index,
                         struct socket_address *out)
{
    ASSERT(index < addresses->count);
    pthread_mutex_lock(&addresses->mutex);
    struct socket_address address = addresses->lines[index].address;
    pthread_mutex_unlock(&addresses->mutex);
    if (address.size == 0) return false;
    *out = address;
    return true;
}

void peer_addresses_close(struct peer_addresses *addresses)
{
    if (addresses == NULL) return;
    pthread_mutex_lock(&addresses->mutex);
    addresses->is_closed = true;
    pthread_cond_signal(&addresses->closed);
    pthread_mutex_unlock(&addresses->mutex);
    addresses_leave(addresses);
}
