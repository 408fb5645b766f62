/* SPDX-License-Identifier: Apache-2.0 */
/* broker_process.c - RabbitMQ's own start script, with an environment that keeps it in one folder.
 *
 * RUNNING_UNDER_SYSTEMD makes the script exec the Erlang VM instead of supervising it, so that our
 * child is the broker itself. epmd, which maps names of Erlang nodes to ports, would be started by
 * the broker as a daemon and outlive it; so it is started first, as a child of ours.
 */
#include "cluster/supervise/broker_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "cluster/bus/bus_amqp.h"
#include "engine/file/clock.h"
#include "engine/file/file.h"
#include "engine/file/output_file.h"
#include "cluster/supervise/spawn.h"

static const char server_path[] = "/usr/lib/rabbitmq/bin/rabbitmq-server";

enum {
    DEADLINE_MS = 60000,
    STEP_MS = 50,
    /* Below the kernel's range of ephemeral ports: no outgoing connection takes one of these while
     * the broker is starting. */
    PORT_FIRST = 20000,
    PORT_COUNT = 12000,
    PORT_TRIES = 200,
    WORDS_SIZE = 400,
    SECRET_SIZE = 33, /* 128 bits as text. */
    URI_SIZE = 384
};

struct ports {
    uint16_t amqp;
    uint16_t dist;
    uint16_t epmd;
};

struct broker_process {
    struct broker_process_options options;
    char *folder; /* Absolute, in the arena. */
    struct ports ports;
    char password[SECRET_SIZE];
    char uri[URI_SIZE];
    struct spawn server;
    struct spawn epmd;
    struct arena arena;
};

bool broker_process_is_installed(void)
{
    return access(server_path, X_OK) == 0;
}

/* ---- ports ---- */

static bool port_is_free(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    bool is_free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    (void)close(fd); /* It was only a check. */
    return is_free;
}

static uint16_t port_find(struct random *random)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        uint16_t port = (uint16_t)(PORT_FIRST + random_below(random, PORT_COUNT));
        if (port_is_free(port)) return port;
    }
    return 0;
}

/* ---- files ---- */

static status write_small_file(struct broker_process *broker, const char *name, const char *content,
                               mode_t mode, struct error *err)
{
    const char *path = file_path(broker->folder, text_of(name), &broker->arena);
    if (path == NULL) return error_memory(err);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0) return error_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    status result = file_write(fd, path, content, strlen(content), NULL, err);
    file_close(fd);
    return result;
}

/* For its user only: it has a password. */
static status write_uri(struct broker_process *broker, struct error *err)
{
    const char *path = file_path(broker->folder, TEXT_LITERAL("uri"), &broker->arena);
    if (path == NULL) return error_memory(err);
    return output_file_replace(path, OUTPUT_PRIVATE, text_of(broker->uri), err);
}

static bool has_file(struct broker_process *broker, const char *name)
{
    const char *path = file_path(broker->folder, text_of(name), &broker->arena);
    return path != NULL && file_exists(path);
}

/* Keeps the ports that were used before. */
static status choose_ports(struct broker_process *broker, struct error *err)
{
    unsigned amqp = 0;
    unsigned dist = 0;
    unsigned epmd = 0;
    struct text text = {"", 0};
    if (has_file(broker, "ports")) {
        const char *path = file_path(broker->folder, TEXT_LITERAL("ports"), &broker->arena);
        TRY(file_read_whole(path, 64, &broker->arena, &text, err));
        if (sscanf(text.bytes, "%5u %5u %5u", &amqp, &dist, &epmd) != 3) amqp = dist = epmd = 0;
        if (amqp > UINT16_MAX || dist > UINT16_MAX || epmd > UINT16_MAX) amqp = dist = epmd = 0;
    }
    struct random random;
    if (getrandom(&random.state, sizeof random.state, 0) != (ssize_t)sizeof random.state) {
        return error_set(err, STATUS_IO, "cannot get random bytes: %s", strerror(errno));
    }
    if (broker->options.port != 0) amqp = broker->options.port;
    if (amqp == 0) amqp = port_find(&random);
    if (dist == 0) dist = port_find(&random);
    if (epmd == 0) epmd = port_find(&random);
    if (amqp == 0 || dist == 0 || epmd == 0 || amqp == dist || amqp == epmd || dist == epmd) {
        return error_set(err, STATUS_IO, "no free ports on 127.0.0.1 for the broker");
    }
    broker->ports = (struct ports){(uint16_t)amqp, (uint16_t)dist, (uint16_t)epmd};
    char line[64];
    snprintf(line, sizeof line, "%u %u %u\n", amqp, dist, epmd);
    return write_small_file(broker, "ports", line, 0644, err);
}

