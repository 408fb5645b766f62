/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_commands.h - one line for each command of millrace-cluster.
 *
 * Both programs list them: `millrace help` has to name commands that it does not link.
 */
#ifndef CLI_CLUSTER_COMMANDS_H
#define CLI_CLUSTER_COMMANDS_H

#define SUMMARY_UP      "run a whole cluster on this host"
#define SUMMARY_SUBMIT  "answer the questions of an analysis with a cluster"
#define SUMMARY_STATUS  "show the nodes, jobs and queues of a cluster"
#define SUMMARY_JOBS    "list the jobs of a cluster, or show one"
#define SUMMARY_CANCEL  "remove a job from a cluster"
#define SUMMARY_STOP    "stop nodes of a cluster for good"
#define SUMMARY_CHAOS   "kill nodes of a cluster, and check that it repairs itself"
#define SUMMARY_CLEAN   "remove the files and queues of a stopped cluster"
#define SUMMARY_GATEWAY "run a gateway node: clients talk to it"
#define SUMMARY_WORKER  "run a worker node: it computes"
#define SUMMARY_MONITOR "run a monitor node: it restarts nodes that die or hang"
#define SUMMARY_BROKER  "run the private broker of a cluster, as one of its nodes"
#define SUMMARY_NODE    "run the node of that name, whatever its role"
#define SUMMARY_HEALTH  "check that a node on this host runs"
#define SUMMARY_COMPOSE "write docker-compose files for a cluster, and for its clients"
#define SUMMARY_CONFIG  "check a cluster file, or list all keys"
#define SUMMARY_KEY     "make the key that a cluster's monitors and nodes share"
#define SUMMARY_SIM     "run simulated clusters under faults, and check every promise"

#endif
