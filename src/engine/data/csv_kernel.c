/* SPDX-License-Identifier: Apache-2.0 */
/* csv_kernel.c - which set of vector functions to run.
 *
 * NEON is part of every arm64; AVX2 is asked for. Asking takes long enough to remember the answer,
 * and threads that ask at once get the same one, so a relaxed atomic is all it takes.
 */
#include "engine/data/csv_kernel.h"

#include <stdatomic.h>

enum { KERNEL_LIMIT = 2 };

static _Atomic(const struct csv_kernel *) current;

#if defined(__x86_64__)
static bool cpu_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("pclmul");
}
#endif

const struct csv_kernel *const *csv_kernel_list(size_t *out_count)
{
    static const struct csv_kernel *const kernels[KERNEL_LIMIT] = {
#if defined(__aarch64__)
        &csv_kernel_neon,
#elif defined(__x86_64__)
        &csv_kernel_avx2,
#endif
        &csv_kernel_scalar,
    };
#if defined(__aarch64__)
    *out_count = 2;
    return kernels;
#elif defined(__x86_64__)
    bool capable = cpu_has_avx2();
    *out_count = capable ? 2 : 1;
    return capable ? kernels : kernels + 1;
#else
    *out_count = 1;
    return kernels;
#endif
}

const struct csv_kernel *csv_kernel_get(void)
{
    const struct csv_kernel *kernel = atomic_load_explicit(&current, memory_order_relaxed);
    if (kernel != NULL) return kernel;
    size_t count;
    kernel = csv_kernel_list(&count)[0];
    atomic_store_explicit(&current, kernel, memory_order_relaxed);
    return kernel;
}

#if FAULT_INJECTION
void csv_kernel_use(const struct csv_kernel *kernel)
{
    atomic_store_explicit(&current, kernel, memory_order_relaxed);
}
#endif
