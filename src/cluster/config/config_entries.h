/* config_entries.h - a cluster file and the environment as one list of keys and values.
 *
 * What is checked here: that lines are KEY = VALUE within a known section, that no key comes twice
 * (but those of brokers, which make a list), and that variables name a key. What values mean is the
 * business of cluster_config.h, alike for file and environment.
 *
 * Memory: all lives in the given arena; texts of entries are followed by a zero.
 */
#ifndef CLUSTER_CONFIG_CONFIG_ENTRIES_H
#define CLUSTER_CONFIG_CONFIG_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum config_section {
    CONFIG_CLUSTER,
    CONFIG_GATEWAYS,
    CONFIG_WORKERS,
    CONFIG_MONITORS,
    CONFIG_SECTIONS
};

struct config_entry {
    enum config_section section;
    struct text key;
    struct text value;
    uint32_t line;
    const char *variable; /* NULL: it is from the file. */
    bool replaced;        /* The environment says otherwise. */
};

struct config_entries {
    const char *path;
    struct config_entry *items; /* In the order of the file, then of the environment. */
    size_t count;
    size_t capacity;
};

/* Keys that mean something. Any other key in a section but [cluster] is a node's name. */
struct config_names {
    const struct text *items;
    uint32_t count;
};

struct config_source {
    struct text bytes;
    const char *path;               /* For messages. */
    const char *const *environment; /* NAME=VALUE up to a NULL; may be NULL. */
    struct config_names known[CONFIG_SECTIONS];
};

MUST_USE status config_entries_read(const struct config_source *source, struct arena *arena,
                                    struct config_entries *out, struct error *err);

/* The first that counts, or NULL. */
const struct config_entry *config_entries_find(const struct config_entries *entries,
                                               enum config_section section, struct text key);
/* Whether it is a line of the list of brokers. */
bool config_entry_is_broker(const struct config_entry *entry);

/* Puts the entry's line or variable before the text of the error; returns its code. */
MUST_USE status config_entry_fail(const struct config_entries *entries,
                                  const struct config_entry *entry, struct error *err);

/* "; did you mean X?", or "". */
struct config_suggestion {
    char text[96];
};
struct config_suggestion config_suggest(struct text wanted, const struct text *candidates,
                                        size_t count);

/* For "%.*s" of what the user wrote: not more of it than a message can do with. */
#define CONFIG_SHOWN(text) (int)((text).size < 100 ? (text).size : 100), (text).bytes

/* Without blanks on both sides. */
struct text config_trim(struct text text);

#endif
