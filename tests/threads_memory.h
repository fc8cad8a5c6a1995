/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain memory hooks for engines that are made without a context.
 */
#ifndef TRN_TESTS_THREADS_MEMORY_H
#define TRN_TESTS_THREADS_MEMORY_H

#include <stdlib.h>

static inline void *test_alloc(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static inline void test_dealloc(void *user, void *p)
{
    (void)user;
    free(p);
}

#endif
