/* SPDX-License-Identifier: Apache-2.0 */
/* locked_file.c - the first bytes are written under another name, which link(2) then makes the
 * file's: of two processes that create the same file, one gets EEXIST.
 */
#include "cluster/store/locked_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/file/file.h"

static status fail_system(const char *path, struct error *err)
{
    int number = errno;
    char reason[128];
    return error_set(err, STATUS_IO, "%s: %s", path, strerror_r(number, reason, sizeof reason));
}

/* In PATH's folder, a hidden name that no other process takes. */
static bool temporary_name(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    int length =
        snprintf(out, size, "%.*s.new-%ld-%s", (int)(name - path), path, (long)getpid(), name);
    return length > 0 && (size_t)length < size;
}

static status fill(int fd, const char *temporary, const char *path, struct text first_bytes,
                   enum locked_file_found *out_found, struct error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return fail_system(temporary, err);
    TRY(file_write(fd, temporary, first_bytes.bytes, first_bytes.size, NULL, err));
    *out_found = LOCKED_FILE_OURS;
    if (link(temporary, path) == 0) return STATUS_OK;
    if (errno != EEXIST) return fail_system(path, err);
    *out_found = LOCKED_FILE_EXISTS;
    return STATUS_OK;
}

status locked_file_create(const char *path, struct text first_bytes, int *out_fd,
                          enum locked_file_found *out_found, struct error *err)
{
    char temporary[4096];
    if (!temporary_name(path, temporary, sizeof temporary)) {
        return error_set(err, STATUS_USAGE, "the path %.200s... is too long", path);
    }
    int fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return fail_system(temporary, err);
    status result = fill(fd, temporary, path, first_bytes, out_found, err);
    (void)unlink(temporary); /* A name that stays does no harm. */
    if (result != STATUS_OK || *out_found != LOCKED_FILE_OURS) {
        file_close(fd);
    } else {
        *out_fd = fd;
    }
    return result;
}

status locked_file_open(const char *path, int *out_fd, enum locked_file_found *out_found,
                        struct error *err)
{
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) return fail_system(path, err);
    if (fd < 0) {
        *out_found = LOCKED_FILE_MISSING;
        return STATUS_OK;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *out_found = LOCKED_FILE_OURS;
        *out_fd = fd;
        return STATUS_OK;
    }
    bool is_busy = errno == EWOULDBLOCK;
    status result = is_busy ? STATUS_OK : fail_system(path, err);
    file_close(fd);
    *out_found = LOCKED_FILE_BUSY;
    return result;
}

status locked_file_cut(int fd, const char *path, uint64_t size, struct error *err)
{
    return ftruncate(fd, (off_t)size) == 0 ? STATUS_OK : fail_system(path, err);
}

void locked_file_remove(const char *path)
{
    (void)unlink(path); /* See the header. */
}
