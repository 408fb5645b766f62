/* SPDX-License-Identifier: Apache-2.0 */
/* csv_kernel_body.h - what all kernels have in common; each includes it once, after defining
 *
 *     KERNEL_TARGET                                   the attribute of all functions
 *     KERNEL_BLOCK, block_load                        a struct: 64 bytes in registers
 *     block_separators, block_lines, block_quotes     bit i is set when byte i is one
 *     KERNEL_COUNTS, counts_add                       a struct: LFs and quotes of some blocks
 *     counts_lines, counts_have_quotes                how many, whether any
 *     mask_prefix_xor                                 bit i is the parity of bits 0..i
 *     mask_lowest                                     place of the lowest bit; of none: anything
 *
 * and ends with KERNEL_DEFINE(name).
 *
 * The method is that of simdjson (Langdale and Lemire, "Parsing Gigabytes of JSON per Second", VLDB
 * Journal 28, 2019) applied to CSV: one bit per byte, and a prefix exclusive-or for what is inside
 * quotes. Quotes are followed by parity: a byte is inside quotes when an odd number of quotes
 * precedes it, and a doubled quote leaves and enters again. That is right as long as every quote
 * that opens by parity stands at the start of a field or directly behind a quote. The first one
 * that does not is a stray: data in a field that is not quoted, or no longer. Everything before it
 * has been understood rightly, so the field it is in ends at the next separator, and all quotes up
 * to there are data too. They are struck from the mask and the parity is taken anew, until no stray
 * is left. No byte is ever guessed at, and regular blocks pay one comparison for it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/data/csv_kernel.h"

enum {
    /* So many blocks fit the byte-sized counters, each of which gets up to 4 per block; it is
     * also what is scanned twice when a quote comes unexpected. */
    STRETCH_BLOCKS = 32,
};

