/* SPDX-License-Identifier: Apache-2.0 */
/* config_keys.c - the table of keys, and how each kind of value is read. */
#include "cluster/config/config_keys.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/file/file.h"
#include "cluster/config/config_value.h"
#include "cluster/wire/manifest.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

enum config_kind {
    KIND_COUNT,    /* uint32_t */
    KIND_DURATION, /* uint32_t, in milliseconds */
    KIND_SIZE,     /* uint64_t */
    KIND_CHOICE,   /* An enum of 32 bits, in the order of `choices`. */
    KIND_FLAG,     /* bool: yes or no */
    KIND_PATH,     /* A string, relative to the folder of the file; NULL: empty. */
    KIND_TEXT,     /* A string; NULL: empty. */
    KIND_NAME,     /* A string that may be part of the names of queues and files. */
    KIND_TOKEN,    /* A string that an HTTP header can carry, and no message shows. */
    KIND_BROKERS   /* The list of brokers, which several lines may make. */
};

struct config_key {
    enum config_section section;
    struct text name;
    enum config_kind kind;
    size_t offset;      /* Of the field. */
    const char *preset; /* NULL: the field stays 0, which cluster_config.c may replace. */
    uint64_t least;
    uint64_t most;
    bool may_be_zero;   /* 0 is "no limit", also where the least is more. */
    bool must_be_given; /* An empty value is refused. */
    const char *choices[5];
    const char *default_help; /* Where the preset does not tell a person what happens without it. */
    const char *values_help;  /* Where kind and range do not tell. */
};

#define KEY(in, of_name, of_kind, field, text)                                                     \
    .section = CONFIG_##in, .name = TEXT_INIT(of_name), .kind = KIND_##of_kind,                    \
    .offset = offsetof(struct cluster_config, field), .preset = (text)

