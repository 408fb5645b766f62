/* broker_process.h - a private RabbitMQ under a folder of ours, on loopback or for other hosts too.
 *
 *     broker_process_start -> (kill -> restart)* -> stop
 *
 * Everything it writes is in the folder: data, logs, configuration, and the ports, so that a broker
 * started again in the same folder is found at the same place; once it answers, `uri` tells where.
 * Its password is made once, and is in the folder too, which is for the same user only. It is a
 * session of its own and, unless wanted otherwise, dies with the thread that started it. It has an
 * epmd of its own, which is not left behind either.
 *
 * Threads: one owner. Failure: STATUS_IO says what is missing, or ends with the broker's last
 * words.
 */
#ifndef CLUSTER_SUPERVISE_BROKER_PROCESS_H
#define CLUSTER_SUPERVISE_BROKER_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

struct broker_process_options {
    const char *folder;   /* Made if it is not there; the one above it must be. */
    const char *host;     /* Where others find it; NULL: loopback. Beyond it listens everywhere. */
    uint16_t port;        /* 0: the one used before in this folder, or any that is free. */
    uint32_t deadline_ms; /* Until it has to answer; 0: 60 s. */
    const char *settings; /* Further lines of rabbitmq.conf, or NULL. */
    bool survives_us;     /* Runs on when we end without having stopped it. */
    const atomic_bool *cancelled; /* Gives up when set; may be NULL. */
    void *context;
    void (*waiting)(void *context); /* Called some times a second until it answers; may be NULL. */
};

struct broker_process;

/* Whether RabbitMQ is installed here. */
bool broker_process_is_installed(void);

/* Returns when it answers. */
MUST_USE status broker_process_start(const struct broker_process_options *options,
                                     struct broker_process **out, struct error *err);
/* After a kill: the same folder, the same ports. */
MUST_USE status broker_process_restart(struct broker_process *broker, struct error *err);

/* 0: it does not run. */
pid_t broker_process_pid(const struct broker_process *broker);
const char *broker_process_uri(const struct broker_process *broker);
/* Whether it takes a connection and speaks AMQP. */
bool broker_process_answers(struct broker_process *broker, uint32_t timeout_ms);
/* Whether it has ended by itself. */
bool broker_process_has_ended(struct broker_process *broker);

/* At once, as a crash would. */
void broker_process_kill(struct broker_process *broker);
/* Asks, and insists after the deadline. NULL is fine. */
void broker_process_stop(struct broker_process *broker, uint32_t deadline_ms);

#endif
