/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn verify`: prints digests of fixed computations, one line per model and
 * element type, with the instruction set, engine and threads that ran.
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
    void *list; /* json_t *, the lines so far */
} settings;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_line(const settings *s, const trn_context *c,
                       const char *name, trn_dtype dtype, const char *early,
                       const char *end)
{
#ifdef TRN_HAVE_JANSSON
    if (s->json) {
        json_array_append_new(
            s->list,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "name", name,
                      "dtype", trn_dtype_name(dtype), "step_10", early, "end",
                      end, "instruction_set", trn_device_description(c),
                      "engine", trn_engine_name(c), "threads",
                      trn_thread_count(c)));
        return;
    }
#endif
    (void)s;
    printf("%s %s %s %s %s %s %d\n", name, trn_dtype_name(dtype), early, end,
           trn_device_description(c), trn_engine_name(c), trn_thread_count(c));
    fflush(stdout);
}

static int open_context(trn_context **c)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.seed = VERIFY_SEED;
    if (trn_open(c, &o) == TRN_OK)
        return TOOL_OK;
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

static int verify_one_model(const settings *s, const verify_model *m)
{
    trn_context *c;
    verify_result r;
    int status = open_context(&c);
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

static int verify_one_dtype(const settings *s, trn_dtype dtype)
{
    trn_context *c;
    char digest[VERIFY_DIGEST];
    int status = open_context(&c);
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

static int verify_all(const settings *s)
{
    int status = TOOL_OK;
    if (!s->json)
        printf("# numerics %s; name dtype step-%d end instruction-set engine "
               "threads\n",
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
    json_t *root =
        json_pack("{s:s, s:s, s:O}", "version", trn_version(),
                  "numerics_version", trn_numerics_version(), "lines", s->list);
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

int tool_verify(int n_args, char **args)
{
    settings s = {false, false, false, NULL};
    const tool_flag flags[] = {
        {"--json", &s.json, NULL},
        {"--quick", &s.quick, NULL},
        {"--rows", &s.rows, NULL},
    };
    int status = tool_flags("verify", n_args, args, 3, flags);
    if (status != TOOL_OK)
        return status;
    double start = seconds();
    status = s.json ? verify_json(&s) : verify_all(&s);
    if (status == TOOL_OK)
        fprintf(stderr, "trn verify: %.2f s\n", seconds() - start);
    return status;
}
