/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - POSIX calls with their results checked.
 *
 * Our own glob rather than the system's: its order depends on the locale, and in it a folder's name
 * could be mistaken for a pattern.
 */
#include "engine/file/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "engine/base/array.h"
#include "engine/base/assert.h"

enum { WRITE_POLL_MS = 200 };

status file_fail(struct error *err, const char *path)
{
    int number = errno;
    char reason[128];
    return error_set(err, STATUS_IO, "%s: %s", path, strerror_r(number, reason, sizeof reason));
}

static status file_fail_memory(struct error *err, const char *path)
{
    return error_set(err, STATUS_MEMORY, "%s: no memory to read it", path);
}

/* Whether there is now room for more descriptors. */
static bool raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int open_retrying(const char *path)
{
    for (;;) {
        /* Without O_NONBLOCK, the open of a pipe would wait for a writer. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0) return fd;
        if (errno == EINTR) continue;
        if (errno != EMFILE || !raise_descriptor_limit()) return -1;
    }
}

status file_open(const char *path, int *out_fd, struct file_info *out_info, struct error *err)
{
    int fd = open_retrying(path);
    if (fd < 0 && errno == EMFILE) {
        return error_set(err, STATUS_IO, "%s: too many open files; raise the limit with ulimit -n",
                         path);
    }
    if (fd < 0) return file_fail(err, path);

    struct stat stat;
    status result = STATUS_OK;
    if (fstat(fd, &stat) != 0) {
        result = file_fail(err, path);
    } else if (S_ISDIR(stat.st_mode)) {
        result = error_set(err, STATUS_IO, "%s: is a folder, not a file", path);
    } else if (!S_ISREG(stat.st_mode)) {
        result = error_set(err, STATUS_IO, "%s: is not a regular file", path);
    }
    if (result != STATUS_OK) {
        file_close(fd);
        return result;
    }
    *out_fd = fd;
    if (out_info != NULL) {
        *out_info = (struct file_info){
            .size = (uint64_t)stat.st_size,
            .modified_ns = (int64_t)stat.st_mtim.tv_sec * 1000000000 + stat.st_mtim.tv_nsec,
            .inode = (uint64_t)stat.st_ino,
        };
    }
    return STATUS_OK;
}

status file_open_append(const char *path, int *out_fd, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        return error_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    }
    *out_fd = fd;
    return STATUS_OK;
}

void file_close(int fd)
{
    if (fd >= 0) (void)close(fd); /* Nothing was written, so nothing can be lost. */
}

status file_read(struct file_part part, void *out, struct error *err)
{
    char *bytes = out;
    size_t done = 0;
    while (done < part.size) {
        ssize_t count = pread(part.fd, bytes + done, part.size - done, (off_t)(part.offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return file_fail(err, part.path);
        if (count == 0) {
            return error_set(err, STATUS_IO, "%s: changed while it was read: it has become shorter",
                             part.path);
        }
        done += (size_t)count;
    }
    return STATUS_OK;
}

status file_read_whole(const char *path, size_t size_limit, struct arena *arena, struct text *out,
                       struct error *err)
{
    ASSERT(size_limit < UINT32_MAX);
    int fd = -1;
    struct file_info info;
    TRY(file_open(path, &fd, &info, err));

    status result = STATUS_OK;
    char *bytes = NULL;
    if (info.size > size_limit) {
        result = error_set(err, STATUS_LIMIT, "%s: has %llu bytes; the limit is %zu", path,
                           (unsigned long long)info.size, size_limit);
        goto done;
    }
    bytes = arena_alloc(arena, (size_t)info.size + 1, 1);
    if (bytes == NULL) {
        result = file_fail_memory(err, path);
        goto done;
    }
    result = file_read((struct file_part){.fd = fd, .path = path, .size = (size_t)info.size}, bytes,
                       err);
    if (result != STATUS_OK) goto done;
    bytes[info.size] = '\0';
    *out = (struct text){bytes, (uint32_t)info.size};
done:
    file_close(fd);
    return result;
}

/* Decides what a failed write means; STATUS_OK: try again. */
static status write_failed(int fd, const char *name, int reason, const atomic_bool *cancelled,
                           struct error *err)
{
    if (reason == EINTR || reason == EAGAIN || reason == EWOULDBLOCK) {
        if (cancelled != NULL && atomic_load(cancelled)) {
            return error_set(err, STATUS_CANCELLED, "interrupted");
        }
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        if (reason != EINTR) (void)poll(&wait, 1, WRITE_POLL_MS); /* The next write tells all. */
        return STATUS_OK;
    }
    if (reason == EPIPE) {
        return error_set(err, STATUS_CANCELLED, "output was closed by the reader");
    }
    char text[128];
    return error_set(err, STATUS_IO, "cannot write %.500s: %s", name,
                     strerror_r(reason, text, sizeof text));
}

status file_write(int fd, const char *name, const void *bytes, size_t size,
                  const atomic_bool *cancelled, struct error *err)
{
    const char *from = bytes;
    for (size_t done = 0; done < size;) {
        ssize_t written = write(fd, from + done, size - done);
        if (written >= 0) {
            done += (size_t)written;
        } else {
            TRY(write_failed(fd, name, errno, cancelled, err));
        }
    }
    return STATUS_OK;
}

uint64_t file_free_bytes(const char *path)
{
    struct statvfs disk;
    if (statvfs(path, &disk) != 0) return UINT64_MAX;
    return (uint64_t)disk.f_bavail * disk.f_frsize;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

status file_make_folder(const char *path, bool *out_made, struct error *err)
{
    bool made = mkdir(path, 0777) == 0;
    int reason = made ? 0 : errno;
    if (!made && !(reason == EEXIST && file_is_folder(path))) {
        char text[128];
        if (reason == EEXIST) reason = ENOTDIR; /* "File exists" would be no reason. */
        return error_set(err, STATUS_IO, "cannot make the folder %.500s: %s", path,
                         strerror_r(reason, text, sizeof text));
    }
    *out_made = made;
    return STATUS_OK;
}

status file_make_parents(const char *path, struct error *err)
{
    char folder[PATH_MAX];
    bool made;
    if (strlen(path) >= sizeof folder) {
        return error_set(err, STATUS_IO, "%.200s...: the path is too long", path);
    }
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t size = (size_t)(slash - path);
        memcpy(folder, path, size);
        folder[size] = '\0';
        /* One that is there need not be ours to write in. */
        if (size > 0 && !file_exists(folder)) TRY(file_make_folder(folder, &made, err));
    }
    return STATUS_OK;
}

status file_make_folders(const char *path, struct error *err)
{
    bool made;
    TRY(file_make_parents(path, err));
    return file_make_folder(path, &made, err);
}

void file_remove_folder(const char *path)
{
    (void)rmdir(path); /* As the header says. */
}

void file_sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd); /* As the header says. */
    (void)close(fd); /* Nothing was written through it. */
}

static int compare_entries(const void *a, const void *b)
{
    return text_compare(((const struct file_entry *)a)->name, ((const struct file_entry *)b)->name);
}

/* Links are followed; what cannot be looked at is taken for a file, and opening it tells why. */
static bool is_folder_at(DIR *folder, const char *name)
{
    struct stat stat;
    return fstatat(dirfd(folder), name, &stat, 0) == 0 && S_ISDIR(stat.st_mode);
}

static status list_open_folder(DIR *folder, const char *path, struct arena *arena,
                               struct file_entry **out_entries, uint32_t *out_count,
                               struct error *err)
{
    ARRAY_OF(struct file_entry) entries = {0};
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL && errno != 0) return file_fail(err, path);
        if (entry == NULL) break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;

        struct file_entry *added = array_add_in(&entries, arena);
        char *name = arena_copy_string(arena, text_of(entry->d_name));
        if (added == NULL || name == NULL) return file_fail_memory(err, path);
        *added = (struct file_entry){
            .name = text_of(name),
            .is_folder = is_folder_at(folder, name),
        };
    }
    if (entries.count > 1) {
        qsort(entries.items, entries.count, sizeof *entries.items, compare_entries);
    }
    *out_entries = entries.items;
    *out_count = entries.count;
    return STATUS_OK;
}

