/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_config.c - the nodes of a cluster file, and the rules between its keys.
 *
 * config_keys.c reads each key by itself; what remains here needs more than one line of the file.
 */
#include "cluster/config/cluster_config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/file/file.h"
#include "cluster/config/config_entries.h"
#include "cluster/config/config_keys.h"
#include "cluster/config/config_value.h"
#include "cluster/wire/manifest.h"

_Static_assert((int)CONFIG_WORKERS_MAX == (int)MANIFEST_WORKERS_MAX, "every worker may get a job");

enum { NAMES_MAX = CONFIG_GATEWAYS_MAX + CONFIG_WORKERS_MAX + CONFIG_MONITORS_MAX };

/* Lives in the caller's arena, since the configuration points to the nodes. */
struct config_reader {
    struct config_entries entries;
    struct cluster_config config;
    struct config_endpoint gateways[CONFIG_GATEWAYS_MAX];
    struct config_endpoint monitors[CONFIG_MONITORS_MAX];
    struct config_worker workers[CONFIG_WORKERS_MAX];
    uint32_t named_workers;
    struct text names[NAMES_MAX]; /* Of all nodes so far. */
    uint32_t name_count;
    struct arena *arena;
};

/* NULL also for an empty value, which is as good as none. */
static const struct config_entry *find(const struct config_reader *reader,
                                       enum config_section section, const char *key)
{
    const struct config_entry *entry = config_entries_find(&reader->entries, section, text_of(key));
    return entry == NULL || entry->value.size == 0 ? NULL : entry;
}

/* Prefixes the error with the line of the key; if the file does not have it, with the file. */
static status fail_at(const struct config_reader *reader, enum config_section section,
                      const char *key, struct error *err)
{
    const struct config_entry *entry = config_entries_find(&reader->entries, section, text_of(key));
    if (entry != NULL) return config_entry_fail(&reader->entries, entry, err);
    return error_prefix(err, "%.500s", reader->entries.path);
}

/* ---- nodes ---- */

static status name_add(struct config_reader *reader, struct text name, struct error *err)
{
    if (!manifest_name_valid(name)) {
        return error_set(err, STATUS_INPUT,
                         "a node's name must be 1 to %d letters, digits, . _ and -, got %.*s",
                         (int)MANIFEST_NAME_MAX, CONFIG_SHOWN(name));
    }
    if (text_equal(name, TEXT_LITERAL("broker"))) {
        return error_set(err, STATUS_INPUT, "no node may be called broker: the broker is");
    }
    for (uint32_t i = 0; i < reader->name_count; i++) {
        if (!text_equal(name, reader->names[i])) continue;
        return error_set(err, STATUS_INPUT, "another node is called %.*s; choose another name",
                         TEXT_ARGS(name));
    }
    ASSERT(reader->name_count < NAMES_MAX);
    reader->names[reader->name_count++] = name;
    return STATUS_OK;
}

/* Of two nodes that listen at one address, the second would not start. */
static status address_check(const struct config_endpoint *others, uint32_t count,
                            struct config_endpoint endpoint, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (others[i].port != endpoint.port || strcmp(others[i].host, endpoint.host) != 0) continue;
        return error_set(err, STATUS_INPUT, "%s has the same address; choose another port",
                         others[i].name);
    }
    return STATUS_OK;
}

/* NAME = host:port */
static status endpoint_read(struct config_reader *reader, const struct config_entry *entry,
                            struct config_endpoint *out, struct error *err)
{
    const struct cluster_config *config = &reader->config;
    struct config_endpoint endpoint = {.name = entry->key.bytes};
    struct text host;
    TRY(name_add(reader, entry->key, err));
    if (!config_address_parse(entry->value, &host, &endpoint.port)) {
        struct config_suggestion suggestion = config_suggest_key(entry->section, entry->key);
        return error_set(err, STATUS_INPUT,
                         "%.*s must be an address such as 127.0.0.1:7101 or [::1]:7101, got "
                         "%.*s%s",
                         CONFIG_SHOWN(entry->key), CONFIG_SHOWN(entry->value), suggestion.text);
    }
    endpoint.host = arena_copy_string(reader->arena, host);
    if (endpoint.host == NULL) return error_memory(err);
    TRY(address_check(reader->gateways, config->gateway_count, endpoint, err));
    TRY(address_check(reader->monitors, config->monitor_count, endpoint, err));
    *out = endpoint;
    return STATUS_OK;
}

