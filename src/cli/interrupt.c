/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c - the handler touches two lock-free atomics and calls _exit: all it may do. */
#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

enum { EXIT_SECOND_SIGNAL = 130 };

static atomic_bool requested;
static atomic_bool signalled;

static void handle(int number)
{
    (void)number;
    if (atomic_exchange(&signalled, true)) _exit(EXIT_SECOND_SIGNAL);
    atomic_store(&requested, true);
}

void interrupt_install(void)
{
    struct sigaction action = {.sa_handler = handle};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    /* These cannot fail for valid numbers. No SA_RESTART: a blocked write must notice. */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    /* A file-size limit is told like a full disk. */
    (void)sigaction(SIGXFSZ, &ignore, NULL);
}

const atomic_bool *interrupt_flag(void)
{
    return &requested;
}

void interrupt_request(void)
{
    atomic_store(&requested, true);
}

bool interrupt_by_signal(void)
{
    return atomic_load(&signalled);
}
