/* SPDX-License-Identifier: Apache-2.0 */
/* json_schema.h - structs as JSON objects, by description.
 *
 * A schema lists the members of a struct once, and both directions follow the list, so that reading
 * undoes writing. Reading is strict: types, sizes and names are checked, a key may appear once, and
 * unknown keys are refused unless the schema is open.
 *
 * Memory: decoded values live in the arena. The tree that jansson builds meanwhile is bounded; its
 * allocator is set here, so no other file of the program calls jansson.
 * Threads: any.
 */
#ifndef CLUSTER_WIRE_JSON_SCHEMA_H
#define CLUSTER_WIRE_JSON_SCHEMA_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum member_kind {
    MEMBER_TEXT,   /* struct text of at most `limit` bytes. */
    MEMBER_NAME,   /* struct text that is a name: see manifest_name_valid. */
    MEMBER_U32,    /* uint32_t */
    MEMBER_COUNT,  /* uint64_t, at most API_NUMBER_MAX: cut to it when written. */
    MEMBER_HEX,    /* uint64_t as a string of 16 hex digits. */
    MEMBER_BOOL,   /* bool */
    MEMBER_CHOICE, /* An enum, as one of `limit` names. */
    MEMBER_OBJECT, /* The struct of `schema`, embedded. */
    MEMBER_ARRAY,  /* Pointer to structs of `schema`, at most `limit`; and their count. */
    MEMBER_COUNTS  /* Pointer to uint64_t, each as MEMBER_COUNT, at most `limit`; their count. */
};

struct json_schema;

struct json_member {
    const char *key;
    enum member_kind kind;
    bool is_optional; /* Not written when empty or zero; empty or zero when it is not there. */
    bool is_filled;   /* A text must not be empty. */
    size_t offset;
    size_t count_offset; /* Of the uint32_t with the array's length. */
    uint32_t limit;
    const char *const *names;
    const struct json_schema *schema;
};

struct json_schema {
    const struct json_member *members;
    uint32_t member_count;
    bool is_open; /* Unknown keys are skipped: a newer program may have written them. */
    size_t size_bytes;
    size_t align;
};

#define JSON_SCHEMA(type, list)                                                                    \
    .members = (list), .member_count = sizeof(list) / sizeof((list)[0]),                           \
    .size_bytes = sizeof(type), .align = alignof(type)

/* Appends one object. False: some text is not UTF-8, or has a zero byte, and was changed. */
bool json_schema_encode(const struct json_schema *schema, const void *object, struct buf *out);

/* Fills the members of `out`; others stay as they are. `refusal` is the code for JSON that does not
 * fit the schema; STATUS_LIMIT and STATUS_MEMORY are possible too. After a failure `out` may be
 * filled in part. */
MUST_USE status json_schema_decode(const struct json_schema *schema, struct text json,
                                   struct arena *arena, status refusal, void *out,
                                   struct error *err);

/* 16 lower-case hex digits. */
bool json_hex_parse(struct text digits, uint64_t *out);

#endif
