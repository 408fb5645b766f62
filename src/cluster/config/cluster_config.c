/* cluster_config.c - what the entries of a cluster file mean.
 *
 * Most keys are read by config_keys.c; here are those with rules of their own, the rules between
 * keys, and the nodes.
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

/* What the entries are understood with. */
struct config_reader {
    struct config_entries entries;
    struct config_key_names key_names;
    struct text names[NAMES_MAX]; /* Of all nodes so far. */
    uint32_t name_count;
    struct arena *arena;
};

static void reader_init(struct config_reader *reader, struct arena *arena,
                        struct config_source *source)
{
    *reader = (struct config_reader){.arena = arena};
    config_key_names(&reader->key_names);
    for (uint32_t i = 0; i < CONFIG_SECTIONS; i++) {
        source->known[i] =
            (struct config_names){reader->key_names.items[i], reader->key_names.counts[i]};
    }
}

static const struct config_entry *entry_find(const struct config_reader *reader,
                                             enum config_section section, struct text key)
{
    return config_entries_find(&reader->entries, section, key);
}

static status fail_at(const struct config_reader *reader, const struct config_entry *entry,
                      struct error *err)
{
    return config_entry_fail(&reader->entries, entry, err);
}

static status set_name(const struct config_reader *reader, struct cluster_config *out,
                       struct error *err)
{
    const struct config_entry *entry = entry_find(reader, CONFIG_CLUSTER, TEXT_LITERAL("name"));
    out->name = "millrace";
    if (entry == NULL) return STATUS_OK;
    if (!manifest_name_valid(entry->value)) {
        error_write(err, STATUS_INPUT, "name: '%.*s' is not a name of letters, digits, . _ and -",
                    CONFIG_SHOWN(entry->value));
        return fail_at(reader, entry, err);
    }
    out->name = entry->value.bytes;
    return STATUS_OK;
}

/* Relative to the folder of the file. */
static status set_data_dir(const struct config_reader *reader, struct cluster_config *out,
                           struct error *err)
{
    const struct config_entry *entry = entry_find(reader, CONFIG_CLUSTER, TEXT_LITERAL("data_dir"));
    char preset[MANIFEST_NAME_MAX + 16];
    (void)snprintf(preset, sizeof preset, "%s-cluster", out->name); /* Fits: it is a name. */
    struct text dir = entry == NULL ? text_of(preset) : entry->value;
    if (dir.size == 0) {
        error_write(err, STATUS_INPUT, "data_dir needs a folder");
        return fail_at(reader, entry, err);
    }
    out->data_dir = config_path(&reader->entries, dir, reader->arena);
    return out->data_dir == NULL ? error_memory(err) : STATUS_OK;
}

/* And more than that. */
static bool has_prefix(struct text text, struct text prefix)
{
    return text.size > prefix.size && memcmp(text.bytes, prefix.bytes, prefix.size) == 0;
}

static status add_brokers(const struct config_reader *reader, const struct config_entry *entry,
                          const char **brokers, struct cluster_config *out, struct error *err)
{
    struct text left = config_trim(entry->value);
    if (left.size == 0) return error_set(err, STATUS_INPUT, "broker needs a value");
    while (left.size > 0) {
        uint32_t size = 0;
        while (size < left.size && left.bytes[size] != ' ' && left.bytes[size] != '\t') {
            size++;
        }
        struct text uri = {left.bytes, size};
        left = config_trim((struct text){left.bytes + size, left.size - size});
        bool is_start = text_equal(uri, TEXT_LITERAL("start"));
        if (out->starts_broker || (is_start && out->broker_count > 0)) {
            return error_set(err, STATUS_INPUT, "broker: start stands alone, without URIs");
        }
        if (is_start) {
            out->starts_broker = true;
            continue;
        }
        if (!has_prefix(uri, TEXT_LITERAL("amqp://")) &&
            !has_prefix(uri, TEXT_LITERAL("amqps://"))) {
            return error_set(err, STATUS_INPUT,
                             "broker: '%.*s' is neither start nor a URI such as "
                             "amqp://user:password@host:5672/vhost",
                             CONFIG_SHOWN(uri));
        }
        if (out->broker_count == CONFIG_BROKERS_MAX) {
            return error_set(err, STATUS_INPUT, "more than %d brokers", (int)CONFIG_BROKERS_MAX);
        }
        brokers[out->broker_count] = arena_copy_string(reader->arena, uri);
        if (brokers[out->broker_count] == NULL) return error_memory(err);
        out->broker_count++;
    }
    return STATUS_OK;
}

