/* SPDX-License-Identifier: Apache-2.0 */
/* fault_injection.h - what a build for tests and teaching can be told to do wrong.
 *
 * FAULT_INJECTION is 1 in what ./dev builds and 0 in what is installed; the build sets it. Where it
 * is 0, a planted mistake is a condition that the compiler knows to be false, and a hook for tests
 * is not declared: no code of either is left.
 */
#ifndef ENGINE_BASE_FAULT_INJECTION_H
#define ENGINE_BASE_FAULT_INJECTION_H

#ifndef FAULT_INJECTION
#error "the build sets FAULT_INJECTION to 0 or 1"
#endif

/* Whether `mistake` is the one that was planted. */
#if FAULT_INJECTION
#define IS_PLANTED(planted, mistake) ((planted) == (mistake))
#else
#define IS_PLANTED(planted, mistake) ((void)(planted), false)
#endif

#endif
