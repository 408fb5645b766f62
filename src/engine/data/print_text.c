/* SPDX-License-Identifier: Apache-2.0 */
/* print_text.c - decoding follows table 3-7 of the Unicode Standard: the range of the second byte
 * depends on the first, all later ones are 80..BF. So overlong forms and surrogates end after their
 * first byte, as they do in Python.
 */
#include "engine/data/print_text.h"

#include <stdio.h>

#include "engine/base/assert.h"

struct lead {
    uint8_t first;
    uint8_t last;
    uint8_t length;
    uint8_t second_low;
    uint8_t second_high;
};

static const struct lead leads[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static const struct lead *lead_find(uint8_t byte)
{
    for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
        if (byte >= leads[i].first && byte <= leads[i].last) return &leads[i];
    }
    return NULL;
}

struct print_character print_character_at(struct text text, size_t offset)
{
    ASSERT(offset < text.size);
    const uint8_t *bytes = (const uint8_t *)text.bytes + offset;
    size_t left = text.size - offset;
    if (bytes[0] < 0x80) return (struct print_character){.code = bytes[0], .size = 1};

    struct print_character invalid = {PRINT_REPLACEMENT, 1, true};
    const struct lead *lead = lead_find(bytes[0]);
    if (lead == NULL) return invalid;
    uint32_t code = bytes[0] & (0xFFu >> (lead->length + 1));
    for (uint32_t i = 1; i < lead->length; i++) {
        uint8_t low = i == 1 ? lead->second_low : 0x80;
        uint8_t high = i == 1 ? lead->second_high : 0xBF;
        if (i >= left || bytes[i] < low || bytes[i] > high) {
            invalid.size = i;
            return invalid;
        }
        code = code << 6 | (bytes[i] & 0x3Fu);
    }
    return (struct print_character){.code = code, .size = lead->length};
}

struct range {
    uint32_t first;
    uint32_t last;
};

/* Marks that stand on the character before them, and joiners. The blocks in use, not every one. */
static const struct range zero_width[] = {
    {0x0300, 0x036F},   {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0670, 0x0670},   {0x06D6, 0x06DC}, {0x06DF, 0x06E4}, {0x0900, 0x0902}, {0x093C, 0x093C},
    {0x0941, 0x0948},   {0x094D, 0x094D}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},
    {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0x302A, 0x302D},
    {0x3099, 0x309A},   {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF},
    {0xE0100, 0xE01EF},
};

/* East Asian Wide and Fullwidth, and emoji. */
static const struct range double_width[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},
    {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},   {0x274C, 0x274C},
    {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},
    {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
    {0xA000, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F004, 0x1F004},
    {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F1E6, 0x1F1FF},
    {0x1F200, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393},
    {0x1F3A0, 0x1F3CA}, {0x1F3E0, 0x1F3F0}, {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440},
    {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D}, {0x1F54B, 0x1F567}, {0x1F5FB, 0x1F64F},
    {0x1F680, 0x1F6C5}, {0x1F6D0, 0x1F6FF}, {0x1F7E0, 0x1F7EB}, {0x1F900, 0x1F9FF},
    {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD},
};

static bool ranges_contain(const struct range *ranges, size_t count, uint32_t code)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (code < ranges[middle].first) {
            count = middle;
        } else if (code > ranges[middle].last) {
            low = middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

uint32_t print_character_width(uint32_t code)
{
    if (code < 0x300) return 1;
    if (ranges_contain(zero_width, sizeof zero_width / sizeof zero_width[0], code)) return 0;
    return ranges_contain(double_width, sizeof double_width / sizeof double_width[0], code) ? 2 : 1;
}

static bool changes_direction(uint32_t code)
{
    return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0x200E || code == 0x200F || code == 0x061C || code == 0x2028 || code == 0x2029;
}

enum { SHOWN_SIZE = 16 };

/* How one character is shown: its bytes and its width. */
struct shown {
    char bytes[SHOWN_SIZE];
    uint32_t size;
    uint32_t width;
};

static struct shown character_show(struct text text, size_t offset, struct print_character c)
{
    struct shown shown = {.size = c.size};
    int written = -1;
    if (c.is_invalid) {
        written = snprintf(shown.bytes, SHOWN_SIZE, "\xEF\xBF\xBD");
        shown.width = 1;
    } else if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
        written = snprintf(shown.bytes, SHOWN_SIZE, "\\%c",
                           c.code == '\n'   ? 'n'
                           : c.code == '\r' ? 'r'
                                            : 't');
        shown.width = 2;
    } else if (c.code < 0x20 || c.code == 0x7F) {
        written = snprintf(shown.bytes, SHOWN_SIZE, "\\x%02x", (unsigned)c.code);
        shown.width = 4;
    } else if ((c.code >= 0x80 && c.code < 0xA0) || changes_direction(c.code)) {
        written = snprintf(shown.bytes, SHOWN_SIZE, "\\u%04x", (unsigned)c.code);
        shown.width = 6;
    } else {
        memcpy(shown.bytes, text.bytes + offset, c.size);
        shown.width = print_character_width(c.code);
    }
    if (written >= 0) shown.size = (uint32_t)written;
    return shown;
}

uint32_t print_visible(struct text text, uint32_t width_limit, struct buf *out)
{
    uint32_t width = 0;
    size_t cut_size = out->size; /* Where an ellipsis would go, */
    uint32_t cut_width = 0;      /* and the width up to there. */
    for (size_t offset = 0; offset < text.size;) {
        struct print_character c = print_character_at(text, offset);
        struct shown shown = character_show(text, offset, c);
        if (shown.width > width_limit - width) {
            if (!out->failed) out->size = cut_size;
            if (width_limit == 0) return 0;
            buf_put_string(out, "…");
            return cut_width + 1;
        }
        buf_put(out, shown.bytes, shown.size);
        width += shown.width;
        if (width < width_limit) {
            cut_size = out->size;
            cut_width = width;
        }
        offset += c.size;
    }
    return width;
}

static void json_escape(uint32_t code, struct buf *out)
{
    switch (code) {
    case '"':
        buf_put_string(out, "\\\"");
        return;
    case '\\':
        buf_put_string(out, "\\\\");
        return;
    case '\b':
        buf_put_string(out, "\\b");
        return;
    case '\f':
        buf_put_string(out, "\\f");
        return;
    case '\n':
        buf_put_string(out, "\\n");
        return;
    case '\r':
        buf_put_string(out, "\\r");
        return;
    case '\t':
        buf_put_string(out, "\\t");
        return;
    default:
        buf_format(out, "\\u%04x", (unsigned)code);
    }
}

void print_json_string(struct text text, struct buf *out)
{
    buf_put_u8(out, '"');
    size_t run = 0; /* First byte that is not yet written: runs are copied in one piece. */
    for (size_t offset = 0; offset < text.size;) {
        uint8_t byte = (uint8_t)text.bytes[offset];
        if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
            offset++;
            continue;
        }
        struct print_character c = print_character_at(text, offset);
        if (c.code >= 0x80 && !c.is_invalid) {
            offset += c.size;
            continue;
        }
        buf_put(out, text.bytes + run, offset - run);
        if (c.is_invalid) {
            buf_put_string(out, "\xEF\xBF\xBD");
        } else {
            json_escape(c.code, out);
        }
        offset += c.size;
        run = offset;
    }
    if (text.size > run) buf_put(out, text.bytes + run, text.size - run);
    buf_put_u8(out, '"');
}
