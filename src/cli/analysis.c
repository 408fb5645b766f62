/* SPDX-License-Identifier: Apache-2.0 */
/* analysis.c - a name wins over a folder of that name in the working directory: data is often kept
 * in a folder called like its analysis.
 */
#include "cli/analysis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "engine/file/file.h"

enum { PLACES = 3, NAMES_MAX = 64, LIST_SIZE = 1024 };

static void places_get(const char *out[PLACES])
{
    out[0] = getenv("MILLRACE_ANALYSES");
    out[1] = MILLRACE_SOURCE_DIR "/analyses";
    out[2] = MILLRACE_PREFIX_DATA_DIR "/analyses";
}

static bool holds_tables(const char *folder, struct arena *arena)
{
    const char *path = file_path(folder, TEXT_LITERAL("tables.sql"), arena);
    return path != NULL && file_exists(path);
}

struct names {
    const char *names[NAMES_MAX];
    uint32_t count;
};

static void names_add(struct names *names, const char *name)
{
    if (names->count == NAMES_MAX) return;
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->names[i], name) == 0) return;
    }
    names->names[names->count++] = name;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_collect(struct names *names, struct arena *arena)
{
    const char *places[PLACES];
    places_get(places);
    for (uint32_t i = 0; i < PLACES; i++) {
        struct file_entry *entries = NULL;
        uint32_t entry_count = 0;
        struct error ignored; /* A place need not exist. */
        if (places[i] == NULL ||
            file_list(places[i], arena, &entries, &entry_count, &ignored) != STATUS_OK) {
            continue;
        }
        for (uint32_t j = 0; j < entry_count; j++) {
            struct text name = entries[j].name;
            const char *path = file_path(places[i], name, arena);
            bool is_hidden = name.bytes[0] == '.';
            if (path != NULL && !is_hidden && holds_tables(path, arena)) {
                names_add(names, name.bytes);
            }
        }
    }
    qsort(names->names, names->count, sizeof names->names[0], name_compare);
}

static status unknown(const char *name, struct arena *arena, struct error *err)
{
    struct names names = {0};
    names_collect(&names, arena);
    char list[LIST_SIZE] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < names.count; i++) {
        int size =
            snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names.names[i]);
        if (size < 0 || (size_t)size >= sizeof list - used) break;
        used += (size_t)size;
    }
    char suggestion[128];
    options_suggest(name, names.names, names.count, suggestion, sizeof suggestion);
    return error_set(err, STATUS_USAGE,
                     "no analysis `%.200s`%s\nthere are: %s; or give the path of a folder that "
                     "holds tables.sql and a file per query",
                     name, suggestion, names.count > 0 ? list : "none");
}

status analysis_find(const char *name, struct arena *arena, const char **out_dir, struct error *err)
{
    const char *places[PLACES];
    places_get(places);
    bool is_name = name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
    for (uint32_t i = 0; is_name && i < PLACES; i++) {
        if (places[i] == NULL || places[i][0] == '\0') continue;
        const char *path = file_path(places[i], text_of(name), arena);
        if (path == NULL) return error_memory(err);
        if (!holds_tables(path, arena)) continue;
        *out_dir = path;
        return STATUS_OK;
    }
    if (name[0] == '\0' || !file_is_folder(name)) return unknown(name, arena, err);
    if (!holds_tables(name, arena)) {
        return error_set(err, STATUS_USAGE,
                         "%.500s is not an analysis: there is no tables.sql in it", name);
    }
    *out_dir = name;
    return STATUS_OK;
}

status analysis_list(struct arena *arena, struct analysis **out, uint32_t *out_count,
                     struct error *err)
{
    struct names names = {0};
    names_collect(&names, arena);
    struct analysis *list = arena_array(arena, struct analysis, (size_t)names.count + 1);
    if (list == NULL) return error_memory(err);
    for (uint32_t i = 0; i < names.count; i++) {
        list[i].name = names.names[i];
        TRY(analysis_find(names.names[i], arena, &list[i].folder, err));
    }
    *out = list;
    *out_count = names.count;
    return STATUS_OK;
}