static status set_brokers(const struct config_reader *reader, struct cluster_config *out,
                          struct error *err)
{
    const char **brokers = arena_array(reader->arena, const char *, CONFIG_BROKERS_MAX);
    if (brokers == NULL) return error_memory(err);
    out->brokers = brokers;
    for (size_t i = 0; i < reader->entries.count; i++) {
        const struct config_entry *entry = &reader->entries.items[i];
        if (entry->replaced || !config_entry_is_broker(entry)) continue;
        if (add_brokers(reader, entry, brokers, out, err) != STATUS_OK) {
            return err->code == STATUS_MEMORY ? STATUS_MEMORY : fail_at(reader, entry, err);
        }
    }
    if (out->broker_count == 0) out->starts_broker = true;
    return STATUS_OK;
}

/* Of two that exclude each other, the environment's comes before the file's: whoever runs clients
 * in the same shell has set the token there. */
static status set_token(const struct config_reader *reader, struct cluster_config *out,
                        struct error *err)
{
    const struct config_entry *entry = entry_find(reader, CONFIG_CLUSTER, TEXT_LITERAL("token"));
    const struct config_entry *file =
        entry_find(reader, CONFIG_CLUSTER, TEXT_LITERAL("token_file"));
    if (entry == NULL || entry->value.size == 0) return STATUS_OK;
    for (uint32_t i = 0; i < entry->value.size; i++) {
        if (entry->value.bytes[i] > ' ' && entry->value.bytes[i] <= '~') continue;
        error_write(err, STATUS_INPUT, "token: only visible ASCII characters can be sent");
        return fail_at(reader, entry, err);
    }
    if (out->token_file != NULL && (entry->variable == NULL) == (file->variable == NULL)) {
        error_write(err, STATUS_INPUT, "give either token or token_file");
        return fail_at(reader, entry, err);
    }
    if (out->token_file != NULL && entry->variable == NULL) return STATUS_OK;
    out->token = entry->value.bytes;
    out->token_file = NULL;
    return STATUS_OK;
}

/* Two keys that are nothing without each other. */
struct key_pair {
    struct text names[2];
    const char *values[2];
};

static status check_pair(const struct config_reader *reader, const struct key_pair *pair,
                         struct error *err)
{
    for (int i = 0; i < 2; i++) {
        if (pair->values[i] == NULL || pair->values[1 - i] != NULL) continue;
        error_write(err, STATUS_INPUT, "%.*s needs %.*s beside it", TEXT_ARGS(pair->names[i]),
                    TEXT_ARGS(pair->names[1 - i]));
        return fail_at(reader, entry_find(reader, CONFIG_CLUSTER, pair->names[i]), err);
    }
    return STATUS_OK;
}

static status set_keys_and_certificates(const struct config_reader *reader,
                                        struct cluster_config *out, struct error *err)
{
    const struct key_pair pairs[] = {
        {{TEXT_LITERAL("tls_certificate"), TEXT_LITERAL("tls_key")},
         {out->tls_certificate, out->tls_key}},
        {{TEXT_LITERAL("broker_certificate"), TEXT_LITERAL("broker_key")},
         {out->broker_certificate, out->broker_key}},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        TRY(check_pair(reader, &pairs[i], err));
    }
    if (out->key_file != NULL) return STATUS_OK;
    out->key_file = file_path(out->data_dir, TEXT_LITERAL("key"), reader->arena);
    return out->key_file == NULL ? error_memory(err) : STATUS_OK;
}

static status set_cluster(const struct config_reader *reader, struct cluster_config *out,
                          struct error *err)
{
    for (size_t i = 0; i < reader->entries.count; i++) {
        const struct config_entry *entry = &reader->entries.items[i];
        if (entry->section != CONFIG_CLUSTER || config_is_key(CONFIG_CLUSTER, entry->key)) {
            continue;
        }
        struct config_suggestion suggestion = config_suggest_key(CONFIG_CLUSTER, entry->key);
        error_write(err, STATUS_INPUT, "there is no key '%.*s' in [cluster]%s",
                    CONFIG_SHOWN(entry->key), suggestion.text);
        return fail_at(reader, entry, err);
    }
    TRY(config_keys_set(&reader->entries, CONFIG_CLUSTER, reader->arena, out, err));
    TRY(set_name(reader, out, err));
    TRY(set_data_dir(reader, out, err));
    TRY(set_brokers(reader, out, err));
    TRY(set_token(reader, out, err));
    TRY(set_keys_and_certificates(reader, out, err));
    /* A message says more than its chunk holds, though not much. */
    const uint64_t room = 64 << 10;
    if (out->chunk_size + room > out->max_message ||
        out->chunk_size + room > out->http_body_limit) {
        return error_set(err, STATUS_INPUT,
                         "%.500s: chunk_size and 64K must fit max_message and http_body_limit",
                         reader->entries.path);
    }
    return STATUS_OK;
}

