/* SPDX-License-Identifier: Apache-2.0 */
/* image_download.c - curl does the protocol; here are the limits and the file.
 *
 * Two pipes: the picture comes over curl's stdout, so that no more than the limit is ever written,
 * whatever the server announces. Its stderr has the content type, or the reason of a failure.
 */
#include "cli/engine/image_download.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/file/output_file.h"

#define SIZE_LIMIT_TEXT "33554432" /* SIZE_LIMIT, as curl takes it. */
enum {
    SIZE_LIMIT_MIB = 32,
    SIZE_LIMIT = SIZE_LIMIT_MIB << 20,
    TOO_LARGE_CODE = 63 /* curl's exit code for a server that announces more: curl(1). */
};
static_assert(SIZE_LIMIT == 33554432, "curl is told the same limit");

struct download {
    struct output_file file;
    pid_t pid;
    int body; /* The read ends of both pipes. */
    int report;
    uint64_t byte_count;
    char words[400]; /* What curl wrote to stderr, cut. */
};

static bool is_http(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static status spawn_curl(struct download *download, const char *url, int body, int report,
                         struct error *err)
{
    extern char **environ;
    /* --disable: no .curlrc of the user adds to these words. */
    const char *const words[] = {"curl",
                                 "--disable",
                                 "--silent",
                                 "--show-error",
                                 "--fail",
                                 "--location",
                                 "--globoff",
                                 "--proto",
                                 "=http,https",
                                 "--proto-redir",
                                 "=http,https",
                                 "--max-redirs",
                                 "5",
                                 "--max-filesize",
                                 SIZE_LIMIT_TEXT,
                                 "--connect-timeout",
                                 "10",
                                 "--max-time",
                                 "60",
                                 "--user-agent",
                                 "millrace/" MILLRACE_VERSION,
                                 "--write-out",
                                 "%{stderr}%{content_type}",
                                 "--",
                                 url,
                                 NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) return error_memory(err);
    int code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, body, STDOUT_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, report, STDERR_FILENO);
    if (code == 0)
        code = posix_spawnp(&download->pid, "curl", &actions, NULL, (char *const *)words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (code == 0) return STATUS_OK;
    return error_set(err, STATUS_IO, "the program curl can't be started: %s%s", strerror(code),
                     code == ENOENT ? "; install the package curl" : "");
}

static status start(struct download *download, const char *url, struct error *err)
{
    int body[2], report[2];
    if (pipe2(body, O_CLOEXEC) != 0) {
        return error_set(err, STATUS_IO, "no pipe: %s", strerror(errno));
    }
    status result = STATUS_OK;
    if (pipe2(report, O_CLOEXEC) != 0) {
        result = error_set(err, STATUS_IO, "no pipe: %s", strerror(errno));
        (void)close(body[0]); /* Nothing was written: there is nothing to lose. */
        (void)close(body[1]);
        return result;
    }
    result = spawn_curl(download, url, body[1], report[1], err);
    (void)close(body[1]);
    (void)close(report[1]);
    download->body = body[0];
    download->report = report[0];
    return result;
}

static status receive(struct download *download, const atomic_bool *cancelled, struct error *err)
{
    char bytes[16 * 1024];
    for (;;) {
        ssize_t size = read(download->body, bytes, sizeof bytes);
        if (atomic_load(cancelled)) return error_set(err, STATUS_CANCELLED, "interrupted");
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return error_set(err, STATUS_IO, "curl: %s", strerror(errno));
        if (size == 0) return STATUS_OK;
        if ((uint64_t)size > SIZE_LIMIT - download->byte_count) {
            return error_set(err, STATUS_LIMIT, "it is larger than %d MiB", SIZE_LIMIT_MIB);
        }
        TRY(output_file_write(&download->file, bytes, (size_t)size, cancelled, err));
        download->byte_count += (uint64_t)size;
    }
}

/* Ends curl, if need be, and reads its last words; gives its exit code. */
static int finish(struct download *download, bool is_whole)
{
    if (!is_whole) (void)kill(download->pid, SIGKILL); /* If it has ended, that is as good. */
    size_t used = 0;
    ssize_t size;
    do {
        size = read(download->report, download->words + used, sizeof download->words - 1 - used);
        if (size > 0) used += (size_t)size;
    } while (size > 0 || (size < 0 && errno == EINTR));
    download->words[used] = '\0';
    download->words[strcspn(download->words, "\n")] = '\0';
    int state = 0;
    while (waitpid(download->pid, &state, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static status transfer(struct download *download, const char *url, const atomic_bool *cancelled,
                       struct error *err)
{
    status result = start(download, url, err);
    if (result == STATUS_OK) {
        result = receive(download, cancelled, err);
        int code = finish(download, result == STATUS_OK);
        if (result == STATUS_OK && code == TOO_LARGE_CODE) {
            result = error_set(err, STATUS_LIMIT, "it is larger than %d MiB", SIZE_LIMIT_MIB);
        } else if (result == STATUS_OK && code != 0) {
            result = error_set(err, STATUS_IO, "%s", download->words);
        }
    }
    if (download->body >= 0) (void)close(download->body);
    if (download->report >= 0) (void)close(download->report);
    return result;
}

status image_download(const char *url, const char *path, const atomic_bool *cancelled,
                      struct image_report *out_report, struct error *err)
{
    if (!is_http(url)) return error_set(err, STATUS_INPUT, "only http and https are fetched");
    struct arena arena = {0};
    struct download download = {.body = -1, .report = -1};
    status result = output_file_create(&download.file, path, &arena, err);
    if (result == STATUS_OK) result = transfer(&download, url, cancelled, err);
    if (result == STATUS_OK) result = output_file_seal(&download.file, err);
    if (result == STATUS_OK) result = output_file_publish(&download.file, err);
    if (result == STATUS_OK) {
        out_report->byte_count = download.byte_count;
        (void)snprintf(out_report->content_type, sizeof out_report->content_type, "%.79s",
                       download.words);
    }
    output_file_discard(&download.file);
    arena_done(&arena);
    return result;
}
