/* key_file.c - owner and mode are asked of the open file, so that it is the one which is read.
 *
 * A new file is written aside and then given its name in a way that never replaces another: of two
 * processes that make one at the same time, one succeeds, and the other uses that.
 */
#include "cluster/store/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/file/file.h"

static status key_fail(struct error *err, const char *path)
{
    int number = errno;
    char reason[128];
    return error_set(err, STATUS_IO, "%.500s: %s", path, strerror_r(number, reason, sizeof reason));
}

static bool is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

/* ---- reading ---- */

static status check_link(const char *path, struct error *err)
{
    struct stat info;
    if (lstat(path, &info) != 0) return key_fail(err, path);
    if (!S_ISLNK(info.st_mode) || is_trusted(info.st_uid)) return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%.500s is another user's link, who could let it lead anywhere: put the file "
                     "itself there",
                     path);
}

static status check_file(int fd, const char *path, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return key_fail(err, path);
    if (!S_ISREG(info.st_mode)) {
        return error_set(err, STATUS_USAGE, "%.500s is no plain file", path);
    }
    if (!is_trusted(info.st_uid)) {
        return error_set(err, STATUS_USAGE,
                         "%.500s belongs to another user, who knows what it holds: make it yours, "
                         "chown %u %.500s",
                         path, (unsigned)geteuid(), path);
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return error_set(
            err, STATUS_USAGE,
            "%.500s holds a secret, and others than its owner may use it: chmod 600 %.500s", path,
            path);
    }
    return STATUS_OK;
}

static status read_bytes(int fd, const char *path, unsigned char *out, size_t capacity,
                         size_t *out_size, struct error *err)
{
    size_t used = 0;
    ssize_t got = 1;
    while (got != 0 && used < capacity) {
        got = read(fd, out + used, capacity - used);
        if (got < 0 && errno != EINTR) return key_fail(err, path);
        if (got > 0) used += (size_t)got;
    }
    unsigned char more;
    while (used == capacity && (got = read(fd, &more, 1)) < 0) {
        if (errno != EINTR) return key_fail(err, path);
    }
    *out_size = used == capacity && got > 0 ? used + 1 : used;
    return STATUS_OK;
}

status key_file_read(const char *path, void *out, size_t capacity, size_t *out_size,
                     struct error *err)
{
    TRY(check_link(path, err));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return key_fail(err, path);
    status result = check_file(fd, path, err);
    if (result == STATUS_OK) result = read_bytes(fd, path, out, capacity, out_size, err);
    (void)close(fd); /* Only read. */
    return result;
}

/* ---- making ---- */

/* Not all file systems know both. */
static bool rename_to_nothing(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    if (link(from, to) != 0) return false;
    (void)unlink(from); /* A second name of a file that is where it should be. */
    return true;
}

static status write_aside(const char *temporary, int fd, const void *bytes, size_t size,
                          struct error *err)
{
    /* mkostemp has asked for 0600; some file systems have their own mind. */
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0) return key_fail(err, temporary);
    TRY(file_write(fd, temporary, bytes, size, NULL, err));
    if (fsync(fd) != 0) return key_fail(err, temporary);
    return STATUS_OK;
}

static status give_name(const char *temporary, const char *path, bool *out_made, struct error *err)
{
    if (rename_to_nothing(temporary, path)) {
        *out_made = true;
        return STATUS_OK;
    }
    int number = errno;
    (void)unlink(temporary); /* Left alone it would do no harm. */
    if (number == EEXIST) {
        *out_made = false;
        return STATUS_OK;
    }
    errno = number;
    return key_fail(err, path);
}

status key_file_create(const char *path, const void *bytes, size_t size, bool *out_made,
                       struct error *err)
{
    static const char suffix[] = ".new-XXXXXX";
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s%s", path, suffix);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return error_set(err, STATUS_USAGE, "the path %.200s... is too long", path);
    }
    if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        *out_made = false;
        return STATUS_OK;
    }
    TRY(file_make_parents(path, err));
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) return key_fail(err, temporary);
    status result = write_aside(temporary, fd, bytes, size, err);
    (void)close(fd); /* It has reached the disk, or is removed. */
    if (result != STATUS_OK) {
        (void)unlink(temporary); /* The failure before it is what is told. */
        return result;
    }
    return give_name(temporary, path, out_made, err);
}
