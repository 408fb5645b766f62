/* config_keys.c - the table of keys, and how each kind is read. */
#include "cluster/config/config_keys.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/file/file.h"
#include "cluster/config/config_value.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

enum config_kind {
    KIND_COUNT,
    KIND_SIZE,
    KIND_DURATION,
    KIND_CHOICE,
    KIND_FLAG, /* yes or no */
    KIND_PATH, /* Relative to the folder of the file; empty: none. */
    KIND_TEXT, /* Empty: none. */
    KIND_OWN   /* Read by a function of its own, not by this table. */
};

struct config_key {
    struct text name;
    enum config_kind kind;
    size_t
        offset; /* Of an enum, a uint32_t, for sizes a uint64_t, for flags a bool, or a string. */
    const char *preset; /* NULL: the field stays 0. */
    uint64_t least;
    uint64_t most;
    bool may_be_zero; /* Also if that is less than the least: none. */
    const struct text *choices;
    const char *default_help; /* Where the preset does not tell a person what happens without it. */
    const char *values_help;  /* Of what the kind and the range do not tell. */
};

#define FIELD(field) .offset = offsetof(struct cluster_config, field)
#define NUMBER(key, of_kind, field, text, from, to)                                                \
    .name = TEXT_INIT(key), .kind = (of_kind), FIELD(field), .preset = (text), .least = (from),    \
    .most = (to)
#define CHOICE(key, of_kind, field, text, list)                                                    \
    .name = TEXT_INIT(key), .kind = (of_kind), FIELD(field), .preset = (text), .choices = (list)
#define STRING(key, of_kind, field, text)                                                          \
    .name = TEXT_INIT(key), .kind = (of_kind), FIELD(field), .preset = (text)
#define OWN(key, preset_of_own, values)                                                            \
    .name = TEXT_INIT(key), .kind = KIND_OWN, .default_help = (preset_of_own),                     \
    .values_help = (values)

static const struct text queue_choices[] = {TEXT_INIT("transient"), TEXT_INIT("quorum"), {NULL, 0}};
static const struct text level_choices[] = {
    TEXT_INIT("error"), TEXT_INIT("warn"), TEXT_INIT("info"), TEXT_INIT("debug"), {NULL, 0}};
static const struct text flag_choices[] = {TEXT_INIT("no"), TEXT_INIT("yes"), {NULL, 0}};
static const struct text driver_choices[] = {
    TEXT_INIT("process"), TEXT_INIT("docker"), TEXT_INIT("command"), {NULL, 0}};

static const struct config_key cluster_keys[] = {
    {OWN("name", "millrace", "letters, digits, . _ -")},
    {OWN("broker", "start", "start, or amqp:// and amqps:// URIs")},
    {OWN("data_dir", "NAME-cluster", "folder")},
    {STRING("key_file", KIND_PATH, key_file, ""), .default_help = "data_dir/key"},
    {OWN("token", "none", "text")},
    {STRING("token_file", KIND_PATH, token_file, "")},
    {CHOICE("insecure", KIND_FLAG, is_insecure, "no", flag_choices)},
    {STRING("tls_certificate", KIND_PATH, tls_certificate, "")},
    {STRING("tls_key", KIND_PATH, tls_key, "")},
    {STRING("broker_host", KIND_TEXT, broker_host, ""), .default_help = "loopback"},
    {STRING("broker_ca", KIND_PATH, broker_ca, ""), .default_help = "system"},
    {STRING("broker_certificate", KIND_PATH, broker_certificate, "")},
    {STRING("broker_key", KIND_PATH, broker_key, "")},
    {STRING("sentiment_model", KIND_PATH, sentiment_model, ""), .default_help = "built in"},
    {CHOICE("queues", KIND_CHOICE, queues, "transient", queue_choices)},
    {NUMBER("work_queues", KIND_COUNT, work_queues, "2", 1, 16)},
    {NUMBER("max_jobs", KIND_COUNT, max_jobs, "8", 1, 1000)},
    {NUMBER("chunk_size", KIND_SIZE, chunk_size, "4M", 4 * KIB, 16 * MIB)},
    {NUMBER("window", KIND_COUNT, window, "32", 1, 65536)},
    {NUMBER("broadcast_limit", KIND_SIZE, broadcast_limit, "256M", 1, 1024 * GIB),
     .may_be_zero = true},
    {NUMBER("max_message", KIND_SIZE, max_message, "64M", MIB, 120 * MIB)},
    {NUMBER("memory_limit", KIND_SIZE, memory_limit, "0", MIB, 65536 * GIB), .may_be_zero = true},
    {NUMBER("log_limit", KIND_SIZE, log_limit, "4G", MIB, 65536 * GIB), .may_be_zero = true},
    {NUMBER("client_timeout", KIND_DURATION, client_timeout_ms, "60", 1000, 86400000)},
    {NUMBER("sync_period", KIND_DURATION, sync_period_ms, "250ms", 10, 60000)},
    {NUMBER("node_timeout", KIND_DURATION, node_timeout_ms, "300", 1000, 86400000)},
    {NUMBER("ready_timeout", KIND_DURATION, ready_timeout_ms, "120", 1000, 86400000)},
    {NUMBER("http_body_limit", KIND_SIZE, http_body_limit, "64M", 64 * KIB, GIB)},
    {NUMBER("http_connections", KIND_COUNT, http_connections, "256", 4, 65536)},
    {NUMBER("http_connections_per_address", KIND_COUNT, http_connections_per_address, NULL, 1,
            65536),
     .default_help = "half of http_connections; all on loopback"},
    {NUMBER("http_timeout", KIND_DURATION, http_timeout_ms, "120", 1000, 86400000)},
    {CHOICE("log_level", KIND_CHOICE, log_level, "info", level_choices)},
};