static status make_secret(char out[SECRET_SIZE], struct error *err)
{
    uint64_t parts[2];
    if (getrandom(parts, sizeof parts, 0) != (ssize_t)sizeof parts) {
        return error_set(err, STATUS_IO, "cannot get random bytes: %s", strerror(errno));
    }
    snprintf(out, SECRET_SIZE, "%016llx%016llx", (unsigned long long)parts[0],
             (unsigned long long)parts[1]);
    return STATUS_OK;
}

/* RabbitMQ creates the default user with its database, so the password must last as long. */
static status choose_password(struct broker_process *broker, struct error *err)
{
    struct text text;
    if (!has_file(broker, "password")) {
        if (has_file(broker, "mnesia")) {
            return error_set(err, STATUS_CORRUPT,
                             "%s has a broker's data without its password: remove that folder",
                             broker->folder);
        }
        TRY(make_secret(broker->password, err));
        return write_small_file(broker, "password", broker->password, 0600, err);
    }
    const char *path = file_path(broker->folder, TEXT_LITERAL("password"), &broker->arena);
    TRY(file_read_whole(path, SECRET_SIZE - 1, &broker->arena, &text, err));
    if (text.size != SECRET_SIZE - 1) {
        return error_set(err, STATUS_CORRUPT, "%s is damaged: remove the folder %s", path,
                         broker->folder);
    }
    memcpy(broker->password, text.bytes, text.size);
    return STATUS_OK;
}

static const char *broker_host(const struct broker_process *broker)
{
    return broker->options.host == NULL ? "127.0.0.1" : broker->options.host;
}

static void make_uri(struct broker_process *broker)
{
    const char *host = broker_host(broker);
    bool is_ipv6 = strchr(host, ':') != NULL;
    snprintf(broker->uri, sizeof broker->uri,
             is_ipv6 ? "amqp://millrace:%s@[%.255s]:%u" : "amqp://millrace:%s@%.255s:%u",
             broker->password, host, broker->ports.amqp);
}

/* The name for other hosts need not be an address of this one (NAT, containers), so the broker then
 * listens on all addresses. */
static const char *listen_address(const char *host)
{
    if (strcmp(host, "localhost") == 0) return "127.0.0.1";
    if (strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0) return host;
    return strchr(host, ':') != NULL ? "::" : "0.0.0.0";
}

static status make_subfolder(struct broker_process *broker, const char *name, struct error *err)
{
    const char *path = file_path(broker->folder, text_of(name), &broker->arena);
    bool was_made;
    if (path == NULL) return error_memory(err);
    return file_make_folder(path, &was_made, err);
}

static status write_files(struct broker_process *broker, struct error *err)
{
    TRY(make_subfolder(broker, "home", err));
    if (!has_file(broker, "home/.erlang.cookie")) {
        char cookie[SECRET_SIZE];
        TRY(make_secret(cookie, err));
        TRY(write_small_file(broker, "home/.erlang.cookie", cookie, 0400, err));
    }
    /* With less free space the broker blocks publishers, and otherwise looks healthy: so no more
     * than its own default. Chunks are megabytes, for which its default buffers are small. */
    struct buf settings = {0};
    buf_put_string(&settings, "loopback_users = none\n"
                              "disk_free_limit.absolute = 50MB\n"
                              "log.console = false\n"
                              "frame_max = 524288\n"
                              "tcp_listen_options.recbuf = 1048576\n"
                              "tcp_listen_options.sndbuf = 1048576\n");
    buf_format(&settings, "default_user = millrace\ndefault_pass = %s\n", broker->password);
    if (broker->options.settings != NULL) buf_put_string(&settings, broker->options.settings);
    buf_put_u8(&settings, 0);
    status result = settings.failed ? error_memory(err)
                                    : write_small_file(broker, "rabbitmq.conf",
                                                       (const char *)settings.bytes, 0600, err);
    buf_done(&settings);
    TRY(result);
    return write_small_file(broker, "enabled_plugins", "[].\n", 0644, err);
}

/* ---- processes ---- */

enum { VARIABLES_MAX = 32 };

struct environment {
    struct arena *arena;
    const char *items[VARIABLES_MAX];
    size_t count;
    bool failed;
};

static void set_variable(struct environment *environment, const char *format, ...)
    PRINTF_LIKE(2, 3);
