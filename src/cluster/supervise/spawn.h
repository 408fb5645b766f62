/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - child processes: started, polled, signalled, stopped.
 *
 *     spawn_start -> (spawn_poll | spawn_signal)* -> spawn_stop, or spawn_poll until it has ended
 *
 * A child has its own process group, so that a Ctrl-C in the terminal reaches only this process;
 * spawn_signal reaches the whole group. A child starts with default signal handlers, /dev/null as
 * input, and inherits no descriptor but output. No call waits without a deadline.
 *
 * Threads: one owner per child. A child that dies with us dies with the thread that started it.
 * Failure: STATUS_IO names the program, also when exec fails in the child.
 */
#ifndef CLUSTER_SUPERVISE_SPAWN_H
#define CLUSTER_SUPERVISE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

enum spawn_target {
    SPAWN_INHERIT, /* The same as this process's. */
    SPAWN_NULL,    /* /dev/null */
    SPAWN_FILE,    /* Appended to the file `path`. */
    SPAWN_PIPE     /* A pipe, read from out_fd or err_fd. */
};

struct spawn_output {
    enum spawn_target target;
    const char *path;
};

struct spawn_options {
    const char *const *argv; /* Ends with NULL. Without a slash, argv[0] is searched in PATH. */
    const char *const *environment; /* Ends with NULL; NULL: ours. */
    const char *folder;             /* To run in; NULL: ours. */
    struct spawn_output out;
    struct spawn_output err;
    bool own_session;  /* Without our terminal: a hang-up does not end the child. */
    bool dies_with_us; /* Gets SIGKILL when the starting thread ends (PR_SET_PDEATHSIG). */
};

struct spawn_end {
    int code;   /* Exit code; -1: it was killed, */
    int signal; /* by this signal. 0: it was not. */
};

struct spawn {
    pid_t pid; /* 0: none. */
    bool ended;
    struct spawn_end end;
    int out_fd; /* Our end of the pipe, closed by spawn_close; -1: no pipe. Does not block. */
    int err_fd;
};

MUST_USE status spawn_start(struct spawn *child, struct spawn_options options, struct error *err);
/* Whether it has ended; then `end` says how. Does not wait. */
bool spawn_poll(struct spawn *child);
/* To the child's process group. Ignored after the end. */
void spawn_signal(struct spawn *child, int number);
/* SIGTERM, and after `deadline_ms` SIGKILL to the child's group. Returns when the child has ended.
 * To stop many, signal all of them first. */
void spawn_stop(struct spawn *child, uint32_t deadline_ms);
/* Output that has come through out_fd or err_fd, up to `size` bytes; 0: none now. */
size_t spawn_read(int fd, char *out, size_t size);
/* Waits until one of the children has written or ended, or the timeout. Ignores children that have
 * ended or have no pipes; closes a pipe at its end, whose fd is then -1. */
void spawn_wait(struct spawn *const *children, uint32_t count, uint32_t timeout_ms);
/* Closes the pipes. Accepts a zeroed struct, and a child that still runs. */
void spawn_close(struct spawn *child);

/* "ended with code 1", "was killed by signal 9". */
enum { SPAWN_END_SIZE = 64 };
void spawn_end_tell(struct spawn_end end, char out[SPAWN_END_SIZE]);

/* The path of the program that this process runs. */
MUST_USE status spawn_self(char *out, size_t size, struct error *err);

#endif
