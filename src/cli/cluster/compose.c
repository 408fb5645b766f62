/* SPDX-License-Identifier: Apache-2.0 */
/* compose.c - the cluster file is copied line by line, so that comments and unknown keys survive;
 * only lines that mean something else in a container are replaced.
 *
 * No `version:`: docker-compose 1.27 and later do without, and docker compose says it is obsolete.
 */
#include "cli/cluster/compose.h"

#include <string.h>

/* The private broker's name: of its service, its container and its host. */
static const char broker[] = "broker";

/* Files that the cluster file names, and where a container finds them. */
struct mounted_file {
    const char *key;
    const char *place;
    const char *path; /* On this host; NULL: the cluster file has none. */
};
enum { MOUNTED_FILES = 8 };

static void list_files(const struct cluster_config *config, struct mounted_file out[MOUNTED_FILES])
{
    const struct mounted_file files[MOUNTED_FILES] = {
        {"token_file", "token", config->token_file},
        {"tls_certificate", "tls-certificate.pem", config->tls_certificate},
        {"tls_key", "tls-key.pem", config->tls_key},
        {"broker_ca", "broker-ca.pem", config->broker_ca},
        {"broker_certificate", "broker-certificate.pem", config->broker_certificate},
        {"broker_key", "broker-key.pem", config->broker_key},
        {"sentiment_model", "sentiment.model", config->sentiment_model},
        {"key_file", "key", config->monitor_count > 0 ? "./key" : NULL},
    };
    memcpy(out, files, sizeof files);
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 ||
           strcmp(host, "::1") == 0;
}

/* From outside the cluster's network a gateway is reached only through a port on loopback, so it
 * needs neither a token nor TLS. */
static bool needs_insecure(const struct cluster_config *config)
{
    bool has_token = config->token != NULL || config->token_file != NULL;
    return !config->is_insecure && !(has_token && config->tls_certificate != NULL);
}

/* Other containers reach the private broker, which has no TLS. */
static bool says_insecure(const struct cluster_config *config)
{
    return needs_insecure(config) || (config->starts_broker && !config->is_insecure);
}

/* ---- the cluster file ---- */

enum section { SECTION_NONE, SECTION_CLUSTER, SECTION_GATEWAYS, SECTION_WORKERS, SECTION_MONITORS };

struct rewriting {
    const struct cluster_config *config;
    struct mounted_file files[MOUNTED_FILES];
    enum section section;
    bool has_cluster; /* Its additions are written. */
    bool has_monitors;
    struct buf *out;
};

static struct text trim(struct text text)
{
    while (text.size > 0 && (unsigned char)text.bytes[0] <= ' ') {
        text.bytes++;
        text.size--;
    }
    while (text.size > 0 && (unsigned char)text.bytes[text.size - 1] <= ' ') {
        text.size--;
    }
    return text;
}

static void put_cluster_additions(struct rewriting *rewriting)
{
    const struct cluster_config *config = rewriting->config;
    struct buf *out = rewriting->out;
    rewriting->has_cluster = true;
    if (config->starts_broker) buf_format(out, "broker_host = %s\n", broker);
    buf_put_string(out, "data_dir = /var/lib/millrace\n");
    for (uint32_t i = 0; i < MOUNTED_FILES; i++) {
        const struct mounted_file *file = &rewriting->files[i];
        if (file->path == NULL) continue;
        buf_format(out, "%s = /etc/millrace/%s\n", file->key, file->place);
    }
    if (says_insecure(config)) {
        buf_put_string(out, "insecure = yes   ; on the cluster's own network; ports are published "
                            "on loopback\n");
    }
}

static void put_section(struct rewriting *rewriting, struct text line)
{
    static const struct {
        const char *name;
        enum section section;
    } sections[] = {
        {"[cluster]", SECTION_CLUSTER},
        {"[gateways]", SECTION_GATEWAYS},
        {"[workers]", SECTION_WORKERS},
        {"[monitors]", SECTION_MONITORS},
    };
    rewriting->section = SECTION_NONE;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        struct text name = text_of(sections[i].name);
        if (line.size >= name.size && memcmp(line.bytes, name.bytes, name.size) == 0) {
            rewriting->section = sections[i].section;
        }
    }
    buf_put_text(rewriting->out, line);
    buf_put_u8(rewriting->out, '\n');
    if (rewriting->section == SECTION_CLUSTER && !rewriting->has_cluster) {
        put_cluster_additions(rewriting);
    }
    if (rewriting->section == SECTION_MONITORS && !rewriting->has_monitors) {
        rewriting->has_monitors = true;
        if (rewriting->config->monitor_count > 0) {
            buf_put_string(rewriting->out, "driver = docker\n");
        }
    }
}

