/* SPDX-License-Identifier: Apache-2.0
 *
 * The `trn` program: finds the command and runs it.
 *
 * Commands stand in one table; a new one is a line there and a file of its own.
 */
#include <stdio.h>
#include <string.h>

#include "tools/tool.h"

static int help(int n_args, char **args);
static int version(int n_args, char **args);

typedef struct command {
    const char *name;
    const char *flags;
    const char *what;
    int (*run)(int n_args, char **args);
} command;

static const command commands[] = {
    {
        .name = "help",
        .flags = "",
        .what = "this list",
        .run = help,
    },
    {
        .name = "version",
        .flags = "",
        .what = "the library's version",
        .run = version,
    },
    {
        .name = "info",
        .flags = "[--json]",
        .what = "version, device, threads, parts of this build",
        .run = tool_info,
    },
    {
        .name = "verify",
        .flags = "[--json] [--quick] [--rows]",
        .what = "digests that are the same on every machine;\n"
                "             --exec eager | captured, --device NAME",
        .run = tool_verify,
    },
    {
        .name = "graph",
        .flags = "[--traced | --prepared] [--dot]",
        .what = "the captured step of a small model;\n"
                "             --hlo [--profile xla | neuron]  as an HLO module",
        .run = trn_graph_main,
    },
    {
        .name = "checkpoint",
        .flags = "FILE",
        .what = "checks a checkpoint and lists what it holds",
        .run = tool_checkpoint,
    },
};

enum { N_COMMANDS = (int)(sizeof commands / sizeof commands[0]) };

static void usage(FILE *out)
{
    fprintf(out, "usage: trn <command> [flags]\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %-32s %s\n", commands[i].name, commands[i].flags,
                commands[i].what);
    fprintf(out, "\nenvironment: TRN_DEVICE, TRN_DEVICE_OPTIONS,\n"
                 "  TRN_CPU_ISA (auto, generic, avx2), TRN_NUM_THREADS,\n"
                 "  TRN_ENGINE (pool, openmp), TRN_EXEC (eager, captured),\n"
                 "  TRN_MATMUL (reproducible, openblas), "
                 "TRN_OPENBLAS_LIBRARY\n");
}

static int help(int n_args, char **args)
{
    int status = tool_flags("help", n_args, args, 0, NULL);
    if (status == TOOL_OK)
        usage(stdout);
    return status;
}

static int version(int n_args, char **args)
{
    int status = tool_flags("version", n_args, args, 0, NULL);
    if (status == TOOL_OK)
        printf("libtrn %s (numerics %s)\n", trn_version(),
               trn_numerics_version());
    return status;
}

int tool_flags(const char *name, int n_args, char **args, int n_flags,
               const tool_flag *flags)
{
    for (int i = 0; i < n_args; i++) {
        int f = 0;
        while (f < n_flags && strcmp(args[i], flags[f].name) != 0)
            f++;
        if (flags == NULL || f == n_flags) {
            fprintf(stderr, "trn %s: unknown argument '%s'\n", name, args[i]);
            return TOOL_USAGE;
        }
        *flags[f].given = true;
        if (flags[f].value == NULL)
            continue;
        if (i + 1 == n_args) {
            fprintf(stderr, "trn %s: %s needs an argument\n", name, args[i]);
            return TOOL_USAGE;
        }
        *flags[f].value = args[++i];
    }
    return TOOL_OK;
}

int tool_json_available(const char *name)
{
#ifdef TRN_HAVE_JANSSON
    (void)name;
    return TOOL_OK;
#else
    fprintf(stderr,
            "trn %s: --json needs the jansson library, which this build "
            "lacks\n",
            name);
    return TOOL_FAILED;
#endif
}

void tool_log(void *user, trn_log_level level, const char *text)
{
    static char last[400]; /* a command may open a context again and again */
    (void)user;
    if (level != TRN_LOG_WARNING || strcmp(last, text) == 0)
        return;
    snprintf(last, sizeof last, "%s", text);
    fprintf(stderr, "trn: warning: %s\n", text);
}

int tool_error(const char *name, const trn_context *c)
{
    const char *text = c == NULL ? "out of memory" : trn_errmsg(c);
    fprintf(stderr, "trn %s: %s: %s\n", name, trn_status_name(trn_errcode(c)),
            text);
    return TOOL_FAILED;
}

static int run(int argc, char **argv)
{
    const char *name = argc < 2 ? NULL : argv[1];
    if (name == NULL) {
        usage(stderr);
        return TOOL_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        int status = commands[i].run(argc - 2, argv + 2);
        if (status == TOOL_USAGE)
            usage(stderr);
        return status;
    }
    fprintf(stderr, "trn: unknown command '%s'\n", name);
    usage(stderr);
    return TOOL_USAGE;
}

int main(int argc, char **argv)
{
    int status = run(argc, argv);
    /* What could not be written (a full disk, a closed pipe) did not work. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == TOOL_OK) {
        fprintf(stderr, "trn: standard output could not be written\n");
        status = TOOL_FAILED;
    }
    return status;
}
