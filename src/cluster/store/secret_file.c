/* secret_file.c - the mode is asked of the open file, so that it is the one which is read.
 *
 * PEM is only looked at, for the mistakes that people make: the libraries that use it say less
 * about them, or ask for a password on a terminal that is not there.
 */
#include "cluster/store/secret_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/arena.h"
#include "engine/file/file.h"

enum { PEM_LIMIT = 1 << 20 };

static status check_mode(int fd, const char *path, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return error_set(err, STATUS_IO, "%.500s: %s", path, strerror(errno));
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return STATUS_OK;
    return error_set(
        err, STATUS_USAGE,
        "%.500s holds a secret, and others than its owner may use it: chmod 600 %.500s", path,
        path);
}

static status read_open(int fd, const char *path, uint64_t size, size_t size_limit,
                        struct arena *arena, struct text *out, struct error *err)
{
    TRY(check_mode(fd, path, err));
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
                         "the key in %.500s needs a password, and nobody is there to type it: keep "
                         "it without one, readable by its owner only",
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