status file_list(const char *path, struct arena *arena, struct file_entry **out_entries,
                 uint32_t *out_count, struct error *err)
{
    DIR *folder = opendir(path);
    if (folder == NULL && errno == EMFILE && raise_descriptor_limit()) folder = opendir(path);
    if (folder == NULL) return file_fail(err, path);
    status result = list_open_folder(folder, path, arena, out_entries, out_count, err);
    (void)closedir(folder); /* Only read. */
    return result;
}

bool file_name_matches(struct text pattern, struct text name)
{
    if (name.size > 0 && name.bytes[0] == '.' && (pattern.size == 0 || pattern.bytes[0] != '.')) {
        return false;
    }
    /* After a mismatch only the latest star can help, by taking one more byte: what earlier stars
     * took was the shortest that fits, and taking more leaves less for the rest. */
    uint32_t at = 0;
    uint32_t name_at = 0;
    uint32_t star = UINT32_MAX;
    uint32_t star_name_at = 0;
    while (name_at < name.size) {
        if (at < pattern.size && pattern.bytes[at] == '*') {
            star = at++;
            star_name_at = name_at;
        } else if (at < pattern.size &&
                   (pattern.bytes[at] == '?' || pattern.bytes[at] == name.bytes[name_at])) {
            at++;
            name_at++;
        } else if (star != UINT32_MAX) {
            at = star + 1;
            name_at = ++star_name_at;
        } else {
            return false;
        }
    }
    while (at < pattern.size && pattern.bytes[at] == '*') {
        at++;
    }
    return at == pattern.size;
}

