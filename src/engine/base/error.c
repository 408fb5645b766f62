/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - texts have a fixed size, so that reporting a failure never needs memory. */
#include "engine/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const status_names[STATUS_NAMES] = {
    [STATUS_OK] = "ok",
    [STATUS_MEMORY] = "memory",
    [STATUS_LIMIT] = "limit",
    [STATUS_INPUT] = "input",
    [STATUS_SQL] = "sql",
    [STATUS_OVERFLOW] = "overflow",
    [STATUS_USAGE] = "usage",
    [STATUS_IO] = "io",
    [STATUS_CORRUPT] = "corrupt",
    [STATUS_CANCELLED] = "cancelled",
    [STATUS_UNREACHABLE] = "unreachable",
    [STATUS_INTERNAL] = "internal",
};

const char *status_name(status code)
{
    return (unsigned)code < STATUS_NAMES ? status_names[code] : status_names[STATUS_INTERNAL];
}

void error_write(struct error *err, status code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(err->text, sizeof err->text, format, arguments); /* Cut at the limit. */
    va_end(arguments);
    err->code = code;
}

status error_prefix(struct error *err, const char *format, ...)
{
    char text[ERROR_TEXT_SIZE];
    memcpy(text, err->text, sizeof text);
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    size_t used = written < 0 ? 0 : (size_t)written;
    if (used < sizeof err->text - 3) {
        (void)snprintf(err->text + used, sizeof err->text - used, ": %.*s", (int)(sizeof text - 3),
                       text); /* Cut at the limit. */
    }
    return err->code;
}
