/* peer_addresses.c - the owner and the thread share one block, and whoever leaves last frees it. */
#include "cluster/net/peer_addresses.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/file/clock.h"

struct book_line {
    const char *host;
    uint16_t port;
    bool is_name;                  /* Not in digits: the thread looks it up. */
    struct socket_address address; /* Size 0: not known. */
};

struct peer_book {
    struct arena arena;
    struct book_line *lines;
    uint32_t count;
    pthread_mutex_t mutex; /* Guards what follows, and the lines. */
    pthread_cond_t closed;
    bool is_closed;
    uint32_t users; /* The owner, and the thread if there is one. */
};

static void book_free(struct peer_book *book)
{
    (void)pthread_cond_destroy(&book->closed); /* Nobody is left who could use them. */
    (void)pthread_mutex_destroy(&book->mutex);
    arena_done(&book->arena);
    memory_free(NULL, book, sizeof *book);
}

static void book_leave(struct peer_book *book)
{
    pthread_mutex_lock(&book->mutex);
    bool is_last = --book->users == 0;
    pthread_mutex_unlock(&book->mutex);
    if (is_last) book_free(book);
}

/* ---- the thread; the lock is held, but while the system is asked ---- */

static void line_look_up(struct peer_book *book, struct book_line *line)
{
    struct socket_address found = {.size = 0};
    struct error err;
    pthread_mutex_unlock(&book->mutex);
    bool is_known = socket_address_find(line->host, line->port, &found, &err) == STATUS_OK;
    pthread_mutex_lock(&book->mutex);
    if (is_known) line->address = found; /* Else the old one, if any, may still be right. */
}

static void book_pause(struct peer_book *book)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* Cannot fail: POSIX requires it. */
    until.tv_sec += PEER_BOOK_AGAIN_MS / 1000;
    int problem = 0;
    while (!book->is_closed && problem == 0) {
        problem = pthread_cond_timedwait(&book->closed, &book->mutex, &until);
    }
}

static void *book_run(void *context)
{
    struct peer_book *book = context;
    pthread_mutex_lock(&book->mutex);
    while (!book->is_closed) {
        for (uint32_t i = 0; i < book->count && !book->is_closed; i++) {
            if (book->lines[i].is_name) line_look_up(book, &book->lines[i]);
        }
        book_pause(book);
    }
    pthread_mutex_unlock(&book->mutex);
    book_leave(book);
    return NULL;
}

static status book_start(struct peer_book *book, struct error *err)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int problem = pthread_attr_init(&attributes);
    ASSERT(problem == 0);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED); /* A valid value. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* Signals are others' business. */
    book->users++;
    problem = pthread_create(&thread, &attributes, book_run, book);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (problem == 0) return STATUS_OK;
    book->users--;
    return error_set(err, STATUS_IO, "cannot start a thread to look names up");
}

/* ---- the owner ---- */

static void mutex_init(struct peer_book *book)
{
    pthread_condattr_t attributes;
    int problem = pthread_mutex_init(&book->mutex, NULL);
    ASSERT(problem == 0); /* Plain ones take nothing from the system. */
    problem = pthread_condattr_init(&attributes);
    ASSERT(problem == 0);
    problem = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* As book_pause. */
    ASSERT(problem == 0);
    problem = pthread_cond_init(&book->closed, &attributes);
    ASSERT(problem == 0);
    (void)pthread_condattr_destroy(&attributes); /* Nothing was kept in it. */
}

static status book_fill(struct peer_book *book, const struct peer_book_entry *entries,
                        uint32_t count, struct error *err)
{
    bool has_names = false;
    book->lines = arena_array(&book->arena, struct book_line, count);
    if (book->lines == NULL && count > 0) return error_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        struct book_line *line = &book->lines[i];
        if (entries[i].host == NULL) continue;
        line->host = arena_copy_string(&book->arena, text_of(entries[i].host));
        if (line->host == NULL) return error_memory(err);
        line->port = entries[i].port;
        line->is_name = !socket_address_parse(line->host, line->port, &line->address);
        has_names = has_names || line->is_name;
    }
    book->count = count;
    return has_names ? book_start(book, err) : STATUS_OK;
}

status peer_book_open(const struct peer_book_entry *entries, uint32_t count, struct peer_book **out,
                      struct error *err)
{
    struct peer_book *book = memory_alloc(NULL, sizeof *book);
    if (book == NULL) return error_memory(err);
    *book = (struct peer_book){.users = 1};
    mutex_init(book);
    status result = book_fill(book, entries, count, err);
    if (result != STATUS_OK) {
        book_leave(book);
        return result;
    }
    *out = book;
    return STATUS_OK;
}

bool peer_book_find(struct peer_book *book, uint32_t index, struct socket_address *out)
{
    ASSERT(index < book->count);
    pthread_mutex_lock(&book->mutex);
    struct socket_address address = book->lines[index].address;
    pthread_mutex_unlock(&book->mutex);
    if (address.size == 0) return false;
    *out = address;
    return true;
}

void peer_book_close(struct peer_book *book)
{
    if (book == NULL) return;
    pthread_mutex_lock(&book->mutex);
    book->is_closed = true;
    pthread_cond_signal(&book->closed);
    pthread_mutex_unlock(&book->mutex);
    book_leave(book);
}
