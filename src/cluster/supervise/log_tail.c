/* SPDX-License-Identifier: Apache-2.0 */
/* log_tail.c - reads only the last bytes of the file. */
#include "cluster/supervise/log_tail.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/file/file.h"

enum { TAIL_BYTES = 1000 };

/* Whole lines at the end of the log; 0: there are none. */
static size_t read_tail(const char *folder, char path[PATH_MAX], char bytes[TAIL_BYTES],
                        size_t *out_start)
{
    struct file_info info;
    struct error ignored;
    int fd = -1;
    int path_size = snprintf(path, PATH_MAX, "%s/log", folder);
    if (path_size < 0 || path_size >= PATH_MAX) return 0;
    if (file_open(path, &fd, &info, &ignored) != STATUS_OK) return 0;
    size_t taken = info.size < TAIL_BYTES ? (size_t)info.size : TAIL_BYTES;
    struct file_part part = {.fd = fd, .path = path, .offset = info.size - taken, .size = taken};
    bool is_read = taken > 0 && file_read(part, bytes, &ignored) == STATUS_OK;
    file_close(fd);
    if (!is_read) return 0;
    size_t start = 0;
    while (taken < info.size && start < taken && bytes[start++] != '\n') {}
    if (bytes[taken - 1] == '\n') taken--;
    *out_start = start;
    return start < taken ? taken : 0;
}

void log_tail(const char *folder, char *out, size_t size)
{
    char path[PATH_MAX];
    char bytes[TAIL_BYTES];
    size_t start = 0;
    size_t end = read_tail(folder, path, bytes, &start);
    out[0] = '\0';
    if (end == 0) return;
    (void)snprintf(out, size, "\n%s ends with\n%.*s", path, (int)(end - start),
                   bytes + start); /* Cut at the limit. */
}

void log_reason(const char *folder, char *out, size_t size)
{
    static const char mark[] = "event=failed reason=\"";
    char path[PATH_MAX];
    char bytes[TAIL_BYTES];
    size_t start = 0;
    size_t end = read_tail(folder, path, bytes, &start);
    const char *found = NULL;
    out[0] = '\0';
    for (const char *at = bytes + start; at < bytes + end; at++) {
        at = memmem(at, (size_t)(bytes + end - at), mark, sizeof mark - 1);
        if (at == NULL) break;
        found = at + sizeof mark - 1;
    }
    if (found == NULL) return;
    size_t left = (size_t)(bytes + end - found);
    const char *line_end = memchr(found, '\n', left);
    if (line_end != NULL) left = (size_t)(line_end - found);
    if (left > 0 && found[left - 1] == '"') left--;
    (void)snprintf(out, size, "%.*s", (int)left, found); /* Cut at the limit. */
}
