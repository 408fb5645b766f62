/* cluster_config.c - what the entries of a cluster file mean.
 *
 * Most keys are rows of a table: kind, field, preset, range. Presets are texts that go the way of
 * all values, so what is documented is what is read.
 */
#include "node/cluster_config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "io/file.h"
#include "node/config_entries.h"
#include "node/config_value.h"
#include "wire/manifest.h"

_Static_assert((int)CONFIG_WORKERS_MAX == (int)MANIFEST_WORKERS_MAX, "every worker may get a job");

enum { NAMES_MAX = CONFIG_GATEWAYS_MAX + CONFIG_WORKERS_MAX + CONFIG_MONITORS_MAX };

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

enum config_kind { KIND_COUNT, KIND_SIZE, KIND_DURATION, KIND_CHOICE, KIND_OWN };

struct config_key {
    struct text name;
    enum config_kind kind; /* KIND_OWN: read by a function of its own, not by this table. */
    size_t offset;         /* Of an enum, a uint32_t, or for sizes a uint64_t. */
    const char *preset;
    uint64_t least;
    uint64_t most;
    bool may_be_zero; /* Also if that is less than the least: none. */
    const struct text *choices;
};

#define NUMBER(key, of_kind, field, text, from, to)                                                \
    .name = TEXT_INIT(key), .kind = (of_kind), .offset = offsetof(struct cluster_config, field),   \
    .preset = (text), .least = (from), .most = (to)
#define CHOICE(key, field, text, list)                                                             \
    .name = TEXT_INIT(key), .kind = KIND_CHOICE, .offset = offsetof(struct cluster_config, field), \
    .preset = (text), .choices = (list)

static const struct text queue_choices[] = {TEXT_INIT("transient"), TEXT_INIT("quorum"), {NULL, 0}};
static const struct text level_choices[] = {
    TEXT_INIT("error"), TEXT_INIT("warn"), TEXT_INIT("info"), TEXT_INIT("debug"), {NULL, 0}};

static const struct config_key cluster_keys[] = {
    {.name = TEXT_INIT("name"), .kind = KIND_OWN},
    {.name = TEXT_INIT("broker"), .kind = KIND_OWN},
    {.name = TEXT_INIT("data_dir"), .kind = KIND_OWN},
    {.name = TEXT_INIT("token"), .kind = KIND_OWN},
    {CHOICE("queues", queues, "transient", queue_choices)},
    {NUMBER("work_queues", KIND_COUNT, work_queues, "2", 1, 16)},
    {NUMBER("max_jobs", KIND_COUNT, max_jobs, "8", 1, 1000)},
    {NUMBER("chunk_size", KIND_SIZE, chunk_size, "512K", 4 * KIB, 16 * MIB)},
    {NUMBER("window", KIND_COUNT, window, "64", 1, 65536)},
    {NUMBER("side_table_limit", KIND_SIZE, side_table_limit, "256M", 1, 1024 * GIB),
     .may_be_zero = true},
    {NUMBER("max_message", KIND_SIZE, max_message, "64M", MIB, 120 * MIB)},
    {NUMBER("memory_limit", KIND_SIZE, memory_limit, "0", MIB, 65536 * GIB), .may_be_zero = true},
    {NUMBER("log_limit", KIND_SIZE, log_limit, "4G", MIB, 65536 * GIB), .may_be_zero = true},
    {NUMBER("client_timeout", KIND_DURATION, client_timeout_ms, "60", 1000, 86400000)},
    {NUMBER("sync_period", KIND_DURATION, sync_period_ms, "250ms", 10, 60000)},
    {NUMBER("node_timeout", KIND_DURATION, node_timeout_ms, "300", 1000, 86400000)},
    {NUMBER("http_body_limit", KIND_SIZE, http_body_limit, "64M", 64 * KIB, GIB)},
    {NUMBER("http_connections", KIND_COUNT, http_connections, "256", 4, 65536)},
    {NUMBER("http_timeout", KIND_DURATION, http_timeout_ms, "120", 1000, 86400000)},
    {CHOICE("log_level", log_level, "info", level_choices)},
};

static const struct config_key worker_keys[] = {
    {.name = TEXT_INIT("count"), .kind = KIND_OWN, .least = 1, .most = CONFIG_WORKERS_MAX},
    {.name = TEXT_INIT("roles.map"), .kind = KIND_OWN, .least = 1},
    {.name = TEXT_INIT("roles.fold"), .kind = KIND_OWN, .least = 1},
    {NUMBER("threads", KIND_COUNT, worker_threads, "1", 1, 64)},
};

enum {
    CLUSTER_KEYS = sizeof cluster_keys / sizeof cluster_keys[0],
    WORKER_KEYS = sizeof worker_keys / sizeof worker_keys[0],
    KEYS_MAX = 32
};
_Static_assert(CLUSTER_KEYS <= KEYS_MAX && WORKER_KEYS <= KEYS_MAX, "for suggestions");

