/* SPDX-License-Identifier: Apache-2.0 */
/* later_environment.c - see cluster/node/crash_point.h for the words. */
#include "cluster/supervise/later_environment.h"

#include <string.h>
#include <unistd.h>

#include "engine/base/buf.h"

static const char crash_variable[] = "MILLRACE_CRASH=";

static void keep_dice(const char *words, struct buf *out)
{
    const char *comma = "";
    while (*words != '\0') {
        struct text word = {words, (uint32_t)strcspn(words, ",")};
        words += word.size;
        if (*words == ',') words++;
        const char *colon = memchr(word.bytes, ':', word.size);
        const char *end = word.bytes + word.size;
        bool is_dice = colon != NULL && colon + 1 < end && colon[1] == 'p' &&
                       memchr(colon + 1, ':', (size_t)(end - colon - 1)) == NULL;
        if (!is_dice) continue;
        buf_put_string(out, comma);
        buf_put_text(out, word);
        comma = ",";
    }
}

status later_environment_make(struct arena *arena, const char *const **out, struct error *err)
{
    size_t count = 0;
    size_t prefix = sizeof crash_variable - 1;
    while (environ[count] != NULL) {
        count++;
    }
    const char **variables = arena_array(arena, const char *, count + 1);
    if (variables == NULL) return error_memory(err);
    for (size_t i = 0; i < count; i++) {
        variables[i] = environ[i];
        if (strncmp(environ[i], crash_variable, prefix) != 0) continue;
        struct buf kept = {0};
        buf_put_string(&kept, crash_variable);
        keep_dice(environ[i] + prefix, &kept);
        struct text text = {(const char *)kept.bytes, (uint32_t)kept.size};
        variables[i] = kept.failed ? NULL : arena_copy_string(arena, text);
        buf_done(&kept);
        if (variables[i] == NULL) return error_memory(err);
    }
    *out = variables;
    return STATUS_OK;
}