static const struct config_key keys[] = {
    {KEY(CLUSTER, "name", NAME, name, "millrace"), .values_help = "letters, digits, . _ -"},
    {KEY(CLUSTER, "broker", BROKERS, brokers, NULL), .default_help = "start",
     .values_help = "start, or amqp:// and amqps:// URIs"},
    {KEY(CLUSTER, "data_dir", PATH, data_dir, NULL), .must_be_given = true,
     .default_help = "NAME-cluster", .values_help = "a folder"},
    {KEY(CLUSTER, "key_file", PATH, key_file, ""), .default_help = "data_dir/key"},
    {KEY(CLUSTER, "token", TOKEN, token, ""), .values_help = "visible ASCII characters"},
    {KEY(CLUSTER, "token_file", PATH, token_file, "")},
    {KEY(CLUSTER, "insecure", FLAG, is_insecure, "no"), .choices = {"no", "yes"}},
    {KEY(CLUSTER, "tls_certificate", PATH, tls_certificate, "")},
    {KEY(CLUSTER, "tls_key", PATH, tls_key, "")},
    {KEY(CLUSTER, "broker_host", TEXT, broker_host, ""), .default_help = "loopback"},
    {KEY(CLUSTER, "broker_ca", PATH, broker_ca, ""), .default_help = "system"},
    {KEY(CLUSTER, "broker_certificate", PATH, broker_certificate, "")},
    {KEY(CLUSTER, "broker_key", PATH, broker_key, "")},
    {KEY(CLUSTER, "sentiment_model", PATH, sentiment_model, ""), .default_help = "built in"},
    {KEY(CLUSTER, "queues", CHOICE, queues, "transient"), .choices = {"transient", "quorum"}},
    {KEY(CLUSTER, "work_queues", COUNT, work_queues, "2"), .least = 1, .most = 16},
    {KEY(CLUSTER, "max_jobs", COUNT, max_jobs, "8"), .least = 1, .most = 1000},
    {KEY(CLUSTER, "chunk_size", SIZE, chunk_size, "4M"), .least = 4 * KIB, .most = 16 * MIB},
    {KEY(CLUSTER, "window", COUNT, window, "32"), .least = 1, .most = 65536},
    {KEY(CLUSTER, "broadcast_limit", SIZE, broadcast_limit, "256M"), .least = 1, .most = 1024 * GIB,
     .may_be_zero = true},
    {KEY(CLUSTER, "max_message", SIZE, max_message, "64M"), .least = MIB, .most = 120 * MIB},
    {KEY(CLUSTER, "memory_limit", SIZE, memory_limit, "0"), .least = MIB, .most = 65536 * GIB,
     .may_be_zero = true},
    {KEY(CLUSTER, "log_limit", SIZE, log_limit, "4G"), .least = MIB, .most = 65536 * GIB,
     .may_be_zero = true},
    {KEY(CLUSTER, "client_timeout", DURATION, client_timeout_ms, "60"), .least = 1000,
     .most = 86400000},
    {KEY(CLUSTER, "sync_period", DURATION, sync_period_ms, "250ms"), .least = 10, .most = 60000},
    {KEY(CLUSTER, "node_timeout", DURATION, node_timeout_ms, "300"), .least = 1000,
     .most = 86400000},
    {KEY(CLUSTER, "ready_timeout", DURATION, ready_timeout_ms, "120"), .least = 1000,
     .most = 86400000},
    {KEY(CLUSTER, "http_body_limit", SIZE, http_body_limit, "64M"), .least = 64 * KIB, .most = GIB},
    {KEY(CLUSTER, "http_connections", COUNT, http_connections, "256"), .least = 4, .most = 65536},
    {KEY(CLUSTER, "http_connections_per_address", COUNT, http_connections_per_address, NULL),
     .least = 1, .most = 65536, .default_help = "half of http_connections; all on loopback"},
    {KEY(CLUSTER, "http_timeout", DURATION, http_timeout_ms, "120"), .least = 1000,
     .most = 86400000},
    {KEY(CLUSTER, "log_level", CHOICE, log_level, "info"),
     .choices = {"error", "warn", "info", "debug"}},
    {KEY(WORKERS, "count", COUNT, worker_count, NULL), .least = 1, .most = CONFIG_WORKERS_MAX},
    {KEY(WORKERS, "roles.map", COUNT, map_count, NULL), .least = 1, .most = CONFIG_WORKERS_MAX,
     .default_help = "all", .values_help = "1 to the number of workers"},
    {KEY(WORKERS, "roles.fold", COUNT, fold_count, NULL), .least = 1, .most = CONFIG_WORKERS_MAX,
     .default_help = "all", .values_help = "1 to the number of workers"},
    {KEY(WORKERS, "threads", COUNT, worker_threads, "1"), .least = 1, .most = 64},
    {KEY(MONITORS, "heartbeat_period", DURATION, heartbeat_period_ms, "250ms"), .least = 50,
     .most = 2000},
    {KEY(MONITORS, "failure_timeout", DURATION, failure_timeout_ms, "2"), .least = 200,
     .most = 3600000},
    {KEY(MONITORS, "stall_timeout", DURATION, stall_timeout_ms, "30"), .least = 1000,
     .most = 86400000},
    {KEY(MONITORS, "lease", DURATION, lease_ms, "2"), .least = 400, .most = 3600000},
    {KEY(MONITORS, "start_timeout", DURATION, start_timeout_ms, "10"), .least = 1000,
     .most = 3600000},
    {KEY(MONITORS, "driver", CHOICE, driver, "process"),
     .choices = {"process", "docker", "command"}},
    {KEY(MONITORS, "start_command", TEXT, start_command, "")},
    {KEY(MONITORS, "kill_command", TEXT, kill_command, "")},
    {KEY(MONITORS, "pause_command", TEXT, pause_command, "")},
    {KEY(MONITORS, "resume_command", TEXT, resume_command, "")},
    {KEY(MONITORS, "driver_timeout", DURATION, driver_timeout_ms, "60"), .least = 1000,
     .most = 3600000},
    {KEY(MONITORS, "docker_socket", PATH, docker_socket, "/var/run/docker.sock"),
     .must_be_given = true},
};

enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

_Static_assert(sizeof(enum config_queues) == 4 && sizeof(enum config_log_level) == 4 &&
                   sizeof(enum config_driver) == 4,
               "choices are stored as 32 bits");

const struct text config_section_names[CONFIG_SECTIONS] = {
    [CONFIG_CLUSTER] = TEXT_INIT("cluster"),
    [CONFIG_GATEWAYS] = TEXT_INIT("gateways"),
    [CONFIG_WORKERS] = TEXT_INIT("workers"),
    [CONFIG_MONITORS] = TEXT_INIT("monitors"),
};

/* ---- names ---- */

/* A name in the environment is in capitals, with _ for what a shell does not allow. */
static char variable_byte(char byte)
{
    if (byte >= 'a' && byte <= 'z') return (char)(byte - 'a' + 'A');
    return byte == '.' || byte == '-' ? '_' : byte;
}

bool config_spells(struct text variable, struct text name)
{
    if (variable.size != name.size) return false;
    for (uint32_t i = 0; i < name.size; i++) {
        if (variable.bytes[i] != variable_byte(name.bytes[i])) return false;
    }
    return true;
}

const struct config_key *config_key_find(enum config_section section, struct text name)
{
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].section == section && text_equal(name, keys[i].name)) return &keys[i];
    }
    return NULL;
}

bool config_key_of_variable(enum config_section section, struct text variable, struct text *out)
{
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].section != section || !config_spells(variable, keys[i].name)) continue;
        *out = keys[i].name;
        return true;
    }
    return false;
}

