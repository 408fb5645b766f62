/* SPDX-License-Identifier: Apache-2.0 */
/* config_entries.h - a cluster file and the environment as one list of keys and values.
 *
 * Checked here: lines are KEY = VALUE within a known section, no key comes twice (except broker,
 * whose lines make a list), and each variable names a key of the table or a node of the file. What
 * values mean is the business of config_keys.h, alike for file and environment.
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
#include "cluster/config/config_keys.h"

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
    uint32_t count;
    uint32_t capacity;
};

struct config_source {
    struct text bytes;
    const char *path;               /* For messages. */
    const char *const *environment; /* NAME=VALUE up to a NULL; may be NULL. */
};

MUST_USE status config_entries_read(const struct config_source *source, struct arena *arena,
                                    struct config_entries *out, struct error *err);

/* The first that is not replaced, or NULL. */
const struct config_entry *config_entries_find(const struct config_entries *entries,
                                               enum config_section section, struct text key);

/* Puts the entry's line or variable before the text of the error; returns its code. */
MUST_USE status config_entry_fail(const struct config_entries *entries,
                                  const struct config_entry *entry, struct error *err);

#endif
