/* SPDX-License-Identifier: Apache-2.0 */
/* rank_gate.c - prefixes are gathered until there are an eighth more than the limit; then the one
 * at the limit is selected without sorting, and larger ones are dropped.
 *
 * The selection is by digits, from the highest one in which the prefixes differ: a histogram says
 * which digit the k-th has, and only items with it are looked at again (radix selection, the
 * counterpart of Hoare's FIND, 1961). It costs one or two passes, whatever the values are.
 */
#include "engine/exec/fold/rank_gate.h"

#include <string.h>

#include "engine/base/assert.h"

enum { LOOK_SHARE = 8, DIGITS = 256, DIGIT_BITS = 8 };

static size_t room_of(const struct rank_gate *gate)
{
    return (size_t)gate->limit + gate->limit / LOOK_SHARE + 1 + RANK_GATE_ROWS;
}

bool rank_gate_init(struct rank_gate *gate, uint32_t limit, struct budget *budget)
{
    ASSERT(limit > 0 && limit <= RANK_GATE_LIMIT);
    *gate = (struct rank_gate){.budget = budget, .limit = limit};
    gate->held = memory_alloc(budget, 2 * room_of(gate) * sizeof *gate->held);
    if (gate->held == NULL) return false;
    gate->scratch = gate->held + room_of(gate);
    rank_gate_reset(gate);
    return true;
}

void rank_gate_done(struct rank_gate *gate)
{
    memory_free(gate->budget, gate->held, 2 * room_of(gate) * sizeof *gate->held);
    gate->held = NULL;
}

void rank_gate_reset(struct rank_gate *gate)
{
    gate->highest = UINT64_MAX;
    gate->held_count = 0;
    gate->next_look = gate->limit + 1;
}

/* The shift by which the highest eight bits in which the items differ come down; -1: they don't. */
static int find_shift(const uint64_t *items, uint32_t count)
{
    uint64_t differing = 0;
    for (uint32_t i = 1; i < count; i++) {
        differing |= items[i] ^ items[0];
    }
    if (differing == 0) return -1;
    int top = 64 - __builtin_clzll(differing);
    return top > DIGIT_BITS ? top - DIGIT_BITS : 0;
}

/* The item that stands at place `nth` when they are sorted. They are moved. */
static uint64_t find_nth(uint64_t *items, uint32_t count, uint32_t nth)
{
    for (int shift = find_shift(items, count); shift >= 0; shift = find_shift(items, count)) {
        uint32_t counts[DIGITS] = {0};
        for (uint32_t i = 0; i < count; i++) {
            counts[items[i] >> shift & (DIGITS - 1)]++;
        }
        uint32_t digit = 0;
        for (; nth >= counts[digit]; digit++) {
            nth -= counts[digit];
        }
        uint32_t kept = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t item = items[i];
            items[kept] = item;
            kept += (item >> shift & (DIGITS - 1)) == digit;
        }
        count = kept;
    }
    return items[0];
}

static uint32_t keep_low(uint64_t *prefixes, uint32_t *rows, uint32_t count, uint64_t highest)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t prefix = prefixes[i];
        prefixes[kept] = prefix;
        rows[kept] = rows[i];
        kept += prefix <= highest;
    }
    return kept;
}

static void look(struct rank_gate *gate)
{
    uint64_t *held = gate->held;
    memcpy(gate->scratch, held, gate->held_count * sizeof *held);
    gate->highest = find_nth(gate->scratch, gate->held_count, gate->limit - 1);
    uint32_t lower = 0;
    for (uint32_t i = 0; i < gate->held_count; i++) {
        uint64_t prefix = held[i];
        held[lower] = prefix;
        lower += prefix < gate->highest;
    }
    /* Of those at the limit, as many as it takes. */
    ASSERT(lower < gate->limit);
    while (lower < gate->limit) {
        held[lower++] = gate->highest;
    }
    gate->held_count = lower;
    gate->next_look = gate->limit + gate->limit / LOOK_SHARE + 1;
}

uint32_t rank_gate_left(const struct rank_gate *gate, uint64_t *prefixes, uint32_t *rows,
                        uint32_t count)
{
    return keep_low(prefixes, rows, count, gate->highest);
}

uint32_t rank_gate_pass(struct rank_gate *gate, uint64_t *prefixes, uint32_t *rows, uint32_t count)
{
    ASSERT(count <= RANK_GATE_ROWS);
    count = keep_low(prefixes, rows, count, gate->highest);
    memcpy(gate->held + gate->held_count, prefixes, count * sizeof *prefixes);
    gate->held_count += count;
    if (gate->held_count < gate->next_look) return count;
    look(gate);
    return keep_low(prefixes, rows, count, gate->highest);
}
