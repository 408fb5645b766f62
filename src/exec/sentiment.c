/* sentiment.c - one pass over the bytes: a word is hashed while it is read.
 *
 * The table is made from sentiment_words.txt when the program is built (tools/sentiment_table.py),
 * as a hash table whose function is the one below.
 */
#include "exec/sentiment.h"

#include <string.h>

#include "exec/sentiment_table.h"

enum { APOSTROPHE = '\'' };

/* The letter in lower case or an apostrophe, which stand for themselves; 0 for all else. */
static inline unsigned char word_byte(char c)
{
    unsigned char low = (unsigned char)((unsigned char)c | 0x20);
    if ((unsigned char)(low - 'a') < 26) return low;
    return c == APOSTROPHE ? APOSTROPHE : 0;
}

/* Compares without letter case; `word` is lower-case. */
static bool is_word(struct text token, const char *word, uint32_t size)
{
    if (token.size != size) return false;
    for (uint32_t i = 0; i < size; i++) {
        if (word_byte(token.bytes[i]) != (unsigned char)word[i]) return false;
    }
    return true;
}

struct token {
    struct text text; /* Without apostrophes at its ends: may be empty. */
    uint32_t hash;
};

static uint32_t hash_of(struct text text)
{
    uint32_t hash = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        hash = hash * SENTIMENT_HASH_FACTOR + word_byte(text.bytes[i]);
    }
    return hash;
}

static bool next_token(struct text text, size_t *in_out_at, struct token *out)
{
    size_t at = *in_out_at;
    while (at < text.size && word_byte(text.bytes[at]) == 0) {
        at++;
    }
    if (at == text.size) return false;
    while (at < text.size && text.bytes[at] == APOSTROPHE) {
        at++;
    }
    size_t start = at;
    uint32_t hash = 0;
    unsigned char byte;
    for (; at < text.size && (byte = word_byte(text.bytes[at])) != 0; at++) {
        hash = hash * SENTIMENT_HASH_FACTOR + byte;
    }
    *in_out_at = at;
    *out = (struct token){{text.bytes + start, (uint32_t)(at - start)}, hash};
    if (at > start && text.bytes[at - 1] == APOSTROPHE) {
        while (out->text.size > 0 && out->text.bytes[out->text.size - 1] == APOSTROPHE) {
            out->text.size--;
        }
        out->hash = hash_of(out->text);
    }
    return true;
}

static int weight_of(const struct token *token)
{
    for (uint32_t slot = token->hash;; slot++) {
        uint16_t number = sentiment_slots[slot & SENTIMENT_SLOT_MASK];
        if (number == 0) return 0;
        const struct sentiment_word *word = &sentiment_words[number - 1];
        if (is_word(token->text, word->text, word->size)) return word->weight;
    }
}

static bool negates(struct text token)
{
    if (token.size < 2) return false;
    /* The last letter rules out nearly every word. */
    switch (word_byte(token.bytes[token.size - 1])) {
    case 't':
        return token.size >= 3 &&
               (is_word((struct text){token.bytes + (token.size - 3), 3}, "n't", 3) ||
                is_word(token, "not", 3));
    case 'o':
        return is_word(token, "no", 2);
    case 'r':
        return is_word(token, "never", 5);
    default:
        return false;
    }
}

double sentiment_polarity(struct text text)
{
    int64_t total = 0;
    int64_t magnitude = 0;
    bool negated = false;
    size_t at = 0;
    struct token token;
    while (next_token(text, &at, &token)) {
        int weight = weight_of(&token);
        total += negated ? -weight : weight;
        magnitude += weight < 0 ? -weight : weight;
        negated = negates(token.text);
    }
    return magnitude == 0 ? 0.0 : (double)total / (double)magnitude;
}

struct text sentiment_label(double polarity, double band)
{
    double distance = polarity < 0.0 ? -polarity : polarity;
    if (distance <= band) return TEXT_LITERAL("neutral");
    return polarity >= 0.0 ? TEXT_LITERAL("positive") : TEXT_LITERAL("negative");
}
