/* SPDX-License-Identifier: Apache-2.0 */
/* regexp_node.c - what is known of the parts of a pattern, put together bottom up.
 *
 * Exact texts and required texts are those of R. Cox, Regular expression matching with a trigram
 * index, 2012; here they are searched in the value itself, and there is no index.
 *
 * Texts that must be there: as long as parts match only a few texts each, all their combinations
 * are the texts of the sequence. Where that ends, or becomes too much, the texts so far are one
 * thing that must be there; of several such things the one with the longest texts is kept.
 */
#include "engine/exec/expr/regexp_node.h"

#include "engine/base/assert.h"

enum { SIZE_BOUND = 1 << 20, EXACT_BYTES = 4 };

static void byte_set_join(struct byte_set *set, const struct byte_set *other)
{
    for (int i = 0; i < 4; i++) {
        set->words[i] |= other->words[i];
    }
}

/* --- Texts. --- */

static bool string_contains(const struct node_string *string, const struct node_string *part)
{
    struct text text = {string->bytes, string->size};
    return text_find(text, (struct text){part->bytes, part->size}) != NULL;
}

static bool strings_add(struct node_strings *strings, const struct node_string *string)
{
    for (uint32_t i = 0; i < strings->count; i++) {
        const struct node_string *item = &strings->items[i];
        if (item->size == string->size && string_contains(item, string)) return true;
    }
    if (strings->count == NODE_STRINGS) return false;
    strings->items[strings->count++] = *string;
    return true;
}

static bool strings_join(struct node_strings *strings, const struct node_strings *others)
{
    for (uint32_t i = 0; i < others->count; i++) {
        if (!strings_add(strings, &others->items[i])) return false;
    }
    return true;
}

/* Each of the one followed by each of the other; false: too many, or too long. */
static bool strings_combine(struct node_strings *strings, const struct node_strings *others)
{
    struct node_strings made = {0};
    for (uint32_t i = 0; i < strings->count; i++) {
        for (uint32_t j = 0; j < others->count; j++) {
            struct node_string string = strings->items[i];
            const struct node_string *other = &others->items[j];
            if (string.size + other->size > NODE_STRING_SIZE) return false;
            memcpy(string.bytes + string.size, other->bytes, other->size);
            string.size += other->size;
            if (!strings_add(&made, &string)) return false;
        }
    }
    *strings = made;
    return true;
}

/* Without those that have another one in them: where they are, that one is. */
static void strings_reduce(struct node_strings *strings)
{
    for (uint32_t i = 0; i < strings->count;) {
        bool is_needless = false;
        for (uint32_t j = 0; j < strings->count; j++) {
            is_needless |= j != i && string_contains(&strings->items[i], &strings->items[j]);
        }
        if (is_needless) {
            strings->items[i] = strings->items[--strings->count];
        } else {
            i++;
        }
    }
}

static uint32_t shortest(const struct node_strings *strings)
{
    uint32_t size = strings->count == 0 ? 0 : NODE_STRING_SIZE;
    for (uint32_t i = 0; i < strings->count; i++) {
        if (strings->items[i].size < size) size = strings->items[i].size;
    }
    return size;
}

/* Both must be there; the better one is kept. */
static void keep_better(struct node_strings *required, const struct node_strings *other)
{
    uint32_t old_size = shortest(required);
    uint32_t new_size = shortest(other);
    if (new_size < old_size || new_size == 0) return;
    if (new_size == old_size && other->count >= required->count) return;
    *required = *other;
    strings_reduce(required);
}

/* --- Single characters. --- */

void regexp_node_empty(struct regexp_node *out)
{
    *out = (struct regexp_node){.is_fixed = true, .is_exact = true, .exact = {.count = 1}};
}

static void set_edges(struct regexp_node *node, const struct byte_set *set)
{
    node->size_min = 1;
    node->head_count = node->tail_count = 1;
    node->head[0] = node->tail[0] = node->body = *set;
}

void regexp_node_any(struct regexp_node *out)
{
    *out = (struct regexp_node){0};
    set_edges(out, &(struct byte_set){{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}});
}

static void find_exact(struct regexp_node *node, const struct byte_set *set, bool any_case)
{
    struct node_strings strings = {0};
    for (int byte = 0; byte < 256; byte++) {
        if (!byte_set_has(set, (unsigned char)byte)) continue;
        bool is_upper = byte >= 'A' && byte <= 'Z';
        struct node_string string = {.size = 1, .bytes = {(char)byte}};
        if (any_case && is_upper) string.bytes[0] = (char)(byte | 0x20);
        if (!strings_add(&strings, &string) || strings.count > EXACT_BYTES) return;
    }
    node->is_exact = strings.count > 0;
    node->exact = strings;
}

void regexp_node_byte(struct regexp_node *out, const struct byte_set *set, bool any_case)
{
    *out = (struct regexp_node){.is_fixed = true};
    set_edges(out, set);
    find_exact(out, set, any_case);
    /* In any case an s is also U+017F, and a k U+212A, which have more bytes. */
    if (!any_case || !(byte_set_has(set, 's') || byte_set_has(set, 'k'))) return;
    struct byte_set wide = *set;
    wide.words[2] = wide.words[3] = UINT64_MAX;
    set_edges(out, &wide);
    out->is_fixed = false;
}