/* ---- nodes ---- */

static status name_add(struct config_reader *reader, struct text name, struct error *err)
{
    if (!manifest_name_valid(name)) {
        return error_set(err, STATUS_INPUT,
                         "'%.*s' is not a node's name: 1 to %d letters, digits, . _ and -",
                         CONFIG_SHOWN(name), (int)MANIFEST_NAME_MAX);
    }
    if (text_equal(name, TEXT_LITERAL("broker"))) {
        return error_set(err, STATUS_INPUT, "no node can be called broker, as the broker is");
    }
    for (uint32_t i = 0; i < reader->name_count; i++) {
        if (!text_equal(name, reader->names[i])) continue;
        return error_set(err, STATUS_INPUT, "another node is called %.*s already", TEXT_ARGS(name));
    }
    ASSERT(reader->name_count < NAMES_MAX);
    reader->names[reader->name_count++] = name;
    return STATUS_OK;
}

struct endpoint_list {
    struct config_endpoint *items;
    uint32_t count;
    uint32_t limit;
};

/* Two who listen at one address: the second would not start. */
static status address_check(struct endpoint_list list, struct config_endpoint endpoint,
                            struct error *err)
{
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].port != endpoint.port) continue;
        if (strcmp(list.items[i].host, endpoint.host) != 0) continue;
        return error_set(err, STATUS_INPUT, "%s has the same address", list.items[i].name);
    }
    return STATUS_OK;
}

static status endpoint_add(struct config_reader *reader, const struct config_entry *entry,
                           struct endpoint_list *list, struct error *err)
{
    struct config_endpoint endpoint = {.name = entry->key.bytes};
    struct text host;
    if (list->count == list->limit) {
        return error_set(err, STATUS_INPUT, "more than %u such nodes", list->limit);
    }
    TRY(name_add(reader, entry->key, err));
    if (!config_address_parse(entry->value, &host, &endpoint.port)) {
        struct config_suggestion suggestion = config_suggest_key(entry->section, entry->key);
        if (suggestion.text[0] != '\0') {
            return error_set(err, STATUS_INPUT,
                             "'%.*s' is no key of [monitors], nor a monitor at '%.*s'%s",
                             CONFIG_SHOWN(entry->key), CONFIG_SHOWN(entry->value), suggestion.text);
        }
        return error_set(err, STATUS_INPUT,
                         "'%.*s' is not an address such as 127.0.0.1:7101 or [::1]:7101",
                         CONFIG_SHOWN(entry->value));
    }
    endpoint.host = arena_copy_string(reader->arena, host);
    if (endpoint.host == NULL) return error_memory(err);
    TRY(address_check(*list, endpoint, err));
    list->items[list->count++] = endpoint;
    return STATUS_OK;
}

static status set_endpoints(struct config_reader *reader, enum config_section section,
                            struct endpoint_list *list, struct error *err)
{
    list->items = arena_array(reader->arena, struct config_endpoint, list->limit);
    if (list->items == NULL) return error_memory(err);
    for (size_t i = 0; i < reader->entries.count; i++) {
        const struct config_entry *entry = &reader->entries.items[i];
        if (entry->section != section || entry->replaced) continue;
        if (config_is_key(section, entry->key)) continue;
        if (endpoint_add(reader, entry, list, err) == STATUS_OK) continue;
        return err->code == STATUS_MEMORY ? STATUS_MEMORY : fail_at(reader, entry, err);
    }
    return STATUS_OK;
}

struct worker_list {
    struct config_worker *items;
    uint32_t count;
};

/* NAME = host */
static status worker_add(struct config_reader *reader, const struct config_entry *entry,
                         struct worker_list *list, struct error *err)
{
    uint64_t number;
    if (!config_host_valid(entry->value) || config_count_parse(entry->value, &number)) {
        /* More likely a key that does not exist than a host that is a number. */
        struct config_suggestion suggestion = config_suggest_key(CONFIG_WORKERS, entry->key);
        return error_set(err, STATUS_INPUT,
                         "'%.*s' is no key of [workers], nor a worker on the host '%.*s'%s",
                         CONFIG_SHOWN(entry->key), CONFIG_SHOWN(entry->value), suggestion.text);
    }
    if (list->count == CONFIG_WORKERS_MAX) {
        return error_set(err, STATUS_INPUT, "more than %d workers", (int)CONFIG_WORKERS_MAX);
    }
    TRY(name_add(reader, entry->key, err));
    list->items[list->count++] =
        (struct config_worker){.name = entry->key.bytes, .host = entry->value.bytes};
    return STATUS_OK;
}

