/* folder_lock.c - flock, which the system releases when the process ends in whatever way. The pid
 * stands in a file beside it, written aside and renamed, so that nobody reads half a number.
 */
#include "io/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/number.h"
#include "io/clock.h"
#include "io/file.h"

enum { NAP_MS = 10, PID_TEXT_SIZE = 32 };

struct folder_lock {
    char dir[PATH_MAX];
    int fd;
};

static status lock_fail(struct error *err, const char *path)
{
    int number = errno;
    char reason[128];
    return error_set(err, STATUS_IO, "cannot use %.1000s: %s", path,
                     strerror_r(number, reason, sizeof reason));
}

/* "dir/name"; folder_lock_open has seen to it that it fits. */
static void path_in(const char *dir, const char *name, char out[PATH_MAX])
{
    int size = snprintf(out, PATH_MAX, "%s/%s", dir, name);
    ASSERT(size > 0 && size < PATH_MAX);
}

static status make_folders(const char *dir, struct error *err)
{
    char path[PATH_MAX];
    bool made;
    size_t size = strlen(dir);
    for (size_t i = 1; i < size; i++) {
        if (dir[i] != '/') continue;
        memcpy(path, dir, i);
        path[i] = '\0';
        if (!file_exists(path)) TRY(file_make_folder(path, &made, err));
    }
    return file_make_folder(dir, &made, err);
}

/* False: there is no pid to be read. */
static bool read_pid(const char *dir, pid_t *out)
{
    char path[PATH_MAX];
    char text[PID_TEXT_SIZE];
    path_in(dir, "pid", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    ssize_t size = read(fd, text, sizeof text);
    (void)close(fd); /* Only read. */
    int64_t pid = 0;
    if (size < 2 || text[size - 1] != '\n') return false;
    if (!int_parse((struct text){text, (uint32_t)size - 1}, &pid)) return false;
    if (pid <= 0 || pid > INT_MAX) return false;
    *out = (pid_t)pid;
    return true;
}

static status write_pid(const char *dir, struct error *err)
{
    char path[PATH_MAX];
    char temporary[PATH_MAX];
    char text[PID_TEXT_SIZE];
    path_in(dir, "pid", path);
    path_in(dir, ".pid.part", temporary); /* We have the lock: nobody else writes it. */
    int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return lock_fail(err, temporary);
    status result = file_write(fd, temporary, text, (size_t)size, NULL, err);
    if (close(fd) != 0 && result == STATUS_OK) result = lock_fail(err, temporary);
    if (result == STATUS_OK && rename(temporary, path) != 0) result = lock_fail(err, path);
    return result;
}

static status take_lock(int fd, const char *dir, uint32_t wait_ms, struct error *err)
{
    double deadline = clock_seconds() + wait_ms / 1000.0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return lock_fail(err, dir);
        if (clock_seconds() >= deadline) {
            pid_t pid;
            if (!read_pid(dir, &pid)) {
                return error_set(err, STATUS_IO, "%.1000s is in use by another process", dir);
            }
            return error_set(err, STATUS_IO, "%.1000s is in use by process %ld", dir, (long)pid);
        }
        (void)poll(NULL, 0, NAP_MS); /* Locks can't be waited for with a deadline. */
    }
    return STATUS_OK;
}

status folder_lock_open(const char *dir, uint32_t wait_ms, struct folder_lock **out,
                        struct error *err)
{
    if (strlen(dir) + sizeof "/.pid.part" > PATH_MAX) {
        return error_set(err, STATUS_IO, "%.200s...: the path is too long", dir);
    }
    TRY(make_folders(dir, err));
    char path[PATH_MAX];
    path_in(dir, "lock", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return lock_fail(err, path);
    status result = take_lock(fd, dir, wait_ms, err);
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
    (void)unlink(path); /* One that stays is not believed. */
    (void)close(lock->fd);
    memory_free(NULL, lock, sizeof *lock);
}

bool folder_lock_holder(const char *dir, pid_t *out_pid)
{
    if (strlen(dir) + sizeof "/.pid.part" > PATH_MAX) return false;
    char path[PATH_MAX];
    path_in(dir, "lock", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    /* Shared, so that several may ask; whoever opens meanwhile waits a moment for us. */
    bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    (void)close(fd);
    return is_held && read_pid(dir, out_pid);
}
