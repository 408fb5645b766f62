/* SPDX-License-Identifier: Apache-2.0 */
/* regexp_node.h - what is known of all texts that a part of a regular expression matches.
 *
 * Nodes are made of single characters and put together as the expression is: one after the other,
 * either or, so many times. Everything a node says holds for every match, and a node may always say
 * less: sets of bytes may be too large, texts too few or too short.
 *
 * Assertions match the empty text here, whatever they ask for.
 */
#ifndef ENGINE_EXEC_EXPR_REGEXP_NODE_H
#define ENGINE_EXEC_EXPR_REGEXP_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"

enum {
    NODE_EDGE = 4,        /* So many bytes at each end are looked at, */
    NODE_STRINGS = 8,     /* so many texts of which there must be one, */
    NODE_STRING_SIZE = 24 /* each so long. */
};

struct byte_set {
    uint64_t words[4];
};

static inline bool byte_set_has(const struct byte_set *set, unsigned char byte)
{
    return (set->words[byte >> 6] >> (byte & 63) & 1) != 0;
}

static inline void byte_set_add(struct byte_set *set, unsigned char byte)
{
    set->words[byte >> 6] |= (uint64_t)1 << (byte & 63);
}

struct node_string {
    uint32_t size;
    char bytes[NODE_STRING_SIZE];
};

struct node_strings {
    uint32_t count;
    struct node_string items[NODE_STRINGS];
};

struct regexp_node {
    uint32_t size_min; /* In bytes; cut at a bound. */
    bool is_fixed;     /* No match is longer either. */
    bool at_start;     /* Every match begins where the value does, */
    bool at_end;       /* ends where it ends. */
    /* Which bytes may be first, second ...; last, last but one ... */
    uint32_t head_count;
    uint32_t tail_count;
    struct byte_set head[NODE_EDGE];
    struct byte_set tail[NODE_EDGE];
    struct byte_set body;         /* All bytes of all matches. */
    bool is_exact;                /* It matches these texts, and no others. */
    struct node_strings exact;    /* In lower case where case does not matter. */
    struct node_strings required; /* Every match has one of them in it; none: nothing is known. */
};

/* Matches nothing but the empty text. */
void regexp_node_empty(struct regexp_node *out);
/* A character of one byte. `any_case`: the set has both cases of its letters. */
void regexp_node_byte(struct regexp_node *out, const struct byte_set *set, bool any_case);
/* Some character. */
void regexp_node_any(struct regexp_node *out);

/* Nodes one after the other:
 *
 *     sequence_start -> sequence_add* -> sequence_end
 */
struct node_sequence {
    struct regexp_node node;
    bool is_exact;
    struct node_strings run; /* What the last ones match, as far back as they are exact. */
};

void node_sequence_start(struct node_sequence *sequence);
void node_sequence_add(struct node_sequence *sequence, const struct regexp_node *next);
void node_sequence_end(struct node_sequence *sequence, struct regexp_node *out);

/* The one or the other. */
void regexp_node_either(struct regexp_node *node, const struct regexp_node *other);
/* From `least` to `most` times. */
void regexp_node_repeat(struct regexp_node *node, uint32_t least, uint32_t most);

#endif
