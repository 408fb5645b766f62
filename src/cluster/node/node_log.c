/* SPDX-License-Identifier: Apache-2.0 */
/* node_log.c - each line is one write to a file opened with O_APPEND, so that lines never mix. */
#include "cluster/node/node_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"

enum { LINE_SIZE = 4096 };

struct node_log {
    int descriptor;
    enum say_level level;
    char node[ROLE_NAME_SIZE];
};

status node_log_open(const char *folder, const char *node, enum say_level level,
                     struct node_log **out, struct error *err)
{
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/log", folder);
    if (size < 0 || (size_t)size >= sizeof path) {
        return error_set(err, STATUS_USAGE, "the path %.200s... is too long", folder);
    }
    struct node_log *log = memory_alloc(NULL, sizeof *log);
    if (log == NULL) return error_memory(err);
    *log = (struct node_log){.level = level};
    (void)snprintf(log->node, sizeof log->node, "%s", node);
    status result = file_open_append(path, &log->descriptor, err);
    if (result != STATUS_OK) {
        memory_free(NULL, log, sizeof *log);
        return result;
    }
    *out = log;
    return STATUS_OK;
}

void node_log_close(struct node_log *log)
{
    if (log == NULL) return;
    file_close(log->descriptor);
    memory_free(NULL, log, sizeof *log);
}

void node_log_say(struct node_log *log, enum say_level level, const char *format, ...)
{
    static const char *const names[] = {
        [SAY_ERROR] = "error", [SAY_WARN] = "warn", [SAY_INFO] = "info", [SAY_DEBUG] = "debug"};
    if (log == NULL || level > log->level) return;
    char line[LINE_SIZE];
    int64_t now_ms = clock_wall_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    size_t used = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &parts);
    used += (size_t)snprintf(line + used, sizeof line - used, ".%03dZ level=%s node=%s ",
                             (int)(now_ms % 1000), names[level], log->node);
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    if (size > 0)
        used += (size_t)size < sizeof line - used - 1 ? (size_t)size : sizeof line - used - 2;
    for (size_t i = 0; i < used; i++) {
        if (line[i] == '\n' || line[i] == '\r') line[i] = ' '; /* One event, one line. */
    }
    line[used++] = '\n';
    struct error err;
    /* A node must not fail because its log can't be written. */
    if (file_write(log->descriptor, "the log", line, used, NULL, &err) != STATUS_OK) return;
}
