/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients, and gradients of gradients: y = x^3 at x = 2, three times.
 */
#include <stdio.h>

#include "trn.h"

int main(void)
{
    trn_context *c;
    if (trn_open(&c, NULL) != TRN_OK)
        goto out;
    trn_tensor *x = trn_tensor_scalar(c, TRN_F64, 2.0);
    trn_set_requires_grad(x, true);
    trn_tensor *y = trn_mul(x, trn_mul(x, x));
    printf("y    = %g\n", trn_tensor_item(y));

    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = true; /* the result can be differentiated again */
    for (int order = 1; order <= 3; order++) {
        trn_tensor *dy;
        if (trn_grad(1, &y, 1, &x, NULL, &o, &dy) != TRN_OK)
            goto out;
        printf("y%.*s%*s = %g\n", order, "'''", 3 - order, "",
               trn_tensor_item(dy));
        y = dy;
    }
out:
    if (trn_errcode(c) != TRN_OK)
        fprintf(stderr, "%s\n", trn_errmsg(c));
    return trn_close(c) == TRN_OK ? 0 : 1;
}
