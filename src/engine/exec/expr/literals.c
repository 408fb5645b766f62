/* SPDX-License-Identifier: Apache-2.0 */
/* literals.c - search of several literals at once, in the manner of Teddy, a matcher of Hyperscan
 * (Wang et al.: Hyperscan, a fast multi-pattern regex matcher for modern CPUs, 2019).
 *
 * Few short literals need no automaton such as that of Aho and Corasick (1975), which takes the
 * bytes one after the other. Four consecutive bytes are looked up in tables that say for which
 * literals each may be the first, second, third and fourth; where all agree on a literal it is
 * compared in full. A vector of positions is tested at once: arm has an instruction that looks up
 * five bits of every byte, x86 one for four bits, so both halves of a byte are looked up there and
 * combined.
 */
#include "engine/exec/expr/literals.h"

#include <string.h>

#include "engine/base/error.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

/* What is neither ASCII nor another case of any other letter. */
static const struct text exotic_s = TEXT_INIT("\xc5\xbf");
static const struct text exotic_k = TEXT_INIT("\xe2\x84\xaa");

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
    out->folded[place][byte & 31] |= bit;
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

static void put_item(struct literals *out, struct text item)
{
    uint32_t number = (uint32_t)out->count + out->exotic_count;
    add_probes(out, item, (uint8_t)(1u << number % 8));
    out->items[number] = item;
    if (number == 0 || item.size < out->shortest) out->shortest = item.size;
}

static bool add_item(struct literals *out, struct text item, uint32_t *used)
{
    if (item.size == 0 || out->count == LITERALS_MAX) return false;
    if (item.size > LITERALS_BYTES_MAX - *used) return false;
    char *copy = out->bytes + *used;
    for (uint32_t i = 0; i < item.size; i++) {
        copy[i] = out->any_case ? lower(item.bytes[i]) : item.bytes[i];
    }
    put_item(out, (struct text){copy, item.size});
    out->count++;
    *used += item.size;
    return true;
}

static bool put_exotic(struct literals *out, struct text letter, struct text rest)
{
    if (out->exotic_count == LITERALS_EXOTIC) return false;
    char *bytes = out->exotic_bytes[out->exotic_count];
    uint32_t rest_size = LITERALS_EXOTIC_BYTES - letter.size;
    if (rest_size > rest.size) rest_size = rest.size;
    memcpy(bytes, letter.bytes, letter.size);
    memcpy(bytes + letter.size, rest.bytes, rest_size);
    put_item(out, (struct text){bytes, letter.size + rest_size});
    out->exotic_count++;
    return true;
}

/* A match that has exotic letters has, behind the last of them, what the literal has there: with
 * that they are seldom taken for something else. */
static bool add_exotic(struct literals *out)
{
    for (uint32_t i = 0; out->any_case && i < out->count; i++) {
        struct text item = out->items[i];
        for (uint32_t at = 0; at < item.size; at++) {
            if (item.bytes[at] != 's' && item.bytes[at] != 'k') continue;
            struct text rest = {item.bytes + at + 1, item.size - at - 1};
            if (!put_exotic(out, item.bytes[at] == 's' ? exotic_s : exotic_k, rest)) return false;
        }
    }
    return true;
}

static bool finish(struct literals *out)
{
    if (add_exotic(out)) return true;
    /* Too many: the letters alone. */
    out->exotic_count = 0;
    return put_exotic(out, exotic_s, (struct text){"", 0}) &&
           put_exotic(out, exotic_k, (struct text){"", 0});
}

bool literals_make(struct literals *out, const struct text *items, uint32_t count, bool any_case)
{
    *out = (struct literals){.any_case = any_case};
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!add_item(out, items[i], &used)) return false;
    }
    return count > 0 && finish(out);
}