static const struct config_key worker_keys[] = {
    {OWN("count", "none", "1 to 256")},
    {OWN("roles.map", "all", "1 to the number of workers")},
    {OWN("roles.fold", "all", "1 to the number of workers")},
    {NUMBER("threads", KIND_COUNT, worker_threads, "1", 1, 64)},
};

static const struct config_key monitor_keys[] = {
    {NUMBER("heartbeat_period", KIND_DURATION, heartbeat_period_ms, "250ms", 50, 2000)},
    {NUMBER("failure_timeout", KIND_DURATION, failure_timeout_ms, "2", 200, 3600000)},
    {NUMBER("stall_timeout", KIND_DURATION, stall_timeout_ms, "30", 1000, 86400000)},
    {NUMBER("lease", KIND_DURATION, lease_ms, "2", 400, 3600000)},
    {NUMBER("start_timeout", KIND_DURATION, start_timeout_ms, "10", 1000, 3600000)},
    {CHOICE("driver", KIND_CHOICE, driver, "process", driver_choices)},
    {STRING("start_command", KIND_TEXT, start_command, "")},
    {STRING("kill_command", KIND_TEXT, kill_command, "")},
    {STRING("pause_command", KIND_TEXT, pause_command, "")},
    {STRING("resume_command", KIND_TEXT, resume_command, "")},
    {NUMBER("driver_timeout", KIND_DURATION, driver_timeout_ms, "60", 1000, 3600000)},
    {STRING("docker_socket", KIND_PATH, docker_socket, "/var/run/docker.sock")},
};

_Static_assert(sizeof cluster_keys / sizeof cluster_keys[0] <= CONFIG_KEYS_MAX, "they have room");
_Static_assert((int)CONFIG_WORKERS_MAX == 256, "as `count` says");

struct key_list {
    const struct config_key *keys;
    uint32_t count;
};
#define LIST(keys) ((struct key_list){(keys), sizeof(keys) / sizeof(keys)[0]})

static struct key_list section_keys(enum config_section section)
{
    switch (section) {
    case CONFIG_CLUSTER:
        return LIST(cluster_keys);
    case CONFIG_WORKERS:
        return LIST(worker_keys);
    case CONFIG_MONITORS:
        return LIST(monitor_keys);
    default:
        return (struct key_list){NULL, 0};
    }
}

void config_key_names(struct config_key_names *out)
{
    for (uint32_t section = 0; section < CONFIG_SECTIONS; section++) {
        struct key_list list = section_keys((enum config_section)section);
        out->counts[section] = list.count;
        for (uint32_t i = 0; i < list.count; i++) {
            out->items[section][i] = list.keys[i].name;
        }
    }
}

bool config_is_key(enum config_section section, struct text name)
{
    struct key_list list = section_keys(section);
    for (uint32_t i = 0; i < list.count; i++) {
        if (text_equal(name, list.keys[i].name)) return true;
    }
    return false;
}