static bool is_one_of(struct text key, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (text_equal(key, text_of(names[i]))) return true;
    }
    return false;
}

/* Has another value in a container, or none. */
static bool is_replaced(const struct rewriting *rewriting, struct text key)
{
    static const char *const drivers[] = {"driver",        "start_command",  "kill_command",
                                          "pause_command", "resume_command", "docker_socket"};
    if (rewriting->section == SECTION_MONITORS) {
        return is_one_of(key, drivers, sizeof drivers / sizeof drivers[0]);
    }
    if (rewriting->section != SECTION_CLUSTER) return false;
    for (uint32_t i = 0; i < MOUNTED_FILES; i++) {
        if (text_equal(key, text_of(rewriting->files[i].key))) return true;
    }
    if (text_equal(key, TEXT_LITERAL("broker_host"))) return true;
    if (text_equal(key, TEXT_LITERAL("insecure"))) return says_insecure(rewriting->config);
    return text_equal(key, TEXT_LITERAL("data_dir"));
}

/* Writes the address of a node in its container; false: the line is no node's. */
static bool put_node(const struct rewriting *rewriting, struct text key)
{
    const struct cluster_config *config = rewriting->config;
    bool is_gateway = rewriting->section == SECTION_GATEWAYS;
    bool is_monitor = rewriting->section == SECTION_MONITORS;
    const struct config_endpoint *nodes = is_gateway ? config->gateways : config->monitors;
    uint32_t count = is_gateway ? config->gateway_count : is_monitor ? config->monitor_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!text_equal(key, text_of(nodes[i].name))) continue;
        buf_format(rewriting->out, "%s = %s:%u\n", nodes[i].name, nodes[i].name, nodes[i].port);
        return true;
    }
    bool is_worker = false;
    for (uint32_t i = 0; rewriting->section == SECTION_WORKERS && i < config->worker_count; i++) {
        is_worker = is_worker || text_equal(key, text_of(config->workers[i].name));
    }
    if (is_worker) buf_format(rewriting->out, "%.*s = %.*s\n", TEXT_ARGS(key), TEXT_ARGS(key));
    return is_worker;
}

static void put_line(struct rewriting *rewriting, struct text line)
{
    struct text words = trim(line);
    if (words.size > 0 && words.bytes[0] == '[') {
        put_section(rewriting, words);
        return;
    }
    const char *equals = words.size > 0 ? memchr(words.bytes, '=', words.size) : NULL;
    bool is_comment = words.size > 0 && (words.bytes[0] == ';' || words.bytes[0] == '#');
    if (equals != NULL && !is_comment) {
        struct text key = trim((struct text){words.bytes, (uint32_t)(equals - words.bytes)});
        if (is_replaced(rewriting, key) || put_node(rewriting, key)) return;
    }
    buf_put_text(rewriting->out, line);
    buf_put_u8(rewriting->out, '\n');
}

void compose_cluster_file(const struct cluster_config *config, struct text file, struct buf *out)
{
    struct rewriting rewriting = {.config = config, .out = out};
    list_files(config, rewriting.files);
    buf_put_string(out, "; Made by `millrace compose`, for containers: edit the original.\n");
    if (memmem(file.bytes, file.size, "[cluster]", 9) == NULL) {
        buf_put_string(out, "[cluster]\n");
        put_cluster_additions(&rewriting);
    }
    while (file.size > 0) {
        const char *end = memchr(file.bytes, '\n', file.size);
        uint32_t size = end != NULL ? (uint32_t)(end - file.bytes) : file.size;
        put_line(&rewriting, (struct text){file.bytes, size});
        uint32_t used = end != NULL ? size + 1 : size;
        file = (struct text){file.bytes + used, file.size - used};
    }
}

/* ---- compose files ---- */

/* Quoted for YAML, and docker-compose takes no part of it for a variable. */
static void put_string(const char *text, struct buf *out)
{
    buf_put_u8(out, '"');
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < ' ') {
            buf_format(out, "\\x%02x", byte);
            continue;
        }
        if (byte == '"' || byte == '\\') buf_put_u8(out, '\\');
        if (byte == '$') buf_put_u8(out, '$');
        buf_put_u8(out, byte);
    }
    buf_put_u8(out, '"');
}

/* YAML reads some words as something else than text. */
static void put_key(const char *name, struct buf *out)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    bool is_plain = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z');
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(name, words[i]) == 0) is_plain = false;
    }
    buf_format(out, is_plain ? "  %s:\n" : "  \"%s\":\n", name);
}

