/* config_keys.h - the keys of a cluster file that have a value of their own: kind, preset, range.
 *
 * Which there are is a table; presets are texts that go the way of all values, so what is
 * documented is what is read. What several keys mean together is the business of cluster_config.c,
 * and so are those that the table only names.
 *
 * Memory: texts live in the given arena, or in the entries.
 */
#ifndef CLUSTER_CONFIG_CONFIG_KEYS_H
#define CLUSTER_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/config/cluster_config.h"
#include "cluster/config/config_entries.h"

enum { CONFIG_KEYS_MAX = 48 };

/* The names of all keys of all sections. */
struct config_key_names {
    struct text items[CONFIG_SECTIONS][CONFIG_KEYS_MAX];
    uint32_t counts[CONFIG_SECTIONS];
};
void config_key_names(struct config_key_names *out);

/* A line per key: SECTION.KEY, default, allowed values. The reference page is compared with it. */
void config_keys_put(struct buf *out);

/* Whether it is a key, and so no node's name. */
bool config_is_key(enum config_section section, struct text name);
/* For the message about a name that is no key. */
struct config_suggestion config_suggest_key(enum config_section section, struct text wanted);

/* Sets the fields of all keys of a section that have no rules of their own. Errors name the line.
 */
MUST_USE status config_keys_set(const struct config_entries *entries, enum config_section section,
                                struct arena *arena, struct cluster_config *out, struct error *err);

/* A number of nodes, within its limits. */
struct config_count {
    struct text name;
    uint32_t least;
    uint32_t most;
};
MUST_USE status config_count_read(const struct config_count *count, struct text text, uint32_t *out,
                                  struct error *err);

/* A path as the file has it, relative to the folder of the file; NULL: the arena is full. */
const char *config_path(const struct config_entries *entries, struct text path,
                        struct arena *arena);

#endif