/* count = N: w1 to wN. */
static status workers_count(struct config_reader *reader, const struct config_entry *entry,
                            struct worker_list *list, struct error *err)
{
    static const struct config_count limits = {
        .name = TEXT_INIT("count"), .least = 1, .most = CONFIG_WORKERS_MAX};
    uint32_t count;
    if (list->count > 0) {
        return error_set(err, STATUS_INPUT, "give either a count of workers or their names");
    }
    TRY(config_count_read(&limits, entry->value, &count, err));
    for (uint32_t i = 1; i <= count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "w%u", i); /* Fits. */
        const char *copy = arena_copy_string(reader->arena, text_of(name));
        if (copy == NULL) return error_memory(err);
        TRY(name_add(reader, text_of(copy), err));
        list->items[list->count++] = (struct config_worker){.name = copy, .host = "127.0.0.1"};
    }
    return STATUS_OK;
}

/* How many have a role; all if nothing is said. */
static status role_count(const struct config_reader *reader, struct text key, uint32_t worker_count,
                         uint32_t *out, struct error *err)
{
    const struct config_entry *entry = entry_find(reader, CONFIG_WORKERS, key);
    *out = worker_count;
    if (entry == NULL) return STATUS_OK;
    struct config_count limits = {.name = key, .least = 1, .most = worker_count};
    if (config_count_read(&limits, entry->value, out, err) == STATUS_OK) return STATUS_OK;
    return fail_at(reader, entry, err);
}

static status set_roles(const struct config_reader *reader, struct worker_list list,
                        struct error *err)
{
    uint32_t map_count;
    uint32_t fold_count;
    TRY(role_count(reader, TEXT_LITERAL("roles.map"), list.count, &map_count, err));
    TRY(role_count(reader, TEXT_LITERAL("roles.fold"), list.count, &fold_count, err));
    if (map_count + fold_count < list.count) {
        return error_set(err, STATUS_INPUT,
                         "%.500s: of %u workers, the first %u map and the last %u fold: %u would "
                         "have nothing to do",
                         reader->entries.path, list.count, map_count, fold_count,
                         list.count - map_count - fold_count);
    }
    for (uint32_t i = 0; i < list.count; i++) {
        list.items[i].maps = i < map_count;
        list.items[i].folds = i >= list.count - fold_count;
    }
    return STATUS_OK;
}

static status set_workers(struct config_reader *reader, struct cluster_config *out,
                          struct error *err)
{
    struct worker_list list = {arena_array(reader->arena, struct config_worker, CONFIG_WORKERS_MAX),
                               0};
    if (list.items == NULL) return error_memory(err);
    for (size_t i = 0; i < reader->entries.count; i++) {
        const struct config_entry *entry = &reader->entries.items[i];
        if (entry->section != CONFIG_WORKERS || entry->replaced) continue;
        if (config_is_key(CONFIG_WORKERS, entry->key)) continue;
        if (worker_add(reader, entry, &list, err) != STATUS_OK) return fail_at(reader, entry, err);
    }
    const struct config_entry *count = entry_find(reader, CONFIG_WORKERS, TEXT_LITERAL("count"));
    if (count != NULL && workers_count(reader, count, &list, err) != STATUS_OK) {
        return err->code == STATUS_MEMORY ? STATUS_MEMORY : fail_at(reader, count, err);
    }
    if (list.count == 0) {
        return error_set(err, STATUS_INPUT, "%.500s: there are no workers: say [workers] count = 3",
                         reader->entries.path);
    }
    TRY(config_keys_set(&reader->entries, CONFIG_WORKERS, reader->arena, out, err));
    TRY(set_roles(reader, list, err));
    out->workers = list.items;
    out->worker_count = list.count;
    return STATUS_OK;
}

/* ---- monitors ---- */

/* At the line of a key of [monitors], or of the file if that has none. */
static status monitors_fail(const struct config_reader *reader, struct text key, struct error *err)
{
    const struct config_entry *entry = entry_find(reader, CONFIG_MONITORS, key);
    if (entry != NULL) return fail_at(reader, entry, err);
    return error_prefix(err, "%.500s", reader->entries.path);
}