struct config_suggestion config_suggest(struct text wanted, const struct text *candidates,
                                        size_t count)
{
    struct config_suggestion suggestion = {""};
    const struct text *nearest = text_nearest(wanted, candidates, count);
    if (nearest != NULL) {
        (void)snprintf(suggestion.text, sizeof suggestion.text, "; did you mean %.*s?",
                       TEXT_ARGS(*nearest)); /* Candidates are short. */
    }
    return suggestion;
}

struct config_suggestion config_suggest_key(enum config_section section, struct text wanted)
{
    struct text names[KEY_COUNT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].section == section) names[count++] = keys[i].name;
    }
    return config_suggest(wanted, names, count);
}

/* ---- what is allowed ---- */

/* A limit as a user would write it. */
static void put_limit(const struct config_key *key, uint64_t value, struct buf *out)
{
    const char *unit = key->kind == KIND_DURATION ? "ms" : "";
    if (key->kind == KIND_DURATION && value % 1000 == 0) {
        value /= 1000;
        unit = "s";
    }
    static const char *const units[] = {"K", "M", "G"};
    for (int i = 0; key->kind == KIND_SIZE && i < 3 && value % KIB == 0; i++) {
        value /= KIB;
        unit = units[i];
    }
    buf_format(out, "%llu%s", (unsigned long long)value, unit);
}

static uint32_t choice_count(const struct config_key *key)
{
    uint32_t count = 0;
    while (key->choices[count] != NULL) {
        count++;
    }
    return count;
}

/* "1 to 16", "error, warn, info or debug": in messages and in the reference. */
static void put_values(const struct config_key *key, struct buf *out)
{
    uint32_t choices = choice_count(key);
    for (uint32_t i = 0; i < choices; i++) {
        buf_format(out, "%s%s", i == 0 ? "" : i + 1 == choices ? " or " : ", ", key->choices[i]);
    }
    if (key->values_help != NULL) {
        buf_put_string(out, key->values_help);
    } else if (key->most > 0) {
        put_limit(key, key->least, out);
        buf_put_string(out, " to ");
        put_limit(key, key->most, out);
        if (key->may_be_zero) buf_put_string(out, ", or 0 for no limit");
    } else if (choices == 0) {
        buf_put_string(out, key->kind == KIND_PATH ? "a file" : "text");
    }
}

void config_keys_put(struct buf *out)
{
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        const struct config_key *key = &keys[i];
        const char *preset = key->default_help != NULL ? key->default_help : key->preset;
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s.%.*s",
                       TEXT_ARGS(config_section_names[key->section]),
                       TEXT_ARGS(key->name)); /* Names are short. */
        buf_format(out, "%-36s  %-41s  ", name,
                   preset == NULL || preset[0] == '\0' ? "none" : preset);
        put_values(key, out);
        buf_put_string(out, "\n");
    }
}

/* "work_queues must be 1 to 16, got 64" */
static status value_fail(const struct config_key *key, struct text value, struct error *err)
{
    struct text choices[sizeof key->choices / sizeof key->choices[0]];
    uint32_t count = choice_count(key);
    for (uint32_t i = 0; i < count; i++) {
        choices[i] = text_of(key->choices[i]);
    }
    struct config_suggestion suggestion = config_suggest(value, choices, count);
    struct text shown = value.size == 0 ? TEXT_LITERAL("nothing") : value;
    if (key->kind == KIND_TOKEN) shown = TEXT_LITERAL("others"); /* Secrets stay out of messages. */
    struct buf allowed = {0};
    put_values(key, &allowed);
    error_write(err, STATUS_INPUT, "%.*s must be %.*s, got %.*s%s", TEXT_ARGS(key->name),
                (int)allowed.size, (const char *)allowed.bytes, CONFIG_SHOWN(shown),
                suggestion.text);
    status result = allowed.failed ? error_memory(err) : STATUS_INPUT;
    buf_done(&allowed);
    return result;
}

/* ---- reading ---- */

static bool read_number(const struct config_key *key, struct text value, uint64_t *out)
{
    static bool (*const parsers[])(struct text, uint64_t *) = {
        [KIND_COUNT] = config_count_parse,
        [KIND_DURATION] = config_duration_parse,
        [KIND_SIZE] = config_size_parse,
    };
    uint64_t number;
    if (!parsers[key->kind](value, &number)) return false;
    bool is_within = number >= key->least && number <= key->most;
    if (!is_within && !(key->may_be_zero && number == 0)) return false;
    *out = number;
    return true;
}

static bool read_choice(const struct config_key *key, struct text value, uint64_t *out)
{
    for (uint32_t i = 0; key->choices[i] != NULL; i++) {
        if (!text_equal(value, text_of(key->choices[i]))) continue;
        *out = i;
        return true;
    }
    return false;
}

