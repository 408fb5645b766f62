/* literals.c - search of several literals at once.
 *
 * Three consecutive bytes are looked up in tables that say for which literals each may be the
 * first, second and third byte; where all three agree on a literal it is compared in full. A vector
 * of positions is tested at once by looking up both halves of each byte separately (x86 and arm
 * have an instruction that looks up 16 or 32 four-bit indices) and combining.
 */
#include "exec/literals.h"

#include <string.h>

#include "base/error.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

static inline char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

/* No meaning of their own in a regular expression outside of brackets. */
static bool is_plain(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || (c != '\0' && strchr(" _-,:;'\"/@%&!~<>=", c));
}

static void add_byte(struct literals *out, uint32_t place, char c, uint8_t bit)
{
    unsigned char byte = (unsigned char)c;
    out->probes[place][byte] |= bit;
    out->low_halves[place][byte & 15] |= bit;
    out->high_halves[place][byte >> 4] |= bit;
}

static void add_probes(struct literals *out, struct text item, uint8_t bit)
{
    for (uint32_t place = 0; place < LITERALS_PROBES; place++) {
        if (place >= item.size) {
            for (int byte = 0; byte < 256; byte++) {
                add_byte(out, place, (char)byte, bit);
            }
            continue;
        }
        char c = item.bytes[place];
        add_byte(out, place, c, bit);
        if (out->any_case && is_letter(c)) add_byte(out, place, (char)(c ^ 0x20), bit);
    }
}

static bool add_item(struct literals *out, struct text item, uint32_t *used)
{
    if (item.size == 0 || out->count == LITERALS_MAX) return false;
    char *copy = out->bytes + *used;
    for (uint32_t i = 0; i < item.size; i++) {
        char c = item.bytes[i];
        if (!is_plain(c)) return false;
        copy[i] = out->any_case ? lower(c) : c;
        out->has_exotic_case |= out->any_case && (copy[i] == 's' || copy[i] == 'k');
    }
    struct text kept = {copy, item.size};
    add_probes(out, kept, (uint8_t)(1u << out->count));
    out->items[out->count++] = kept;
    *used += item.size;
    return true;
}

bool literals_parse(struct literals *out, struct text pattern, bool any_case)
{
    *out = (struct literals){.any_case = any_case};
    if (pattern.size == 0 || pattern.size > LITERALS_BYTES_MAX) return false;
    uint32_t used = 0;
    uint32_t start = 0;
    for (uint32_t i = 0; i <= pattern.size; i++) {
        if (i < pattern.size && pattern.bytes[i] != '|') continue;
        if (!add_item(out, (struct text){pattern.bytes + start, i - start}, &used)) return false;
        start = i + 1;
    }
    return true;
}

static bool has_at(const struct literals *literals, struct text text, uint32_t at, struct text item)
{
    if (item.size > text.size - at) return false;
    const char *bytes = text.bytes + at;
    if (!literals->any_case) return memcmp(bytes, item.bytes, item.size) == 0;
    for (uint32_t i = 0; i < item.size; i++) {
        if (lower(bytes[i]) != item.bytes[i]) return false;
    }
    return true;
}

static bool verify(const struct literals *literals, struct text text, uint32_t at, uint32_t bits)
{
    for (; bits != 0; bits &= bits - 1) {
        if (has_at(literals, text, at, literals->items[__builtin_ctz(bits)])) return true;
    }
    return false;
}

/* Positions from `start` on, byte by byte; a byte beyond the end excludes nothing, verifying does.
 */
static bool search_from(const struct literals *literals, struct text text, uint32_t start,
                        unsigned char *in_out_seen)
{
    const unsigned char *bytes = (const unsigned char *)text.bytes;
    for (uint32_t at = start; at < text.size; at++) {
        uint32_t left = text.size - at;
        uint32_t bits = literals->probes[0][bytes[at]];
        if (left > 1) bits &= literals->probes[1][bytes[at + 1]];
        if (left > 2) bits &= literals->probes[2][bytes[at + 2]];
        *in_out_seen |= bytes[at];
        if (UNLIKELY(bits != 0) && verify(literals, text, at, bits)) return true;
    }
    return false;
}

bool literals_search_plain(const struct literals *literals, struct text text, bool *out_is_ascii)
{
    unsigned char seen = 0;
    bool found = search_from(literals, text, 0, &seen);
    *out_is_ascii = seen < 0x80;
    return found;
}

#if defined(__aarch64__)

#define VECTOR_TARGET
enum { VECTOR_BYTES = 16 };
typedef uint8x16_t vector;

static inline vector vector_load(const uint8_t *bytes)
{
    return vld1q_u8(bytes);
}

static inline vector vector_load_table(const uint8_t table[16])
{
    return vld1q_u8(table);
}

static inline vector vector_or(vector a, vector b)
{
    return vorrq_u8(a, b);
}

static inline vector look_up(vector low, vector high, vector bytes)
{
    return vandq_u8(vqtbl1q_u8(low, vandq_u8(bytes, vdupq_n_u8(15))),
                    vqtbl1q_u8(high, vshrq_n_u8(bytes, 4)));
}

static inline vector vector_and(vector a, vector b)
{
    return vandq_u8(a, b);
}

static inline vector vector_zero(void)
{
    return vdupq_n_u8(0);
}

static inline bool vector_has_any(vector bits)
{
    return vmaxvq_u8(bits) != 0;
}

static inline unsigned char vector_most(vector bytes)
{
    return vmaxvq_u8(bytes);
}

