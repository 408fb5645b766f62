/* effects.c - a list that grows by doubling and keeps its memory from step to step. */
#include "cluster/role/event.h"

#include <stdarg.h>
#include <stdio.h>

enum { FIRST_CAPACITY = 16, SAY_SIZE = 1024 };

static void effect_done(struct effect *effect)
{
    buf_done(&effect->bytes);
    buf_done(&effect->reply.body);
}

static bool effects_grow(struct effects *effects)
{
    if (effects->failed) return false;
    if (effects->count < effects->capacity) return true;
    uint32_t capacity = effects->capacity == 0 ? FIRST_CAPACITY : effects->capacity * 2;
    struct effect *items = NULL;
    if (capacity > effects->capacity) {
        items = memory_resize(NULL, effects->items, sizeof *items * effects->capacity,
                              sizeof *items * capacity);
    }
    if (items == NULL) {
        effects->failed = true;
        return false;
    }
    effects->items = items;
    effects->capacity = capacity;
    return true;
}

struct effect *effects_add(struct effects *effects, enum effect_kind kind)
{
    struct effect *effect = &effects->unseen;
    if (effects_grow(effects)) {
        effect = &effects->items[effects->count++];
    } else {
        effect_done(effect);
    }
    *effect = (struct effect){.kind = kind};
    return effect;
}

void effects_say(struct effects *effects, enum say_level level, const char *format, ...)
{
    char line[SAY_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size < 0) return;
    struct effect *effect = effects_add(effects, EFFECT_SAY);
    effect->level = level;
    buf_put_string(&effect->bytes, line);
    if (effect->bytes.failed) effects->failed = true;
}

void effects_reset(struct effects *effects)
{
    for (uint32_t i = 0; i < effects->count; i++) {
        effect_done(&effects->items[i]);
    }
    effect_done(&effects->unseen);
    effects->count = 0;
    arena_reset(&effects->arena);
}

void effects_done(struct effects *effects)
{
    effects_reset(effects);
    memory_free(NULL, effects->items, sizeof *effects->items * effects->capacity);
    arena_done(&effects->arena);
    *effects = (struct effects){0};
}