static void set_variable(struct environment *environment, const char *format, ...)
{
    char text[PATH_MAX + 128];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *copy = NULL;
    if (size > 0 && (size_t)size < sizeof text && environment->count + 1 < VARIABLES_MAX) {
        copy = arena_copy_string(environment->arena, text_of(text));
    }
    if (copy == NULL) {
        environment->failed = true;
        return;
    }
    environment->items[environment->count++] = copy;
}

static void make_environment(const struct broker_process *broker, struct environment *environment)
{
    const char *folder = broker->folder;
    const char *path = getenv("PATH");
    set_variable(environment, "PATH=%s", path == NULL ? "/usr/bin:/bin" : path);
    set_variable(environment, "LANG=C.UTF-8");
    set_variable(environment, "HOME=%s/home", folder);
    set_variable(environment, "RUNNING_UNDER_SYSTEMD=true");
    set_variable(environment, "ERL_EPMD_PORT=%u", broker->ports.epmd);
    set_variable(environment, "ERL_EPMD_ADDRESS=127.0.0.1");
    set_variable(environment, "ERL_CRASH_DUMP=%s/erl_crash.dump", folder);
    set_variable(environment, "RABBITMQ_CONF_ENV_FILE=/dev/null");
    set_variable(environment, "RABBITMQ_NODENAME=millrace@localhost");
    set_variable(environment, "RABBITMQ_NODE_IP_ADDRESS=%s", listen_address(broker_host(broker)));
    set_variable(environment, "RABBITMQ_NODE_PORT=%u", broker->ports.amqp);
    set_variable(environment, "RABBITMQ_DIST_PORT=%u", broker->ports.dist);
    set_variable(environment, "RABBITMQ_MNESIA_BASE=%s/mnesia", folder);
    set_variable(environment, "RABBITMQ_LOG_BASE=%s/log", folder);
    set_variable(environment, "RABBITMQ_PID_FILE=%s/pid", folder);
    set_variable(environment, "RABBITMQ_CONFIG_FILE=%s/rabbitmq.conf", folder);
    set_variable(environment, "RABBITMQ_ENABLED_PLUGINS_FILE=%s/enabled_plugins", folder);
    set_variable(environment, "RABBITMQ_GENERATED_CONFIG_DIR=%s/generated", folder);
    set_variable(environment, "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="
                              "-kernel inet_dist_use_interface {127,0,0,1}");
}

static status start_child(struct broker_process *broker, const char *const *argv,
                          struct spawn *child, struct error *err)
{
    struct environment environment = {.arena = &broker->arena};
    make_environment(broker, &environment);
    const char *output = file_path(broker->folder, TEXT_LITERAL("output"), &broker->arena);
    if (environment.failed || output == NULL) {
        return error_set(err, STATUS_IO, "%s: the path is too long", broker->folder);
    }
    struct spawn_options options = {.argv = argv,
                                    .environment = environment.items,
                                    .folder = broker->folder,
                                    .out = {.target = SPAWN_FILE, .path = output},
                                    .err = {.target = SPAWN_FILE, .path = output},
                                    .own_session = true,
                                    .dies_with_us = !broker->options.survives_us};
    return spawn_start(child, options, err);
}

static status start_epmd(struct broker_process *broker, struct error *err)
{
    if (broker->epmd.pid != 0 && !spawn_poll(&broker->epmd)) return STATUS_OK;
    char port[8];
    snprintf(port, sizeof port, "%u", broker->ports.epmd);
    const char *const argv[] = {"epmd", "-port", port, "-address", "127.0.0.1", NULL};
    return start_child(broker, argv, &broker->epmd, err);
}

/* The end of its output, on one line. */
static void last_words(struct broker_process *broker, char out[WORDS_SIZE])
{
    struct text text = {"", 0};
    struct error ignored;
    const char *path = file_path(broker->folder, TEXT_LITERAL("output"), &broker->arena);
    if (path == NULL ||
        file_read_whole(path, 1 << 20, &broker->arena, &text, &ignored) != STATUS_OK) {
        text.size = 0;
    }
    uint32_t size = text.size < WORDS_SIZE - 1 ? text.size : WORDS_SIZE - 1;
    memcpy(out, text.bytes + text.size - size, size);
    out[size] = '\0';
    for (uint32_t i = 0; i < size; i++) {
        if ((unsigned char)out[i] < ' ') out[i] = ' ';
    }
}