static void put_gateways(const struct cluster_config *config, struct buf *out)
{
    const char *scheme = config->tls_certificate != NULL ? "https://" : "";
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        buf_format(out, "%s%s%s:%u", i > 0 ? "," : "", scheme, config->gateways[i].name,
                   config->gateways[i].port);
    }
}

/* Up to the column where the other comments begin. */
static int pad_bytes(const struct cluster_config *config)
{
    enum { COLUMN = 42 };
    size_t used = strlen(config->name) + 1 + strlen(config->workers[0].name);
    return used + 1 < COLUMN ? (int)(COLUMN + 1 - used) : 1;
}

static void put_system_heading(const struct cluster_config *config, struct buf *out)
{
    buf_format(out, "# Cluster %s in containers. Made by `millrace compose`.\n#\n", config->name);
    buf_put_string(
        out,
        "#   docker build -t millrace .                             once, in the source tree\n"
        "#   docker build -t millrace-broker --target broker .      if there is a broker below\n"
        "#   docker-compose -f system.yml up -d                     start\n"
        "#   docker-compose -f system.yml ps                        look\n");
    if (config->monitor_count > 0) {
        buf_format(out, "#   docker kill %s-%s%*sthe monitors restart it\n", config->name,
                   config->workers[0].name, pad_bytes(config), "");
    }
    buf_put_string(
        out,
        "#   docker-compose -f system.yml down                      stop and remove; data/ stays\n"
        "#\n"
        "# Beside this file: cluster.ini, a folder data for what nodes write");
    if (config->monitor_count > 0) buf_put_string(out, ", and key");
    buf_put_string(
        out,
        ". `millrace compose\n"
        "# --output DIR` makes all of it, and .env with these variables:\n"
        "#   MILLRACE_USER             UID:GID whose files they are; nodes run as that user\n");
    if (config->monitor_count > 0) {
        buf_put_string(
            out,
            "#   MILLRACE_DOCKER_GROUP     GID that may use the Engine's socket: monitors restart "
            "nodes\n"
            "#   MILLRACE_DOCKER_SOCKET    that socket\n");
    }
    buf_put_string(out, "#   MILLRACE_IMAGE, MILLRACE_BROKER_IMAGE   images of other names\n\n");
}

/* What all nodes have in common, once. */
static void put_common(const struct cluster_config *config, struct buf *out)
{
    buf_format(out,
               "x-node: &node\n"
               "  image: \"${MILLRACE_IMAGE:-millrace}\"\n"
               "  user: \"${MILLRACE_USER:-1000:1000}\"\n"
               "  restart: \"%s\"\n"
               "  stop_grace_period: 30s\n"
               "  read_only: true\n"
               "  tmpfs: [/tmp]\n"
               "  cap_drop: [ALL]\n"
               "  security_opt: [\"no-new-privileges:true\"]\n"
               "  healthcheck:\n"
               "    test: [CMD, millrace, health]\n"
               "    interval: 5s\n"
               "    timeout: 5s\n"
               "    retries: 3\n"
               "    start_period: 10s\n\n",
               config->monitor_count > 0 ? "no" : "unless-stopped");
}

static void put_node_files(const struct cluster_config *config, struct buf *out)
{
    struct mounted_file files[MOUNTED_FILES];
    list_files(config, files);
    buf_put_string(out, "    volumes:\n"
                        "      - \"./cluster.ini:/etc/millrace/cluster.ini:ro\"\n"
                        "      - \"./data:/var/lib/millrace\"\n");
    for (uint32_t i = 0; i < MOUNTED_FILES; i++) {
        if (files[i].path == NULL) continue;
        /* The long form: a path may have a colon. */
        buf_put_string(out, "      - type: bind\n        source: ");
        put_string(files[i].path, out);
        buf_format(out, "\n        target: /etc/millrace/%s\n        read_only: true\n",
                   files[i].place);
    }
}

static void put_node_service(const struct cluster_config *config, const char *name, struct buf *out)
{
    put_key(name, out);
    buf_format(out,
               "    <<: *node\n"
               "    container_name: \"%s-%s\"\n"
               "    command: [node, -c, /etc/millrace/cluster.ini, -n, \"%s\"]\n"
               "    environment:\n"
               "      MILLRACE_CONFIG: /etc/millrace/cluster.ini\n"
               "      MILLRACE_NODE: \"%s\"\n",
               config->name, name, name, name);
    put_node_files(config, out);
}

/* The first of several gateways with one port gets it on this host. */
static bool port_is_taken(const struct cluster_config *config, uint32_t gateway)
{
    for (uint32_t i = 0; i < gateway; i++) {
        if (config->gateways[i].port == config->gateways[gateway].port) return true;
    }
    return false;
}

