/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - all that is said goes through one buffer and one write, so that lines of this
 * process are never torn apart by another's.
 */
#include "cli/terminal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/data/print_text.h"

enum { GUESSED_WIDTH = 120, SAID_MAX = 8192 };

struct terminal terminal_of(int descriptor)
{
    struct terminal terminal = {.width = GUESSED_WIDTH};
    if (isatty(descriptor) == 0) return terminal;
    const char *kind = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    bool is_dumb = kind == NULL || kind[0] == '\0' || strcmp(kind, "dumb") == 0;
    struct winsize size;
    terminal.is_terminal = true;
    terminal.rewrites = !is_dumb;
    terminal.color = !is_dumb && (no_color == NULL || no_color[0] == '\0');
    terminal.width = 80;
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
    return terminal;
}

void terminal_say_raw(const struct buf *text)
{
    size_t done = 0;
    while (done < text->size) {
        ssize_t written = write(STDERR_FILENO, text->bytes + done, text->size - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        done += (size_t)written;
    }
}

void terminal_say(const char *format, ...)
{
    char said[SAID_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(said, sizeof said, format, arguments); /* Cut at the limit. */
    va_end(arguments);

    struct buf shown = {0};
    for (const char *at = said; *at != '\0';) {
        struct text piece = {at, (uint32_t)strcspn(at, "\n\t")};
        (void)print_visible(piece, UINT32_MAX, &shown); /* The width does not matter here. */
        at += piece.size;
        if (*at != '\0') buf_put_u8(&shown, (uint8_t)*at++);
    }
    if (shown.failed) {
        shown.size = 0;
        (void)!write(STDERR_FILENO, said, strlen(said)); /* Better raw than not at all. */
    }
    terminal_say_raw(&shown);
    buf_done(&shown);
}

void terminal_put_bytes(uint64_t bytes, struct buf *out)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) {
        buf_format(out, "%llu bytes", (unsigned long long)bytes);
        return;
    }
    double value = (double)bytes / 1000;
    size_t unit = 0;
    while (value >= 999.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    buf_format(out, "%.1f %s", value, units[unit]);
}

void terminal_put_seconds(double seconds, struct buf *out)
{
    if (seconds < 0.001) {
        buf_put_string(out, "under 1 ms");
    } else if (seconds < 0.9995) {
        buf_format(out, "%.0f ms", seconds * 1000);
    } else if (seconds < 99.95) {
        buf_format(out, "%.1f s", seconds);
    } else if (seconds < 5400) {
        unsigned whole = (unsigned)(seconds + 0.5);
        buf_format(out, "%u min %u s", whole / 60, whole % 60);
    } else if (seconds < 1e9) {
        unsigned whole = (unsigned)(seconds / 60 + 0.5);
        buf_format(out, "%u h %u min", whole / 60, whole % 60);
    } else {
        buf_put_string(out, "very long");
    }
}
