/* SPDX-License-Identifier: Apache-2.0 */
/* chaos.c - victims are drawn from a pool that does not change; cmd_chaos.c skips a node that is
 * down. So a seed draws the same victims in every run.
 */
#include "cli/cluster/chaos.h"

#include <string.h>

#include "cli/options.h"
#include "engine/file/file.h"

enum { MARGIN_MS = 100 }; /* Monitors count silence by their ticks. */

/* The next word of a list with commas; false: there is none. */
static bool word_take(struct text *rest, struct text *out)
{
    while (rest->size > 0 && (rest->bytes[0] == ',' || rest->bytes[0] == ' ')) {
        rest->bytes++;
        rest->size--;
    }
    if (rest->size == 0) return false;
    uint32_t size = 0;
    while (size < rest->size && rest->bytes[size] != ',' && rest->bytes[size] != ' ') {
        size++;
    }
    *out = (struct text){rest->bytes, size};
    *rest = (struct text){rest->bytes + size, rest->size - size};
    return true;
}

bool chaos_is_named(const char *list, const char *name)
{
    if (list == NULL) return false;
    struct text rest = text_of(list);
    struct text word;
    while (word_take(&rest, &word)) {
        if (file_name_matches(word, text_of(name))) return true;
    }
    return false;
}

bool chaos_is_spelled(const char *list, const char *name)
{
    struct text rest = text_of(list != NULL ? list : "");
    struct text word;
    while (word_take(&rest, &word)) {
        if (text_equal(word, text_of(name))) return true;
    }
    return false;
}

static status fail_unknown(const struct cluster_nodes *nodes, struct text word, struct arena *arena,
                           struct error *err)
{
    const char **names = arena_array(arena, const char *, nodes->count + 1);
    const char *wanted = arena_copy_string(arena, word);
    char suggestion[128];
    if (names == NULL || wanted == NULL) return error_memory(err);
    for (uint32_t i = 0; i < nodes->count; i++) {
        names[i] = nodes->items[i].name;
    }
    options_suggest(wanted, names, nodes->count, suggestion, sizeof suggestion);
    return error_set(err, STATUS_USAGE, "the cluster has no node `%.100s`%s", wanted, suggestion);
}

status chaos_check_names(const struct cluster_nodes *nodes, const char *list, struct arena *arena,
                         struct error *err)
{
    struct text rest = text_of(list != NULL ? list : "");
    struct text word;
    while (word_take(&rest, &word)) {
        bool is_found = false;
        for (uint32_t i = 0; i < nodes->count && !is_found; i++) {
            is_found = file_name_matches(word, text_of(nodes->items[i].name));
        }
        if (!is_found) return fail_unknown(nodes, word, arena, err);
    }
    return STATUS_OK;
}

/* A pattern that matches the broker does not name it. */
static bool is_wanted(const struct cluster_node *node, const struct chaos_wish *wish)
{
    if (chaos_is_named(wish->except, node->name)) return false;
    if (wish->kill == NULL) return node->role != NODE_BROKER;
    if (node->role != NODE_BROKER) return chaos_is_named(wish->kill, node->name);
    return chaos_is_spelled(wish->kill, node->name);
}

status chaos_pool_make(const struct cluster_nodes *nodes, const struct chaos_wish *wish,
                       struct arena *arena, struct chaos_pool *out, struct error *err)
{
    TRY(chaos_check_names(nodes, wish->kill, arena, err));
    TRY(chaos_check_names(nodes, wish->except, arena, err));
    struct chaos_pool pool = {.nodes = arena_array(arena, uint32_t, nodes->count + 1)};
    if (pool.nodes == NULL) return error_memory(err);
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (is_wanted(&nodes->items[i], wish)) pool.nodes[pool.count++] = i;
    }
    if (pool.count == 0) return error_set(err, STATUS_USAGE, "no node is left to disturb");
    pool.at_a_time = wish->count == 0 || wish->count > pool.count ? pool.count : wish->count;
    *out = pool;
    return STATUS_OK;
}

/* The first steps of a Fisher-Yates shuffle. */
void chaos_draw(struct chaos_pool *pool, struct random *random)
{
    for (uint32_t i = 0; i < pool->at_a_time; i++) {
        uint32_t other = i + random_below(random, pool->count - i);
        uint32_t moved = pool->nodes[i];
        pool->nodes[i] = pool->nodes[other];
        pool->nodes[other] = moved;
    }
}

bool chaos_is_reborn(struct chaos_death death, const struct monitored *seen, uint64_t asked_ms)
{
    if (seen->state != HEALTH_UP || seen->incarnation == 0) return false;
    if (seen->incarnation == death.incarnation) return false;
    return asked_ms > death.ended_ms + MARGIN_MS + seen->silent_ms;
}

struct chaos_times chaos_times_of(uint64_t *times_ms, uint32_t count)
{
    if (count == 0) return (struct chaos_times){0};
    for (uint32_t i = 1; i < count; i++) {
        uint64_t time_ms = times_ms[i];
        uint32_t place = i;
        while (place > 0 && times_ms[place - 1] > time_ms) {
            times_ms[place] = times_ms[place - 1];
            place--;
        }
        times_ms[place] = time_ms;
    }
    uint32_t late = (uint32_t)(((uint64_t)count * 99 + 99) / 100) - 1;
    return (struct chaos_times){.median_ms = times_ms[(count - 1) / 2],
                                .late_ms = times_ms[late],
                                .longest_ms = times_ms[count - 1]};
}
