/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object as an interrupted download leaves it.
 */
#ifndef TRN_TESTS_CUT_COPY_H
#define TRN_TESTS_CUT_COPY_H

#include <stdio.h>

#include "harness.h"

/* The first 2000 bytes of `from` become the file `to`: all of its headers. */
static inline void harness_cut_copy(const char *from, const char *to)
{
    char bytes[2000];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in != NULL && out != NULL);
    assert_int_equal(fread(bytes, 1, sizeof bytes, in), sizeof bytes);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, out), sizeof bytes);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

#endif
