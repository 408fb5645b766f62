/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - what every unit test needs: cmocka with the headers it expects before it, and time that
 * lasts longer where the machine is slow. */
#ifndef UNIT_TEST_H
#define UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Milliseconds of an idle machine, times how slow this one is; tests/run.py has measured that. All
 * that a test waits for, and every deadline that it gives to what it tests, goes through here. */
static inline uint32_t scaled_ms(uint32_t ms)
{
    const char *text = getenv("TEST_TIME_SCALE");
    double scale = text == NULL ? 1 : strtod(text, NULL);
    return scale > 1 ? (uint32_t)(ms * scale) : ms;
}

#endif
