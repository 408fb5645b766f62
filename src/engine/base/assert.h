/* SPDX-License-Identifier: Apache-2.0 */
/* assert.h - ASSERT stays on in every build and speaks of programmers' mistakes only.
 *
 * Input, files and networks are never asserted about: they get an error.
 */
#ifndef ENGINE_BASE_ASSERT_H
#define ENGINE_BASE_ASSERT_H

#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) assert_failed(#condition, __FILE__, __LINE__);      \
    } while (0)

_Noreturn void assert_failed(const char *condition, const char *file, int line);

#endif
