/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - fork and exec.
 *
 * Not posix_spawn, which has no PR_SET_PDEATHSIG. Between fork and exec only async-signal-safe
 * functions are called, since another thread may have held any lock at the fork. A child that fails
 * writes errno to a close-on-exec pipe: an empty pipe means that the program runs.
 */
#include "cluster/supervise/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/file/clock.h"

enum { NAP_MS = 5, KILL_WAIT_MS = 10000, WAITED_MAX = 512 };

extern char **environ;

/* What the child needs, prepared before the fork. */
struct spawn_plan {
    const struct spawn_options *options;
    pid_t parent;
    int in;
    int out; /* -1: ours. */
    int err;
    int report; /* Where the child writes errno. */
};

static void close_fd(int *fd)
{
    if (*fd >= 0) (void)close(*fd); /* Nothing that we wrote could be lost. */
    *fd = -1;
}

/* ---- in the child ---- */

static _Noreturn void child_fail(const struct spawn_plan *plan)
{
    int number = errno;
    ssize_t size = write(plan->report, &number, sizeof number);
    _exit(size == (ssize_t)sizeof number ? 127 : 126);
}

static void child_reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        (void)sigaction(number, &action, NULL); /* Some can't be changed, and need not. */
    }
    (void)sigemptyset(&none); /* Cannot fail. */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void child_redirect(const struct spawn_plan *plan, int from, int to)
{
    if (from >= 0 && dup2(from, to) < 0) child_fail(plan);
}

static _Noreturn void child_run(const struct spawn_plan *plan)
{
    const struct spawn_options *options = plan->options;
    if (options->own_session ? setsid() < 0 : setpgid(0, 0) != 0) child_fail(plan);
    child_reset_signals();
    if (options->dies_with_us) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) child_fail(plan);
        if (getppid() != plan->parent) _exit(126); /* It has ended already. */
    }
    child_redirect(plan, plan->in, STDIN_FILENO);
    child_redirect(plan, plan->out, STDOUT_FILENO);
    child_redirect(plan, plan->err, STDERR_FILENO);
    /* Ours are all close-on-exec; those of libraries may not be. An old kernel can't, and then
     * nothing worse happens than that they stay open. */
    (void)syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    if (options->folder != NULL && chdir(options->folder) != 0) child_fail(plan);

    const char *const *environment =
        options->environment != NULL ? options->environment : (const char *const *)environ;
    execvpe(options->argv[0], (char *const *)(uintptr_t)options->argv,
            (char *const *)(uintptr_t)environment); /* exec changes neither. */
    child_fail(plan);
}

/* ---- in the parent ---- */

static status spawn_fail(struct error *err, const char *what, int number)
{
    char reason[128];
    return error_set(err, STATUS_IO, "cannot start %.1000s: %s", what,
                     strerror_r(number, reason, sizeof reason));
}

/* The child overwrites descriptors up to 2 before it uses the others, so none of these may be one,
 * which happens when this process was started with a closed input or output. */
static int move_up(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int number = errno;
    (void)close(fd); /* Nothing was written. */
    errno = number;
    return moved;
}

static status make_pipe(int *out_read, int *out_write, const char *what, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return spawn_fail(err, what, errno);
    *out_read = move_up(ends[0]);
    *out_write = move_up(ends[1]);
    if (*out_read < 0 || *out_write < 0) return spawn_fail(err, what, errno);
    return STATUS_OK;
}