static status wait_until_it_answers(struct broker_process *broker, struct error *err)
{
    uint32_t deadline_ms = broker->options.deadline_ms;
    if (deadline_ms == 0) deadline_ms = DEADLINE_MS;
    double until = clock_seconds() + deadline_ms / 1000.0;
    char words[WORDS_SIZE];
    while (!bus_amqp_probe(broker->uri, 1000)) {
        if (broker->options.waiting != NULL) broker->options.waiting(broker->options.context);
        if (broker->options.cancelled != NULL && atomic_load(broker->options.cancelled)) {
            return error_set(err, STATUS_CANCELLED, "stopped while the broker was starting");
        }
        if (spawn_poll(&broker->server)) {
            last_words(broker, words);
            return error_set(err, STATUS_IO,
                             "the broker ended while it was starting; see %s/log. %s",
                             broker->folder, words);
        }
        if (clock_seconds() > until) {
            last_words(broker, words);
            return error_set(err, STATUS_IO,
                             "the broker did not answer on port %u within %u s; see %s/log. %s",
                             broker->ports.amqp, deadline_ms / 1000, broker->folder, words);
        }
        (void)poll(NULL, 0, STEP_MS); /* A refused probe returns at once. */
    }
    return STATUS_OK;
}

status broker_process_restart(struct broker_process *broker, struct error *err)
{
    if (bus_amqp_probe(broker->uri, 1000)) {
        return error_set(err, STATUS_IO,
                         "another broker answers on %s:%u; stop it, or use another folder than %s",
                         broker_host(broker), broker->ports.amqp, broker->folder);
    }
    TRY(start_epmd(broker, err));
    const char *const argv[] = {server_path, NULL};
    TRY(start_child(broker, argv, &broker->server, err));
    status result = wait_until_it_answers(broker, err);
    if (result == STATUS_OK) result = write_uri(broker, err);
    if (result != STATUS_OK) broker_process_kill(broker);
    return result;
}

static status prepare(struct broker_process *broker, struct error *err)
{
    if (!broker_process_is_installed()) {
        return error_set(err, STATUS_IO,
                         "RabbitMQ is not installed here (%s is missing): install the Debian "
                         "package rabbitmq-server, or give the URI of another broker",
                         server_path);
    }
    bool was_made;
    TRY(file_make_folder(broker->options.folder, &was_made, err));
    char path[PATH_MAX];
    if (realpath(broker->options.folder, path) == NULL) {
        return error_set(err, STATUS_IO, "%s: %s", broker->options.folder, strerror(errno));
    }
    broker->folder = arena_copy_string(&broker->arena, text_of(path));
    if (broker->folder == NULL) return error_memory(err);
    /* RabbitMQ writes the password to generated files with default modes, so the folder is closed.
     */
    if (chmod(path, S_IRWXU) != 0) {
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    }
    TRY(choose_ports(broker, err));
    TRY(choose_password(broker, err));
    make_uri(broker);
    return write_files(broker, err);
}

status broker_process_start(const struct broker_process_options *options,
                            struct broker_process **out, struct error *err)
{
    struct broker_process *broker = memory_alloc(NULL, sizeof *broker);
    if (broker == NULL) return error_memory(err);
    *broker = (struct broker_process){.options = *options};
    arena_init(&broker->arena, NULL);
    status result = prepare(broker, err);
    if (result == STATUS_OK) result = broker_process_restart(broker, err);
    if (result != STATUS_OK) {
        broker_process_stop(broker, 0);
        return result;
    }
    *out = broker;
    return STATUS_OK;
}

pid_t broker_process_pid(const struct broker_process *broker)
{
    return broker->server.pid != 0 && !broker->server.ended ? broker->server.pid : 0;
}

const char *broker_process_uri(const struct broker_process *broker)
{
    return broker->uri;
}

bool broker_process_answers(struct broker_process *broker, uint32_t timeout_ms)
{
    return !broker_process_has_ended(broker) && bus_amqp_probe(broker->uri, timeout_ms);
}

bool broker_process_has_ended(struct broker_process *broker)
{
    return broker->server.pid == 0 || spawn_poll(&broker->server);
}

static void end_child(struct spawn *child, uint32_t deadline_ms)
{
    if (child->pid == 0) return;
    spawn_stop(child, deadline_ms);
    spawn_close(child);
    *child = (struct spawn){.pid = 0};
}

void broker_process_kill(struct broker_process *broker)
{
    if (broker->server.pid == 0) return;
    spawn_signal(&broker->server, SIGKILL);
    end_child(&broker->server, 0);
}

void broker_process_stop(struct broker_process *broker, uint32_t deadline_ms)
{
    if (broker == NULL) return;
    end_child(&broker->server, deadline_ms);
    end_child(&broker->epmd, 0);
    arena_done(&broker->arena);
    memory_free(NULL, broker, sizeof *broker);
}
