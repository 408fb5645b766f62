/* spawn.h - other processes: started, watched, signalled, stopped.
 *
 *     spawn_start -> (spawn_poll | spawn_signal)* -> spawn_stop, or spawn_poll until it has ended
 *
 * A child has a process group of its own, so that a Ctrl-C in our terminal is for us alone; what we
 * send goes to its whole group. It begins with default signals, /dev/null as input and no
 * descriptor of ours but output. Nothing here waits without a deadline.
 *
 * Threads: one owner per child. A child that dies with us dies with the thread that started it.
 * Failure: STATUS_IO names the program, also when it is the child that cannot start it.
 */
#ifndef CLUSTER_SUPERVISE_SPAWN_H
#define CLUSTER_SUPERVISE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

enum spawn_target {
    SPAWN_INHERIT, /* Where ours goes. */
    SPAWN_NULL,    /* Nowhere. */
    SPAWN_FILE,    /* Appended to the file `path`. */
    SPAWN_PIPE     /* To be read by us, from out_fd or err_fd. */
};

struct spawn_output {
    enum spawn_target target;
    const char *path;
};

struct spawn_options {
    const char *const *argv; /* Ends with NULL. Without a slash, argv[0] is looked for in PATH. */
    const char *const *environment; /* Ends with NULL; NULL: ours. */
    const char *folder;             /* To run in; NULL: ours. */
    struct spawn_output out;
    struct spawn_output err;
    bool own_session;  /* Also apart from our terminal: its end is none of the child's business. */
    bool dies_with_us; /* Gets SIGKILL when our thread ends, however it ends. */
};

struct spawn_end {
    int code;   /* What it exited with; -1: it was killed, */
    int signal; /* by this. 0: it was not. */
};

struct spawn {
    pid_t pid; /* 0: none. */
    bool ended;
    struct spawn_end end;
    int out_fd; /* Ours, and to be closed by us, with spawn_close; -1: no pipe. Does not block. */
    int err_fd;
};

MUST_USE status spawn_start(struct spawn *child, struct spawn_options options, struct error *err);
/* Whether it has ended; then `end` tells how. Does not wait. */
bool spawn_poll(struct spawn *child);
/* To the child and those it started, as far as they stayed in its group. Ignored after the end. */
void spawn_signal(struct spawn *child, int number);
/* Asks with SIGTERM, and after `deadline_ms` insists with SIGKILL; what is left of the child's
 * group is killed with it. Returns when it has ended. To stop many, signal all of them first. */
void spawn_stop(struct spawn *child, uint32_t deadline_ms);
/* What came through out_fd or err_fd since, as far as there is room; 0: nothing now. */
size_t spawn_read(int fd, char *out, size_t size);
/* Waits until one of the children has written something or ended, or the time has passed. Ended
 * ones and those without pipes are not waited for; a pipe at its end is closed, its fd then -1. */
void spawn_wait(struct spawn *const *children, uint32_t count, uint32_t timeout_ms);
/* Closes the pipes. Accepts a zeroed struct, and a child that runs on. */
void spawn_close(struct spawn *child);

/* "ended with code 1", "was killed by signal 9". */
enum { SPAWN_END_SIZE = 64 };
void spawn_end_tell(struct spawn_end end, char out[SPAWN_END_SIZE]);

/* The path of the program that this process runs. */
MUST_USE status spawn_self(char *out, size_t size, struct error *err);

#endif
