/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.c - numbers with units, and addresses. */
#include "cluster/config/config_value.h"

#include "engine/base/error.h"
#include "engine/base/number.h"

enum { HOST_MAX = 253 };

struct config_unit {
    struct text name;
    uint64_t factor;
};

bool config_is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\f' || byte == '\v';
}

struct text config_trim(struct text text)
{
    while (text.size > 0 && config_is_blank(text.bytes[0])) {
        text.bytes++;
        text.size--;
    }
    while (text.size > 0 && config_is_blank(text.bytes[text.size - 1])) {
        text.size--;
    }
    return text;
}

bool config_count_parse(struct text text, uint64_t *out)
{
    int64_t value = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9') return false;
    }
    if (!int_parse(text, &value)) return false;
    *out = (uint64_t)value;
    return true;
}

static bool parse_with_unit(struct text text, const struct config_unit *units, size_t unit_count,
                            uint64_t *out)
{
    uint32_t digits = 0;
    while (digits < text.size && text.bytes[digits] >= '0' && text.bytes[digits] <= '9') {
        digits++;
    }
    struct text unit = {text.bytes + digits, text.size - digits};
    uint64_t value;
    if (!config_count_parse((struct text){text.bytes, digits}, &value)) return false;
    for (size_t i = 0; i < unit_count; i++) {
        if (!text_equal_ignoring_case(unit, units[i].name)) continue;
        return !__builtin_mul_overflow(value, units[i].factor, out);
    }
    return false;
}

bool config_size_parse(struct text text, uint64_t *out_bytes)
{
    static const struct config_unit units[] = {
        {TEXT_INIT(""), 1},
        {TEXT_INIT("K"), 1 << 10},
        {TEXT_INIT("M"), 1 << 20},
        {TEXT_INIT("G"), 1 << 30},
    };
    uint64_t bytes;
    if (!parse_with_unit(text, units, sizeof units / sizeof units[0], &bytes)) return false;
    *out_bytes = bytes;
    return true;
}

bool config_duration_parse(struct text text, uint64_t *out_ms)
{
    static const struct config_unit units[] = {
        {TEXT_INIT(""), 1000},
        {TEXT_INIT("ms"), 1},
        {TEXT_INIT("s"), 1000},
        {TEXT_INIT("m"), 60000},
    };
    uint64_t ms;
    if (!parse_with_unit(text, units, sizeof units / sizeof units[0], &ms)) return false;
    *out_ms = ms;
    return true;
}

bool config_host_valid(struct text text)
{
    if (text.size == 0 || text.size > HOST_MAX) return false;
    for (uint32_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.bytes[i];
        bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool is_digit = byte >= '0' && byte <= '9';
        if (!is_letter && !is_digit && strchr(".-_:%", byte) == NULL) return false;
        if (byte == '\0') return false;
    }
    return true;
}

bool config_address_parse(struct text text, struct text *out_host, uint16_t *out_port)
{
    uint32_t colon = text.size;
    while (colon > 0 && text.bytes[colon - 1] != ':') {
        colon--;
    }
    if (colon == 0) return false;
    struct text host = {text.bytes, colon - 1};
    struct text port_text = {text.bytes + colon, text.size - colon};
    uint64_t port;
    if (!config_count_parse(port_text, &port) || port == 0 || port > UINT16_MAX) return false;
    bool is_bracketed = host.size > 2 && host.bytes[0] == '[' && host.bytes[host.size - 1] == ']';
    if (is_bracketed) host = (struct text){host.bytes + 1, host.size - 2};
    if (!config_host_valid(host)) return false;
    /* Without brackets the end of an IPv6 address is ambiguous, RFC 3986 section 3.2.2. */
    bool has_colon = memchr(host.bytes, ':', host.size) != NULL;
    if (has_colon != is_bracketed) return false;
    *out_host = host;
    *out_port = (uint16_t)port;
    return true;
}