/* --- Sequences. --- */

void node_sequence_start(struct node_sequence *sequence)
{
    *sequence = (struct node_sequence){.is_exact = true, .run = {.count = 1}};
    regexp_node_empty(&sequence->node);
}

static void add_edge(struct byte_set *edge, uint32_t *in_out_count, const struct byte_set *more,
                     uint32_t more_count)
{
    for (uint32_t i = 0; i < more_count && *in_out_count < NODE_EDGE; i++) {
        edge[(*in_out_count)++] = more[i];
    }
}

static void add_tail(struct regexp_node *node, const struct regexp_node *next)
{
    struct byte_set tail[NODE_EDGE];
    uint32_t count = 0;
    add_edge(tail, &count, next->tail, next->tail_count);
    if (next->is_fixed && count == next->size_min) {
        add_edge(tail, &count, node->tail, node->tail_count);
    }
    memcpy(node->tail, tail, count * sizeof *tail);
    node->tail_count = count;
}

static uint32_t bounded(uint64_t size)
{
    return size < SIZE_BOUND ? (uint32_t)size : SIZE_BOUND;
}

void node_sequence_add(struct node_sequence *sequence, const struct regexp_node *next)
{
    struct regexp_node *node = &sequence->node;
    if (node->is_fixed && node->head_count == node->size_min) {
        add_edge(node->head, &node->head_count, next->head, next->head_count);
    }
    add_tail(node, next);
    node->size_min = bounded((uint64_t)node->size_min + next->size_min);
    node->is_fixed = node->is_fixed && next->is_fixed;
    /* What comes before the start or after the end can only be empty. */
    node->at_start = node->at_start || next->at_start;
    node->at_end = node->at_end || next->at_end;
    byte_set_join(&node->body, &next->body);
    if (next->is_exact && strings_combine(&sequence->run, &next->exact)) return;
    sequence->is_exact = false;
    keep_better(&node->required, &sequence->run);
    keep_better(&node->required, &next->required);
    sequence->run = next->is_exact ? next->exact : (struct node_strings){.count = 1};
}

void node_sequence_end(struct node_sequence *sequence, struct regexp_node *out)
{
    struct regexp_node *node = &sequence->node;
    keep_better(&node->required, &sequence->run);
    node->is_exact = sequence->is_exact;
    if (node->is_exact) node->exact = sequence->run;
    *out = *node;
}

/* --- The others. --- */

static void join_edges(struct byte_set *edge, uint32_t *in_out_count, const struct byte_set *other,
                       uint32_t other_count)
{
    if (other_count < *in_out_count) *in_out_count = other_count;
    for (uint32_t i = 0; i < *in_out_count; i++) {
        byte_set_join(&edge[i], &other[i]);
    }
}

void regexp_node_either(struct regexp_node *node, const struct regexp_node *other)
{
    join_edges(node->head, &node->head_count, other->head, other->head_count);
    join_edges(node->tail, &node->tail_count, other->tail, other->tail_count);
    node->is_fixed = node->is_fixed && other->is_fixed && node->size_min == other->size_min;
    if (other->size_min < node->size_min) node->size_min = other->size_min;
    node->at_start = node->at_start && other->at_start;
    node->at_end = node->at_end && other->at_end;
    byte_set_join(&node->body, &other->body);
    node->is_exact = node->is_exact && other->is_exact && strings_join(&node->exact, &other->exact);
    bool has_both = node->required.count > 0 && other->required.count > 0;
    if (!has_both || !strings_join(&node->required, &other->required)) node->required.count = 0;
    strings_reduce(&node->required);
}

static void make_optional(struct regexp_node *node, uint32_t most)
{
    static const struct node_string nothing = {0};
    node->is_fixed = node->is_fixed && node->size_min == 0;
    node->size_min = 0;
    node->head_count = node->tail_count = 0;
    node->at_start = node->at_end = false;
    node->is_exact = node->is_exact && most == 1 && strings_add(&node->exact, &nothing);
    node->required.count = 0;
}

void regexp_node_repeat(struct regexp_node *node, uint32_t least, uint32_t most)
{
    ASSERT(least <= most);
    if (least == 0) {
        make_optional(node, most);
        return;
    }
    struct regexp_node once = *node;
    struct node_sequence sequence;
    node_sequence_start(&sequence);
    /* More copies would not tell more. */
    uint32_t copies = least < NODE_STRING_SIZE ? least : NODE_STRING_SIZE;
    for (uint32_t i = 0; i < copies; i++) {
        node_sequence_add(&sequence, &once);
    }
    node_sequence_end(&sequence, node);
    node->size_min = bounded((uint64_t)once.size_min * least);
    if (copies == most) return;
    node->is_fixed = once.is_fixed && (least == most || once.size_min == 0);
    node->is_exact = false;
}
