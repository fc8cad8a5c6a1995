/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn verify`: rows that join, turn round and select, and draws of integers.
 */
#include "tools/verify_rows.h"

void verify_rows_moves(verify_sink *s)
{
    trn_tensor *in[3];
    for (int i = 0; i < 3; i++)
        in[i] = verify_uniform(s, 2, (int64_t[]){9, 31}, 1.0);
    verify_put_all(s, "concat", trn_concat(3, in, 1), 3, in, false);
    verify_put_all(s, "stack", trn_stack(3, in, 1), 3, in, false);
    verify_put_all(s, "flip", trn_flip(in[0], TRN_ALL_AXES), 1, in, false);
    trn_tensor *i = verify_indices(s, 1, (int64_t[]){300}, 31);
    trn_tensor *y = trn_index_select(in[0], 1, i);
    verify_put_all(s, "index_select/1", y, 1, in, false);
    i = verify_indices(s, 1, (int64_t[]){300}, 9);
    y = trn_index_select(in[0], 0, i);
    verify_put_all(s, "index_select/0", y, 1, in, false);
    verify_put(s, "one_hot", trn_one_hot(i, 9, s->dtype));
    const int64_t shape[] = {3, 9001};
    const int64_t far = (int64_t)1 << 62; /* half of the words are too large */
    verify_put(s, "randint", trn_randint(s->g, TRN_I32, -7, 93, 2, shape));
    verify_put(s, "randint/wide",
               trn_randint(s->g, TRN_I64, -far, far + 9, 2, shape));
    verify_put(s, "permutation", trn_permutation(s->g, TRN_I32, 999));
}
