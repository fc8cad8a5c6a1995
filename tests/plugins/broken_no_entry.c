/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object that is no plug-in.
 */
#include "trn/types.h"

TRN_API int trn_test_not_a_plugin(void);

int trn_test_not_a_plugin(void)
{
    return 1;
}
