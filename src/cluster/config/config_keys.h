/* SPDX-License-Identifier: Apache-2.0 */
/* config_keys.h - the one table of a cluster file's keys: section, kind, default, allowed values.
 *
 * The table drives reading, defaults, checks, messages and the list that `millrace config` prints
 * and docs/reference/cluster-file.md is compared with. Defaults are texts that take the path of all
 * values, so a default that is out of range cannot exist. Rules between keys and the nodes, whose
 * names are keys too, are the business of cluster_config.c.
 *
 * Memory: strings live in the given arena or borrow the value, whose bytes end with a zero.
 */
#ifndef CLUSTER_CONFIG_CONFIG_KEYS_H
#define CLUSTER_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/config/cluster_config.h"

enum config_section {
    CONFIG_CLUSTER,
    CONFIG_GATEWAYS,
    CONFIG_WORKERS,
    CONFIG_MONITORS,
    CONFIG_SECTIONS
};
extern const struct text config_section_names[CONFIG_SECTIONS];

struct config_key;

/* The key of this name in the section; NULL: there is none, so that it may be a node's name. */
const struct config_key *config_key_find(enum config_section section, struct text name);
/* The name of the key that `variable` means: ROLES_MAP is roles.map. */
bool config_key_of_variable(enum config_section section, struct text variable, struct text *out);
/* Whether the environment spells the name so. */
bool config_spells(struct text variable, struct text name);

/* Checks the value and sets the key's field. A key of which several lines make a list appends. */
MUST_USE status config_key_read(const struct config_key *key, struct text value,
                                struct arena *arena, struct cluster_config *out, struct error *err);
/* Sets the fields of all keys that have a default. `out->path` is the base of paths. */
MUST_USE status config_keys_set_defaults(struct arena *arena, struct cluster_config *out,
                                         struct error *err);
/* A line per key: SECTION.KEY, default, allowed values. */
void config_keys_put(struct buf *out);

/* "; did you mean X?", or "". */
struct config_suggestion {
    char text[96];
};
struct config_suggestion config_suggest(struct text wanted, const struct text *candidates,
                                        size_t count);
struct config_suggestion config_suggest_key(enum config_section section, struct text wanted);

/* For "%.*s" of what the user wrote: a message quotes at most its first 100 bytes. */
#define CONFIG_SHOWN(text) (int)((text).size < 100 ? (text).size : 100), (text).bytes

/* A path of the file, relative to the folder of the file; NULL: the arena is full. */
const char *config_path(const char *file, struct text path, struct arena *arena);

#endif