bool literals_parse(struct literals *out, struct text pattern, bool any_case)
{
    *out = (struct literals){.any_case = any_case};
    uint32_t used = 0;
    uint32_t start = 0;
    for (uint32_t i = 0; i <= pattern.size; i++) {
        if (i < pattern.size && pattern.bytes[i] != '|') {
            if (!is_plain(pattern.bytes[i])) return false;
            continue;
        }
        if (!add_item(out, (struct text){pattern.bytes + start, i - start}, &used)) return false;
        start = i + 1;
    }
    return finish(out);
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

/* Compares the items that the bits name. An exotic letter makes the search unsure, and it
 * continues. */
static bool verify(const struct literals *literals, struct text text, uint32_t at, uint32_t bits,
                   bool *in_out_unsure)
{
    uint32_t item_count = (uint32_t)literals->count + literals->exotic_count;
    for (; bits != 0; bits &= bits - 1) {
        for (uint32_t i = (uint32_t)__builtin_ctz(bits); i < item_count; i += 8) {
            if (!has_at(literals, text, at, literals->items[i])) continue;
            if (i < literals->count) return true;
            *in_out_unsure = true;
        }
    }
    return false;
}

/* Positions from `start` on, byte by byte; a byte beyond the end excludes nothing, verifying does.
 */
static bool search_from(const struct literals *literals, struct text text, uint32_t start,
                        bool *in_out_unsure)
{
    const unsigned char *bytes = (const unsigned char *)text.bytes;
    for (uint32_t at = start; at + literals->shortest <= text.size; at++) {
        uint32_t left = text.size - at;
        uint32_t bits = literals->probes[0][bytes[at]];
        for (uint32_t place = 1; place < LITERALS_PROBES && place < left; place++) {
            bits &= literals->probes[place][bytes[at + place]];
        }
        if (UNLIKELY(bits != 0) && verify(literals, text, at, bits, in_out_unsure)) return true;
    }
    return false;
}

static enum literals_answer answer_of(bool found, bool is_unsure)
{
    if (found) return LITERALS_FOUND;
    return is_unsure ? LITERALS_UNSURE : LITERALS_NONE;
}

#if FAULT_INJECTION
enum literals_answer literals_search_plain(const struct literals *literals, struct text text)
{
    bool is_unsure = false;
    bool found = search_from(literals, text, 0, &is_unsure);
    return answer_of(found, is_unsure);
}
#endif

#if defined(__aarch64__)

#define VECTOR_TARGET
enum { VECTOR_BYTES = 16 };
typedef uint8x16_t vector;
typedef uint8x16x2_t vector_table;

static inline vector vector_load(const uint8_t *bytes)
{
    return vld1q_u8(bytes);
}

static inline vector_table table_load(const struct literals *literals, uint32_t place)
{
    return vld1q_u8_x2(literals->folded[place]);
}

static inline vector look_up(vector_table table, vector bytes)
{
    return vqtbl2q_u8(table, vandq_u8(bytes, vdupq_n_u8(31)));
}

static inline vector vector_or(vector a, vector b)
{
    return vorrq_u8(a, b);
}

static inline vector vector_and(vector a, vector b)
{
    return vandq_u8(a, b);
}

static inline bool vector_has_any(vector bits)
{
    return vmaxvq_u8(bits) != 0;
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
typedef struct {
    __m256i low;
    __m256i high;
} vector_table;

VECTOR_TARGET static inline vector vector_load(const uint8_t *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

/* In both halves of the vector: look-ups do not cross them. */
VECTOR_TARGET static inline vector halves_load(const uint8_t halves[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)halves));
}

VECTOR_TARGET static inline vector_table table_load(const struct literals *literals, uint32_t place)
{
    return (vector_table){halves_load(literals->low_halves[place]),
                          halves_load(literals->high_halves[place])};
}

VECTOR_TARGET static inline vector look_up(vector_table table, vector bytes)
{
    const __m256i half = _mm256_set1_epi8(15);
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);
    return _mm256_and_si256(_mm256_shuffle_epi8(table.low, _mm256_and_si256(bytes, half)),
                            _mm256_shuffle_epi8(table.high, upper));
}

VECTOR_TARGET static inline vector vector_or(vector a, vector b)
{
    return _mm256_or_si256(a, b);
}

VECTOR_TARGET static inline vector vector_and(vector a, vector b)
{
    return _mm256_and_si256(a, b);
}

