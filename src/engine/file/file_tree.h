/* SPDX-License-Identifier: Apache-2.0 */
/* file_tree.h - removing a folder with all that is in it. */
#ifndef ENGINE_FILE_FILE_TREE_H
#define ENGINE_FILE_FILE_TREE_H

#include "engine/base/error.h"

/* Links are removed, not followed. What is not there is fine. STATUS_IO names what stays. */
MUST_USE status file_tree_remove(const char *path, struct error *err);

#endif