/* NAME = host */
static status worker_read(struct config_reader *reader, const struct config_entry *entry,
                          struct config_worker *out, struct error *err)
{
    uint64_t number;
    if (!config_host_valid(entry->value) || config_count_parse(entry->value, &number)) {
        /* A misspelt key is more likely than a host that is a number. */
        struct config_suggestion suggestion = config_suggest_key(CONFIG_WORKERS, entry->key);
        return error_set(err, STATUS_INPUT,
                         "%.*s must be the host of a worker, or a key of [workers], got %.*s%s",
                         CONFIG_SHOWN(entry->key), CONFIG_SHOWN(entry->value), suggestion.text);
    }
    TRY(name_add(reader, entry->key, err));
    *out = (struct config_worker){.name = entry->key.bytes, .host = entry->value.bytes};
    return STATUS_OK;
}

static status node_add(struct config_reader *reader, const struct config_entry *entry,
                       struct error *err)
{
    struct cluster_config *config = &reader->config;
    static const uint32_t limits[CONFIG_SECTIONS] = {
        [CONFIG_GATEWAYS] = CONFIG_GATEWAYS_MAX,
        [CONFIG_WORKERS] = CONFIG_WORKERS_MAX,
        [CONFIG_MONITORS] = CONFIG_MONITORS_MAX,
    };
    uint32_t *counts[CONFIG_SECTIONS] = {
        [CONFIG_GATEWAYS] = &config->gateway_count,
        [CONFIG_WORKERS] = &reader->named_workers,
        [CONFIG_MONITORS] = &config->monitor_count,
    };
    uint32_t *count = counts[entry->section];
    if (count == NULL) {
        struct config_suggestion suggestion = config_suggest_key(entry->section, entry->key);
        return error_set(err, STATUS_INPUT, "[cluster] has no key %.*s%s", CONFIG_SHOWN(entry->key),
                         suggestion.text);
    }
    if (*count == limits[entry->section]) {
        return error_set(err, STATUS_INPUT, "more than %u %.*s", *count,
                         TEXT_ARGS(config_section_names[entry->section]));
    }
    if (entry->section == CONFIG_GATEWAYS) {
        TRY(endpoint_read(reader, entry, &reader->gateways[*count], err));
    } else if (entry->section == CONFIG_WORKERS) {
        TRY(worker_read(reader, entry, &reader->workers[*count], err));
    } else {
        TRY(endpoint_read(reader, entry, &reader->monitors[*count], err));
    }
    (*count)++;
    return STATUS_OK;
}

/* count = N: w1 to wN on this host. */
static status workers_make(struct config_reader *reader, struct error *err)
{
    if (reader->named_workers > 0) {
        return error_set(err, STATUS_INPUT, "give either a count of workers or their names");
    }
    for (uint32_t i = 0; i < reader->config.worker_count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "w%u", i + 1); /* Fits. */
        const char *copy = arena_copy_string(reader->arena, text_of(name));
        if (copy == NULL) return error_memory(err);
        TRY(name_add(reader, text_of(copy), err));
        reader->workers[i] = (struct config_worker){.name = copy, .host = "127.0.0.1"};
    }
    return STATUS_OK;
}

static status role_check(const struct config_reader *reader, const char *key, uint32_t *count,
                         struct error *err)
{
    uint32_t most = reader->config.worker_count;
    if (*count == 0) *count = most;
    if (*count <= most) return STATUS_OK;
    error_write(err, STATUS_INPUT, "%s must be 1 to %u, the number of workers, got %u", key, most,
                *count);
    return fail_at(reader, CONFIG_WORKERS, key, err);
}