VECTOR_TARGET static inline bool vector_has_any(vector bits)
{
    return !_mm256_testz_si256(bits, bits);
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
                          bool *in_out_unsure)
{
    (void)literals, (void)text, (void)in_out_unsure; /* Everything is left to search_from. */
    *out_next = 0;
    return false;
}

#else

/* So many vectors of places are looked at together: whether there is anything in one is a question
 * whose answer takes longer than the vector. The last ones of a text overlap. */
enum { STRETCH_VECTORS = 4 };

/* Which literals may begin at each place. The tables one by one: compilers keep neither arrays nor
 * structs of them in registers. */
VECTOR_TARGET ALWAYS_INLINE vector probe(vector_table first, vector_table second,
                                         vector_table third, vector_table fourth,
                                         const uint8_t *bytes)
{
    vector one = look_up(first, vector_load(bytes));
    vector two = look_up(second, vector_load(bytes + 1));
    vector three = look_up(third, vector_load(bytes + 2));
    vector four = look_up(fourth, vector_load(bytes + 3));
    return vector_and(vector_and(one, two), vector_and(three, four));
}

static inline uint32_t place_of(uint32_t start, uint32_t number, uint32_t last)
{
    uint32_t place = start + number * VECTOR_BYTES;
    return place < last ? place : last;
}

static bool verify_places(const struct literals *literals, struct text text, uint32_t at,
                          const uint8_t *bits, bool *in_out_unsure)
{
    for (uint32_t first = 0; first < VECTOR_BYTES; first += sizeof(uint64_t)) {
        uint64_t some;
        memcpy(&some, bits + first, sizeof some);
        for (; some != 0; some &= ~((uint64_t)255 << (__builtin_ctzll(some) & 56))) {
            uint32_t place = first + (uint32_t)__builtin_ctzll(some) / 8;
            if (verify(literals, text, at + place, bits[place], in_out_unsure)) return true;
        }
    }
    return false;
}

/* Looks at a stretch again in which there is something. Out of line: it is rare, and would take the
 * registers of what is not. */
VECTOR_TARGET static __attribute__((noinline)) bool verify_stretch(const struct literals *literals,
                                                                   struct text text, uint32_t start,
                                                                   uint32_t last,
                                                                   bool *in_out_unsure)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    for (uint32_t i = 0; i < STRETCH_VECTORS; i++) {
        uint32_t place = place_of(start, i, last);
        uint8_t bits[VECTOR_BYTES];
        vector_store(bits, probe(table_load(literals, 0), table_load(literals, 1),
                                 table_load(literals, 2), table_load(literals, 3), bytes + place));
        if (verify_places(literals, text, place, bits, in_out_unsure)) return true;
    }
    return false;
}

/* Places up to *out_next. The text has at least one vector of them. */
VECTOR_TARGET static bool search_vector(const struct literals *literals, struct text text,
                                        uint32_t *out_next, bool *in_out_unsure)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    const vector_table first = table_load(literals, 0);
    const vector_table second = table_load(literals, 1);
    const vector_table third = table_load(literals, 2);
    const vector_table fourth = table_load(literals, 3);
    const uint32_t last = text.size - (VECTOR_BYTES + LITERALS_PROBES - 1);
    *out_next = last + VECTOR_BYTES;
    for (uint32_t at = 0; at < *out_next; at += STRETCH_VECTORS * VECTOR_BYTES) {
        vector any = probe(first, second, third, fourth, bytes + place_of(at, 0, last));
        for (uint32_t i = 1; i < STRETCH_VECTORS; i++) {
            any =
                vector_or(any, probe(first, second, third, fourth, bytes + place_of(at, i, last)));
        }
        if (UNLIKELY(vector_has_any(any)) &&
            verify_stretch(literals, text, at, last, in_out_unsure)) {
            return true;
        }
    }
    return false;
}

#endif

enum literals_answer literals_search(const struct literals *literals, struct text text)
{
    bool is_unsure = false;
    uint32_t next = 0;
    bool found = text.size >= VECTOR_BYTES + LITERALS_PROBES - 1 && has_vectors() &&
                 search_vector(literals, text, &next, &is_unsure);
    found = found || search_from(literals, text, next, &is_unsure);
    return answer_of(found, is_unsure);
}
