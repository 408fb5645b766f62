/* SPDX-License-Identifier: Apache-2.0 */
/* tls_world.h - a CA and certificates made for one run of a test, by the program openssl.
 *
 *     tls_world_make -> tls_path* -> tls_world_remove
 *
 * ca.pem          who vouches for the next three, each with its .key:
 * server.pem        for 127.0.0.1 and localhost,
 * elsewhere.pem     for another host,
 * client.pem        for a client;
 * unknown sender.pem    another CA.
 */
#ifndef UNIT_IO_TLS_WORLD_H
#define UNIT_IO_TLS_WORLD_H

#include "unit/test.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char tls_folder[64];

/* In one of four places, so that a call may have several. */
static inline const char *tls_path(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", tls_folder, name); /* Fits. */
    return path;
}

static inline bool tls_run(const char *command)
{
    char line[1024];
    int size = snprintf(line, sizeof line, "cd %s && { %s; } 2>openssl.log", tls_folder, command);
    return size > 0 && (size_t)size < sizeof line && system(line) == 0;
}

#define TLS_REQUEST                                                                                \
    "openssl req -x509 -config config -days 2 -nodes -newkey ec "                                  \
    "-pkeyopt ec_paramgen_curve:prime256v1 "

static inline bool tls_sign(const char *name, const char *extension)
{
    char line[600];
    (void)snprintf(line, sizeof line,
                   TLS_REQUEST "-CA ca.pem -CAkey ca.key -keyout %s.key -out %s.pem -subj /CN=%s "
                               "-addext basicConstraints=critical,CA:FALSE -addext %s",
                   name, name, name, extension); /* Fits. */
    return tls_run(line);
}

/* False: there is no openssl. */
static inline bool tls_world_make(void)
{
    if (system("openssl version >/dev/null 2>&1") != 0) return false;
    (void)snprintf(tls_folder, sizeof tls_folder, "/tmp/test_tls.XXXXXX"); /* Fits. */
    assert_non_null(mkdtemp(tls_folder));
    static const char make_ca[] =
        TLS_REQUEST "-keyout %s.key -out %s.pem -subj /CN=%s -addext "
                    "basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign,cRLSign";
    char line[600];
    assert_true(tls_run("printf '[req]\\ndistinguished_name = dn\\n[dn]\\n' > config"));
    (void)snprintf(line, sizeof line, make_ca, "ca", "ca", "ca"); /* Fits. */
    assert_true(tls_run(line));
    (void)snprintf(line, sizeof line, make_ca, "stranger", "stranger", "stranger"); /* Fits. */
    assert_true(tls_run(line));
    assert_true(tls_sign("server", "subjectAltName=IP:127.0.0.1,DNS:localhost"));
    assert_true(tls_sign("elsewhere", "subjectAltName=DNS:elsewhere.test"));
    assert_true(tls_sign("client", "extendedKeyUsage=clientAuth"));
    return true;
}

static inline int tls_remove_entry(const char *path, const struct stat *info, int kind,
                                   struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static inline void tls_world_remove(void)
{
    if (tls_folder[0] == '\0') return;
    (void)nftw(tls_folder, tls_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    tls_folder[0] = '\0';
}

#endif
