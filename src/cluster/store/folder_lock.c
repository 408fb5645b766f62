/* SPDX-License-Identifier: Apache-2.0 */
/* folder_lock.c - flock, which the kernel releases however the process ends.
 *
 * The contents of the locked file are trusted only if they name a live process with the same start
 * time, boot and pid namespace: then it is the process that wrote them. A leftover of a killed
 * process, a reused pid, or process 1 of a container never gets a signal. A pidfd excludes a reuse
 * between the check and the signal.
 *
 * DIR/pid is replaced atomically, so that no reader sees half a number.
 */
#include "cluster/store/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "engine/base/number.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "engine/file/output_file.h"

enum {
    NAP_MS = 10,
    LOOKS = 50, /* A process that took the folder says soon who it is. */
    PID_TEXT_SIZE = 32,
    STAT_SIZE = 1024,
    BOOT_SIZE = 40,
    OWNER_SIZE = 160,
    START_FIELD = 22 /* Of /proc/PID/stat, see proc(5). */
};

/* The identity of a process. */
struct lock_owner {
    pid_t pid;
    uint64_t start;       /* In ticks since the boot. */
    uint64_t pids;        /* Inode of its pid namespace. */
    char boot[BOOT_SIZE]; /* boot_id, see random(4). */
};

struct folder_lock {
    char dir[PATH_MAX];
    int fd;
};

/* "dir/name"; folder_lock_open has checked that it fits. */
static void path_in(const char *dir, const char *name, char out[PATH_MAX])
{
    int size = snprintf(out, PATH_MAX, "%s/%s", dir, name);
    ASSERT(size > 0 && size < PATH_MAX);
}

/* The beginning of a file, followed by a zero; false: it can't be read. */
static bool read_start(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    ssize_t got = read(fd, out, size - 1);
    (void)close(fd); /* Only read. */
    if (got <= 0) return false;
    out[got] = '\0';
    return true;
}

/* ---- processes ---- */

/* False: it has ended, or /proc does not show it. */
static bool process_start(pid_t pid, uint64_t *out)
{
    char path[64];
    char text[STAT_SIZE];
    int64_t start = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid); /* Fits. */
    if (!read_start(path, text, sizeof text)) return false;
    /* The second field is the program's name, which may contain spaces and parentheses. */
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < START_FIELD; field++) {
        at = strchr(at + 1, ' ');
    }
    if (at == NULL) return false;
    struct text word = {at + 1, (uint32_t)strcspn(at + 1, " ")};
    if (!int_parse(word, &start) || start < 0) return false;
    *out = (uint64_t)start;
    return true;
}

/* Of this process. A field that can't be read stays empty, and then equals no other process's. */
static struct lock_owner owner_self(void)
{
    struct lock_owner self = {.pid = getpid()};
    struct stat pids;
    if (!process_start(self.pid, &self.start)) self.start = 0;
    if (stat("/proc/self/ns/pid", &pids) == 0) self.pids = pids.st_ino;
    if (read_start("/proc/sys/kernel/random/boot_id", self.boot, sizeof self.boot)) {
        self.boot[strcspn(self.boot, " \n")] = '\0';
    }
    return self;
}

/* "PID START NAMESPACE BOOT\n"; false: it is damaged, or just being written. */
static bool owner_read(const char *path, struct lock_owner *out)
{
    char text[OWNER_SIZE];
    int64_t numbers[3];
    if (!read_start(path, text, sizeof text)) return false;
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        struct text word = {at, (uint32_t)strcspn(at, " ")};
        if (at[word.size] != ' ' || !int_parse(word, &numbers[i])) return false;
        if (numbers[i] < 0) return false;
        at += word.size + 1;
    }
    size_t size = strcspn(at, "\n");
    if (at[size] != '\n' || at[size + 1] != '\0' || size >= BOOT_SIZE) return false;
    if (numbers[0] == 0 || numbers[0] > INT_MAX) return false;
    *out = (struct lock_owner){
        .pid = (pid_t)numbers[0], .start = (uint64_t)numbers[1], .pids = (uint64_t)numbers[2]};
    memcpy(out->boot, at, size);
    return true;
}

/* Whether the process with that pid is the owner. */
static bool owner_is_here(const struct lock_owner *owner)
{
    struct lock_owner self = owner_self();
    uint64_t start;
    if (owner->start == 0 || !process_start(owner->pid, &start)) return false;
    return start == owner->start && owner->pids == self.pids && strcmp(owner->boot, self.boot) == 0;
}

/* ---- taking ---- */

static status write_owner(int fd, const char *path, struct error *err)
{
    char text[OWNER_SIZE];
    struct lock_owner self = owner_self();
    int size = snprintf(text, sizeof text, "%ld %" PRIu64 " %" PRIu64 " %s\n", (long)self.pid,
                        self.start, self.pids, self.boot); /* Fits. */
    if (ftruncate(fd, 0) != 0) return file_fail(err, path);
    return file_write(fd, path, text, (size_t)size, NULL, err);
}

static status write_pid(const char *dir, struct error *err)
{
    char path[PATH_MAX];
    char text[PID_TEXT_SIZE];
    path_in(dir, "pid", path);
    (void)unlink(path); /* A stale one is worse than none. */
    (void)snprintf(text, sizeof text, "%ld\n", (long)getpid()); /* Fits. */
    return output_file_replace(path, OUTPUT_PUBLIC, text_of(text), err);
}

