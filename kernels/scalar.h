/* SPDX-License-Identifier: Apache-2.0
 *
 * Mathematics of single f64 numbers on the host (schedules, beta^t, Box-Muller)
 * with the same bits on every machine: the C library's functions differ from
 * one version or CPU to another, so none but its exact fma is called.
 *
 * Special values are those of C99 Annex F.  exp, log, tanh and pow are the f64
 * kernels of vmath_f64.h, one lane wide: within 4 ulp; exp of less than -708.39
 * gives +0.  sin and cos are within 4 ulp for every finite x: up to 2^20 by
 * subtracting multiples of pi/2 in three parts, beyond by a product with the
 * needed bits of 2/pi; of infinities they give NaN.
 */
#ifndef TRN_KERNELS_SCALAR_H
#define TRN_KERNELS_SCALAR_H

double trn__exp(double x);
double trn__log(double x);
double trn__pow(double x, double y);
double trn__tanh(double x);
double trn__sin(double x);
double trn__cos(double x);
double trn__sqrt(double x);  /* correctly rounded */
double trn__floor(double x); /* exact; keeps the sign of zero */

#endif
