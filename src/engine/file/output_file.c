/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.c - write aside, fsync, rename.
 *
 * rename is atomic (POSIX.1-2017, rename()), but a file system may bring the new name to the disk
 * before the bytes, so that fsync comes first (Pillai et al., "All File Systems Are Not Created
 * Equal", OSDI 2014). The folder itself is not synced here: a caller that publishes many files does
 * that once, with file_sync_folder.
 */
#include "engine/file/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/file/file.h"

static status output_file_fail(const struct output_file *file, int reason, struct error *err)
{
    char text[128];
    return error_set(err, STATUS_IO, "cannot write %.500s: %s", file->path,
                     strerror_r(reason, text, sizeof text));
}

/* "folder/.name.PID.part": processes that write the same file do not meet before the rename. */
static const char *temporary_name(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t size = strlen(path) + 40;
    char *temporary = arena_alloc(arena, size, 1);
    if (temporary == NULL) return NULL;
    (void)snprintf(temporary, size, "%.*s.%s.%ld.part", (int)(name - path), path, name,
                   (long)getpid()); /* Fits: a process number has fewer digits than that. */
    return temporary;
}

static status create(struct output_file *file, const char *path, enum output_access access,
                     struct arena *arena, struct error *err)
{
    mode_t mode = access == OUTPUT_PRIVATE ? S_IRUSR | S_IWUSR : 0666;
    *file = (struct output_file){0};
    file->path = arena_copy_string(arena, text_of(path));
    const char *temporary = temporary_name(path, arena);
    if (file->path == NULL || temporary == NULL) {
        return error_set(err, STATUS_MEMORY, "%.500s: no memory to write it", path);
    }
    /* What a killed process of the same number left behind, or a link put there to be followed. */
    (void)unlink(temporary);
    do {
        file->descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (file->descriptor < 0 && errno == EINTR);
    if (file->descriptor < 0) return output_file_fail(file, errno, err);
    file->is_open = true;
    file->temporary = temporary;
    /* Some file systems give a file another mode than it was asked for. */
    if (access == OUTPUT_PRIVATE && fchmod(file->descriptor, mode) != 0) {
        return output_file_fail(file, errno, err);
    }
    return STATUS_OK;
}

status output_file_create(struct output_file *file, const char *path, struct arena *arena,
                          struct error *err)
{
    return create(file, path, OUTPUT_PUBLIC, arena, err);
}

status output_file_write(struct output_file *file, const void *bytes, size_t size,
                         const atomic_bool *cancelled, struct error *err)
{
    ASSERT(file->is_open);
    return file_write(file->descriptor, file->path, bytes, size, cancelled, err);
}

status output_file_seal(struct output_file *file, struct error *err)
{
    ASSERT(file->is_open);
    int failure = !file->is_volatile && fsync(file->descriptor) != 0 ? errno : 0;
    if (close(file->descriptor) != 0 && failure == 0) failure = errno;
    file->is_open = false;
    return failure != 0 ? output_file_fail(file, failure, err) : STATUS_OK;
}

status output_file_publish(struct output_file *file, struct error *err)
{
    ASSERT(!file->is_open && file->temporary != NULL);
    if (rename(file->temporary, file->path) != 0) return output_file_fail(file, errno, err);
    file->temporary = NULL;
    return STATUS_OK;
}

status output_file_replace(const char *path, enum output_access access, struct text content,
                           struct error *err)
{
    struct output_file file;
    struct arena arena = {0};
    status result = create(&file, path, access, &arena, err);
    if (result == STATUS_OK) {
        result = output_file_write(&file, content.bytes, content.size, NULL, err);
    }
    if (result == STATUS_OK) result = output_file_seal(&file, err);
    if (result == STATUS_OK) result = output_file_publish(&file, err);
    output_file_discard(&file);
    arena_done(&arena);
    return result;
}

void output_file_discard(struct output_file *file)
{
    /* Best effort: the bytes are not wanted, and a failure is being told already. */
    if (file->is_open) (void)close(file->descriptor);
    if (file->temporary != NULL) (void)unlink(file->temporary);
    *file = (struct output_file){.path = file->path};
}