KERNEL_TARGET ALWAYS_INLINE uint32_t mask_count(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

KERNEL_TARGET ALWAYS_INLINE KERNEL_BLOCK block_load_part(const char *bytes, size_t size)
{
    char padded[CSV_BLOCK_BYTES] = {0};
    memcpy(padded, bytes, size);
    return block_load(padded);
}

KERNEL_TARGET ALWAYS_INLINE struct csv_cursor cursor_of(enum csv_state state)
{
    return (struct csv_cursor){
        .inside = state == CSV_QUOTED ? ~(uint64_t)0 : 0,
        .may_quote = state != CSV_UNQUOTED && state != CSV_QUOTED,
    };
}

/* Which of the block's bytes are inside quotes. The block has `size` > 0 bytes. */
KERNEL_TARGET ALWAYS_INLINE uint64_t cursor_advance(struct csv_cursor *cursor, uint64_t quotes,
                                                    uint64_t separators, size_t size)
{
    uint64_t inside;
    for (;;) {
        inside = mask_prefix_xor(quotes) ^ cursor->inside;
        uint64_t may_quote = ((quotes | separators) << 1) | cursor->may_quote;
        uint64_t stray = quotes & inside & ~may_quote;
        if (LIKELY(stray == 0)) break;

        uint64_t first = stray & -stray;
        uint64_t field_ends = separators & -first;
        uint64_t field_end = field_ends & -field_ends; /* 0: not in this block. */
        quotes &= ~(field_end - first);
    }
    cursor->inside = -(inside >> 63); /* Also of a partial block: no quotes come after its bytes. */
    cursor->may_quote = ((quotes | separators) >> (size - 1)) & 1;
    return inside;
}

/* Takes the lowest bit out of the mask and returns where it was. */
KERNEL_TARGET ALWAYS_INLINE uint64_t mask_take_lowest(uint64_t *mask)
{
    uint64_t lowest = mask_lowest(*mask);
    *mask &= *mask - 1;
    return lowest;
}

/* Writes the positions of the two lowest bits (or anything, where there are fewer) and returns the
 * mask without them. They are put together in a register: left to themselves, compilers gather four
 * of them in a vector, which takes longer than to store them. */
KERNEL_TARGET ALWAYS_INLINE uint64_t mask_store_two(uint32_t *out, uint64_t mask, uint32_t base)
{
    uint64_t pair = mask_take_lowest(&mask);
    pair |= mask_take_lowest(&mask) << 32;
    pair += base | (uint64_t)base << 32;
    memcpy(out, &pair, sizeof pair);
    return mask;
}

/* Writes the positions of the mask's bits and returns how many. `usual` (a constant, and a multiple
 * of 2) are written without a question: to store some that are not needed costs less than to
 * mispredict how many are. */
KERNEL_TARGET ALWAYS_INLINE uint32_t mask_store(uint32_t *out, uint64_t mask, uint32_t base,
                                                uint32_t usual)
{
    uint32_t count = mask_count(mask);
    for (uint32_t done = 0; done < usual; done += 2) {
        mask = mask_store_two(out + done, mask, base);
    }
    for (uint32_t done = usual; UNLIKELY(done < count); done += 2) {
        mask = mask_store_two(out + done, mask, base);
    }
    return count;
}

/* The separators of a block that are not in quotes. */
struct finding {
    uint64_t separators;
    uint64_t base;
};

KERNEL_TARGET ALWAYS_INLINE void finding_store(struct csv_scan *scan, struct finding finding,
                                               KERNEL_BLOCK block)
{
    enum { USUAL = 8 };
    scan->count += mask_store(scan->positions + scan->count, finding.separators,
                              (uint32_t)finding.base, USUAL);
    scan->record_count += mask_count(finding.separators & block_lines(block));
}

/* With attention to quotes; returns whether there was one. Long fields make many blocks without a
 * separator: those with some are put together first, since what is written for a block costs as
 * much as to look at it, and whether there is anything to write cannot be predicted. */
KERNEL_TARGET static bool index_quoted(struct csv_scan *scan, const char *bytes,
                                       struct csv_range range)
{
    struct finding findings[STRETCH_BLOCKS];
    size_t count = 0;
    KERNEL_COUNTS counts = {0};
    uint64_t any_quotes = 0;
    struct csv_cursor cursor = scan->cursor; /* In registers. */
    const size_t end = range.start + range.size;
    for (size_t base = range.start; base < end; base += CSV_BLOCK_BYTES) {
        KERNEL_BLOCK block = block_load(bytes + base);
        uint64_t separators = block_separators(block);
        uint64_t quotes = block_quotes(block);
        counts_add(&counts, block);
        any_quotes |= quotes;
        separators &= ~cursor_advance(&cursor, quotes, separators, CSV_BLOCK_BYTES);
        findings[count] = (struct finding){separators, base};
        count += separators != 0;
    }
    struct csv_scan found = *scan;
    for (size_t i = 0; i < count; i++) {
        finding_store(&found, findings[i], block_load(bytes + findings[i].base));
    }
    found.cursor = cursor;
    found.line_count += counts_lines(counts);
    found.has_quotes |= any_quotes != 0;
    *scan = found;
    return any_quotes != 0;
}

/* What is left at the end of a chunk, less than a block. */
KERNEL_TARGET static void index_part(struct csv_scan *scan, const char *bytes,
                                     struct csv_range range)
{
    KERNEL_BLOCK block = block_load_part(bytes + range.start, range.size);
    uint64_t separators = block_separators(block);
    uint64_t quotes = block_quotes(block);
    uint64_t inside = cursor_advance(&scan->cursor, quotes, separators, range.size);
    finding_store(scan, (struct finding){separators & ~inside, range.start}, block);
    scan->line_count += mask_count(block_lines(block));
    scan->has_quotes |= quotes != 0;
}

/* Without attention to quotes: false, and nothing has happened, when there turns out to be one. */
KERNEL_TARGET ALWAYS_INLINE bool index_plain(struct csv_scan *scan, const char *bytes,
                                             struct csv_range range, uint32_t usual)
{
    const char *from = bytes + range.start;
    uint32_t *out = scan->positions + scan->count;
    KERNEL_COUNTS counts = {0};
    KERNEL_BLOCK block = block_load(from);
    counts_add(&counts, block);
    uint64_t separators = block_separators(block);
    uint32_t base = (uint32_t)range.start;
    for (const char *at = from + CSV_BLOCK_BYTES; at < from + range.size; at += CSV_BLOCK_BYTES) {
        block = block_load(at);
        counts_add(&counts, block);
        uint64_t next = block_separators(block);
        out += mask_store(out, separators, base, usual);
        separators = next;
        base += CSV_BLOCK_BYTES;
    }
    out += mask_store(out, separators, base, usual);
    if (counts_have_quotes(counts)) return false;

    uint64_t lines = counts_lines(counts);
    char last = from[range.size - 1];
    scan->count = (size_t)(out - scan->positions);
    scan->line_count += lines;
    scan->record_count += lines;
    scan->cursor.may_quote = last == ',' || last == '\n';
    return true;
}

/* The same with a number of separators per block that has proved usual so far. */
KERNEL_TARGET static bool index_usual(struct csv_scan *scan, const char *bytes,
                                      struct csv_range range)
{
    /* Enough for most blocks if separators are spread evenly, as in a table they are. */
    size_t average = range.start == 0 ? 8 : scan->count * CSV_BLOCK_BYTES / range.start;
    size_t wanted = average + 2;
    if (wanted <= 4) return index_plain(scan, bytes, range, 4);
    if (wanted <= 6) return index_plain(scan, bytes, range, 6);
    if (wanted <= 8) return index_plain(scan, bytes, range, 8);
    if (wanted <= 10) return index_plain(scan, bytes, range, 10);
    if (wanted <= 12) return index_plain(scan, bytes, range, 12);
    return index_plain(scan, bytes, range, 16);
}

KERNEL_TARGET static void kernel_index(struct csv_scan *scan, const char *bytes,
                                       struct csv_range range)
{
    size_t whole_bytes = range.size - range.size % CSV_BLOCK_BYTES;
    struct csv_range stretch = {.start = range.start};
    /* Quotes come in company: after a stretch with some they are expected in the next. */
    bool expects_quotes = scan->has_quotes;
    for (size_t left = whole_bytes; left > 0; left -= stretch.size) {
        size_t most = (size_t)STRETCH_BLOCKS * CSV_BLOCK_BYTES;
        stretch.size = left < most ? left : most;
        bool is_inside = scan->cursor.inside != 0;
        if (expects_quotes || is_inside || !index_usual(scan, bytes, stretch)) {
            expects_quotes = index_quoted(scan, bytes, stretch);
        }
        stretch.start += stretch.size;
    }

    stretch.size = range.size - whole_bytes;
    if (stretch.size > 0) index_part(scan, bytes, stretch);
}

KERNEL_TARGET static enum csv_state kernel_advance(enum csv_state state, const char *bytes,
                                                   size_t size)
{
    if (size == 0) return state;
    struct csv_cursor cursor = cursor_of(state);
    size_t done = 0;
    for (; size - done >= CSV_BLOCK_BYTES; done += CSV_BLOCK_BYTES) {
        KERNEL_BLOCK block = block_load(bytes + done);
        cursor_advance(&cursor, block_quotes(block), block_separators(block), CSV_BLOCK_BYTES);
    }
    if (done < size) {
        KERNEL_BLOCK block = block_load_part(bytes + done, size - done);
        cursor_advance(&cursor, block_quotes(block), block_separators(block), size - done);
    }
    return csv_cursor_state(cursor, bytes[size - 1]);
}

KERNEL_TARGET static size_t kernel_record_end(enum csv_state *state, const char *bytes, size_t size)
{
    if (size == 0) return 0;
    struct csv_cursor cursor = cursor_of(*state);
    for (size_t done = 0; done < size; done += CSV_BLOCK_BYTES) {
        size_t part = size - done < CSV_BLOCK_BYTES ? size - done : CSV_BLOCK_BYTES;
        KERNEL_BLOCK block = part == CSV_BLOCK_BYTES ? block_load(bytes + done)
                                                     : block_load_part(bytes + done, part);
        uint64_t inside =
            cursor_advance(&cursor, block_quotes(block), block_separators(block), part);
        uint64_t record_ends = block_lines(block) & ~inside;
        if (record_ends != 0) {
            *state = CSV_RECORD_START;
            return done + mask_lowest(record_ends) + 1;
        }
    }
    *state = csv_cursor_state(cursor, bytes[size - 1]);
    return size;
}

KERNEL_TARGET static uint64_t kernel_count_lines(const char *bytes, size_t size)
{
    uint64_t count = 0;
    size_t done = 0;
    while (size - done >= CSV_BLOCK_BYTES) {
        KERNEL_COUNTS counts = {0};
        for (int blocks = 0; blocks < STRETCH_BLOCKS && size - done >= CSV_BLOCK_BYTES; blocks++) {
            counts_add(&counts, block_load(bytes + done));
            done += CSV_BLOCK_BYTES;
        }
        count += counts_lines(counts);
    }
    if (done < size) count += mask_count(block_lines(block_load_part(bytes + done, size - done)));
    return count;
}

#define KERNEL_STRING(name) #name
#define KERNEL_SYMBOL(name) csv_kernel_##name
#define KERNEL_DEFINE(name_)                                                                       \
    const struct csv_kernel KERNEL_SYMBOL(name_) = {                                               \
        .name = KERNEL_STRING(name_),                                                              \
        .index = kernel_index,                                                                     \
        .advance = kernel_advance,                                                                 \
        .record_end = kernel_record_end,                                                           \
        .count_lines = kernel_count_lines,                                                         \
    }
