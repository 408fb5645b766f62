/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.h - a file that appears under its name only when it is whole.
 *
 *     output_file_create -> output_file_write* -> output_file_seal -> output_file_publish
 *
 * Until it is published, the bytes stand under a hidden temporary name in the same folder, so what
 * was there before stays as it was. output_file_discard may come at any time, also after a failure,
 * and throws away what is not published.
 *
 * Memory: names live in the given arena. Threads: one owner.
 */
#ifndef ENGINE_FILE_OUTPUT_FILE_H
#define ENGINE_FILE_OUTPUT_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

struct output_file {
    const char *path;
    const char *temporary; /* NULL: there is none, or not any more. */
    int descriptor;        /* Open only while there is a temporary file. */
    bool is_open;
    bool is_volatile; /* Set by an owner who can make it again: a power failure may take it. */
};

MUST_USE status output_file_create(struct output_file *file, const char *path, struct arena *arena,
                                   struct error *err);
/* `cancelled` may be NULL. */
MUST_USE status output_file_write(struct output_file *file, const void *bytes, size_t size,
                                  const atomic_bool *cancelled, struct error *err);
/* Brings it to the disk, so that the name never stands for bytes that a power failure takes back.
 */
MUST_USE status output_file_seal(struct output_file *file, struct error *err);
MUST_USE status output_file_publish(struct output_file *file, struct error *err);
/* All of it at once: the file has either its old content or the new one, whenever the process or
 * the machine ends. OUTPUT_PRIVATE: nobody but the user may read it. */
enum output_access { OUTPUT_PUBLIC, OUTPUT_PRIVATE };
MUST_USE status output_file_replace(const char *path, enum output_access access,
                                    struct text content, struct error *err);
/* Accepts a zeroed file. */
void output_file_discard(struct output_file *file);

#endif