struct key_list {
    const struct config_key *keys;
    uint32_t count;
};

static struct key_list section_keys(enum config_section section)
{
    if (section == CONFIG_CLUSTER) return (struct key_list){cluster_keys, CLUSTER_KEYS};
    if (section == CONFIG_WORKERS) return (struct key_list){worker_keys, WORKER_KEYS};
    return (struct key_list){NULL, 0};
}

/* What the entries are understood with. */
struct config_reader {
    struct config_entries entries;
    struct text key_names[CONFIG_SECTIONS][KEYS_MAX];
    struct text names[NAMES_MAX]; /* Of all nodes so far. */
    uint32_t name_count;
    struct arena *arena;
};

static void reader_init(struct config_reader *reader, struct arena *arena,
                        struct config_source *source)
{
    *reader = (struct config_reader){.arena = arena};
    for (uint32_t section = 0; section < CONFIG_SECTIONS; section++) {
        struct key_list list = section_keys((enum config_section)section);
        for (uint32_t i = 0; i < list.count; i++) {
            reader->key_names[section][i] = list.keys[i].name;
        }
        source->known[section] = (struct config_names){reader->key_names[section], list.count};
    }
}

static struct config_suggestion suggest_key(const struct config_reader *reader,
                                            enum config_section section, struct text wanted)
{
    return config_suggest(wanted, reader->key_names[section], section_keys(section).count);
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

static bool is_key(enum config_section section, struct text name)
{
    struct key_list list = section_keys(section);
    for (uint32_t i = 0; i < list.count; i++) {
        if (text_equal(name, list.keys[i].name)) return true;
    }
    return false;
}

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

static status parse_number(const struct config_key *key, struct text text, uint64_t *out,
                           struct error *err)
{
    static const char *const kinds[] = {"a number", "a size such as 512K, 64M or 4G",
                                        "a duration such as 60, 250ms or 5m"};
    static bool (*const readers[])(struct text, uint64_t *) = {
        config_count_parse, config_size_parse, config_duration_parse};
    enum config_kind kind = key->kind == KIND_OWN ? KIND_COUNT : key->kind;
    uint64_t value;
    if (!readers[kind](text, &value)) {
        return error_set(err, STATUS_INPUT, "%.*s: '%.*s' is not %s", TEXT_ARGS(key->name),
                         CONFIG_SHOWN(text), kinds[kind]);
    }
    bool is_none = key->may_be_zero && value == 0;
    if (!is_none && (value < key->least || value > key->most)) {
        char least[24];
        char most[24];
        show_limit(kind, key->least, least);
        show_limit(kind, key->most, most);
        return error_set(err, STATUS_INPUT, "%.*s: %.*s is not within %s to %s%s",
                         TEXT_ARGS(key->name), CONFIG_SHOWN(text), least, most,
                         key->may_be_zero ? ", or 0 for none" : "");
    }
    *out = value;
    return STATUS_OK;
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
    struct config_suggestion suggestion = config_suggest(text, key->choices, count);
    return error_set(err, STATUS_INPUT, "%.*s can't be '%.*s'%s", TEXT_ARGS(key->name),
                     CONFIG_SHOWN(text),
                     suggestion.text[0] != '\0'      ? suggestion.text
                     : key->choices == queue_choices ? "; it is transient or quorum"
                                                     : "; it is error, warn, info or debug");
}

static status set_key(const struct config_key *key, struct text text, struct cluster_config *out,
                      struct error *err)
{
    char *field = (char *)out + key->offset;
    uint64_t value = 0;
    uint32_t narrow = 0;
    if (key->kind == KIND_CHOICE) {
        TRY(parse_choice(key, text, &narrow, err));
    } else {
        TRY(parse_number(key, text, &value, err));
        narrow = (uint32_t)value;
    }
    if (key->kind == KIND_SIZE) {
        memcpy(field, &value, sizeof value);
    } else {
        memcpy(field, &narrow, sizeof narrow);
    }
    return STATUS_OK;
}
_Static_assert(sizeof(enum config_queues) == 4 && sizeof(enum config_log_level) == 4,
               "choices are stored as 32 bits");

/* All keys of the section that are not KIND_OWN. */
static status set_keys(const struct config_reader *reader, enum config_section section,
                       struct cluster_config *out, struct error *err)
{
    struct key_list list = section_keys(section);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct config_key *key = &list.keys[i];
        if (key->kind == KIND_OWN) continue;
        const struct config_entry *entry = entry_find(reader, section, key->name);
        struct text text = entry == NULL ? text_of(key->preset) : entry->value;
        if (set_key(key, text, out, err) == STATUS_OK) continue;
        ASSERT(entry != NULL); /* What we preset is right. */
        return fail_at(reader, entry, err);
    }
    return STATUS_OK;
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
    while (dir.size > 2 && dir.bytes[0] == '.' && dir.bytes[1] == '/') {
        dir = (struct text){dir.bytes + 2, dir.size - 2};
    }
    const char *slash = strrchr(reader->entries.path, '/');
    struct text base = {reader->entries.path,
                        slash == NULL ? 0 : (uint32_t)(slash - reader->entries.path)};
    if (slash == NULL) {
        out->data_dir = arena_copy_string(reader->arena, dir);
    } else {
        const char *folder = arena_copy_string(reader->arena, base);
        out->data_dir = folder == NULL ? NULL : file_path(folder, dir, reader->arena);
    }
    return out->data_dir == NULL ? error_memory(err) : STATUS_OK;
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
        if (uri.size <= 7 || memcmp(uri.bytes, "amqp://", 7) != 0) {
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

static status set_token(const struct config_reader *reader, struct cluster_config *out,
                        struct error *err)
{
    const struct config_entry *entry = entry_find(reader, CONFIG_CLUSTER, TEXT_LITERAL("token"));
    if (entry == NULL || entry->value.size == 0) return STATUS_OK;
    for (uint32_t i = 0; i < entry->value.size; i++) {
        if (entry->value.bytes[i] > ' ' && entry->value.bytes[i] <= '~') continue;
        error_write(err, STATUS_INPUT, "token: only visible ASCII characters can be sent");
        return fail_at(reader, entry, err);
    }
    out->token = entry->value.bytes;
    return STATUS_OK;
}

static status set_cluster(const struct config_reader *reader, struct cluster_config *out,
                          struct error *err)
{
    for (size_t i = 0; i < reader->entries.count; i++) {
        const struct config_entry *entry = &reader->entries.items[i];
        if (entry->section != CONFIG_CLUSTER || is_key(CONFIG_CLUSTER, entry->key)) {
            continue;
        }
        struct config_suggestion suggestion = suggest_key(reader, CONFIG_CLUSTER, entry->key);
        error_write(err, STATUS_INPUT, "there is no key '%.*s' in [cluster]%s",
                    CONFIG_SHOWN(entry->key), suggestion.text);
        return fail_at(reader, entry, err);
    }
    TRY(set_keys(reader, CONFIG_CLUSTER, out, err));
    TRY(set_name(reader, out, err));
    TRY(set_data_dir(reader, out, err));
    TRY(set_brokers(reader, out, err));
    TRY(set_token(reader, out, err));
    /* A message says more than its chunk holds, though not much. */
    const uint64_t room = 64 * KIB;
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
        struct config_suggestion suggestion = suggest_key(reader, CONFIG_WORKERS, entry->key);
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
    uint64_t count;
    if (list->count > 0) {
        return error_set(err, STATUS_INPUT, "give either a count of workers or their names");
    }
    TRY(parse_number(&worker_keys[0], entry->value, &count, err));
    for (uint64_t i = 1; i <= count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "w%u", (unsigned)i); /* Fits. */
        const char *copy = arena_copy_string(reader->arena, text_of(name));
        if (copy == NULL) return error_memory(err);
        TRY(name_add(reader, text_of(copy), err));
        list->items[list->count++] = (struct config_worker){.name = copy, .host = "127.0.0.1"};
    }
    return STATUS_OK;
}

/* How many have a role; all if nothing is said. */
static status role_count(const struct config_reader *reader, const struct config_key *key,
                         uint32_t worker_count, uint32_t *out, struct error *err)
{
    const struct config_entry *entry = entry_find(reader, CONFIG_WORKERS, key->name);
    *out = worker_count;
    if (entry == NULL) return STATUS_OK;
    uint64_t count;
    struct config_key within = *key;
    within.most = worker_count;
    if (parse_number(&within, entry->value, &count, err) != STATUS_OK) {
        return fail_at(reader, entry, err);
    }
    *out = (uint32_t)count;
    return STATUS_OK;
}

static status set_roles(const struct config_reader *reader, struct worker_list list,
                        struct error *err)
{
    uint32_t map_count;
    uint32_t fold_count;
    TRY(role_count(reader, &worker_keys[1], list.count, &map_count, err));
    TRY(role_count(reader, &worker_keys[2], list.count, &fold_count, err));
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
        if (is_key(CONFIG_WORKERS, entry->key)) continue;
        if (worker_add(reader, entry, &list, err) != STATUS_OK) return fail_at(reader, entry, err);
    }
    const struct config_entry *count = entry_find(reader, CONFIG_WORKERS, worker_keys[0].name);
    if (count != NULL && workers_count(reader, count, &list, err) != STATUS_OK) {
        return err->code == STATUS_MEMORY ? STATUS_MEMORY : fail_at(reader, count, err);
    }
    if (list.count == 0) {
        return error_set(err, STATUS_INPUT, "%.500s: there are no workers: say [workers] count = 3",
                         reader->entries.path);
    }
    TRY(set_keys(reader, CONFIG_WORKERS, out, err));
    TRY(set_roles(reader, list, err));
    out->workers = list.items;
    out->worker_count = list.count;
    return STATUS_OK;
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
