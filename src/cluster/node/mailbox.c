/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox.c - a ring under a lock. */
#include "cluster/node/mailbox.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"

enum { CAPACITY_FIRST = 64 };

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    unsigned char *items;
    size_t item_bytes;
    size_t capacity;
    size_t first;
    size_t count;
};

status mailbox_create(size_t item_bytes, struct mailbox **out, struct error *err)
{
    struct mailbox *mailbox = memory_alloc(NULL, sizeof *mailbox);
    if (mailbox == NULL) return error_memory(err);
    *mailbox = (struct mailbox){.item_bytes = item_bytes};
    pthread_mutex_init(&mailbox->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&mailbox->posted, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = mailbox;
    return STATUS_OK;
}

void mailbox_destroy(struct mailbox *mailbox)
{
    if (mailbox == NULL) return;
    pthread_cond_destroy(&mailbox->posted);
    pthread_mutex_destroy(&mailbox->lock);
    memory_free(NULL, mailbox->items, mailbox->capacity * mailbox->item_bytes);
    memory_free(NULL, mailbox, sizeof *mailbox);
}

static void grow(struct mailbox *mailbox)
{
    size_t bytes = mailbox->item_bytes;
    size_t grown = mailbox->capacity == 0 ? CAPACITY_FIRST : mailbox->capacity * 2;
    unsigned char *items = memory_alloc(NULL, grown * bytes);
    ASSERT(items != NULL);
    for (size_t i = 0; i < mailbox->count; i++) {
        size_t place = (mailbox->first + i) % mailbox->capacity;
        memcpy(items + i * bytes, mailbox->items + place * bytes, bytes);
    }
    memory_free(NULL, mailbox->items, mailbox->capacity * bytes);
    mailbox->items = items;
    mailbox->capacity = grown;
    mailbox->first = 0;
}

void mailbox_post(struct mailbox *mailbox, const void *item)
{
    pthread_mutex_lock(&mailbox->lock);
    if (mailbox->count == mailbox->capacity) grow(mailbox);
    size_t place = (mailbox->first + mailbox->count) % mailbox->capacity;
    memcpy(mailbox->items + place * mailbox->item_bytes, item, mailbox->item_bytes);
    mailbox->count++;
    pthread_cond_signal(&mailbox->posted);
    pthread_mutex_unlock(&mailbox->lock);
}

bool mailbox_take(struct mailbox *mailbox, uint32_t timeout_ms, void *out_item)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->count == 0) {
        if (pthread_cond_timedwait(&mailbox->posted, &mailbox->lock, &until) == ETIMEDOUT) break;
    }
    bool found = mailbox->count > 0;
    if (found) {
        memcpy(out_item, mailbox->items + mailbox->first * mailbox->item_bytes,
               mailbox->item_bytes);
        mailbox->first = (mailbox->first + 1) % mailbox->capacity;
        mailbox->count--;
    }
    pthread_mutex_unlock(&mailbox->lock);
    return found;
}
