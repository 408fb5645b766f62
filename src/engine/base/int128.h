/* SPDX-License-Identifier: Apache-2.0 */
/* int128.h - 128-bit integers, which gcc and clang offer as an extension. */
#ifndef ENGINE_BASE_INT128_H
#define ENGINE_BASE_INT128_H

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

#endif