static void put_port(const struct cluster_config *config, uint32_t index, struct buf *out)
{
    const struct config_endpoint *gateway = &config->gateways[index];
    bool is_private = needs_insecure(config) || is_loopback(gateway->host);
    if (port_is_taken(config, index)) return;
    buf_format(out, "    ports: [\"%s%u:%u\"]\n", is_private ? "127.0.0.1:" : "", gateway->port,
               gateway->port);
}

static void put_broker(const struct cluster_config *config, struct buf *out)
{
    if (!config->starts_broker) return;
    put_node_service(config, broker, out);
    buf_put_string(out, "    image: \"${MILLRACE_BROKER_IMAGE:-millrace-broker}\"\n");
}

void compose_system(const struct cluster_config *config, struct buf *out)
{
    put_system_heading(config, out);
    put_common(config, out);
    buf_put_string(out, "services:\n");
    put_broker(config, out);
    for (uint32_t i = 0; i < config->gateway_count; i++) {
        put_node_service(config, config->gateways[i].name, out);
        put_port(config, i, out);
    }
    for (uint32_t i = 0; i < config->worker_count; i++) {
        put_node_service(config, config->workers[i].name, out);
    }
    for (uint32_t i = 0; i < config->monitor_count; i++) {
        put_node_service(config, config->monitors[i].name, out);
        buf_put_string(out, "      - \"${MILLRACE_DOCKER_SOCKET:-/var/run/docker.sock}:"
                            "/var/run/docker.sock\"\n"
                            "    group_add: [\"${MILLRACE_DOCKER_GROUP:-999}\"]\n"
                            "    restart: unless-stopped\n");
    }
    buf_format(out, "\nnetworks:\n  default:\n    name: \"%s\"\n", config->name);
}

void compose_clients(const struct cluster_config *config, struct buf *out)
{
    buf_format(
        out,
        "# Clients of cluster %s, which system.yml starts. Made by `millrace compose`.\n#\n"
        "#   export MILLRACE_DATA=/where/the/csv/files/are\n"
        "#   docker-compose -f clients.yml run --rm client submit movies /data -g $GATEWAYS\n"
        "#   docker-compose -f clients.yml run --rm client status -g $GATEWAYS\n#\n"
        "# GATEWAYS=",
        config->name);
    put_gateways(config, out);
    buf_put_string(
        out,
        "\n# Several clients may run at the same time. The journals of `submit`, from which a\n"
        "# killed client resumes, are in state/. Variables: MILLRACE_USER, MILLRACE_IMAGE as in\n"
        "# system.yml; MILLRACE_CLUSTER_TOKEN where the cluster needs a token.\n\n"
        "services:\n"
        "  client:\n"
        "    image: \"${MILLRACE_IMAGE:-millrace}\"\n"
        "    user: \"${MILLRACE_USER:-1000:1000}\"\n"
        "    command: [status, -g, \"");
    put_gateways(config, out);
    buf_put_string(out, "\"]\n"
                        "    healthcheck:\n"
                        "      disable: true\n"
                        "    environment:\n"
                        "      MILLRACE_STATE_DIR: /state\n"
                        "      MILLRACE_CLUSTER_TOKEN: \"${MILLRACE_CLUSTER_TOKEN:-}\"\n"
                        "    volumes:\n"
                        "      - \"${MILLRACE_DATA:-./client-data}:/data:ro\"\n"
                        "      - \"./state:/state\"\n");
    buf_format(out, "\nnetworks:\n  default:\n    external: true\n    name: \"%s\"\n",
               config->name);
}

/* The only names that docker compose takes for projects. */
static void put_project(const char *name, struct buf *out)
{
    for (const char *at = name; *at != '\0'; at++) {
        bool is_upper = *at >= 'A' && *at <= 'Z';
        buf_put_u8(out, *at == '.' ? '-' : (uint8_t)(is_upper ? *at - 'A' + 'a' : *at));
    }
}

void compose_environment(const struct compose_host *host, struct buf *out)
{
    /* Clients and system are two files of one project: otherwise docker-compose would report the
     * containers of the other as orphans. */
    buf_put_string(out, "COMPOSE_PROJECT_NAME=");
    put_project(host->project, out);
    buf_format(out,
               "\nCOMPOSE_IGNORE_ORPHANS=true\n"
               "MILLRACE_USER=%lu:%lu\n"
               "MILLRACE_DOCKER_GROUP=%lu\n"
               "MILLRACE_DOCKER_SOCKET=%s\n",
               (unsigned long)host->user, (unsigned long)host->group,
               (unsigned long)host->docker_group, host->docker_socket);
}
