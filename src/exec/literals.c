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

enum { VECTOR_BYTES = 16 };

static inline uint8x16_t look_up(const uint8x16_t low[], const uint8x16_t high[], uint8x16_t bytes,
                                 int place)
{
    return vandq_u8(vqtbl1q_u8(low[place], vandq_u8(bytes, vdupq_n_u8(15))),
                    vqtbl1q_u8(high[place], vshrq_n_u8(bytes, 4)));
}

/* Which literals may begin at each of 16 places. */
static inline uint8x16_t probe_block(const uint8x16_t low[], const uint8x16_t high[],
                                     const uint8_t *bytes, uint8x16_t *in_out_seen)
{
    uint8x16_t first = vld1q_u8(bytes);
    *in_out_seen = vorrq_u8(*in_out_seen, first);
    return vandq_u8(
        vandq_u8(look_up(low, high, first, 0), look_up(low, high, vld1q_u8(bytes + 1), 1)),
        look_up(low, high, vld1q_u8(bytes + 2), 2));
}

static bool verify_block(const struct literals *literals, struct text text, uint32_t at,
                         uint8x16_t bits)
{
    uint8_t lanes[VECTOR_BYTES];
    vst1q_u8(lanes, bits);
    for (uint32_t i = 0; i < VECTOR_BYTES; i++) {
        if (lanes[i] != 0 && verify(literals, text, at + i, lanes[i])) return true;
    }
    return false;
}

static bool search_vector(const struct literals *literals, struct text text, uint32_t *out_next,
                          unsigned char *out_seen)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    uint8x16_t low[LITERALS_PROBES];
    uint8x16_t high[LITERALS_PROBES];
    for (int place = 0; place < LITERALS_PROBES; place++) {
        low[place] = vld1q_u8(literals->low_halves[place]);
        high[place] = vld1q_u8(literals->high_halves[place]);
    }
    uint8x16_t seen = vdupq_n_u8(0);
    /* The last block ends with the text, and may overlap the one before. Two at a time are asked
     * whether there is anything, since asking takes as long as looking. */
    const uint32_t last = text.size - (VECTOR_BYTES + LITERALS_PROBES - 1);
    bool found = false;
    for (uint32_t at = 0; !found;) {
        uint32_t next = at + VECTOR_BYTES < last ? at + VECTOR_BYTES : last;
        uint8x16_t bits = probe_block(low, high, bytes + at, &seen);
        uint8x16_t more = probe_block(low, high, bytes + next, &seen);
        if (UNLIKELY(vmaxvq_u8(vorrq_u8(bits, more)) != 0)) {
            found =
                verify_block(literals, text, at, bits) || verify_block(literals, text, next, more);
        }
        if (next == last) break;
        at = next + VECTOR_BYTES < last ? next + VECTOR_BYTES : last;
    }
    *out_next = last + VECTOR_BYTES;
    *out_seen = vmaxvq_u8(seen);
    return found;
}

static bool has_vectors(void)
{
    return true;
}

#elif defined(__x86_64__)

enum { VECTOR_BYTES = 32 };

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i halves(const uint8_t table[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

AVX2 static inline __m256i load(const uint8_t *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

AVX2 static inline __m256i look_up(const __m256i low[], const __m256i high[], __m256i bytes,
                                   int place)
{
    const __m256i half = _mm256_set1_epi8(15);
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);
    return _mm256_and_si256(_mm256_shuffle_epi8(low[place], _mm256_and_si256(bytes, half)),
                            _mm256_shuffle_epi8(high[place], upper));
}

AVX2 static bool verify_block(const struct literals *literals, struct text text, uint32_t at,
                              __m256i bits)
{
    uint8_t lanes[VECTOR_BYTES];
    _mm256_storeu_si256((__m256i *)(void *)lanes, bits);
    for (uint32_t i = 0; i < VECTOR_BYTES; i++) {
        if (lanes[i] != 0 && verify(literals, text, at + i, lanes[i])) return true;
    }
    return false;
}

AVX2 static bool search_vector(const struct literals *literals, struct text text,
                               uint32_t *out_next, unsigned char *out_seen)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    __m256i low[LITERALS_PROBES];
    __m256i high[LITERALS_PROBES];
    for (int place = 0; place < LITERALS_PROBES; place++) {
        low[place] = halves(literals->low_halves[place]);
        high[place] = halves(literals->high_halves[place]);
    }
    __m256i seen = _mm256_setzero_si256();
    /* The last block ends with the text, and may overlap the one before. */
    const uint32_t last = text.size - (VECTOR_BYTES + LITERALS_PROBES - 1);
    bool found = false;
    for (uint32_t at = 0; !found; at = at + VECTOR_BYTES < last ? at + VECTOR_BYTES : last) {
        __m256i first = load(bytes + at);
        __m256i bits =
            _mm256_and_si256(_mm256_and_si256(look_up(low, high, first, 0),
                                              look_up(low, high, load(bytes + at + 1), 1)),
                             look_up(low, high, load(bytes + at + 2), 2));
        seen = _mm256_or_si256(seen, first);
        if (UNLIKELY(!_mm256_testz_si256(bits, bits))) {
            found = verify_block(literals, text, at, bits);
        }
        if (at == last) break;
    }
    *out_next = last + VECTOR_BYTES;
    *out_seen = _mm256_movemask_epi8(seen) != 0 ? 0x80 : 0;
    return found;
}

static bool has_vectors(void)
{
    return __builtin_cpu_supports("avx2");
}

#else

enum { VECTOR_BYTES = 16 };

static bool search_vector(const struct literals *literals, struct text text, uint32_t *out_next,
                          unsigned char *out_seen)
{
    (void)literals, (void)text; /* Everything is left to search_from. */
    *out_next = 0;
    *out_seen = 0;
    return false;
}

static bool has_vectors(void)
{
    return false;
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
