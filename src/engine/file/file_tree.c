/* SPDX-License-Identifier: Apache-2.0 */
/* file_tree.c - nftw walks a tree of any depth with a bounded number of descriptors. */
#include "engine/file/file_tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DESCRIPTORS = 16 };

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

status file_tree_remove(const char *path, struct error *err)
{
    if (nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0) return STATUS_OK;
    if (errno == ENOENT) return STATUS_OK;
    int number = errno;
    char reason[128];
    return error_set(err, STATUS_IO, "cannot remove all of %.1000s: %s", path,
                     strerror_r(number, reason, sizeof reason));
}
