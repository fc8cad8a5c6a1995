/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of libtrn: three numbers at compile time, a string at run time.
 */
#ifndef TRN_VERSION_H
#define TRN_VERSION_H

#define TRN_VERSION_MAJOR 0
#define TRN_VERSION_MINOR 1
#define TRN_VERSION_PATCH 0

/* The rules that fix the CPU device's bits; named in every digest. */
#define TRN_NUMERICS_VERSION "1-dev"

#endif
