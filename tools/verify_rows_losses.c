/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn verify`: cross_entropy with class weights, label smoothing, ignored
 * targets and probability targets.
 */
#include "tools/verify_rows.h"

static void indices_one(verify_sink *s, const char *name, int64_t n,
                        int classes, uint32_t reduction)
{
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    const int64_t shape[] = {n, classes};
    trn_tensor *in[2];
    in[0] = verify_uniform(s, 2, shape, 3.0);
    in[1] = verify_positive(s, 1, shape + 1, 1.0, 0.25);
    trn_tensor *target = verify_indices(s, 1, &n, classes);
    o.reduction = reduction;
    o.has_ignore_index = reduction != TRN_REDUCE_SUM;
    o.ignore_index = 1;
    o.label_smoothing = 0.1;
    o.weight = in[1];
    trn_tensor *y = trn_cross_entropy(in[0], target, &o);
    verify_put_all(s, name, y, 2, in, n < 100);
}

static void probabilities_one(verify_sink *s, const char *name, int64_t n,
                              int64_t classes, uint32_t reduction)
{
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    const int64_t shape[] = {n, classes};
    trn_tensor *in[3];
    in[0] = verify_uniform(s, 2, shape, 3.0);
    in[1] = verify_positive(s, 2, shape, 1.0, 0.0);
    in[2] = verify_positive(s, 1, shape + 1, 1.0, 0.25);
    o.reduction = reduction;
    o.label_smoothing = 0.1;
    o.weight = in[2];
    trn_tensor *y = trn_cross_entropy(in[0], in[1], &o);
    verify_put_all(s, name, y, 3, in, n < 100);
}

void verify_rows_losses(verify_sink *s)
{
    indices_one(s, "cross_entropy_weighted/mean", 17, 101, TRN_REDUCE_MEAN);
    indices_one(s, "cross_entropy_weighted/sum", 17, 101, TRN_REDUCE_SUM);
    indices_one(s, "cross_entropy_weighted/none", 17, 101, TRN_REDUCE_NONE);
    indices_one(s, "cross_entropy_weighted/many", 4501, 3, TRN_REDUCE_MEAN);
    probabilities_one(s, "soft_cross_entropy/mean", 17, 101, TRN_REDUCE_MEAN);
    probabilities_one(s, "soft_cross_entropy/none", 17, 101, TRN_REDUCE_NONE);
    probabilities_one(s, "soft_cross_entropy/many", 4501, 3, TRN_REDUCE_SUM);
}
