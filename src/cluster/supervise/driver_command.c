/* SPDX-License-Identifier: Apache-2.0 */
/* driver_command.c - command lines of the cluster file, run by the shell.
 *
 * Only the names of a node and of its host are inserted, without quotes: names are letters, digits,
 * points, dashes and underscores, hosts also have colons, none of which is special to a shell.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/buf.h"
#include "engine/file/clock.h"
#include "cluster/supervise/driver_parts.h"
#include "cluster/wire/manifest.h"

enum { LOOK_MS = 20, WORDS_SIZE = 201 };

static const char *const action_keys[DRIVER_ACTIONS] = {
    [DRIVER_START] = "start_command",
    [DRIVER_KILL] = "kill_command",
    [DRIVER_PAUSE] = "pause_command",
    [DRIVER_RESUME] = "resume_command",
};

static const char *template_of(const struct driver_call *call)
{
    const struct cluster_config *config = call->driver->options.config;
    switch (call->action) {
    case DRIVER_START:
        return config->start_command;
    case DRIVER_KILL:
        return config->kill_command;
    case DRIVER_PAUSE:
        return config->pause_command;
    case DRIVER_RESUME:
        return config->resume_command;
    default:
        return NULL;
    }
}

/* Without characters that are special to a shell, and no option of a command. */
static bool is_harmless_host(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char others[] = "0123456789.-_:";
    size_t size = 0;
    while (host[size] != '\0' && (strchr(letters, host[size]) || strchr(others, host[size]))) {
        size++;
    }
    return size > 0 && host[size] == '\0' && host[0] != '-';
}

/* %n is the node, %h its host, %% is %; NULL: memory is out. */
static const char *fill_in(const struct driver_call *call, const char *template)
{
    struct buf line = {0};
    for (const char *at = template; *at != '\0'; at++) {
        char letter = '\0';
        if (at[0] == '%' && (at[1] == 'n' || at[1] == 'h' || at[1] == '%')) letter = *++at;
        if (letter == 'n') {
            buf_put_string(&line, call->node->name);
        } else if (letter == 'h') {
            buf_put_string(&line, call->node->host);
        } else {
            buf_put_u8(&line, (uint8_t)*at);
        }
    }
    struct text text = {(const char *)line.bytes, (uint32_t)line.size};
    const char *copy = line.failed ? NULL : arena_copy_string(call->arena, text);
    buf_done(&line);
    return copy;
}

/* The end of a command's standard error, as one line. */
struct last_words {
    char bytes[WORDS_SIZE];
    size_t size;
};

static void listen_to(struct spawn *process, struct last_words *words)
{
    char bytes[512];
    size_t size;
    while ((size = spawn_read(process->err_fd, bytes, sizeof bytes)) > 0) {
        for (size_t i = 0; i < size; i++) {
            if (words->size + 1 == WORDS_SIZE) {
                words->size--;
                memmove(words->bytes, words->bytes + 1, words->size);
            }
            words->bytes[words->size++] = (unsigned char)bytes[i] < ' ' ? ' ' : bytes[i];
        }
    }
}

/* Only at the end: what comes in parts has its blanks between them. */
static const char *tell_words(struct last_words *words)
{
    while (words->size > 0 && words->bytes[words->size - 1] == ' ') {
        words->size--;
    }
    words->bytes[words->size] = '\0';
    return words->bytes;
}

static status wait_for_end(const struct driver_call *call, struct spawn *process, struct error *err)
{
    uint32_t timeout_ms = call->driver->options.config->driver_timeout_ms;
    uint64_t deadline_ms = clock_ms() + timeout_ms;
    const char *key = action_keys[call->action];
    const char *name = call->node->name;
    struct last_words words = {.size = 0};
    while (!spawn_poll(process)) {
        if (clock_ms() >= deadline_ms) {
            spawn_stop(process, 0);
            listen_to(process, &words);
            return error_set(err, STATUS_LIMIT,
                             "%s for %s was killed: it took longer than %u ms. %s", key, name,
                             timeout_ms, tell_words(&words));
        }
        spawn_wait((struct spawn *const[]){process}, 1, LOOK_MS);
        listen_to(process, &words);
    }
    /* Processes that it left running may still hold the pipe, so its end is not awaited. */
    listen_to(process, &words);
    if (process->end.code == 0) return STATUS_OK;
    char how[SPAWN_END_SIZE];
    spawn_end_tell(process->end, how);
    return error_set(err, STATUS_IO, "%s for %s %s: %s", key, name, how, tell_words(&words));
}

status driver_command_do(const struct driver_call *call, struct error *err)
{
    const struct cluster_config *config = call->driver->options.config;
    const char *name = call->node->name;
    const char *template = template_of(call);
    if (call->action == DRIVER_STOP) {
        return error_set(err, STATUS_USAGE,
                         "the driver `command` has no command to stop %s: use `millrace stop`",
                         name);
    }
    if (template == NULL) {
        return error_set(err, STATUS_USAGE, "%s: [monitors] has no %s", config->path,
                         action_keys[call->action]);
    }
    if (!manifest_name_valid(text_of(name)) || name[0] == '-') {
        return error_set(err, STATUS_USAGE, "the name `%.100s` can't be part of a command", name);
    }
    if (!is_harmless_host(call->node->host)) {
        return error_set(err, STATUS_USAGE, "the host `%.100s` of %s can't be part of a command",
                         call->node->host, name);
    }
    const char *line = fill_in(call, template);
    if (line == NULL) return error_memory(err);
    const char *const argv[] = {"/bin/sh", "-c", line, NULL};
    struct spawn_options options = {
        .argv = argv,
        .environment = driver_environment(call->driver),
        .out = {.target = SPAWN_NULL},
        .err = {.target = SPAWN_PIPE},
    };
    struct spawn process;
    TRY(spawn_start(&process, options, err));
    status result = wait_for_end(call, &process, err);
    spawn_close(&process);
    return result;
}
