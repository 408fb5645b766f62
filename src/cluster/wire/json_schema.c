/* SPDX-License-Identifier: Apache-2.0 */
/* json_schema.c - jansson parses (RFC 8259), a walk along the schema checks and copies.
 *
 * Writing needs no tree and therefore no jansson. A tree can be a hundred times as large as its
 * text, so jansson's blocks are counted per thread and the parse fails at a limit; every tree is
 * freed by the call that made it.
 */
#include "cluster/wire/json_schema.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>

#include "engine/base/assert.h"
#include "engine/data/print_text.h"
#include "cluster/wire/api.h"
#include "cluster/wire/manifest.h"

enum { TREE_BYTES_MAX = 64 << 20, HEX_DIGITS = 16 };

/* ---- jansson's memory ---- */

/* jansson does not say how large a block is that it frees. */
struct block_head {
    alignas(max_align_t) size_t size_bytes;
};

static _Thread_local size_t tree_bytes;
static _Thread_local bool tree_is_full; /* A block was refused at the limit, */
static _Thread_local bool tree_ran_out; /* or because there is no memory. */
static pthread_once_t memory_once = PTHREAD_ONCE_INIT;

static void *block_alloc(size_t size_bytes)
{
    if (size_bytes > TREE_BYTES_MAX - tree_bytes) {
        tree_is_full = true;
        return NULL;
    }
    struct block_head *head = memory_alloc(NULL, sizeof *head + size_bytes);
    if (head == NULL) {
        tree_ran_out = true;
        return NULL;
    }
    head->size_bytes = size_bytes;
    tree_bytes += size_bytes;
    return head + 1;
}

static void block_free(void *block)
{
    if (block == NULL) return;
    struct block_head *head = (struct block_head *)block - 1;
    ASSERT(head->size_bytes <= tree_bytes);
    tree_bytes -= head->size_bytes;
    memory_free(NULL, head, sizeof *head + head->size_bytes);
}

static void memory_set(void)
{
    json_set_alloc_funcs(block_alloc, block_free);
}

/* ---- hex ---- */

static uint32_t hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') return (uint32_t)(digit - '0');
    if (digit >= 'a' && digit <= 'f') return (uint32_t)(digit - 'a') + 10;
    return UINT32_MAX;
}

bool json_hex_parse(struct text digits, uint64_t *out)
{
    if (digits.size != HEX_DIGITS) return false;
    uint64_t value = 0;
    for (uint32_t i = 0; i < HEX_DIGITS; i++) {
        uint32_t digit = hex_value(digits.bytes[i]);
        if (digit == UINT32_MAX) return false;
        value = value << 4 | digit;
    }
    *out = value;
    return true;
}

/* ---- members in memory ---- */

static const void *array_items(const struct json_member *member, const char *object)
{
    const void *items;
    memcpy(&items, object + member->offset, sizeof items);
    return items;
}

