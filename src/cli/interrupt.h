/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.h - asking the work at hand to stop: Ctrl-C, SIGTERM, or a reader that is gone.
 *
 * The first signal sets a flag that everything long looks at; the second ends the process at once.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

/* Also has SIGPIPE ignored, so that a closed pipe is an error to be told and not a death. */
void interrupt_install(void);
const atomic_bool *interrupt_flag(void);
/* Sets the flag without a signal. */
void interrupt_request(void);
bool interrupt_by_signal(void);

#endif
