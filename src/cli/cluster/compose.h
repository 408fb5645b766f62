/* SPDX-License-Identifier: Apache-2.0 */
/* compose.h - a cluster file as containers: the files of docker-compose for the same cluster.
 *
 * Every node is a container CLUSTER-NODE on a network of the cluster's name; its host name is the
 * node's. The containers read a changed cluster file: hosts are names of nodes, a private broker is
 * a container too, files that the cluster file names are mounted under /etc/millrace, and monitors
 * use the Docker Engine API.
 *
 * The same cluster file gives the same bytes. Values that depend on the host or the user are
 * variables, which compose_environment writes.
 *
 * Failure: sticky, in the buf.
 */
#ifndef CLI_CLUSTER_COMPOSE_H
#define CLI_CLUSTER_COMPOSE_H

#include <sys/types.h>

#include "engine/base/buf.h"
#include "engine/base/text.h"
#include "cluster/config/cluster_config.h"

/* system.yml: broker, gateways, workers, monitors. */
void compose_system(const struct cluster_config *config, struct buf *out);
/* clients.yml: clients on the same network. */
void compose_clients(const struct cluster_config *config, struct buf *out);
/* cluster.ini, as containers read it; `file` is the bytes of the given one. */
void compose_cluster_file(const struct cluster_config *config, struct text file, struct buf *out);

struct compose_host {
    const char *project; /* The cluster's name: the folder's may be that of another one. */
    uid_t user;          /* Owner of key and folders. */
    gid_t group;
    gid_t docker_group; /* May use the Engine's socket. */
    const char *docker_socket;
};
/* .env: beside the two files, where docker-compose looks for it. */
void compose_environment(const struct compose_host *host, struct buf *out);

#endif
