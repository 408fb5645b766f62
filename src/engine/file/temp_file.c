/* SPDX-License-Identifier: Apache-2.0 */
/* temp_file.c - O_TMPFILE where the file system has it, else a name that is removed at once. */
#include "engine/file/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/file/file.h"

static status open_failed(const char *folder, int number, struct error *err)
{
    char reason[128];
    return error_set(err, STATUS_IO,
                     "cannot make a temporary file in %.500s: %s; choose another folder with "
                     "--temp-dir",
                     folder, strerror_r(number, reason, sizeof reason));
}

/* For file systems that know no files without a name. A process that is killed between the two
 * calls leaves an empty file behind. */
static int open_and_unlink(const char *folder)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/millrace-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) (void)unlink(path); /* What can't be removed can still be used. */
    return fd;
}

status temp_file_open(const char *folder, struct temp_file *out, struct error *err)
{
    int fd;
    do {
        fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EINTR);
    bool is_unknown = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
    if (is_unknown) fd = open_and_unlink(folder);
    if (fd < 0) return open_failed(folder, errno, err);
    *out = (struct temp_file){.fd = fd, .folder = folder};
    return STATUS_OK;
}

static status write_failed(const struct temp_file *file, int number, struct error *err)
{
    char reason[128];
    bool is_full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    return error_set(
        err, STATUS_IO, "cannot write more than %llu bytes to a temporary file in %.500s: %s; %s",
        (unsigned long long)file->size, file->folder, strerror_r(number, reason, sizeof reason),
        is_full ? "free some space, choose another folder with --temp-dir, or allow "
                  "more memory"
                : "choose another folder with --temp-dir");
}

status temp_file_append(struct temp_file *file, const void *bytes, size_t size, struct error *err)
{
    const char *from = bytes;
    for (size_t done = 0; done < size;) {
        ssize_t written = pwrite(file->fd, from + done, size - done, (off_t)file->size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return write_failed(file, written == 0 ? ENOSPC : errno, err);
        done += (size_t)written;
        file->size += (uint64_t)written;
    }
    return STATUS_OK;
}

status temp_file_read(const struct temp_file *file, uint64_t offset, void *out, size_t size,
                      struct error *err)
{
    char *to = out;
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(file->fd, to + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            char reason[128];
            return error_set(
                err, STATUS_IO, "cannot read a temporary file in %.500s: %s", file->folder,
                got == 0 ? "it ends too early" : strerror_r(errno, reason, sizeof reason));
        }
        done += (size_t)got;
    }
    return STATUS_OK;
}

void temp_file_close(struct temp_file *file)
{
    file_close(file->fd);
    file->fd = -1;
}
