/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.c - owner and mode are checked on the open descriptor, so that the file checked is
 * the file read.
 *
 * A new file is written under another name and renamed with RENAME_NOREPLACE: of two processes that
 * create one at the same time, one succeeds, and the other uses the result.
 *
 * PEM is only searched for the mistakes that people make: the libraries that parse it report less,
 * or ask for a password on a terminal that does not exist.
 */
#include "cluster/store/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/file/file.h"

enum { PEM_LIMIT = 1 << 20 };

static bool is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

static status check_link(const char *path, struct error *err)
{
    struct stat info;
    if (lstat(path, &info) != 0) return file_fail(err, path);
    if (!S_ISLNK(info.st_mode) || is_trusted(info.st_uid)) return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%.500s is a link of another user, who could let it lead anywhere: put the "
                     "file itself there",
                     path);
}

static status check_mode(const struct stat *info, const char *path, struct error *err)
{
    if ((info->st_mode & (S_IRWXG | S_IRWXO)) == 0) return STATUS_OK;
    return error_set(
        err, STATUS_USAGE,
        "%.500s holds a secret, and others than its owner may use it: chmod 600 %.500s", path,
        path);
}

static status check_owner(const struct stat *info, const char *path, struct error *err)
{
    if (!S_ISREG(info->st_mode)) {
        return error_set(err, STATUS_USAGE, "%.500s is no plain file", path);
    }
    if (is_trusted(info->st_uid)) return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%.500s belongs to another user, who knows what it holds: make it yours, "
                     "chown %u %.500s",
                     path, (unsigned)geteuid(), path);
}

static status read_bytes(int fd, const char *path, unsigned char *out, size_t capacity,
                         size_t *out_size, struct error *err)
{
    size_t used = 0;
    ssize_t got = 1;
    while (got != 0 && used < capacity) {
        got = read(fd, out + used, capacity - used);
        if (got < 0 && errno != EINTR) return file_fail(err, path);
        if (got > 0) used += (size_t)got;
    }
    unsigned char more;
    while (used == capacity && (got = read(fd, &more, 1)) < 0) {
        if (errno != EINTR) return file_fail(err, path);
    }
    *out_size = used == capacity && got > 0 ? used + 1 : used;
    return STATUS_OK;
}

status secret_file_read_own(const char *path, void *out, size_t capacity, size_t *out_size,
                            struct error *err)
{
    struct stat info;
    TRY(check_link(path, err));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return file_fail(err, path);
    status result = fstat(fd, &info) == 0 ? STATUS_OK : file_fail(err, path);
    if (result == STATUS_OK) result = check_owner(&info, path, err);
    if (result == STATUS_OK) result = check_mode(&info, path, err);
    if (result == STATUS_OK) result = read_bytes(fd, path, out, capacity, out_size, err);
    (void)close(fd); /* Only read. */
    return result;
}

static status read_open(int fd, const char *path, uint64_t size, size_t size_limit,
                        struct arena *arena, struct text *out, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return file_fail(err, path);
    TRY(check_mode(&info, path, err));
    if (size > size_limit) {
        return error_set(err, STATUS_INPUT, "%.500s is larger than %zu bytes", path, size_limit);
    }
    char *bytes = arena_array(arena, char, (size_t)size + 1);
    if (bytes == NULL) return error_memory(err);
    struct file_part part = {.fd = fd, .path = path, .size = (size_t)size};
    if (size > 0) TRY(file_read(part, bytes, err));
    bytes[size] = '\0';
    *out = (struct text){bytes, (uint32_t)size};
    return STATUS_OK;
}

status secret_file_read(const char *path, size_t size_limit, struct arena *arena, struct text *out,
                        struct error *err)
{
    int fd;
    struct file_info info;
    TRY(file_open(path, &fd, &info, err));
    status result = read_open(fd, path, info.size, size_limit, arena, out, err);
    file_close(fd);
    return result;
}

static bool has(struct text text, const char *part)
{
    return text.size > 0 && memmem(text.bytes, text.size, part, strlen(part)) != NULL;
}

status secret_file_read_key(const char *path, struct arena *arena, struct text *out,
                            struct error *err)
{
    struct text pem;
    TRY(secret_file_read(path, PEM_LIMIT, arena, &pem, err));
    if (!has(pem, "PRIVATE KEY-----")) {
        return error_set(err, STATUS_USAGE, "%.500s holds no private key in PEM%s", path,
                         has(pem, "-----BEGIN CERTIFICATE") ? ", but a certificate" : "");
    }
    if (has(pem, "BEGIN ENCRYPTED PRIVATE KEY") || has(pem, "Proc-Type: 4,ENCRYPTED")) {
        return error_set(err, STATUS_USAGE,
                         "the key in %.500s needs a password, which a server cannot type: store it "
                         "without one, readable by its owner only",
                         path);
    }
    *out = pem;
    return STATUS_OK;
}

status secret_file_read_certificates(const char *path, struct arena *arena, struct text *out,
                                     struct error *err)
{
    struct text pem;
    TRY(file_read_whole(path, PEM_LIMIT, arena, &pem, err));
    if (!has(pem, "-----BEGIN CERTIFICATE-----")) {
        return error_set(err, STATUS_USAGE, "%.500s holds no certificate in PEM%s", path,
                         has(pem, "PRIVATE KEY-----") ? ", but a key" : "");
    }
    *out = pem;
    return STATUS_OK;
}

/* ---- creating ---- */

/* Not all file systems have RENAME_NOREPLACE, or hard links. */
static bool rename_to_nothing(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    if (link(from, to) != 0) return false;
    (void)unlink(from); /* A second name does no harm. */
    return true;
}

static status write_aside(const char *temporary, int fd, const void *bytes, size_t size,
                          struct error *err)
{
    /* mkostemp asks for 0600, which some file systems ignore. */
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0) return file_fail(err, temporary);
    TRY(file_write(fd, temporary, bytes, size, NULL, err));
    if (fsync(fd) != 0) return file_fail(err, temporary);
    return STATUS_OK;
}

static status give_name(const char *temporary, const char *path, bool *out_made, struct error *err)
{
    if (rename_to_nothing(temporary, path)) {
        *out_made = true;
        return STATUS_OK;
    }
    int number = errno;
    (void)unlink(temporary); /* One that stays does no harm. */
    if (number == EEXIST) {
        *out_made = false;
        return STATUS_OK;
    }
    errno = number;
    return file_fail(err, path);
}

status secret_file_create(const char *path, const void *bytes, size_t size, bool *out_made,
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
    if (fd < 0) return file_fail(err, temporary);
    status result = write_aside(temporary, fd, bytes, size, err);
    (void)close(fd); /* It has reached the disk, or is removed. */
    if (result != STATUS_OK) {
        (void)unlink(temporary); /* The earlier failure is reported. */
        return result;
    }
    return give_name(temporary, path, out_made, err);
}
