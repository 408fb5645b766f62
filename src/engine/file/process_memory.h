/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory.h - how much memory this process has. */
#ifndef ENGINE_FILE_PROCESS_MEMORY_H
#define ENGINE_FILE_PROCESS_MEMORY_H

#include <stdint.h>

/* Of real memory, now; 0: the system does not say. */
uint64_t process_memory_bytes(void);

#endif