static bool is_string_valid(const struct config_key *key, struct text value)
{
    if (key->kind == KIND_NAME) return manifest_name_valid(value);
    for (uint32_t i = 0; key->kind == KIND_TOKEN && i < value.size; i++) {
        if (value.bytes[i] <= ' ' || value.bytes[i] > '~') return false;
    }
    return value.size > 0 || !key->must_be_given;
}

static bool is_uri(struct text text)
{
    static const struct text schemes[] = {TEXT_INIT("amqp://"), TEXT_INIT("amqps://")};
    for (int i = 0; i < 2; i++) {
        if (text.size > schemes[i].size &&
            memcmp(text.bytes, schemes[i].bytes, schemes[i].size) == 0) {
            return true;
        }
    }
    return false;
}

static status broker_add(const struct config_key *key, struct text uri, struct arena *arena,
                         struct cluster_config *out, struct error *err)
{
    bool is_start = text_equal(uri, TEXT_LITERAL("start"));
    if (out->starts_broker || (is_start && out->broker_count > 0)) {
        return error_set(err, STATUS_INPUT, "broker must be start alone, or URIs without start");
    }
    if (is_start) {
        out->starts_broker = true;
        return STATUS_OK;
    }
    if (!is_uri(uri)) return value_fail(key, uri, err);
    if (out->broker_count == CONFIG_BROKERS_MAX) {
        return error_set(err, STATUS_INPUT, "broker must be at most %d URIs",
                         (int)CONFIG_BROKERS_MAX);
    }
    if (out->brokers == NULL) out->brokers = arena_array(arena, const char *, CONFIG_BROKERS_MAX);
    const char *copy = arena_copy_string(arena, uri);
    if (out->brokers == NULL || copy == NULL) return error_memory(err);
    out->brokers[out->broker_count++] = copy;
    return STATUS_OK;
}

static status read_brokers(const struct config_key *key, struct text value, struct arena *arena,
                           struct cluster_config *out, struct error *err)
{
    struct text left = config_trim(value);
    if (left.size == 0) return value_fail(key, left, err);
    while (left.size > 0) {
        uint32_t size = 0;
        while (size < left.size && left.bytes[size] != ' ' && left.bytes[size] != '\t') {
            size++;
        }
        TRY(broker_add(key, (struct text){left.bytes, size}, arena, out, err));
        left = config_trim((struct text){left.bytes + size, left.size - size});
    }
    return STATUS_OK;
}

const char *config_path(const char *file, struct text path, struct arena *arena)
{
    while (path.size > 2 && path.bytes[0] == '.' && path.bytes[1] == '/') {
        path = (struct text){path.bytes + 2, path.size - 2};
    }
    const char *slash = strrchr(file, '/');
    if (slash == NULL) return arena_copy_string(arena, path);
    const char *folder = arena_copy_string(arena, (struct text){file, (uint32_t)(slash - file)});
    return folder == NULL ? NULL : file_path(folder, path, arena);
}

status config_key_read(const struct config_key *key, struct text value, struct arena *arena,
                       struct cluster_config *out, struct error *err)
{
    char *field = (char *)out + key->offset;
    const char *string = value.size > 0 ? value.bytes : NULL;
    uint64_t number = 0;
    bool is_valid = true;
    switch (key->kind) {
    case KIND_COUNT:
    case KIND_DURATION:
    case KIND_SIZE:
        is_valid = read_number(key, value, &number);
        break;
    case KIND_CHOICE:
    case KIND_FLAG:
        is_valid = read_choice(key, value, &number);
        break;
    case KIND_BROKERS:
        return read_brokers(key, value, arena, out, err);
    default:
        is_valid = is_string_valid(key, value);
        break;
    }
    if (!is_valid) return value_fail(key, value, err);
    if (key->kind == KIND_PATH && string != NULL) {
        string = config_path(out->path, value, arena);
        if (string == NULL) return error_memory(err);
    }
    uint32_t narrow = (uint32_t)number; /* No table entry allows more, but of sizes. */
    bool flag = number != 0;
    if (key->kind == KIND_SIZE) {
        memcpy(field, &number, sizeof number);
    } else if (key->kind == KIND_FLAG) {
        memcpy(field, &flag, sizeof flag);
    } else if (key->kind <= KIND_CHOICE) {
        memcpy(field, &narrow, sizeof narrow);
    } else {
        memcpy(field, &string, sizeof string);
    }
    return STATUS_OK;
}

status config_keys_set_defaults(struct arena *arena, struct cluster_config *out, struct error *err)
{
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].preset == NULL) continue;
        status result = config_key_read(&keys[i], text_of(keys[i].preset), arena, out, err);
        if (result != STATUS_OK) {
            ASSERT(result == STATUS_MEMORY); /* Defaults are valid. */
            return result;
        }
    }
    return STATUS_OK;
}
