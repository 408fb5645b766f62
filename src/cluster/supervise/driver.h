/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - starts, kills and pauses nodes, for monitors, `chaos` and `up`.
 *
 *     driver_open -> (driver_do | driver_restart | driver_sweep)* -> driver_close
 *
 *  - process: processes of this host, each with its own session. The process to kill is the holder
 *    of the lock of data_dir/NAME.
 *  - docker: containers CLUSTER-NODE, through the Engine API on its socket.
 *  - command: command lines of the cluster file, in which %n is the node and %h its host: for
 *    systemd, ssh, kubectl.
 *
 * A driver does not report whether a node lives: only heartbeats decide that.
 *
 * Every call returns soon after config->driver_timeout_ms. Threads: any, for different nodes at the
 * same time; one call at a time per node. Failure: STATUS_IO has the driver's message, STATUS_LIMIT
 * means that a command took too long, STATUS_USAGE says what the cluster file lacks.
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
    const char *log_level; /* Of nodes; may be NULL. */
    const char
        *supervisor_link;      /* `--exit-with-supervisor` of nodes, for `process`; may be NULL. */
    bool is_first_incarnation; /* Crash points with a count are for the first incarnation of a
                                  node only. */
    void *context;
    /* A child of this driver has ended; called by driver_sweep. May be NULL. */
    void (*ended)(void *context, const char *node, const struct spawn_end *end);
};

enum driver_action {
    DRIVER_START,  /* Fails if the driver knows that it runs already. */
    DRIVER_KILL,   /* As SIGKILL. A node that does not run is fine. */
    DRIVER_PAUSE,  /* As SIGSTOP. */
    DRIVER_RESUME, /* As SIGCONT. */
    DRIVER_STOP,   /* As SIGTERM; does not wait. A node that does not run is fine. */
    DRIVER_ACTIONS
};

MUST_USE status driver_open(const struct driver_options *options, struct driver **out,
                            struct error *err);
MUST_USE status driver_do(struct driver *driver, enum driver_action action, const char *node,
                          struct error *err);
/* Kills, then starts. A `kill_command` may fail, since most do when there is nothing to kill: its
 * message is reported if the start fails too. */
MUST_USE status driver_restart(struct driver *driver, const char *node, struct error *err);
/* Reaps children that have ended; cheap, call it a few times a second. */
void driver_sweep(struct driver *driver);
/* Nodes continue. No thread may be in driver_do or driver_restart. Accepts NULL. */
void driver_close(struct driver *driver);

#endif
