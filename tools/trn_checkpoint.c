/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn checkpoint`: checks a checkpoint and lists what it holds.
 */
#include <stdio.h>

#include "tools/tool.h"

static void put_text(void *user, const char *text)
{
    fputs(text, user);
}

int tool_checkpoint(int n_args, char **args)
{
    if (n_args != 1 || args[0][0] == '-') {
        fprintf(stderr, "trn checkpoint: expected the name of one file\n");
        return TOOL_USAGE;
    }
    int status = TOOL_OK;
    trn_options o = TRN_OPTIONS_INIT;
    o.log = tool_log;
    o.device = "cpu"; /* nothing runs on it */
    o.n_threads = 1;
    trn_context *c = NULL;
    if (trn_open(&c, &o) != TRN_OK ||
        trn_checkpoint_print(c, args[0], put_text, stdout) != TRN_OK)
        status = tool_error("checkpoint", c);
    trn_close(c);
    return status;
}
