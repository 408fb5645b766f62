/* SPDX-License-Identifier: Apache-2.0 */
/* assert.c - a broken invariant ends the process: to continue would give a wrong answer. */
#include "engine/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "millrace: internal error: %s does not hold at %s:%d\n", condition, file,
                  line); /* Nothing more can be done when stderr is closed. */
    abort();
}
