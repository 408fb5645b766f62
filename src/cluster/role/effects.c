/* SPDX-License-Identifier: Apache-2.0 */
/* effects.c - a list that keeps its memory from step to step. */
#include "cluster/role/event.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/base/array.h"

enum { SAY_SIZE = 1024 };

void event_done(struct event *event)
{
    if (event->kind == EVENT_RECORD) buf_done(&event->record.bytes);
    if (event->kind == EVENT_BUS) bus_event_done(&event->bus);
    if (event->kind == EVENT_REQUEST) buf_done(&event->request.body);
}

/* The bytes that an effect owns; NULL: its kind has none. */
static struct buf *effect_bytes(struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_SEND:
        return &effect->send.bytes;
    case EFFECT_LOG:
        return &effect->log.bytes;
    case EFFECT_REPLY:
        return &effect->reply.api.body;
    case EFFECT_REQUEST:
        return &effect->request.body;
    case EFFECT_JOURNAL:
        return &effect->journal;
    case EFFECT_RESULT:
        return &effect->result.bytes;
    case EFFECT_AUDIT:
        return &effect->audit.bytes;
    case EFFECT_SAY:
        return &effect->say.line;
    default:
        return NULL;
    }
}

void effect_done(struct effect *effect)
{
    struct buf *bytes = effect_bytes(effect);
    if (bytes != NULL) buf_done(bytes);
}

struct effect *effects_add(struct effects *effects, enum effect_kind kind)
{
    /* A static object is zero in every byte; an initialiser promises that of one member only. */
    static const struct effect zero;
    struct effect *effect = effects->failed ? NULL : array_add(effects, NULL);
    if (effect == NULL) {
        effects->failed = true;
        effect = &effects->unseen;
        effect_done(effect);
    }
    *effect = zero;
    effect->kind = kind;
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
    effect->say.level = level;
    buf_put_string(&effect->say.line, line);
    if (effect->say.line.failed) effects->failed = true;
}

struct effect effects_take(struct effects *effects, uint32_t index)
{
    struct effect taken = effects->items[index];
    struct buf *bytes = effect_bytes(&effects->items[index]);
    if (bytes != NULL) *bytes = (struct buf){0};
    return taken;
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
    array_done(effects, NULL);
    arena_done(&effects->arena);
    *effects = (struct effects){0};
}