static uint32_t u32_at(const char *object, size_t offset)
{
    uint32_t value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

static uint64_t u64_at(const char *object, size_t offset)
{
    uint64_t value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

static struct text text_at(const char *object, size_t offset)
{
    struct text value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

static bool bool_at(const char *object, size_t offset)
{
    bool value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

static bool member_is_empty(const struct json_member *member, const char *object)
{
    switch (member->kind) {
    case MEMBER_TEXT:
    case MEMBER_NAME:
        return text_at(object, member->offset).size == 0;
    case MEMBER_U32:
    case MEMBER_CHOICE:
        return u32_at(object, member->offset) == 0;
    case MEMBER_COUNT:
    case MEMBER_HEX:
        return u64_at(object, member->offset) == 0;
    case MEMBER_BOOL:
        return !bool_at(object, member->offset);
    case MEMBER_OBJECT:
        return false;
    case MEMBER_ARRAY:
    case MEMBER_COUNTS:
        return u32_at(object, member->count_offset) == 0;
    }
    return false;
}

/* ---- writing ---- */

static bool text_is_faithful(struct text text)
{
    for (size_t offset = 0; offset < text.size;) {
        struct print_character character = print_character_at(text, offset);
        if (character.is_invalid || character.code == 0) return false;
        offset += character.size;
    }
    return true;
}

static void count_write(uint64_t value, struct buf *out)
{
    buf_format(out, "%" PRIu64, value < API_NUMBER_MAX ? value : API_NUMBER_MAX);
}

static bool array_write(const struct json_member *member, const char *object, struct buf *out)
{
    const char *items = array_items(member, object);
    uint32_t count = u32_at(object, member->count_offset);
    bool is_faithful = true;
    buf_put_u8(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) buf_put_u8(out, ',');
        if (member->kind == MEMBER_COUNTS) {
            count_write(u64_at(items, i * sizeof(uint64_t)), out);
        } else {
            is_faithful &=
                json_schema_encode(member->schema, items + i * member->schema->size_bytes, out);
        }
    }
    buf_put_u8(out, ']');
    return is_faithful;
}

static bool member_write(const struct json_member *member, const char *object, struct buf *out)
{
    switch (member->kind) {
    case MEMBER_TEXT:
    case MEMBER_NAME:
        print_json_string(text_at(object, member->offset), out);
        return text_is_faithful(text_at(object, member->offset));
    case MEMBER_U32:
        buf_format(out, "%" PRIu32, u32_at(object, member->offset));
        return true;
    case MEMBER_COUNT:
        count_write(u64_at(object, member->offset), out);
        return true;
    case MEMBER_HEX:
        buf_format(out, "\"%016" PRIx64 "\"", u64_at(object, member->offset));
        return true;
    case MEMBER_BOOL:
        buf_put_string(out, bool_at(object, member->offset) ? "true" : "false");
        return true;
    case MEMBER_CHOICE:
        ASSERT(u32_at(object, member->offset) < member->limit);
        buf_format(out, "\"%s\"", member->names[u32_at(object, member->offset)]);
        return true;
    case MEMBER_OBJECT:
        return json_schema_encode(member->schema, object + member->offset, out);
    case MEMBER_ARRAY:
    case MEMBER_COUNTS:
        return array_write(member, object, out);
    }
    return false;
}

bool json_schema_encode(const struct json_schema *schema, const void *object, struct buf *out)
{
    bool is_faithful = true;
    char before = '{';
    for (uint32_t i = 0; i < schema->member_count; i++) {
        const struct json_member *member = &schema->members[i];
        if (member->is_optional && member_is_empty(member, object)) continue;
        buf_format(out, "%c\"%s\":", before, member->key);
        is_faithful &= member_write(member, object, out);
        before = ',';
    }
    if (before == '{') buf_put_u8(out, '{');
    buf_put_u8(out, '}');
    return is_faithful;
}

/* ---- reading ---- */

struct schema_reader {
    struct arena *arena;
    status refusal;
    struct error *err;
};

static status object_read(struct schema_reader *reader, const struct json_schema *schema,
                          const json_t *value, char *out);

static status text_read(struct schema_reader *reader, const struct json_member *member,
                        const json_t *value, char *out)
{
    if (!json_is_string(value)) {
        return error_set(reader->err, reader->refusal, "\"%s\" must be a string", member->key);
    }
    size_t size = json_string_length(value);
    uint32_t limit = member->kind == MEMBER_NAME ? MANIFEST_NAME_MAX : member->limit;
    if (size > limit) {
        return error_set(reader->err, reader->refusal,
                         "\"%s\" has %zu bytes, more than the limit of %" PRIu32, member->key, size,
                         limit);
    }
    struct text text = {json_string_value(value), (uint32_t)size};
    if (member->kind == MEMBER_NAME && !manifest_name_valid(text)) {
        return error_set(reader->err, reader->refusal,
                         "\"%s\" is no name: names are 1 to %d of A-Z a-z 0-9 . _ -", member->key,
                         MANIFEST_NAME_MAX);
    }
    if (size == 0) {
        if (!member->is_filled) return STATUS_OK;
        return error_set(reader->err, reader->refusal, "\"%s\" must not be empty", member->key);
    }
    text.bytes = arena_copy_string(reader->arena, text);
    if (text.bytes == NULL) return error_memory(reader->err);
    memcpy(out + member->offset, &text, sizeof text);
    return STATUS_OK;
}

static status number_read(struct schema_reader *reader, const char *key, const json_t *value,
                          uint64_t max, uint64_t *out)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || (uint64_t)number > max) {
        return error_set(reader->err, reader->refusal,
                         "\"%s\" must be a whole number from 0 to %" PRIu64, key, max);
    }
    *out = (uint64_t)number;
    return STATUS_OK;
}

static status hex_read(struct schema_reader *reader, const struct json_member *member,
                       const json_t *value, char *out)
{
    uint64_t number;
    if (json_string_length(value) != HEX_DIGITS ||
        !json_hex_parse((struct text){json_string_value(value), HEX_DIGITS}, &number)) {
        return error_set(reader->err, reader->refusal,
                         "\"%s\" must be a string of %d lower-case hex digits", member->key,
                         HEX_DIGITS);
    }
    memcpy(out + member->offset, &number, sizeof number);
    return STATUS_OK;
}

static status choice_read(struct schema_reader *reader, const struct json_member *member,
                          const json_t *value, char *out)
{
    const char *name = json_string_value(value);
    for (uint32_t i = 0; name != NULL && i < member->limit; i++) {
        if (strcmp(member->names[i], name) == 0) {
            memcpy(out + member->offset, &i, sizeof i);
            return STATUS_OK;
        }
    }
    return error_set(reader->err, reader->refusal, "\"%s\" must be a string from \"%s\" to \"%s\"",
                     member->key, member->names[0], member->names[member->limit - 1]);
}

static status array_read(struct schema_reader *reader, const struct json_member *member,
                         const json_t *value, char *out)
{
    bool is_numbers = member->kind == MEMBER_COUNTS;
    size_t item_bytes = is_numbers ? sizeof(uint64_t) : member->schema->size_bytes;
    size_t align = is_numbers ? alignof(uint64_t) : member->schema->align;
    if (!json_is_array(value)) {
        return error_set(reader->err, reader->refusal, "\"%s\" must be an array", member->key);
    }
    size_t count = json_array_size(value);
    if (count > member->limit) {
        return error_set(reader->err, reader->refusal,
                         "\"%s\" has %zu items, more than the limit of %" PRIu32, member->key,
                         count, member->limit);
    }
    if (count == 0) return STATUS_OK;
    char *items = arena_calloc(reader->arena, count, item_bytes, align);
    if (items == NULL) return error_memory(reader->err);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(value, i);
        char *slot = items + i * item_bytes;
        if (is_numbers) {
            uint64_t number = 0;
            TRY(number_read(reader, member->key, item, API_NUMBER_MAX, &number));
            memcpy(slot, &number, sizeof number);
        } else if (object_read(reader, member->schema, item, slot) != STATUS_OK) {
            return error_prefix(reader->err, "%s[%zu]", member->key, i);
        }
    }
    uint32_t stored_count = (uint32_t)count;
    memcpy(out + member->offset, &items, sizeof items);
    memcpy(out + member->count_offset, &stored_count, sizeof stored_count);
    return STATUS_OK;
}

