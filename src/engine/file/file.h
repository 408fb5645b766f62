/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - files and folders, with errors that name the path.
 *
 * Only regular files are opened. A file that was opened keeps the size it had then: what is added
 * later is not seen, and a part that has gone is an error.
 *
 * Memory: results live in the given arena. Threads: any; one descriptor may be read by several.
 */
#ifndef ENGINE_FILE_FILE_H
#define ENGINE_FILE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/text.h"

struct arena;

/* STATUS_IO for a call that failed: "PATH: " and the reason that errno has. */
status file_fail(struct error *err, const char *path);

struct file_info {
    uint64_t size;
    int64_t modified_ns; /* Since 1970. */
    uint64_t inode;
};

/* For reading; `out_info` may be NULL. When the process runs out of descriptors, its soft limit is
 * raised to the hard one before this fails. */
MUST_USE status file_open(const char *path, int *out_fd, struct file_info *out_info,
                          struct error *err);
/* For appending; made if it is not there. */
MUST_USE status file_open_append(const char *path, int *out_fd, struct error *err);
/* Accepts -1. */
void file_close(int fd);

/* Exactly this part of a file, or STATUS_IO. The path is for messages. */
struct file_part {
    int fd;
    const char *path;
    uint64_t offset;
    size_t size;
};
MUST_USE status file_read(struct file_part part, void *out, struct error *err);

/* All of a file, which may have at most `size_limit` bytes (less than 4 GiB). A zero follows. */
MUST_USE status file_read_whole(const char *path, size_t size_limit, struct arena *arena,
                                struct text *out, struct error *err);

/* All bytes to an open descriptor, or an error: "cannot write " and the name. A descriptor that
 * does not block is waited for. STATUS_CANCELLED: the flag (which may be NULL) was set while it
 * waited, or the reader of a pipe is gone. */
MUST_USE status file_write(int fd, const char *name, const void *bytes, size_t size,
                           const atomic_bool *cancelled, struct error *err);

/* How much a user may still write to the disk of a folder; UINT64_MAX: that can't be told. */
uint64_t file_free_bytes(const char *path);
/* Whether there is something of that name; a broken link counts as nothing. */
bool file_exists(const char *path);
bool file_is_folder(const char *path);

/* A folder that is there already is fine; *out_made tells. Folders above it must be there. */
MUST_USE status file_make_folder(const char *path, bool *out_made, struct error *err);
/* All folders above the path's last part; those that are there stay. */
MUST_USE status file_make_parents(const char *path, struct error *err);
/* The same, and the last part too. */
MUST_USE status file_make_folders(const char *path, struct error *err);
/* Only if it is empty; it may stay. */
void file_remove_folder(const char *path);
/* Brings the names in a folder to the disk. Some file systems refuse that, which is ignored: what
 * the files hold is safe without. */
void file_sync_folder(const char *path);

struct file_entry {
    struct text name; /* A zero follows. */
    bool is_folder;
};

/* What a folder holds but . and .., ordered by bytes. */
MUST_USE status file_list(const char *path, struct arena *arena, struct file_entry **out_entries,
                          uint32_t *out_count, struct error *err);

/* The files that a pattern names within the folder `base`, ordered by bytes: paths as the pattern
 * has them, each followed by a zero. In the pattern's last part, * stands for any bytes and ? for
 * one; a leading point stands only for itself. Folders are passed over. No match is no error. An
 * absolute pattern does not care about the base. */
MUST_USE status file_glob(const char *base, struct text pattern, struct arena *arena,
                          struct text **out_names, uint32_t *out_count, struct error *err);

/* Whether the name is one that the pattern (without /) stands for. */
bool file_name_matches(struct text pattern, struct text name);

/* "base/name", or the name if that is absolute; NULL: the arena is full. */
char *file_path(const char *base, struct text name, struct arena *arena);

#endif
