/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn verify`: prints digests of fixed computations, one line per model and
 * element type, with what ran: instruction set, engine, threads, device, and
 * whether steps were captured.
 *
 * Where trn_reproducible() says no, so does a line before the first of them.
 *
 * Two machines, builds or settings whose lines agree in the digests compute
 * the same bits.  Time goes to standard error alone, so that whole outputs can
 * be compared.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef TRN_HAVE_JANSSON
#include <jansson.h>
#endif

#include "tools/tool.h"
#include "tools/verify.h"

static const trn_dtype row_dtypes[] = {TRN_F32, TRN_F64, TRN_BF16, TRN_F16};
enum { N_ROW_DTYPES = (int)(sizeof row_dtypes / sizeof row_dtypes[0]) };

typedef struct settings {
    bool json, quick, rows;
    const char *device; /* NULL: as the environment has it */
    uint32_t exec;
    void *list; /* json_t *, the lines so far */
    bool told;  /* that these digests are of this machine */
    bool reproducible;
} settings;

/* What ran, not what was asked for. */
typedef struct ran {
    char isa[32];
    const char *engine, *device, *exec;
    int threads;
} ran;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Mixed: a step that did not run as one program on the device. */
static const char *exec_of(const trn_context *c)
{
    trn_capture_info i = TRN_CAPTURE_INFO_INIT;
    if (trn_capture(c, &i) != TRN_OK || i.replays == 0)
        return "eager";
    if (i.early_reads > 0 || i.fallbacks > 0 ||
        i.replays < (uint64_t)trn_step_index(c))
        return "mixed";
    return "captured";
}

/* The context's threads work for the CPU device alone. */
static ran what_ran(const trn_context *c)
{
    ran r = {.device = trn_device_name(c), .exec = exec_of(c), .engine = "-"};
    const char *text = trn_device_description(c);
    snprintf(r.isa, sizeof r.isa, "%.*s", (int)strcspn(text, " ,"), text);
    if (strcmp(r.device, "cpu") == 0) {
        r.engine = trn_engine_name(c);
        r.threads = trn_thread_count(c);
    }
    return r;
}

static void write_line(const settings *s, const trn_context *c,
                       const char *name, trn_dtype dtype, const char *early,
                       const char *end)
{
    const ran r = what_ran(c);
#ifdef TRN_HAVE_JANSSON
    if (s->json) {
        json_array_append_new(
            s->list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:s}",
                               "name", name, "dtype", trn_dtype_name(dtype),
                               "step_10", early, "end", end, "instruction_set",
                               r.isa, "engine", r.engine, "threads", r.threads,
                               "device", r.device, "exec", r.exec));
        return;
    }
#endif
    (void)s;
    printf("%s %s %s %s %s %s %d %s %s\n", name, trn_dtype_name(dtype), early,
           end, r.isa, r.engine, r.threads, r.device, r.exec);
    fflush(stdout);
}

/* Digests of this machine alone are marked. */
static void tell_reproducible(settings *s, const trn_context *c)
{
    s->reproducible = trn_reproducible(c);
    if (s->reproducible || s->told)
        return;
    s->told = true;
    if (!s->json)
        printf("# not reproducible, digests of this machine alone: %s, %s\n",
               trn_device_name(c), trn_device_description(c));
}

static int open_context(settings *s, trn_context **c)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.seed = VERIFY_SEED;
    o.log = tool_log;
    o.device = s->device;
    o.exec = s->exec;
    if (trn_open(c, &o) == TRN_OK) {
        tell_reproducible(s, *c);
        return TOOL_OK;
    }
    int status = tool_error("verify", *c);
    trn_close(*c);
    return status;
}

/* A model that does not learn would hide what its digest is to show. */
static int check_learning(const verify_model *m, const verify_result *r)
{
    if (isfinite(r->last_loss) && r->last_loss < r->first_loss)
        return TOOL_OK;
    fprintf(stderr, "trn verify: %s %s: loss went from %g to %g\n", m->name,
            trn_dtype_name(m->dtype), r->first_loss, r->last_loss);
    return TOOL_FAILED;
}

static int verify_one_model(settings *s, const verify_model *m)
{
    trn_context *c;
    verify_result r;
    int status = open_context(s, &c);
    if (status != TOOL_OK)
        return status;
    if (verify_train(c, m, s->quick, &r) != TRN_OK)
        status = tool_error("verify", c);
    else
        status = s->quick ? TOOL_OK : check_learning(m, &r);
    if (status == TOOL_OK)
        write_line(s, c, m->name, m->dtype, r.early, r.end);
    trn_close(c);
    return status;
}

typedef struct row_user {
    const settings *s;
    const trn_context *c;
    trn_dtype dtype;
} row_user;

static void row_line(void *user, const char *name, const char *digest)
{
    const row_user *u = user;
    write_line(u->s, u->c, name, u->dtype, "-", digest);
}

static int verify_one_dtype(settings *s, trn_dtype dtype)
{
    trn_context *c;
    char digest[VERIFY_DIGEST];
    int status = open_context(s, &c);
    if (status != TOOL_OK)
        return status;
    row_user u = {s, c, dtype};
    if (verify_rows(c, dtype, s->rows ? row_line : NULL, &u, digest) != TRN_OK)
        status = tool_error("verify", c);
    else
        write_line(s, c, "rows", dtype, "-", digest);
    trn_close(c);
    return status;
}

static int verify_all(settings *s)
{
    int status = TOOL_OK;
    if (!s->json)
        printf("# numerics %s; name dtype step-%d end instruction-set engine "
               "threads device exec\n",
               trn_numerics_version(), VERIFY_EARLY);
    for (int i = 0; status == TOOL_OK && i < verify_n_models; i++)
        status = verify_one_model(s, &verify_models[i]);
    for (int i = 0; status == TOOL_OK && i < N_ROW_DTYPES; i++)
        status = verify_one_dtype(s, row_dtypes[i]);
    return status;
}

#ifdef TRN_HAVE_JANSSON
static int verify_json(settings *s)
{
    s->list = json_array();
    int status = verify_all(s);
    json_t *root = json_pack("{s:s, s:s, s:b, s:O}", "version", trn_version(),
                             "numerics_version", trn_numerics_version(),
                             "reproducible", s->reproducible, "lines", s->list);
    if (status == TOOL_OK) {
        if (root == NULL || json_dumpf(root, stdout, JSON_INDENT(2)) != 0) {
            fprintf(stderr, "trn verify: the JSON could not be written\n");
            status = TOOL_FAILED;
        } else {
            printf("\n");
        }
    }
    json_decref(root);
    json_decref(s->list);
    return status;
}
#else
static int verify_json(settings *s)
{
    (void)s;
    return tool_json_available("verify");
}
#endif

static int read_exec(settings *s, const char *text)
{
    if (text == NULL)
        return TOOL_OK;
    if (strcmp(text, "eager") == 0)
        s->exec = TRN_EXEC_EAGER;
    else if (strcmp(text, "captured") == 0)
        s->exec = TRN_EXEC_CAPTURED;
    if (s->exec != TRN_EXEC_AUTO)
        return TOOL_OK;
    fprintf(stderr, "trn verify: --exec is '%s'; expected eager or captured\n",
            text);
    return TOOL_USAGE;
}

int tool_verify(int n_args, char **args)
{
    settings s = {.exec = TRN_EXEC_AUTO};
    bool has_exec, has_device;
    const char *exec = NULL;
    const tool_flag flags[] = {
        {"--json", &s.json, NULL},
        {"--quick", &s.quick, NULL},
        {"--rows", &s.rows, NULL},
        {"--exec", &has_exec, &exec},
        {"--device", &has_device, &s.device},
    };
    int status = tool_flags("verify", n_args, args, 5, flags);
    if (status == TOOL_OK)
        status = read_exec(&s, exec);
    if (status != TOOL_OK)
        return status;
    double start = seconds();
    status = s.json ? verify_json(&s) : verify_all(&s);
    if (status == TOOL_OK)
        fprintf(stderr, "trn verify: %.2f s\n", seconds() - start);
    return status;
}
