/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_config.h - the cluster file: its nodes, their addresses and limits.
 *
 *     [cluster]
 *     name = demo               ; `millrace config` lists all keys
 *     broker = start            ; or amqp URIs: several separated by spaces, or on several lines
 *     data_dir = ./demo-cluster ; relative to the folder of this file, as all paths are
 *     [gateways]
 *     g1 = 127.0.0.1:7101
 *     [workers]
 *     count = 3                 ; w1, w2, w3 on this host; or NAME = host for each
 *     roles.map = 2             ; the first two map,
 *     roles.fold = 1            ; the last one folds; without these two lines all do both
 *     threads = 2               ; that map, of each worker
 *     [monitors]
 *     m1 = 127.0.0.1:7201
 *     failure_timeout = 2
 *
 * A comment begins with ; or, at the beginning of a line, with #. Sizes are bytes or have K, M or
 * G; durations are seconds or have ms, s or m. An unknown key, a key that is given twice and a
 * value out of range are errors that name the line and, where one is near, the right spelling.
 *
 * MILLRACE_SECTION_KEY in the environment overrides the file: MILLRACE_CLUSTER_MAX_JOBS=4,
 * MILLRACE_WORKERS_ROLES_MAP=1, MILLRACE_GATEWAYS_G1=127.0.0.1:7301 for a gateway the file has.
 *
 * No file but the cluster file is read here; exposure.h reads the token_file.
 *
 * Memory: all lives in the given arena. Failure: STATUS_INPUT for a mistake in the file.
 */
#ifndef CLUSTER_CONFIG_CLUSTER_CONFIG_H
#define CLUSTER_CONFIG_CLUSTER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum {
    CONFIG_FILE_LIMIT = 1 << 20,
    CONFIG_GATEWAYS_MAX = 64,
    CONFIG_WORKERS_MAX = 256, /* As many as a manifest holds. */
    CONFIG_MONITORS_MAX = 16,
    CONFIG_BROKERS_MAX = 16
};

enum config_queues { CONFIG_QUEUES_TRANSIENT, CONFIG_QUEUES_QUORUM };
enum config_driver { CONFIG_DRIVER_PROCESS, CONFIG_DRIVER_DOCKER, CONFIG_DRIVER_COMMAND };
enum config_log_level { CONFIG_LOG_ERROR, CONFIG_LOG_WARN, CONFIG_LOG_INFO, CONFIG_LOG_DEBUG };

/* A node that listens. */
struct config_endpoint {
    const char *name;
    const char *host;
    uint16_t port;
};

struct config_worker {
    const char *name;
    const char *host;
    bool maps; /* At least one of both is true. */
    bool folds;
};

/* Keys have the names of their fields; defaults and ranges stand in config_keys.c. A string is NULL
 * where nothing is given. */
struct cluster_config {
    const char *path; /* Of the file. */
    const char *name;
    bool starts_broker;      /* A private broker under data_dir, and no URIs; */
    const char **brokers;    /* otherwise amqp and amqps URIs, */
    uint32_t broker_count;   /* at least one. */
    const char *broker_host; /* Where other hosts find a private broker; NULL: it is on loopback. */
    const char *data_dir;
    const char *key_file;           /* The key that seals the datagrams of nodes and monitors. */
    const char *token;              /* Bearer token that every HTTP call needs; */
    const char *token_file;         /* or the file that holds it. */
    bool is_insecure;               /* Gateways may listen beyond loopback without token and TLS. */
    const char *tls_certificate;    /* PEM files of gateways; NULL: plain HTTP. */
    const char *tls_key;            /* Both or neither. */
    const char *broker_ca;          /* The CA of amqps brokers; NULL: the system's. */
    const char *broker_certificate; /* What nodes show to brokers. */
    const char *broker_key;         /* Both or neither. */
    const char *sentiment_model;    /* NULL: the built-in one. */
    enum config_queues queues;
    uint32_t work_queues;
    uint32_t max_jobs; /* At a time. */
    uint64_t chunk_size;
    uint32_t window;          /* Chunks of a scan in flight. */
    uint64_t broadcast_limit; /* A larger build side makes a partitioned join. */
    uint64_t max_message;
    uint64_t memory_limit; /* Of each job on each worker; 0: none. */
    uint64_t log_limit;    /* Of each job's input log on each worker; 0: none. */
    uint32_t client_timeout_ms;
    uint32_t sync_period_ms;
    uint32_t node_timeout_ms;
    uint32_t ready_timeout_ms; /* Of `up`; its broker has half of that. */
    uint64_t http_body_limit;
    uint32_t http_connections;             /* Of each gateway. */
    uint32_t http_connections_per_address; /* 0: half of them beyond loopback, else all. */
    uint32_t http_timeout_ms;
    enum config_log_level log_level;

    const struct config_endpoint *gateways; /* At least one. */
    uint32_t gateway_count;
    const struct config_worker *workers; /* At least one; the order decides who owns which shard. */
    uint32_t worker_count;
    uint32_t map_count;  /* The first so many workers map, */
    uint32_t fold_count; /* the last so many fold. */
    uint32_t worker_threads;
    const struct config_endpoint *monitors; /* May be none. */
    uint32_t monitor_count;
    uint32_t heartbeat_period_ms;
    uint32_t failure_timeout_ms; /* A node silent for so long is dead. */
    uint32_t stall_timeout_ms;   /* A node without progress for so long is hung. */
    uint32_t lease_ms;
    uint32_t start_timeout_ms; /* Doubles with each start in vain. */
    enum config_driver driver;
    const char *start_command; /* These two are given if the driver is command, */
    const char *kill_command;
    const char *pause_command; /* and these two may be. */
    const char *resume_command;
    uint32_t driver_timeout_ms;
    const char *docker_socket;
};

/* `environment` is as environ: NAME=VALUE strings up to a NULL; may be NULL. */
MUST_USE status cluster_config_read(const char *path, const char *const *environment,
                                    struct arena *arena, struct cluster_config *out,
                                    struct error *err);
/* The same of bytes in memory; the path is for messages and the base of relative paths. */
MUST_USE status cluster_config_parse(struct text bytes, const char *path,
                                     const char *const *environment, struct arena *arena,
                                     struct cluster_config *out, struct error *err);

#endif