static enum folder_state look(const char *dir, struct lock_owner *out)
{
    if (strlen(dir) + sizeof "/lock" > PATH_MAX) return FOLDER_FREE; /* It can't exist. */
    char path[PATH_MAX];
    path_in(dir, "lock", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT || errno == ENOTDIR ? FOLDER_FREE : FOLDER_UNKNOWN;
    /* Shared, so that several may check; folder_lock_open waits for that moment. */
    int problem = flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
    (void)close(fd);
    if (problem == 0) return FOLDER_FREE;
    bool is_known = problem == EWOULDBLOCK && owner_read(path, out) && owner_is_here(out);
    return is_known ? FOLDER_HELD : FOLDER_UNKNOWN;
}

static status take_lock(int fd, const char *dir, uint32_t wait_ms, struct error *err)
{
    double deadline = clock_seconds() + wait_ms / 1000.0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return file_fail(err, dir);
        if (clock_seconds() >= deadline) {
            pid_t pid;
            if (!folder_lock_holder(dir, &pid)) {
                return error_set(err, STATUS_IO, "%.1000s is in use by another process", dir);
            }
            return error_set(err, STATUS_IO, "%.1000s is in use by process %ld", dir, (long)pid);
        }
        (void)poll(NULL, 0, NAP_MS); /* flock has no timeout. */
    }
    return STATUS_OK;
}

status folder_lock_open(const char *dir, uint32_t wait_ms, struct folder_lock **out,
                        struct error *err)
{
    if (strlen(dir) + sizeof "/lock" > PATH_MAX) {
        return error_set(err, STATUS_IO, "%.200s...: the path is too long", dir);
    }
    TRY(file_make_folders(dir, err));
    char path[PATH_MAX];
    path_in(dir, "lock", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return file_fail(err, path);
    status result = take_lock(fd, dir, wait_ms, err);
    if (result == STATUS_OK) result = write_owner(fd, path, err);
    if (result == STATUS_OK) result = write_pid(dir, err);
    struct folder_lock *lock = NULL;
    if (result == STATUS_OK) {
        lock = memory_alloc(NULL, sizeof *lock);
        if (lock == NULL) result = error_memory(err);
    }
    if (result != STATUS_OK) {
        (void)close(fd); /* Lets the lock go. */
        return result;
    }
    *lock = (struct folder_lock){.fd = fd};
    memcpy(lock->dir, dir, strlen(dir) + 1);
    *out = lock;
    return STATUS_OK;
}

void folder_lock_close(struct folder_lock *lock)
{
    if (lock == NULL) return;
    char path[PATH_MAX];
    path_in(lock->dir, "pid", path);
    (void)unlink(path); /* Leftovers do no harm, since owner_is_here refuses them. */
    (void)!ftruncate(lock->fd, 0);
    (void)close(lock->fd);
    memory_free(NULL, lock, sizeof *lock);
}

enum folder_state folder_lock_look(const char *dir, pid_t *out_pid)
{
    struct lock_owner owner;
    enum folder_state state = look(dir, &owner);
    if (state == FOLDER_HELD) *out_pid = owner.pid;
    return state;
}

bool folder_lock_holder(const char *dir, pid_t *out_pid)
{
    return folder_lock_look(dir, out_pid) == FOLDER_HELD;
}

/* 0, or errno. Before Linux 5.3, which has no pidfds, the pid may be reused just before the signal.
 */
static int signal_owner(const struct lock_owner *owner, int number)
{
    int fd = (int)syscall(SYS_pidfd_open, owner->pid, 0);
    if (fd < 0 && errno != ENOSYS && errno != EPERM) return errno;
    if (!owner_is_here(owner)) {
        if (fd >= 0) (void)close(fd);
        return ESRCH;
    }
    long result =
        fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) : kill(owner->pid, number);
    int problem = result == 0 ? 0 : errno;
    if (fd >= 0) (void)close(fd);
    return problem;
}

status folder_lock_signal(const char *dir, int number, enum folder_state *out, struct error *err)
{
    struct lock_owner owner;
    enum folder_state state = look(dir, &owner);
    /* A process that has just locked the folder identifies itself in a moment; one that is ending
     * releases it. */
    for (int i = 0; i < LOOKS && state == FOLDER_UNKNOWN; i++) {
        (void)poll(NULL, 0, NAP_MS);
        state = look(dir, &owner);
    }
    if (state == FOLDER_UNKNOWN) {
        return error_set(err, STATUS_IO,
                         "%.1000s is in use by a process that this host does not know", dir);
    }
    if (state == FOLDER_HELD) {
        int problem = signal_owner(&owner, number);
        char reason[128];
        if (problem == ESRCH) {
            state = FOLDER_FREE; /* It has ended meanwhile. */
        } else if (problem != 0) {
            return error_set(err, STATUS_IO, "cannot send signal %d to process %ld: %s", number,
                             (long)owner.pid, strerror_r(problem, reason, sizeof reason));
        }
    }
    *out = state;
    return STATUS_OK;
}
