/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - the rate is the average since the start: steadier than a window, and the time left
 * that follows from it does not jump.
 */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/buf.h"
#include "cli/terminal.h"
#include "engine/file/clock.h"

enum { BAR_WIDTH = 24, BAR_NUMBER_WIDTH = 8, WORDS_SIZE = 256 };
#define UPDATE_SECONDS 0.1
#define FIRST_SECONDS  0.3 /* What ends sooner needs no bar. */

void progress_start(struct progress *progress, const char *verb)
{
    struct terminal terminal = terminal_of(STDERR_FILENO);
    double now = clock_seconds();
    *progress = (struct progress){
        .enabled = terminal.rewrites,
        .width = terminal.width,
        .start_seconds = now,
        .shown_seconds = now + FIRST_SECONDS - UPDATE_SECONDS,
        .verb = verb,
    };
}

static void put_bar(struct buf *line, double share)
{
    int full = (int)(share * BAR_WIDTH + 0.5);
    for (int i = 0; i < BAR_WIDTH; i++) {
        buf_put_string(line, i < full ? "█" : "░");
    }
    buf_format(line, " %3.0f %%  ", share * 100);
}

/* Whether it is time for another look; then the line is begun. */
static bool line_begin(struct progress *progress, struct buf *line)
{
    if (!progress->enabled) return false;
    double now = clock_seconds();
    if (now - progress->shown_seconds < UPDATE_SECONDS) return false;
    progress->shown_seconds = now;
    progress->visible = true;
    buf_format(line, "\r\033[K%s ", progress->verb);
    return true;
}

void progress_show(struct progress *progress, double share, const char *format, ...)
{
    struct buf line = {0};
    if (!line_begin(progress, &line)) return;
    char words[WORDS_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    uint32_t used = (uint32_t)strlen(progress->verb) + 1;
    uint32_t bar = BAR_WIDTH + BAR_NUMBER_WIDTH;
    if (share >= 0 && size > 0 && used + bar + (uint32_t)size < progress->width) {
        put_bar(&line, share < 1 ? share : 1);
        used += bar;
    } else if (share >= 0) {
        buf_format(&line, "%3.0f %%  ", share < 1 ? share * 100 : 100.0);
        used += BAR_NUMBER_WIDTH;
    }
    /* A line that wraps could not be rewritten. */
    int room = progress->width > used ? (int)(progress->width - used - 1) : 0;
    buf_format(&line, "%.*s", room, words);
    if (!line.failed) terminal_say_raw(&line);
    buf_done(&line);
}

void progress_update(struct progress *progress, uint64_t done_bytes, uint64_t total_bytes)
{
    struct buf line = {0};
    if (!line_begin(progress, &line)) return;
    double elapsed = progress->shown_seconds - progress->start_seconds;
    double rate = elapsed > 0 ? (double)done_bytes / elapsed : 0;
    if (total_bytes > 0) {
        double share = (double)done_bytes / (double)total_bytes;
        /* A line that wraps could not be rewritten. */
        if (progress->width >= BAR_WIDTH + 50)
            put_bar(&line, share < 1 ? share : 1);
        else
            buf_format(&line, "%.0f %%  ", share < 1 ? share * 100 : 100.0);
    } else {
        terminal_put_bytes(done_bytes, &line);
        buf_put_string(&line, "  ");
    }
    buf_format(&line, "%.0f MB/s", rate / 1e6);
    if (total_bytes > done_bytes && rate > 0 && progress->width >= 50) {
        buf_put_string(&line, "  ");
        terminal_put_seconds((double)(total_bytes - done_bytes) / rate, &line);
        buf_put_string(&line, " left");
    }
    if (!line.failed) terminal_say_raw(&line);
    buf_done(&line);
}

void progress_clear(struct progress *progress)
{
    if (!progress->visible) return;
    progress->visible = false;
    struct buf line = {0};
    buf_put_string(&line, "\r\033[K");
    terminal_say_raw(&line);
    buf_done(&line);
}