static inline void vector_store(uint8_t *out, vector bits)
{
    vst1q_u8(out, bits);
}

static bool has_vectors(void)
{
    return true;
}

#elif defined(__x86_64__)

#define VECTOR_TARGET __attribute__((target("avx2")))
enum { VECTOR_BYTES = 32 };
typedef __m256i vector;

VECTOR_TARGET static inline vector vector_load(const uint8_t *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

VECTOR_TARGET static inline vector vector_load_table(const uint8_t table[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

VECTOR_TARGET static inline vector vector_or(vector a, vector b)
{
    return _mm256_or_si256(a, b);
}

VECTOR_TARGET static inline vector vector_and(vector a, vector b)
{
    return _mm256_and_si256(a, b);
}

VECTOR_TARGET static inline vector look_up(vector low, vector high, vector bytes)
{
    const __m256i half = _mm256_set1_epi8(15);
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);
    return _mm256_and_si256(_mm256_shuffle_epi8(low, _mm256_and_si256(bytes, half)),
                            _mm256_shuffle_epi8(high, upper));
}

VECTOR_TARGET static inline vector vector_zero(void)
{
    return _mm256_setzero_si256();
}

VECTOR_TARGET static inline bool vector_has_any(vector bits)
{
    return !_mm256_testz_si256(bits, bits);
}

VECTOR_TARGET static inline unsigned char vector_most(vector bytes)
{
    return _mm256_movemask_epi8(bytes) != 0 ? 0x80 : 0;
}

VECTOR_TARGET static inline void vector_store(uint8_t *out, vector bits)
{
    _mm256_storeu_si256((__m256i *)(void *)out, bits);
}

static bool has_vectors(void)
{
    return __builtin_cpu_supports("avx2");
}

#else

#define NO_VECTORS
enum { VECTOR_BYTES = 16 };

static bool has_vectors(void)
{
    return false;
}

#endif

#if defined(NO_VECTORS)

static bool search_vector(const struct literals *literals, struct text text, uint32_t *out_next,
                          unsigned char *out_seen)
{
    (void)literals, (void)text; /* Everything is left to search_from. */
    *out_next = 0;
    *out_seen = 0;
    return false;
}

#else

struct tables {
    vector low[LITERALS_PROBES];
    vector high[LITERALS_PROBES];
};

/* Which literals may begin at each place of a block. */
VECTOR_TARGET static inline vector probe_block(const struct tables *tables, const uint8_t *bytes,
                                               vector *in_out_seen)
{
    vector first = vector_load(bytes);
    *in_out_seen = vector_or(*in_out_seen, first);
    vector bits = look_up(tables->low[0], tables->high[0], first);
    bits = vector_and(bits, look_up(tables->low[1], tables->high[1], vector_load(bytes + 1)));
    return vector_and(bits, look_up(tables->low[2], tables->high[2], vector_load(bytes + 2)));
}

VECTOR_TARGET static bool verify_block(const struct literals *literals, struct text text,
                                       uint32_t at, vector bits)
{
    uint8_t lanes[VECTOR_BYTES];
    vector_store(lanes, bits);
    for (uint32_t i = 0; i < VECTOR_BYTES; i++) {
        if (lanes[i] != 0 && verify(literals, text, at + i, lanes[i])) return true;
    }
    return false;
}

/* The block after the one at `at`; the last one of a stretch may overlap it. */
static inline uint32_t next_block(uint32_t at, uint32_t last)
{
    return at + VECTOR_BYTES < last ? at + VECTOR_BYTES : last;
}

/* Whether there is anything in a block is a question whose answer takes longer than the block: it
 * is asked once for a stretch of them, and the blocks are looked at again if so. */
VECTOR_TARGET static bool search_vector(const struct literals *literals, struct text text,
                                        uint32_t *out_next, unsigned char *out_seen)
{
    enum { STRETCH_BYTES = 32 * VECTOR_BYTES };
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    struct tables tables;
    for (int place = 0; place < LITERALS_PROBES; place++) {
        tables.low[place] = vector_load_table(literals->low_halves[place]);
        tables.high[place] = vector_load_table(literals->high_halves[place]);
    }
    vector seen = vector_zero();
    const uint32_t last = text.size - (VECTOR_BYTES + LITERALS_PROBES - 1);
    bool found = false;
    for (uint32_t start = 0; !found; start = next_block(start, last)) {
        uint32_t end = last - start > STRETCH_BYTES ? start + STRETCH_BYTES : last;
        vector any = vector_zero();
        for (uint32_t at = start;; at = next_block(at, end)) {
            any = vector_or(any, probe_block(&tables, bytes + at, &seen));
            if (at == end) break;
        }
        if (UNLIKELY(vector_has_any(any))) {
            for (uint32_t at = start; !found; at = next_block(at, end)) {
                vector bits = probe_block(&tables, bytes + at, &seen);
                if (vector_has_any(bits)) found = verify_block(literals, text, at, bits);
                if (at == end) break;
            }
        }
        if (end == last) break;
        start = end;
    }
    *out_next = last + VECTOR_BYTES;
    *out_seen = vector_most(seen);
    return found;
}

#endif

bool literals_search(const struct literals *literals, struct text text, bool *out_is_ascii)
{
    unsigned char seen = 0;
    uint32_t next = 0;
    bool found = text.size >= VECTOR_BYTES + LITERALS_PROBES - 1 && has_vectors() &&
                 search_vector(literals, text, &next, &seen);
    found = found || search_from(literals, text, next, &seen);
    *out_is_ascii = seen < 0x80;
    return found;
}
