/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compose.c - `millrace compose`: the cluster as containers.
 *
 * Without --output it prints the files. With it, it writes all that docker-compose needs to a
 * folder; an existing key stays, since nodes may run with it, and so does an .env file, which a
 * user may have edited.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cluster_commands.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_program.h"
#include "cli/cluster/compose.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "engine/file/file.h"
#include "engine/file/output_file.h"
#include "cluster/config/cluster_key.h"

enum { COMPOSE_CONFIG, COMPOSE_OUTPUT, COMPOSE_OPTIONS };
enum { DOCKER_GROUP = 999 }; /* What Debian gives it. */

static const struct option_spec compose_options[COMPOSE_OPTIONS] = {
    [COMPOSE_CONFIG] = CLUSTER_FILE_OPTION_SPEC,
    [COMPOSE_OUTPUT] = {"output", "DIR", "write the files there, with all that they need", false,
                        0},
};

static const struct command_spec compose_spec = {
    .name = "compose",
    .arguments = "-c FILE [--output DIR]",
    .summary = SUMMARY_COMPOSE,
    .about =
        "Two files: system.yml has a container for every node, clients.yml one for clients. Each\n"
        "begins with the commands to use it. With --output there are also cluster.ini as the\n"
        "containers read it, the cluster's key, .env with the settings of this host (an existing\n"
        "one is kept), and the folder data. Monitors restart containers through the Engine's\n"
        "socket. Works with docker-compose 1.27 and later, and docker compose.",
    .examples = "  millrace compose -c cluster.ini --output boxes\n"
                "  cd boxes && docker-compose -f system.yml up -d\n",
    .options = compose_options,
    .option_count = COMPOSE_OPTIONS,
};

static status write_file(const char *folder, const char *name, enum output_access access,
                         const struct buf *bytes, struct arena *arena, struct error *err)
{
    const char *path = file_path(folder, text_of(name), arena);
    if (path == NULL || bytes->failed) return error_memory(err);
    struct text content = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    return output_file_replace(path, access, content, err);
}

static status make_folder(const char *base, const char *name, struct arena *arena,
                          struct error *err)
{
    bool made;
    const char *path = file_path(base, text_of(name), arena);
    return path == NULL ? error_memory(err) : file_make_folder(path, &made, err);
}

static status write_environment(const struct cluster_config *config, const char *folder,
                                struct arena *arena, struct error *err)
{
    const char *path = file_path(folder, TEXT_LITERAL(".env"), arena);
    if (path == NULL) return error_memory(err);
    if (file_exists(path)) return STATUS_OK;
    struct stat socket;
    struct compose_host host = {.project = config->name,
                                .user = getuid(),
                                .group = getgid(),
                                .docker_group = DOCKER_GROUP,
                                .docker_socket = config->docker_socket};
    if (stat(config->docker_socket, &socket) == 0) host.docker_group = socket.st_gid;
    struct buf text = {0};
    compose_environment(&host, &text);
    status result = write_file(folder, ".env", OUTPUT_PUBLIC, &text, arena, err);
    buf_done(&text);
    return result;
}

struct files {
    struct buf system;
    struct buf clients;
    struct buf cluster;
};

/* URIs of brokers contain passwords. */
static bool has_secrets(const struct cluster_config *config)
{
    bool has = config->token != NULL;
    for (uint32_t i = 0; i < config->broker_count; i++) {
        has = has || strchr(config->brokers[i], '@') != NULL;
    }
    return has;
}

static status write_all(const struct cluster_config *config, const char *folder,
                        const struct files *files, struct arena *arena, struct error *err)
{
    bool made;
    TRY(file_make_folder(folder, &made, err));
    TRY(make_folder(folder, "data", arena, err));
    TRY(make_folder(folder, "state", arena, err));
    enum output_access who = has_secrets(config) ? OUTPUT_PRIVATE : OUTPUT_PUBLIC;
    TRY(write_file(folder, "cluster.ini", who, &files->cluster, arena, err));
    TRY(write_file(folder, "system.yml", OUTPUT_PUBLIC, &files->system, arena, err));
    TRY(write_file(folder, "clients.yml", OUTPUT_PUBLIC, &files->clients, arena, err));
    TRY(write_environment(config, folder, arena, err));
    if (config->monitor_count > 0) {
        const char *key = file_path(folder, TEXT_LITERAL("key"), arena);
        if (key == NULL) return error_memory(err);
        TRY(cluster_key_make(key, &made, err));
    }
    terminal_say("wrote %s/system.yml, clients.yml, cluster.ini and what they need\n", folder);
    if (getuid() == 0) {
        terminal_say("warning: nodes will run as root: change MILLRACE_USER in %s/.env, and the "
                     "owner of key, data, state and cluster.ini\n",
                     folder);
    }
    terminal_say("start it: cd %s && docker-compose -f system.yml up -d\n", folder);
    return STATUS_OK;
}

/* docker-compose resolves paths from the folder of its own file. */
static status find_files(struct cluster_config *config, struct arena *arena, struct error *err)
{
    const char **const paths[] = {
        &config->token_file,      &config->tls_certificate,    &config->tls_key,
        &config->broker_ca,       &config->broker_certificate, &config->broker_key,
        &config->sentiment_model,
    };
    char whole[PATH_MAX];
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (*paths[i] == NULL) continue;
        if (realpath(*paths[i], whole) == NULL) {
            return error_set(err, STATUS_INPUT, "%s: %s", *paths[i], strerror(errno));
        }
        *paths[i] = arena_copy_string(arena, text_of(whole));
        if (*paths[i] == NULL) return error_memory(err);
    }
    return STATUS_OK;
}

static status print_all(const struct files *files, struct error *err)
{
    const struct {
        const char *name;
        const struct buf *bytes;
    } parts[] = {{"system.yml", &files->system},
                 {"clients.yml", &files->clients},
                 {"cluster.ini", &files->cluster}};
    struct buf out = {0};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        buf_format(&out, "# -------- %s --------\n", parts[i].name);
        buf_put(&out, parts[i].bytes->bytes, parts[i].bytes->size);
    }
    status result = output_to_stdout(&out, NULL, err);
    buf_done(&out);
    return result;
}

static status run(const struct options *options, struct arena *arena, struct error *err)
{
    struct cluster_config config;
    struct text file;
    const char *folder = options_value(options, COMPOSE_OUTPUT);
    const char *path = options_value(options, COMPOSE_CONFIG);
    TRY(cluster_file_read("compose", path, arena, &config, err));
    TRY(file_read_whole(path, CONFIG_FILE_LIMIT, arena, &file, err));
    if (folder != NULL) TRY(find_files(&config, arena, err));
    struct files files = {0};
    compose_system(&config, &files.system);
    compose_clients(&config, &files.clients);
    compose_cluster_file(&config, file, &files.cluster);
    status result =
        folder != NULL ? write_all(&config, folder, &files, arena, err) : print_all(&files, err);
    buf_done(&files.system);
    buf_done(&files.clients);
    buf_done(&files.cluster);
    return result;
}

static int compose_main(int argc, char *const *argv)
{
    return command_simple(&compose_spec, run, argc, argv);
}

const struct command command_compose = {.spec = &compose_spec, .run = compose_main};