struct config_suggestion config_suggest_key(enum config_section section, struct text wanted)
{
    struct text names[CONFIG_KEYS_MAX];
    struct key_list list = section_keys(section);
    for (uint32_t i = 0; i < list.count; i++) {
        names[i] = list.keys[i].name;
    }
    return config_suggest(wanted, names, list.count);
}

/* ---- values ---- */

/* A limit as it would be written. */
static void show_limit(enum config_kind kind, uint64_t value, char out[24])
{
    const char *unit = kind == KIND_DURATION ? "ms" : "";
    if (kind == KIND_DURATION && value % 1000 == 0) {
        value /= 1000;
        unit = "s";
    }
    static const char *const units[] = {"", "K", "M", "G"};
    for (int i = 0; kind == KIND_SIZE && i < 4 && (i == 0 || value % KIB == 0); i++) {
        if (i > 0) value /= KIB;
        unit = units[i];
    }
    (void)snprintf(out, 24, "%llu%s", (unsigned long long)value, unit); /* Fits. */
}

/* "transient, quorum" */
static void put_choices(const struct config_key *key, struct buf *out)
{
    for (uint32_t i = 0; key->choices[i].bytes != NULL; i++) {
        buf_format(out, "%s%.*s", i == 0 ? "" : ", ", TEXT_ARGS(key->choices[i]));
    }
}

static void put_values(const struct config_key *key, struct buf *out)
{
    char least[24];
    char most[24];
    if (key->values_help != NULL) {
        buf_put_string(out, key->values_help);
    } else if (key->kind <= KIND_DURATION) {
        show_limit(key->kind, key->least, least);
        show_limit(key->kind, key->most, most);
        buf_format(out, "%s to %s%s", least, most, key->may_be_zero ? ", or 0: no limit" : "");
    } else if (key->choices != NULL) {
        put_choices(key, out);
    } else {
        buf_put_string(out, key->kind == KIND_PATH ? "file" : "text");
    }
}

void config_keys_put(struct buf *out)
{
    static const char *const sections[CONFIG_SECTIONS] = {
        [CONFIG_CLUSTER] = "cluster", [CONFIG_WORKERS] = "workers", [CONFIG_MONITORS] = "monitors"};
    for (uint32_t section = 0; section < CONFIG_SECTIONS; section++) {
        struct key_list list = section_keys((enum config_section)section);
        for (uint32_t i = 0; i < list.count; i++) {
            const struct config_key *key = &list.keys[i];
            const char *preset = key->default_help != NULL ? key->default_help : key->preset;
            char name[64];
            (void)snprintf(name, sizeof name, "%s.%.*s", sections[section],
                           TEXT_ARGS(key->name)); /* Names are short. */
            buf_format(out, "%-36s  %-41s  ", name, preset[0] == '\0' ? "none" : preset);
            put_values(key, out);
            buf_put_string(out, "\n");
        }
    }
}

static status parse_number(const struct config_key *key, struct text text, uint64_t *out,
                           struct error *err)
{
    static const char *const kinds[] = {"a number", "a size such as 512K, 64M or 4G",
                                        "a duration such as 60, 250ms or 5m"};
    static bool (*const readers[])(struct text, uint64_t *) = {
        config_count_parse, config_size_parse, config_duration_parse};
    uint64_t value;
    ASSERT(key->kind <= KIND_DURATION);
    if (!readers[key->kind](text, &value)) {
        return error_set(err, STATUS_INPUT, "%.*s: '%.*s' is not %s", TEXT_ARGS(key->name),
                         CONFIG_SHOWN(text), kinds[key->kind]);
    }
    bool is_none = key->may_be_zero && value == 0;
    if (!is_none && (value < key->least || value > key->most)) {
        char least[24];
        char most[24];
        show_limit(key->kind, key->least, least);
        show_limit(key->kind, key->most, most);
        return error_set(err, STATUS_INPUT, "%.*s: %.*s is not within %s to %s%s",
                         TEXT_ARGS(key->name), CONFIG_SHOWN(text), least, most,
                         key->may_be_zero ? ", or 0 for none" : "");
    }
    *out = value;
    return STATUS_OK;
}