static status set_roles(struct config_reader *reader, struct error *err)
{
    struct cluster_config *config = &reader->config;
    uint32_t count = config->worker_count;
    TRY(role_check(reader, "roles.map", &config->map_count, err));
    TRY(role_check(reader, "roles.fold", &config->fold_count, err));
    if (config->map_count + config->fold_count < count) {
        return error_set(err, STATUS_INPUT,
                         "%.500s: of %u workers, the first %u map and the last %u fold: %u would "
                         "have nothing to do",
                         reader->entries.path, count, config->map_count, config->fold_count,
                         count - config->map_count - config->fold_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        reader->workers[i].maps = i < config->map_count;
        reader->workers[i].folds = i >= count - config->fold_count;
    }
    return STATUS_OK;
}

static status set_nodes(struct config_reader *reader, struct error *err)
{
    struct cluster_config *config = &reader->config;
    if (config->worker_count > 0) {
        if (workers_make(reader, err) != STATUS_OK) {
            return fail_at(reader, CONFIG_WORKERS, "count", err);
        }
    } else {
        config->worker_count = reader->named_workers;
    }
    if (config->worker_count == 0) {
        return error_set(err, STATUS_INPUT, "%.500s: there are no workers: say [workers] count = 3",
                         reader->entries.path);
    }
    if (config->gateway_count == 0) {
        return error_set(err, STATUS_INPUT,
                         "%.500s: there are no gateways: say [gateways] g1 = 127.0.0.1:7101",
                         reader->entries.path);
    }
    config->gateways = reader->gateways;
    config->workers = reader->workers;
    config->monitors = reader->monitors;
    return set_roles(reader, err);
}

/* ---- rules between keys ---- */

/* Defaults that are made of other keys. */
static status set_derived(const struct config_reader *reader, struct cluster_config *config,
                          struct error *err)
{
    if (config->broker_count == 0) config->starts_broker = true;
    if (config->data_dir == NULL) {
        char preset[MANIFEST_NAME_MAX + 16];
        (void)snprintf(preset, sizeof preset, "%s-cluster", config->name); /* Fits: it is a name. */
        config->data_dir = config_path(config->path, text_of(preset), reader->arena);
        if (config->data_dir == NULL) return error_memory(err);
    }
    if (config->key_file == NULL) {
        config->key_file = file_path(config->data_dir, TEXT_LITERAL("key"), reader->arena);
        if (config->key_file == NULL) return error_memory(err);
    }
    return STATUS_OK;
}

/* If only one of the two is in the environment, it wins: the shell that runs clients has the token
 * there, whatever the file says. */
static status choose_token(const struct config_reader *reader, struct cluster_config *config,
                           struct error *err)
{
    if (config->token == NULL || config->token_file == NULL) return STATUS_OK;
    bool is_variable = find(reader, CONFIG_CLUSTER, "token")->variable != NULL;
    if (is_variable == (find(reader, CONFIG_CLUSTER, "token_file")->variable != NULL)) {
        error_write(err, STATUS_INPUT, "give either token or token_file");
        return fail_at(reader, CONFIG_CLUSTER, "token", err);
    }
    if (is_variable) {
        config->token_file = NULL;
    } else {
        config->token = NULL;
    }
    return STATUS_OK;
}

static status check_pairs(const struct config_reader *reader, struct error *err)
{
    static const char *const pairs[][2] = {
        {"tls_certificate", "tls_key"},
        {"tls_key", "tls_certificate"},
        {"broker_certificate", "broker_key"},
        {"broker_key", "broker_certificate"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (find(reader, CONFIG_CLUSTER, pairs[i][0]) == NULL) continue;
        if (find(reader, CONFIG_CLUSTER, pairs[i][1]) != NULL) continue;
        error_write(err, STATUS_INPUT, "%s needs %s beside it", pairs[i][0], pairs[i][1]);
        return fail_at(reader, CONFIG_CLUSTER, pairs[i][0], err);
    }
    return STATUS_OK;
}

static status check_commands(const struct config_reader *reader, struct error *err)
{
    static const struct {
        const char *key;
        bool is_needed;
    } commands[] = {
        {"start_command", true},
        {"kill_command", true},
        {"pause_command", false},
        {"resume_command", false},
    };
    bool is_command = reader->config.driver == CONFIG_DRIVER_COMMAND;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *key = commands[i].key;
        bool is_given = find(reader, CONFIG_MONITORS, key) != NULL;
        if (is_command && commands[i].is_needed && !is_given) {
            error_write(err, STATUS_INPUT, "driver = command needs a %s", key);
            return fail_at(reader, CONFIG_MONITORS, "driver", err);
        }
        if (!is_command && is_given) {
            error_write(err, STATUS_INPUT, "%s needs driver = command", key);
            return fail_at(reader, CONFIG_MONITORS, key, err);
        }
    }
    return STATUS_OK;
}

static status check_limits(const struct config_reader *reader, struct error *err)
{
    const struct cluster_config *config = &reader->config;
    const uint64_t room = 64 << 10; /* For what a message says besides its chunk. */
    if (config->chunk_size + room > config->max_message ||
        config->chunk_size + room > config->http_body_limit) {
        return error_set(err, STATUS_INPUT,
                         "%.500s: chunk_size and 64K must fit max_message and http_body_limit",
                         reader->entries.path);
    }
    /* One lost datagram must not look like a death, nor two. */
    if (config->failure_timeout_ms < 4 * config->heartbeat_period_ms) {
        bool is_given = find(reader, CONFIG_MONITORS, "failure_timeout") != NULL;
        error_write(err, STATUS_INPUT,
                    "failure_timeout must be at least four times heartbeat_period (%u ms), got %u "
                    "ms",
                    config->heartbeat_period_ms, config->failure_timeout_ms);
        return fail_at(reader, CONFIG_MONITORS, is_given ? "failure_timeout" : "heartbeat_period",
                       err);
    }
    return STATUS_OK;
}

static status read_all(struct config_reader *reader, struct error *err)
{
    struct cluster_config *config = &reader->config;
    TRY(config_keys_set_defaults(reader->arena, config, err));
    for (size_t i = 0; i < reader->entries.count; i++) {
        const struct config_entry *entry = &reader->entries.items[i];
        if (entry->replaced) continue;
        const struct config_key *key = config_key_find(entry->section, entry->key);
        status result = key == NULL
                            ? node_add(reader, entry, err)
                            : config_key_read(key, entry->value, reader->arena, config, err);
        if (result == STATUS_OK) continue;
        return result == STATUS_MEMORY ? result : config_entry_fail(&reader->entries, entry, err);
    }
    TRY(set_derived(reader, config, err));
    TRY(choose_token(reader, config, err));
    TRY(check_pairs(reader, err));
    TRY(set_nodes(reader, err));
    TRY(check_commands(reader, err));
    return check_limits(reader, err);
}

status cluster_config_parse(struct text bytes, const char *path, const char *const *environment,
                            struct arena *arena, struct cluster_config *out, struct error *err)
{
    struct config_reader *reader = arena_new(arena, struct config_reader);
    struct config_source source = {.bytes = bytes, .environment = environment};
    source.path = arena_copy_string(arena, text_of(path));
    if (reader == NULL || source.path == NULL) return error_memory(err);
    *reader = (struct config_reader){.config.path = source.path, .arena = arena};
    TRY(config_entries_read(&source, arena, &reader->entries, err));
    TRY(read_all(reader, err));
    *out = reader->config;
    return STATUS_OK;
}

status cluster_config_read(const char *path, const char *const *environment, struct arena *arena,
                           struct cluster_config *out, struct error *err)
{
    struct text bytes;
    TRY(file_read_whole(path, CONFIG_FILE_LIMIT, arena, &bytes, err));
    return cluster_config_parse(bytes, path, environment, arena, out, err);
}
