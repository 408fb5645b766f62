/* SPDX-License-Identifier: Apache-2.0 */
/* broker_process.h - a private RabbitMQ under a folder, on loopback or for other hosts too.
 *
 *     broker_process_start -> (kill -> restart)* -> stop
 *
 * All its files are in the folder: data, logs, configuration, and the ports, so that a broker
 * restarted in the same folder has the same address; once it answers, the file `uri` has it. The
 * password is made once and stored in the folder, which only its user may enter. The broker has its
 * own session and, unless told otherwise, dies with the thread that started it. So does its epmd.
 *
 * Threads: one owner. Failure: STATUS_IO says what is missing, or ends with the broker's last
 * output.
 */
#ifndef CLUSTER_SUPERVISE_BROKER_PROCESS_H
#define CLUSTER_SUPERVISE_BROKER_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

struct broker_process_options {
    const char *folder;   /* Made if it is missing; its parent must exist. */
    const char *host;     /* For clients on other hosts; then it listens on all addresses. NULL: on
                             loopback. */
    uint16_t port;        /* 0: the one used before in this folder, or any free one. */
    uint32_t deadline_ms; /* Until its first answer; 0: 60 s. */
    const char *settings; /* Further lines of rabbitmq.conf, or NULL. */
    bool survives_us;     /* Continues if this process ends without stopping it. */
    const atomic_bool *cancelled; /* The start fails when it is set; may be NULL. */
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
/* Whether it accepts a connection and speaks AMQP. */
bool broker_process_answers(struct broker_process *broker, uint32_t timeout_ms);
/* Whether it has ended by itself. */
bool broker_process_has_ended(struct broker_process *broker);

/* At once, as a crash would. */
void broker_process_kill(struct broker_process *broker);
/* SIGTERM, and SIGKILL after the deadline. Accepts NULL. */
void broker_process_stop(struct broker_process *broker, uint32_t deadline_ms);

#endif