static status choice_fail(const struct config_key *key, struct text text, uint32_t count,
                          struct error *err)
{
    struct config_suggestion suggestion = config_suggest(text, key->choices, count);
    if (suggestion.text[0] != '\0') {
        return error_set(err, STATUS_INPUT, "%.*s can't be '%.*s'%s", TEXT_ARGS(key->name),
                         CONFIG_SHOWN(text), suggestion.text);
    }
    char list[96] = "";
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(list);
        const char *before = i == 0 ? "" : i + 1 == count ? " or " : ", ";
        (void)snprintf(list + used, sizeof list - used, "%s%.*s", before,
                       TEXT_ARGS(key->choices[i])); /* Choices are few and short. */
    }
    return error_set(err, STATUS_INPUT, "%.*s can't be '%.*s'; it is %s", TEXT_ARGS(key->name),
                     CONFIG_SHOWN(text), list);
}

static status parse_choice(const struct config_key *key, struct text text, uint32_t *out,
                           struct error *err)
{
    uint32_t count = 0;
    for (; key->choices[count].bytes != NULL; count++) {
        if (!text_equal(text, key->choices[count])) continue;
        *out = count;
        return STATUS_OK;
    }
    return choice_fail(key, text, count, err);
}

/* NULL for an empty one. */
static status parse_string(const struct config_entries *entries, const struct config_key *key,
                           struct text text, struct arena *arena, const char **out,
                           struct error *err)
{
    const char *string = NULL;
    if (text.size > 0) {
        string = key->kind == KIND_PATH ? config_path(entries, text, arena)
                                        : arena_copy_string(arena, text);
        if (string == NULL) return error_memory(err);
    }
    *out = string;
    return STATUS_OK;
}

_Static_assert(sizeof(enum config_queues) == 4 && sizeof(enum config_log_level) == 4 &&
                   sizeof(enum config_driver) == 4,
               "choices are stored as 32 bits");

static status set_key(const struct config_entries *entries, const struct config_key *key,
                      struct text text, struct arena *arena, struct cluster_config *out,
                      struct error *err)
{
    char *field = (char *)out + key->offset;
    uint64_t number = 0;
    uint32_t narrow = 0;
    const char *string = NULL;
    switch (key->kind) {
    case KIND_COUNT:
    case KIND_DURATION:
        TRY(parse_number(key, text, &number, err));
        narrow = (uint32_t)number;
        memcpy(field, &narrow, sizeof narrow);
        break;
    case KIND_SIZE:
        TRY(parse_number(key, text, &number, err));
        memcpy(field, &number, sizeof number);
        break;
    case KIND_CHOICE:
        TRY(parse_choice(key, text, &narrow, err));
        memcpy(field, &narrow, sizeof narrow);
        break;
    case KIND_FLAG:
        TRY(parse_choice(key, text, &narrow, err));
        *(bool *)field = narrow != 0;
        break;
    case KIND_PATH:
    case KIND_TEXT:
        TRY(parse_string(entries, key, text, arena, &string, err));
        memcpy(field, &string, sizeof string);
        break;
    case KIND_OWN:
        break;
    }
    return STATUS_OK;
}

status config_keys_set(const struct config_entries *entries, enum config_section section,
                       struct arena *arena, struct cluster_config *out, struct error *err)
{
    struct key_list list = section_keys(section);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct config_key *key = &list.keys[i];
        if (key->kind == KIND_OWN) continue;
        const struct config_entry *entry = config_entries_find(entries, section, key->name);
        if (entry == NULL && key->preset == NULL) continue;
        struct text text = entry == NULL ? text_of(key->preset) : entry->value;
        if (set_key(entries, key, text, arena, out, err) == STATUS_OK) continue;
        if (err->code == STATUS_MEMORY) return STATUS_MEMORY;
        ASSERT(entry != NULL); /* What we preset is right. */
        return config_entry_fail(entries, entry, err);
    }
    return STATUS_OK;
}

status config_count_read(const struct config_count *count, struct text text, uint32_t *out,
                         struct error *err)
{
    const struct config_key key = {
        .name = count->name, .kind = KIND_COUNT, .least = count->least, .most = count->most};
    uint64_t number = 0;
    TRY(parse_number(&key, text, &number, err));
    *out = (uint32_t)number;
    return STATUS_OK;
}

const char *config_path(const struct config_entries *entries, struct text path, struct arena *arena)
{
    while (path.size > 2 && path.bytes[0] == '.' && path.bytes[1] == '/') {
        path = (struct text){path.bytes + 2, path.size - 2};
    }
    const char *slash = strrchr(entries->path, '/');
    if (slash == NULL) return arena_copy_string(arena, path);
    struct text base = {entries->path, (uint32_t)(slash - entries->path)};
    const char *folder = arena_copy_string(arena, base);
    return folder == NULL ? NULL : file_path(folder, path, arena);
}