char *file_path(const char *base, struct text name, struct arena *arena)
{
    if (name.size > 0 && name.bytes[0] == '/') return arena_copy_string(arena, name);
    size_t base_size = strlen(base);
    if (base_size > 0 && base[base_size - 1] == '/') base_size--;
    char *path = arena_alloc(arena, base_size + 1 + name.size + 1, 1);
    if (path == NULL) return NULL;
    memcpy(path, base, base_size);
    path[base_size] = '/';
    if (name.size > 0) memcpy(path + base_size + 1, name.bytes, name.size);
    path[base_size + 1 + name.size] = '\0';
    return path;
}

/* A pattern cut before its last part: "a/b/" and "*.csv". */
struct glob {
    struct text folder;
    struct text last;
};

static struct glob glob_cut(struct text pattern)
{
    uint32_t cut = pattern.size;
    while (cut > 0 && pattern.bytes[cut - 1] != '/') {
        cut--;
    }
    return (struct glob){
        .folder = {pattern.bytes, cut},
        .last = {pattern.bytes + cut, pattern.size - cut},
    };
}

static bool has_wildcard(struct text text)
{
    return text.size > 0 && (memchr(text.bytes, '*', text.size) != NULL ||
                             memchr(text.bytes, '?', text.size) != NULL);
}

/* A pattern that is just a path. */
static status glob_one(const char *base, struct text pattern, struct arena *arena,
                       struct text **out_names, uint32_t *out_count, struct error *err)
{
    char *path = file_path(base, pattern, arena);
    struct text *names = arena_array(arena, struct text, 1);
    char *name = arena_copy_string(arena, pattern);
    if (path == NULL || names == NULL || name == NULL) return file_fail_memory(err, base);

    struct stat stat_result;
    bool exists = stat(path, &stat_result) == 0;
    if (!exists && errno != ENOENT && errno != ENOTDIR) return file_fail(err, path);
    names[0] = (struct text){name, pattern.size};
    *out_names = names;
    *out_count = exists && !S_ISDIR(stat_result.st_mode) ? 1 : 0;
    return STATUS_OK;
}

static bool is_folder(const char *path)
{
    struct stat stat_result;
    if (stat(path, &stat_result) != 0) return errno != ENOENT && errno != ENOTDIR;
    return S_ISDIR(stat_result.st_mode);
}

status file_glob(const char *base, struct text pattern, struct arena *arena,
                 struct text **out_names, uint32_t *out_count, struct error *err)
{
    struct glob glob = glob_cut(pattern);
    if (!has_wildcard(glob.last)) return glob_one(base, pattern, arena, out_names, out_count, err);

    char *folder = file_path(base, glob.folder, arena);
    if (folder == NULL) return file_fail_memory(err, base);
    struct file_entry *entries = NULL;
    uint32_t entry_count = 0;
    if (is_folder(folder)) TRY(file_list(folder, arena, &entries, &entry_count, err));

    struct text *names = arena_array(arena, struct text, (size_t)entry_count + 1);
    if (names == NULL) return file_fail_memory(err, folder);
    uint32_t count = 0;
    for (uint32_t i = 0; i < entry_count; i++) {
        struct text last = entries[i].name;
        if (entries[i].is_folder || !file_name_matches(glob.last, last)) continue;
        uint32_t size = glob.folder.size + last.size;
        char *name = arena_alloc(arena, (size_t)size + 1, 1);
        if (name == NULL) return file_fail_memory(err, folder);
        if (glob.folder.size > 0) memcpy(name, glob.folder.bytes, glob.folder.size);
        memcpy(name + glob.folder.size, last.bytes, (size_t)last.size + 1);
        names[count++] = (struct text){name, size};
    }
    *out_names = names;
    *out_count = count;
    return STATUS_OK;
}
