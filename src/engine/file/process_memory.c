/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory.c - /proc/self/statm: pages in all, pages resident, and more. */
#include "engine/file/process_memory.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/number.h"

enum { LINE_SIZE = 256 };

uint64_t process_memory_bytes(void)
{
    char line[LINE_SIZE];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t size = read(fd, line, sizeof line);
    (void)close(fd); /* Only read. */
    if (size <= 0) return 0;
    const char *end = line + size;
    const char *begin = memchr(line, ' ', (size_t)size);
    if (begin == NULL) return 0;
    begin++;
    const char *second_end = memchr(begin, ' ', (size_t)(end - begin));
    int64_t pages = 0;
    if (second_end == NULL) return 0;
    if (!int_parse((struct text){begin, (uint32_t)(second_end - begin)}, &pages)) return 0;
    long page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}
