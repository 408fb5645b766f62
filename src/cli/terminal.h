/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - what stands behind stdout and stderr, and plain words for people on stderr. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"

struct terminal {
    bool is_terminal;
    bool color;     /* A terminal that understands it, and NO_COLOR is not set. */
    bool rewrites;  /* A terminal that can erase its current line. */
    uint32_t width; /* Columns; a guess when it is no terminal. */
};

struct terminal terminal_of(int descriptor);

/* Writes to stderr, all but line ends and tabs made visible: names of files and values of fields
 * are not to be trusted. A failure to write is ignored: there is no other way to tell. */
void terminal_say(const char *format, ...) PRINTF_LIKE(1, 2);
/* The same for text that carries our own colours and is safe. */
void terminal_say_raw(const struct buf *text);

/* 34.4 MB; 1.2 s, 3 min 20 s; for people, not for programs. */
void terminal_put_bytes(uint64_t bytes, struct buf *out);
void terminal_put_seconds(double seconds, struct buf *out);

#endif