/* `out_fd` is for the child, `out_ours` is our end of the pipe. */
static status open_output(struct spawn_output output, const char *what, int *out_fd, int *out_ours,
                          struct error *err)
{
    const char *path = output.target == SPAWN_FILE ? output.path : "/dev/null";
    switch (output.target) {
    case SPAWN_INHERIT:
        return STATUS_OK;
    case SPAWN_PIPE:
        TRY(make_pipe(out_ours, out_fd, what, err));
        if (fcntl(*out_ours, F_SETFL, O_NONBLOCK) != 0) return spawn_fail(err, what, errno);
        return STATUS_OK;
    case SPAWN_FILE:
    case SPAWN_NULL:
        *out_fd = move_up(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
        return *out_fd >= 0 ? STATUS_OK : spawn_fail(err, path, errno);
    }
    return STATUS_OK;
}

/* 0: the program runs; otherwise errno of the child. */
static int read_report(int fd)
{
    int number = 0;
    ssize_t size;
    do {
        size = read(fd, &number, sizeof number);
    } while (size < 0 && errno == EINTR);
    return size == (ssize_t)sizeof number ? number : 0;
}

static status start_child(struct spawn *child, struct spawn_plan *plan, int report,
                          struct error *err)
{
    const char *program = plan->options->argv[0];
    pid_t pid = fork();
    if (pid < 0) return spawn_fail(err, program, errno);
    if (pid == 0) child_run(plan);
    close_fd(&plan->report);
    int number = read_report(report);
    if (number != 0) {
        (void)waitpid(pid, NULL, 0); /* It has ended, or is about to. */
        return spawn_fail(err, program, number);
    }
    child->pid = pid;
    return STATUS_OK;
}

status spawn_start(struct spawn *child, struct spawn_options options, struct error *err)
{
    ASSERT(options.argv != NULL && options.argv[0] != NULL);
    *child = (struct spawn){.out_fd = -1, .err_fd = -1};
    struct spawn_plan plan = {
        .options = &options, .parent = getpid(), .in = -1, .out = -1, .err = -1, .report = -1};
    int report = -1;
    plan.in = move_up(open("/dev/null", O_RDONLY | O_CLOEXEC));
    status result = plan.in >= 0 ? STATUS_OK : spawn_fail(err, options.argv[0], errno);
    if (result == STATUS_OK) {
        result = open_output(options.out, options.argv[0], &plan.out, &child->out_fd, err);
    }
    if (result == STATUS_OK) {
        result = open_output(options.err, options.argv[0], &plan.err, &child->err_fd, err);
    }
    if (result == STATUS_OK) result = make_pipe(&report, &plan.report, options.argv[0], err);
    if (result == STATUS_OK) result = start_child(child, &plan, report, err);
    close_fd(&report);
    close_fd(&plan.report);
    close_fd(&plan.in);
    close_fd(&plan.out);
    close_fd(&plan.err);
    if (result != STATUS_OK) spawn_close(child);
    return result;
}

/* Whether it has ended; it stays a zombie, so that its pid is not reused. */
static bool has_ended(const struct spawn *child)
{
    siginfo_t info = {.si_pid = 0};
    int result;
    do {
        result = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    } while (result != 0 && errno == EINTR);
    return result != 0 || info.si_pid != 0;
}

bool spawn_poll(struct spawn *child)
{
    if (child->pid == 0 || child->ended) return true;
    if (!has_ended(child)) return false;
    int word = 0;
    pid_t pid;
    do {
        pid = waitpid(child->pid, &word, 0);
    } while (pid < 0 && errno == EINTR);
    child->ended = true;
    /* It was reaped elsewhere (SIGCHLD is ignored): its exit code is unknown. */
    child->end = (struct spawn_end){.code = -1};
    if (pid == child->pid && WIFEXITED(word)) child->end.code = WEXITSTATUS(word);
    if (pid == child->pid && WIFSIGNALED(word)) child->end.signal = WTERMSIG(word);
    return true;
}

void spawn_signal(struct spawn *child, int number)
{
    if (spawn_poll(child)) return;
    (void)kill(-child->pid, number); /* Its pid is valid, since it was not reaped. */
}

static bool wait_for_end(const struct spawn *child, uint32_t deadline_ms)
{
    double deadline = clock_seconds() + deadline_ms / 1000.0;
    while (!has_ended(child)) {
        if (clock_seconds() >= deadline) return false;
        (void)poll(NULL, 0, NAP_MS); /* waitpid has no timeout. */
    }
    return true;
}

void spawn_stop(struct spawn *child, uint32_t deadline_ms)
{
    if (child->pid == 0 || child->ended) return;
    if (!has_ended(child)) {
        (void)kill(-child->pid, SIGTERM); /* See spawn_signal. */
        (void)kill(-child->pid, SIGCONT); /* A stopped process handles SIGTERM only then. */
        (void)wait_for_end(child, deadline_ms);
    }
    /* Until the child is reaped, no other group can have its number. */
    (void)kill(-child->pid, SIGKILL);
    (void)wait_for_end(child, KILL_WAIT_MS); /* A process that hangs in the kernel is left alone. */
    (void)spawn_poll(child);                 /* Sets `ended`. */
}

size_t spawn_read(int fd, char *out, size_t size)
{
    ssize_t got;
    if (fd < 0) return 0;
    do {
        got = read(fd, out, size);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

void spawn_wait(struct spawn *const *children, uint32_t count, uint32_t timeout_ms)
{
    struct pollfd pipes[2 * WAITED_MAX];
    int *owners[2 * WAITED_MAX];
    nfds_t used = 0;
    for (uint32_t i = 0; i < count && i < WAITED_MAX; i++) {
        if (children[i]->pid == 0 || children[i]->ended) continue;
        int *const ends[] = {&children[i]->out_fd, &children[i]->err_fd};
        for (int j = 0; j < 2; j++) {
            if (*ends[j] < 0) continue;
            owners[used] = ends[j];
            pipes[used++] = (struct pollfd){.fd = *ends[j], .events = POLLIN};
        }
    }
    /* The caller polls all children in any case. */
    if (poll(pipes, used, (int)timeout_ms) <= 0) return;
    for (nfds_t i = 0; i < used; i++) {
        /* Empty and without writers: it would end every poll at once. */
        bool is_over = (pipes[i].revents & POLLIN) == 0 && pipes[i].revents != 0;
        if (is_over) close_fd(owners[i]);
    }
}

void spawn_close(struct spawn *child)
{
    if (child->pid == 0 && child->out_fd == 0 && child->err_fd == 0) return; /* A zeroed one. */
    close_fd(&child->out_fd);
    close_fd(&child->err_fd);
}

void spawn_end_tell(struct spawn_end end, char out[SPAWN_END_SIZE])
{
    if (end.signal != 0) {
        (void)snprintf(out, SPAWN_END_SIZE, "was killed by signal %d", end.signal); /* Fits. */
    } else if (end.code >= 0) {
        (void)snprintf(out, SPAWN_END_SIZE, "ended with code %d", end.code);
    } else {
        (void)snprintf(out, SPAWN_END_SIZE, "ended");
    }
}

status spawn_self(char *out, size_t size, struct error *err)
{
    ssize_t found = readlink("/proc/self/exe", out, size);
    if (found <= 0 || (size_t)found >= size) {
        return error_set(err, STATUS_IO, "cannot find this program in /proc/self/exe");
    }
    out[found] = '\0';
    return STATUS_OK;
}