static status check_commands(const struct config_reader *reader, const struct cluster_config *out,
                             struct error *err)
{
    bool is_command = out->driver == CONFIG_DRIVER_COMMAND;
    const struct {
        struct text key;
        const char *value;
        bool is_needed;
    } commands[] = {
        {TEXT_LITERAL("start_command"), out->start_command, true},
        {TEXT_LITERAL("kill_command"), out->kill_command, true},
        {TEXT_LITERAL("pause_command"), out->pause_command, false},
        {TEXT_LITERAL("resume_command"), out->resume_command, false},
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct text key = commands[i].key;
        if (is_command && commands[i].is_needed && commands[i].value == NULL) {
            error_write(err, STATUS_INPUT, "driver = command needs a %.*s", TEXT_ARGS(key));
            return monitors_fail(reader, TEXT_LITERAL("driver"), err);
        }
        if (!is_command && commands[i].value != NULL) {
            error_write(err, STATUS_INPUT, "%.*s is only for driver = command", TEXT_ARGS(key));
            return monitors_fail(reader, key, err);
        }
    }
    return STATUS_OK;
}

static status set_monitoring(const struct config_reader *reader, struct cluster_config *out,
                             struct error *err)
{
    TRY(config_keys_set(&reader->entries, CONFIG_MONITORS, reader->arena, out, err));
    if (out->failure_timeout_ms < 4 * out->heartbeat_period_ms) {
        bool is_said = entry_find(reader, CONFIG_MONITORS, TEXT_LITERAL("failure_timeout")) != NULL;
        error_write(
            err, STATUS_INPUT,
            "failure_timeout has to be at least four times heartbeat_period, which is %u ms",
            out->heartbeat_period_ms);
        return monitors_fail(
            reader, is_said ? TEXT_LITERAL("failure_timeout") : TEXT_LITERAL("heartbeat_period"),
            err);
    }
    if (out->docker_socket == NULL) {
        error_write(err, STATUS_INPUT, "docker_socket needs a path");
        return monitors_fail(reader, TEXT_LITERAL("docker_socket"), err);
    }
    return check_commands(reader, out, err);
}

static status set_nodes(struct config_reader *reader, struct cluster_config *out, struct error *err)
{
    struct endpoint_list gateways = {.limit = CONFIG_GATEWAYS_MAX};
    struct endpoint_list monitors = {.limit = CONFIG_MONITORS_MAX};
    TRY(set_endpoints(reader, CONFIG_GATEWAYS, &gateways, err));
    TRY(set_endpoints(reader, CONFIG_MONITORS, &monitors, err));
    TRY(set_workers(reader, out, err));
    if (gateways.count == 0) {
        return error_set(err, STATUS_INPUT,
                         "%.500s: there are no gateways: say [gateways] g1 = 127.0.0.1:7101",
                         reader->entries.path);
    }
    for (uint32_t i = 0; i < monitors.count; i++) {
        if (address_check(gateways, monitors.items[i], err) == STATUS_OK) continue;
        return fail_at(reader, entry_find(reader, CONFIG_MONITORS, text_of(monitors.items[i].name)),
                       err);
    }
    out->gateways = gateways.items;
    out->gateway_count = gateways.count;
    out->monitors = monitors.items;
    out->monitor_count = monitors.count;
    return STATUS_OK;
}

status cluster_config_parse(struct text bytes, const char *path, const char *const *environment,
                            struct arena *arena, struct cluster_config *out, struct error *err)
{
    struct config_reader *reader = arena_new(arena, struct config_reader);
    struct config_source source = {.bytes = bytes, .environment = environment};
    source.path = arena_copy_string(arena, text_of(path));
    if (reader == NULL || source.path == NULL) return error_memory(err);
    reader_init(reader, arena, &source);
    TRY(config_entries_read(&source, arena, &reader->entries, err));
    struct cluster_config config = {.path = source.path};
    TRY(set_cluster(reader, &config, err));
    TRY(set_nodes(reader, &config, err));
    TRY(set_monitoring(reader, &config, err));
    *out = config;
    return STATUS_OK;
}

status cluster_config_read(const char *path, const char *const *environment, struct arena *arena,
                           struct cluster_config *out, struct error *err)
{
    struct text bytes;
    TRY(file_read_whole(path, CONFIG_FILE_LIMIT, arena, &bytes, err));
    return cluster_config_parse(bytes, path, environment, arena, out, err);
}