static status member_read(struct schema_reader *reader, const struct json_member *member,
                          const json_t *value, char *out)
{
    uint64_t number = 0;
    switch (member->kind) {
    case MEMBER_TEXT:
    case MEMBER_NAME:
        return text_read(reader, member, value, out);
    case MEMBER_U32:
        TRY(number_read(reader, member->key, value, UINT32_MAX, &number));
        memcpy(out + member->offset, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
        return STATUS_OK;
    case MEMBER_COUNT:
        TRY(number_read(reader, member->key, value, API_NUMBER_MAX, &number));
        memcpy(out + member->offset, &number, sizeof number);
        return STATUS_OK;
    case MEMBER_HEX:
        return hex_read(reader, member, value, out);
    case MEMBER_BOOL:
        if (!json_is_boolean(value)) {
            return error_set(reader->err, reader->refusal, "\"%s\" must be true or false",
                             member->key);
        }
        memcpy(out + member->offset, &(bool){json_is_true(value)}, sizeof(bool));
        return STATUS_OK;
    case MEMBER_CHOICE:
        return choice_read(reader, member, value, out);
    case MEMBER_OBJECT:
        if (object_read(reader, member->schema, value, out + member->offset) != STATUS_OK) {
            return error_prefix(reader->err, "%s", member->key);
        }
        return STATUS_OK;
    case MEMBER_ARRAY:
    case MEMBER_COUNTS:
        return array_read(reader, member, value, out);
    }
    return error_set(reader->err, STATUS_INTERNAL, "\"%s\" has no kind", member->key);
}

static status keys_check(struct schema_reader *reader, const struct json_schema *schema,
                         const json_t *object)
{
    /* jansson's iterators want a pointer that is not const, but change nothing. */
    json_t *walked = (json_t *)(uintptr_t)object;
    for (void *at = json_object_iter(walked); at != NULL; at = json_object_iter_next(walked, at)) {
        const char *key = json_object_iter_key(at);
        uint32_t known = 0;
        while (known < schema->member_count && strcmp(schema->members[known].key, key) != 0) {
            known++;
        }
        if (known == schema->member_count) {
            return error_set(reader->err, reader->refusal, "there is no key \"%.100s\" here", key);
        }
    }
    return STATUS_OK;
}

static status object_read(struct schema_reader *reader, const struct json_schema *schema,
                          const json_t *value, char *out)
{
    if (!json_is_object(value)) {
        return error_set(reader->err, reader->refusal, "an object is expected here");
    }
    if (!schema->is_open) TRY(keys_check(reader, schema, value));
    for (uint32_t i = 0; i < schema->member_count; i++) {
        const struct json_member *member = &schema->members[i];
        const json_t *found = json_object_get(value, member->key);
        if (found != NULL) {
            TRY(member_read(reader, member, found, out));
        } else if (!member->is_optional) {
            return error_set(reader->err, reader->refusal, "the key \"%s\" is missing",
                             member->key);
        }
    }
    return STATUS_OK;
}

status json_schema_decode(const struct json_schema *schema, struct text json, struct arena *arena,
                          status refusal, void *out, struct error *err)
{
    if (json.size == 0) return error_set(err, refusal, "JSON is expected, and nothing came");
    if (json.size > API_JSON_MAX) {
        return error_set(err, STATUS_LIMIT, "%" PRIu32 " bytes of JSON, more than the limit of %d",
                         json.size, API_JSON_MAX);
    }
    if (pthread_once(&memory_once, memory_set) != 0) return error_memory(err);
    tree_is_full = false;
    tree_ran_out = false;
    json_error_t problem;
    json_t *tree = json_loadb(json.bytes, json.size, JSON_REJECT_DUPLICATES, &problem);
    if (tree == NULL) {
        if (tree_is_full) {
            return error_set(err, STATUS_LIMIT, "this JSON needs more than %d bytes of memory",
                             TREE_BYTES_MAX);
        }
        if (tree_ran_out) return error_memory(err);
        return error_set(err, refusal, "line %d, column %d: %s", problem.line, problem.column,
                         problem.text);
    }
    struct schema_reader reader = {.arena = arena, .refusal = refusal, .err = err};
    status code = object_read(&reader, schema, tree, out);
    json_decref(tree);
    return code;
}
