/* node_core.h - what gateways and workers have in common as processes: a folder, a log, a bus, and
 * one place where everything that happens arrives.
 *
 *     node_core_open -> node_core_connect -> (node_core_take, node_core_carry)* -> node_core_close
 *
 * Threads: one owner; others post events to `mailbox`.
 */
#ifndef NODE_NODE_CORE_H
#define NODE_NODE_CORE_H

#include "io/bus.h"
#include "io/folder_lock.h"
#include "io/mailbox.h"
#include "node/node_log.h"
#include "node/worker_node.h"
#include "role/event.h"

struct node_core {
    struct bus_listener listener; /* First: the bus sees only this. */
    struct node_options options;
    struct arena arena;
    const char *folder; /* data_dir/NAME */
    struct folder_lock *lock;
    struct node_log *log;
    struct mailbox *mailbox; /* Of struct event. */
    struct bus *bus;
    uint64_t incarnation;
    uint64_t next_tick_ms;
    bool told_ready;
    bool told_stop;
};

enum { NODE_TICK_MS = 20 };

/* Takes the folder and opens the log; arms crash points from the environment. */
MUST_USE status node_core_open(struct node_core *core, const struct node_options *options,
                               const char *role, struct error *err);
/* Opens the bus; what comes by it is posted. */
MUST_USE status node_core_connect(struct node_core *core, uint32_t work_prefetch,
                                  struct error *err);
/* The next event, at the latest a tick; `now_ms` is set. */
void node_core_take(struct node_core *core, struct event *out_event);
/* Carries out effects that every node has; false: it is another one. */
bool node_core_carry(struct node_core *core, struct effect *effect);
/* Sends and acknowledges what waits. Accepts one that was opened half. */
void node_core_close(struct node_core *core);

#endif
