/* SPDX-License-Identifier: Apache-2.0 */
/* intent_record.c - an array of slots in a mapped file.
 *
 * A slot is two words: the item, and the number of starts that found it with a checksum of both.
 * The process may be killed between any two stores, so each step is one atomic store: a slot is
 * taken by storing the count and then the item, and freed by storing 0 as the item. A slot whose
 * item is 0 is free, whatever its count, so a file of zeros is valid and empty.
 */
#include "cluster/store/intent_record.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/file/file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are mapped as they are");

struct intent_slot {
    atomic_uint_least64_t item;  /* 0: free. */
    atomic_uint_least64_t count; /* Starts and IN_FLIGHT in the low half, checksum in the high. */
};

/* Only an item that was in flight when the process ended counts one start more: an item that
 * another worker has done meanwhile must not be suspected when the process ends for other reasons.
 */
#define IN_FLIGHT ((uint32_t)1 << 31)
_Static_assert(sizeof(struct intent_slot) == 16, "the layout of the file");

struct intent_record {
    struct intent_slot *slots; /* INTENT_SLOTS of them, mapped. */
    uint32_t holders[INTENT_SLOTS];
    pthread_mutex_t lock;
};

#define FILE_SIZE (INTENT_SLOTS * sizeof(struct intent_slot))

static uint64_t count_word(uint64_t item, uint32_t starts)
{
    uint64_t checksum = hash_combine(hash_u64(item), starts);
    return (checksum & 0xffffffff00000000u) | starts;
}

static bool slots_valid(const struct intent_slot *slots)
{
    for (uint32_t i = 0; i < INTENT_SLOTS; i++) {
        uint64_t item = atomic_load(&slots[i].item);
        uint64_t count = atomic_load(&slots[i].count);
        if (item != 0 && count != count_word(item, (uint32_t)count)) return false;
    }
    return true;
}

static void slots_clear(struct intent_slot *slots)
{
    for (uint32_t i = 0; i < INTENT_SLOTS; i++) {
        atomic_store(&slots[i].item, 0);
    }
}

static void slots_start(struct intent_slot *slots, struct intent_start *out)
{
    for (uint32_t i = 0; i < INTENT_SLOTS; i++) {
        uint64_t item = atomic_load(&slots[i].item);
        if (item == 0) continue;
        uint32_t count = (uint32_t)atomic_load(&slots[i].count);
        uint32_t starts = count & ~IN_FLIGHT;
        if ((count & IN_FLIGHT) != 0 && starts < IN_FLIGHT - 1) starts++;
        atomic_store(&slots[i].count, count_word(item, starts));
        out->found[out->found_count++] = (struct intent_found){item, starts};
    }
}

/* Gives the file its size and allocates its blocks: a store to a page without a block on a full
 * disk would raise SIGBUS. */
static status prepare_file(int fd, const char *path, bool *out_damaged, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return file_fail(err, path);
    if (!S_ISREG(info.st_mode)) return error_set(err, STATUS_IO, "%s is not a file", path);
    bool damaged = info.st_size != 0 && (uint64_t)info.st_size != FILE_SIZE;
    if (damaged && ftruncate(fd, 0) != 0) return file_fail(err, path);
    errno = posix_fallocate(fd, 0, (off_t)FILE_SIZE);
    if (errno != 0) return file_fail(err, path);
    *out_damaged = damaged;
    return STATUS_OK;
}

static status map_file(const char *path, struct intent_slot **out, bool *out_damaged,
                       struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return file_fail(err, path);
    status result = prepare_file(fd, path, out_damaged, err);
    if (result == STATUS_OK) {
        void *bytes = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (bytes == MAP_FAILED) {
            result = file_fail(err, path);
        } else {
            *out = bytes;
        }
    }
    (void)close(fd); /* The mapping stays. */
    return result;
}

status intent_record_open(const char *dir, struct intent_record **out,
                          struct intent_start *out_start, struct error *err)
{
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/intent", dir);
    if (size < 0 || (size_t)size >= sizeof path) {
        return error_set(err, STATUS_IO, "%.200s...: the path is too long", dir);
    }
    struct intent_record *intents = memory_alloc(NULL, sizeof *intents);
    if (intents == NULL) return error_memory(err);
    *intents = (struct intent_record){0};
    struct intent_start start = {0};
    status result = map_file(path, &intents->slots, &start.damaged, err);
    if (result != STATUS_OK) {
        memory_free(NULL, intents, sizeof *intents);
        return result;
    }
    int failed = pthread_mutex_init(&intents->lock, NULL);
    ASSERT(failed == 0); /* A plain mutex allocates nothing. */
    if (!slots_valid(intents->slots)) {
        slots_clear(intents->slots);
        start.damaged = true;
    }
    slots_start(intents->slots, &start);
    *out = intents;
    *out_start = start;
    return STATUS_OK;
}

void intent_record_close(struct intent_record *intents)
{
    if (intents == NULL) return;
    (void)munmap(intents->slots, FILE_SIZE);     /* A valid mapping: cannot fail. */
    (void)pthread_mutex_destroy(&intents->lock); /* No thread holds it: cannot fail. */
    memory_free(NULL, intents, sizeof *intents);
}

static uint32_t slot_find(const struct intent_record *intents, uint64_t item)
{
    uint32_t i = 0;
    while (i < INTENT_SLOTS && atomic_load(&intents->slots[i].item) != item) {
        i++;
    }
    return i;
}

/* The slot to take: a free one, or else the one of the fewest starts that is not in flight. */
static uint32_t slot_for_new(const struct intent_record *intents)
{
    uint32_t best = INTENT_SLOTS;
    uint32_t best_starts = UINT32_MAX;
    for (uint32_t i = 0; i < INTENT_SLOTS; i++) {
        if (intents->holders[i] > 0) continue;
        if (atomic_load(&intents->slots[i].item) == 0) return i;
        uint32_t starts = (uint32_t)atomic_load(&intents->slots[i].count) & ~IN_FLIGHT;
        if (best == INTENT_SLOTS || starts < best_starts) {
            best = i;
            best_starts = starts;
        }
    }
    return best;
}

bool intent_record_hold(struct intent_record *intents, uint64_t item)
{
    ASSERT(item != 0);
    (void)pthread_mutex_lock(&intents->lock); /* A plain mutex: cannot fail. */
    uint32_t at = slot_find(intents, item);
    if (at == INTENT_SLOTS) {
        at = slot_for_new(intents);
        if (at < INTENT_SLOTS) {
            atomic_store(&intents->slots[at].item, 0);
            atomic_store(&intents->slots[at].count, count_word(item, IN_FLIGHT));
            atomic_store(&intents->slots[at].item, item);
        }
    } else {
        uint32_t starts = (uint32_t)atomic_load(&intents->slots[at].count) & ~IN_FLIGHT;
        atomic_store(&intents->slots[at].count, count_word(item, starts | IN_FLIGHT));
    }
    if (at < INTENT_SLOTS) intents->holders[at]++;
    (void)pthread_mutex_unlock(&intents->lock);
    return at < INTENT_SLOTS;
}

void intent_record_release(struct intent_record *intents, uint64_t item)
{
    ASSERT(item != 0);
    (void)pthread_mutex_lock(&intents->lock); /* See above. */
    uint32_t at = slot_find(intents, item);
    if (at < INTENT_SLOTS) {
        if (intents->holders[at] > 0) intents->holders[at]--;
        if (intents->holders[at] == 0) atomic_store(&intents->slots[at].item, 0);
    }
    (void)pthread_mutex_unlock(&intents->lock);
}
