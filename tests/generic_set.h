/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generic set says of itself: it is compiled without hardware FMA,
 * unless the user's flags have it (-mfma).  "generic" chooses it in either
 * case.
 */
#ifndef TRN_TESTS_GENERIC_SET_H
#define TRN_TESTS_GENERIC_SET_H

#ifdef __FMA__
#define GENERIC_SET "generic+fma"
#else
#define GENERIC_SET "generic"
#endif

#endif
