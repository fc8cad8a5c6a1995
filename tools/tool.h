/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands of the `trn` program share.
 *
 * A command gets the arguments after its name and returns the exit status:
 * 0, 1 when something failed (the message went to standard error), or 2 when
 * it was called wrongly.
 */
#ifndef TRN_TOOLS_TOOL_H
#define TRN_TOOLS_TOOL_H

#include "trn.h"

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* A flag of a command, and where it is noted that it was given. */
typedef struct tool_flag {
    const char *name; /* "--json" */
    bool *given;
    const char **value; /* takes the argument behind it; NULL: it has none */
} tool_flag;

/* Notes the flags given; anything else is TOOL_USAGE and named on stderr. */
int tool_flags(const char *command, int n_args, char **args, int n_flags,
               const tool_flag *flags);

/* TOOL_OK, or TOOL_FAILED after saying that this build cannot write JSON. */
int tool_json_available(const char *command);

/* Says the context's error on stderr; returns TOOL_FAILED. */
int tool_error(const char *command, const trn_context *c);

/* The log hook of the commands' contexts: warnings go to stderr, the same one
 * once. */
void tool_log(void *user, trn_log_level level, const char *text);

/* The commands. */
int tool_info(int n_args, char **args);
int tool_verify(int n_args, char **args);
int trn_graph_main(int argc, char **argv);
int tool_checkpoint(int n_args, char **args);

#endif
