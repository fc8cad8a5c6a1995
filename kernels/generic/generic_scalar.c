/* SPDX-License-Identifier: Apache-2.0
 *
 * Host scalars: the f64 kernels, one lane wide.
 */
#include "kernels/scalar.h"
#include "kernels/vec_generic.h"
#include "kernels/vmath_pow.h"
#include "kernels/vmath_round.h"
#include "kernels/vmath_trig.h"

double trn__exp(double x)
{
    return exp_f64(x);
}

double trn__log(double x)
{
    return log_f64(x);
}

double trn__pow(double x, double y)
{
    return pow_f64(x, y);
}

double trn__tanh(double x)
{
    return tanh_f64(x);
}

double trn__sin(double x)
{
    return sin_f64(x);
}

double trn__cos(double x)
{
    return cos_f64(x);
}

double trn__sqrt(double x)
{
    return vd_sqrt(x);
}

double trn__floor(double x)
{
    return floor_f64(x);
}
