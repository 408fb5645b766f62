/* SPDX-License-Identifier: Apache-2.0 */
/* service_notify.c - see sd_notify(3), "Notes": the protocol is a few bytes and stable, and needs
 * no library.
 */
#include "cluster/node/service_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const messages[] = {
    [SERVICE_READY] = "READY=1",
    [SERVICE_STOPPING] = "STOPPING=1",
};

bool service_notify(enum service_state state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@')) return false;
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path) return false;
    memcpy(address.sun_path, path, size);
    if (path[0] == '@') address.sun_path[0] = '\0'; /* An abstract socket, see unix(7). */
    socklen_t address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);

    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    const char *text = messages[state];
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                          address_size);
    (void)close(fd); /* Nothing is buffered here. */
    return sent == (ssize_t)strlen(text);
}
