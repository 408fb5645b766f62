/* driver.h - starts and kills nodes: what a monitor's orders, `chaos` and `up` come down to.
 *
 *     driver_open -> (driver_do | driver_restart | driver_sweep)* -> driver_close
 *
 *     process    this host. Nodes run detached, as sessions of their own; the process to kill is
 * the one that holds the lock of data_dir/NAME. docker     containers CLUSTER-NODE, through the
 * Engine API on its socket. command    command lines of the cluster file, %n is the node, %h its
 * host: systemd, ssh, kubectl.
 *
 * A driver is never asked whether a node lives: that is known by its heartbeats alone.
 *
 * Every call returns within config->driver_timeout_ms and a little. Threads: any, for different
 * nodes at the same time; one call at a time per node. Failure: STATUS_IO says what the driver
 * said, STATUS_LIMIT that a command took too long, STATUS_USAGE what the cluster file lacks.
 */
#ifndef CLUSTER_SUPERVISE_DRIVER_H
#define CLUSTER_SUPERVISE_DRIVER_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "cluster/config/cluster_config.h"

struct driver;
struct spawn_end;

struct driver_options {
    const struct cluster_config *config;
    const char *program;   /* Ourselves, for `process`. */
    const char *log_level; /* Passed on to nodes; may be NULL. */
    const char
        *supervisor_link; /* Passed on to nodes (--supervisor link), for `process`; may be NULL. */
    bool is_first_incarnation; /* Crash points with a count are for the first incarnation of a node
                                  only. */
    void *context;
    /* A process that we started has ended, and how; from driver_sweep. May be NULL. */
    void (*ended)(void *context, const char *node, const struct spawn_end *end);
};

/* What can be done to a node. */
enum driver_action {
    DRIVER_START,  /* Fails if it runs already, as far as the driver knows. */
    DRIVER_KILL,   /* At once, as a crash. One that does not run is fine. */
    DRIVER_PAUSE,  /* As SIGSTOP. */
    DRIVER_RESUME, /* As SIGCONT. */
    DRIVER_STOP,   /* As SIGTERM; does not wait for its end. One that does not run is fine. */
    DRIVER_ACTIONS
};

MUST_USE status driver_open(const struct driver_options *options, struct driver **out,
                            struct error *err);
MUST_USE status driver_do(struct driver *driver, enum driver_action action, const char *node,
                          struct error *err);
/* Kills, then starts. A `kill_command` that says no is not the end of it, since most do when there
 * is nothing to kill: what it said is told if the start fails, too. */
MUST_USE status driver_restart(struct driver *driver, const char *node, struct error *err);
/* Collects children that have ended; cheap, call it some times a second. */
void driver_sweep(struct driver *driver);
/* Nodes run on. Nobody may be within driver_do or driver_restart. Accepts NULL. */
void driver_close(struct driver *driver);

#endif
