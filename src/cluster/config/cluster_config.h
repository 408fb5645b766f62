/* cluster_config.h - the cluster file: which nodes there are, where, and within which limits.
 *
 *     [cluster]
 *     name = demo               ; struct cluster_config lists all keys and their defaults
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
 * G; durations are seconds or have ms, s or m. What is unknown, doubled or out of range is an error
 * that names the line and, where one can guess, what was meant.
 *
 * MILLRACE_SECTION_KEY in the environment comes before the file: MILLRACE_CLUSTER_MAX_JOBS=4,
 * MILLRACE_WORKERS_ROLES_MAP=1, MILLRACE_GATEWAYS_G1=127.0.0.1:7301 for a gateway the file has.
 *
 * No file but the cluster file is read here: what a token_file holds, exposure.h tells.
 *
 * Memory: all lives in the given arena. Failure: STATUS_INPUT for what is written wrongly.
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

/* A node that can be called. */
struct config_endpoint {
    const char *name;
    const char *host;
    uint16_t port;
};

struct config_worker {
    const char *name;
    const char *host;
    bool maps; /* It does at least one of both. */
    bool folds;
};

struct cluster_config {
    const char *path;           /* Of the file. */
    const char *name;           /* name: millrace. */
    bool starts_broker;         /* broker: start. A private one under data_dir, and no URIs; */
    const char *const *brokers; /* otherwise amqp and amqps URIs, */
    uint32_t broker_count;      /* at least one. */
    const char *broker_host;    /* broker_host: loopback (NULL). Where others find a private one. */
    const char *data_dir;       /* data_dir: NAME-cluster beside the file. */
    const char *key_file;   /* key_file: data_dir/key. What monitors' datagrams are sealed with. */
    const char *token;      /* token: none (NULL). What every HTTP call has to bring; */
    const char *token_file; /* token_file: or the file it stands in, which is not copied around. */
    bool is_insecure;       /* insecure: no. Whether a gateway may be open to all that reach it. */
    const char *tls_certificate; /* tls_certificate: none (NULL: plain HTTP). A PEM file, */
    const char *tls_key;         /* tls_key: and its key; both or neither. */
    const char *broker_ca; /* broker_ca: the system's (NULL). Who vouches for amqps brokers. */
    const char *broker_certificate; /* broker_certificate: none (NULL). Who we are to them, */
    const char *broker_key;         /* broker_key: and its key; both or neither. */
    const char *sentiment_model;    /* sentiment_model: the program's own (NULL). A file. */
    enum config_queues queues;      /* queues: transient, or quorum for brokers in a cluster. */
    uint32_t work_queues;           /* work_queues: 2 */
    uint32_t max_jobs;              /* max_jobs: 8, at a time. */
    uint64_t chunk_size;            /* chunk_size: 4M. Files are cut into pieces of about this. */
    uint32_t window;                /* window: 32 chunks of a scan on their way at a time. */
    uint64_t broadcast_limit;       /* broadcast_limit: 256M. Larger tables are joined by shards. */
    uint64_t max_message;           /* max_message: 64M. The largest thing a broker is given. */
    uint64_t memory_limit;          /* memory_limit: 0 (none). Of each job on each worker. */
    uint64_t log_limit; /* log_limit: 4G. Of each job's input log on each worker; 0: none. */
    uint32_t client_timeout_ms; /* client_timeout: 60. A job whose client is silent is removed. */
    uint32_t sync_period_ms;    /* sync_period: 250ms. How often gateways ask workers. */
    uint32_t node_timeout_ms;   /* node_timeout: 300. A node missing this long fails its jobs. */
    uint32_t ready_timeout_ms;  /* ready_timeout: 120. Of `up`; its broker has half of that. */
    uint64_t http_body_limit;   /* http_body_limit: 64M */
    uint32_t http_connections;  /* http_connections: 256, of each gateway at a time. */
    uint32_t http_connections_per_address; /* http_connections_per_address: 0, which is half of
                                              them for who listens beyond loopback, else all. */
    uint32_t http_timeout_ms;              /* http_timeout: 120. Silent connections are closed. */
    enum config_log_level log_level;       /* log_level: info */

    const struct config_endpoint *gateways; /* At least one. */
    uint32_t gateway_count;
    const struct config_worker *workers; /* At least one; the order says who owns which shard. */
    uint32_t worker_count;
    uint32_t worker_threads;                /* [workers] threads: 1 */
    const struct config_endpoint *monitors; /* May be none. */
    uint32_t monitor_count;
    uint32_t heartbeat_period_ms; /* [monitors] heartbeat_period: 250ms. How often a node says it
                                     lives. */
    uint32_t failure_timeout_ms;  /* [monitors] the failure timeout: 2. Silent for this long, it is
                                     dead. */
    uint32_t stall_timeout_ms;    /* [monitors] hang_timeout: 30. Alive, but getting nowhere. */
    uint32_t lease_ms;            /* [monitors] lease: 2. How long a leader leads unless renewed. */
    uint32_t start_timeout_ms; /* [monitors] start_timeout: 10. Started, it is heard of; doubles. */
    enum config_driver driver; /* [monitors] driver: process. What starts and ends nodes. */
    const char *start_command; /* [monitors] start_command etc.: none (NULL) unless the driver */
    const char *kill_command;  /* is command; then these two are there, */
    const char *pause_command; /* and these two may be. */
    const char *resume_command;
    uint32_t driver_timeout_ms; /* [monitors] driver_timeout: 60. For one thing the driver does. */
    const char *docker_socket;  /* [monitors] docker_socket: /var/run/docker.sock */
};

/* `environment` is as environ: NAME=VALUE strings up to a NULL; may be NULL. */
MUST_USE status cluster_config_read(const char *path, const char *const *environment,
                                    struct arena *arena, struct cluster_config *out,
                                    struct error *err);
/* The same of bytes that are in memory; the path is for messages and as base of data_dir. */
MUST_USE status cluster_config_parse(struct text bytes, const char *path,
                                     const char *const *environment, struct arena *arena,
                                     struct cluster_config *out, struct error *err);

#endif
