/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: make them, compute with them, look at them.
 */
#include <stdio.h>

#include "trn.h"

static void print_matrix(const char *name, trn_tensor *t)
{
    char text[64];
    const float *x = trn_tensor_map(t);
    if (x == NULL)
        return;
    printf("%s = %s\n", name, trn_tensor_describe(t, text, sizeof text));
    for (int64_t i = 0; i < trn_tensor_dim(t, 0); i++) {
        for (int64_t j = 0; j < trn_tensor_dim(t, 1); j++)
            printf("%8.3f", (double)x[i * trn_tensor_dim(t, 1) + j]);
        printf("\n");
    }
    trn_tensor_unmap(t);
}

int main(void)
{
    trn_context *c;
    if (trn_open(&c, NULL) != TRN_OK)
        goto out;
    const float data[] = {1, 2, 3, 4, 5, 6};
    trn_tensor *a = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){2, 3}, data);
    trn_tensor *row = trn_slice(a, 0, 0, 1, 1); /* a view: no copy */

    print_matrix("a", a);
    print_matrix("a + row", trn_add(a, row)); /* broadcast over rows */
    print_matrix("a a^T", trn_matmul(a, trn_transpose(a, 0, 1)));
    print_matrix("softmax(a)", trn_softmax(a, -1));
    printf("sum of all = %g\n",
           trn_tensor_item(trn_sum(a, TRN_ALL_AXES, false)));

    /* A mistake: NULL comes back, and the context tells what was wrong. */
    if (trn_matmul(a, a) == NULL)
        printf("as it should: %s\n", trn_errmsg(c));
    trn_clear(c);
out:
    if (trn_errcode(c) != TRN_OK)
        fprintf(stderr, "%s\n", trn_errmsg(c));
    return trn_close(c) == TRN_OK ? 0 : 1;
}
