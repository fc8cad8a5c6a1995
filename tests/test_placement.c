/* SPDX-License-Identifier: Apache-2.0
 *
 * The page docs/op-devices.md: for each row and type, which way a device goes.
 *
 * Nothing is listed by hand.  Each row's call is captured, and its graph fitted
 * to each device as for a compilation; what became of the row's node is told.
 * `make docs` writes the page (TRN_WRITE_DOCS=1); this test compares.
 */
#include <stdio.h>
#include <stdlib.h>

#include "backends/hlo/hlo_profile.h"
#include "case_build.h"
#include "libtrn/ops/capture.h"
#include "libtrn/ops/lower.h"

#define PAGE "docs/op-devices.md"

static const trn_dtype dtypes[] = {TRN_F64, TRN_F32, TRN_BF16, TRN_F16, TRN_I64,
                                   TRN_I32, TRN_U32, TRN_U8,   TRN_BOOL};
enum { N_DTYPES = 9, N_DEVICES = 4, TEXT = 64 * 1024 };

/* A profile of the lowering as a device: all that is asked is `supports`. */
static bool profile_supports(trn_device *device, const trn_op_call *call)
{
    const trn__hlo_profile *p = (const trn__hlo_profile *)(const void *)device;
    return trn__hlo_supports(p, call);
}

typedef struct column {
    const char *title;
    trn_backend table;
    trn_device *device;
    const trn__hlo_profile *profile; /* NULL: none */
} column;

static column profile_column(const char *title, const char *name)
{
    const trn__hlo_profile *p = trn__hlo_profile_named(name);
    return (column){
        .title = title,
        .table = {.size = sizeof(trn_backend),
                  .name = name,
                  .caps = TRN_CAP_GRAPH,
                  .supports = profile_supports,
                  .op_limit = TRN_OP_KNOWN},
        .device = (trn_device *)(uintptr_t)p,
        .profile = p,
    };
}

typedef enum way { WAY_NONE, NATIVE, DECOMPOSED, HOST, REFUSED } way;
static const char *const way_names[] = {"", "native", "decomposed", "host",
                                        "refused"};

static bool has_op(const trn_graph *g, uint32_t op)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op == op)
            return true;
    }
    return false;
}

/* Does the graph hold a draw, which some profiles leave to the host? */
static bool draws(const trn_graph *g)
{
    return has_op(g, TRN_OP_uniform) || has_op(g, TRN_OP_normal);
}

/* These are the host's in every profile. */
static bool draws_integers(const trn_graph *g)
{
    return has_op(g, TRN_OP_randint) || has_op(g, TRN_OP_permutation);
}

static way way_of(trn_context *c, const trn_graph *raw, uint32_t op,
                  const column *q)
{
    if (!has_op(raw, op)) /* it became an input or a view of one */
        return WAY_NONE;
    for (int32_t i = 0; i < raw->n_inputs; i++) {
        uint32_t dtype = raw->values[raw->inputs[i]].arg.dtype;
        if (q->profile != NULL && !(q->profile->stores & TRN_DTYPE_BIT(dtype)))
            return REFUSED;
    }
    trn_graph *g = trn__graph_lowered_for(c, raw, &q->table, q->device);
    if (g == NULL) {
        assert_int_equal(trn_errcode(c), TRN_ERR_UNSUPPORTED);
        trn_clear(c);
        return REFUSED;
    }
    way w = has_op(g, op) ? NATIVE : DECOMPOSED;
    if (w == NATIVE && q->profile != NULL && q->profile->random_on_host &&
        draws(g))
        w = HOST;
    if (w == NATIVE && q->profile != NULL && draws_integers(g))
        w = HOST;
    trn__graph_free(g);
    return w;
}

static const op_case *case_of(uint32_t op)
{
    for (int i = 0; i < n_op_cases; i++) {
        if (op_cases[i].op == op && strstr(op_cases[i].shapes, "0") == NULL &&
            strstr(op_cases[i].attrs, "64") == NULL)
            return &op_cases[i];
    }
    return NULL;
}

/* Captures the case and fills one line of ways. */
static void ask(const op_case *tc, trn_dtype dtype, column *columns, way *ways)
{
    trn_options o = TRN_OPTIONS_INIT;
    trn_context *c;
    case_args a;
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT];
    o.exec = TRN_EXEC_CAPTURED;
    o.device = "cpu";
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    case_make(&a, tc, dtype);
    case_tensors(c, &a, LAYOUT_PLAIN, in);
    trn_step_begin(c);
    int n = case_apply(c, &a, in, out);
    CHECK(n > 0, "%s: %s\n", case_text(&a), trn_errmsg(c));
    for (int i = 0; i < n && trn__ops[tc->op].writes == 0; i++)
        trn_keep(out[i]);
    trn_step_end(c);
    harness_ok(c);
    const trn_graph *raw = c->capture->first->graph;
    for (int i = 0; i < N_DEVICES; i++)
        ways[i] = way_of(c, raw, tc->op, &columns[i]);
    case_free(&a);
    assert_int_equal(trn_close(c), TRN_OK);
}

/* "native", or "native; f64, i64: refused" */
static void put_cell(FILE *page, const way *of_type)
{
    int count[5] = {0};
    way most = NATIVE;
    for (int d = 0; d < N_DTYPES; d++)
        count[of_type[d]]++;
    for (way w = NATIVE; w <= REFUSED; w++)
        most = count[w] > count[most] ? w : most;
    fprintf(page, " %s", way_names[most]);
    for (way w = NATIVE; w <= REFUSED; w++) {
        const char *before = "; ";
        for (int d = 0; d < N_DTYPES && w != most; d++) {
            if (of_type[d] != w)
                continue;
            fprintf(page, "%s%s", before, trn_dtype_name(dtypes[d]));
            before = ", ";
        }
        if (w != most && count[w] > 0)
            fprintf(page, ": %s", way_names[w]);
    }
    fprintf(page, " |");
}

static void put_row(FILE *page, uint32_t op, column *columns)
{
    way ways[N_DTYPES][N_DEVICES], cell[N_DTYPES];
    const op_case *tc = case_of(op);
    CHECK(tc != NULL, "%s has no case\n", trn__ops[op].name);
    memset(ways, 0, sizeof ways);
    for (int d = 0; d < N_DTYPES; d++) {
        if (case_takes(op, dtypes[d]))
            ask(tc, dtypes[d], columns, ways[d]);
    }
    fprintf(page, "| %s |", trn__ops[op].name);
    for (int i = 0; i < N_DEVICES; i++) {
        for (int d = 0; d < N_DTYPES; d++)
            cell[d] = ways[d][i];
        put_cell(page, cell);
    }
    fprintf(page, "\n");
}

static const char head[] =
    "# Ops and devices\n\n"
    "`make docs` writes this page from what the devices answer; edit nothing "
    "here.\n"
    "Which way each row goes on each device, for the types that it takes:\n\n"
    "- *native*: the device runs it, or its compiler has instructions for it.\n"
    "- *decomposed*: the host hands the device the primitives that it is made "
    "of.\n"
    "- *host*: its values are made on the host and are an input of the "
    "program.\n"
    "- *refused*: `TRN_ERR_UNSUPPORTED`, naming op and device. The only reason "
    "in\n  this table is a type: the `neuron` profile stores no f64 and no "
    "i64, so it\n  takes no tensor of these types, and not the sum of "
    "integers, which is i64.\n\n"
    "`pjrt` is the lowering of profile `xla`; `neuron` the profile for "
    "Trainium's\ncompiler, which any PJRT plug-in runs too "
    "(`TRN_DEVICE_OPTIONS=hlo_profile=neuron`).\n"
    "No op here has a shape that depends on data.\n\n";

static char *read_page(void)
{
    FILE *f = fopen(PAGE, "r");
    char *text = calloc(1, TEXT);
    if (f != NULL) {
        size_t n = fread(text, 1, TEXT - 1, f);
        text[n] = '\0';
        fclose(f);
    }
    return text;
}

static void the_page_is_what_the_devices_answer(void **state)
{
    trn_context *loop;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = "loop";
    assert_int_equal(trn_open(&loop, &o), TRN_OK);
    const trn_context *cpu = *state;
    column columns[N_DEVICES] = {
        {.title = "cpu", .table = cpu->table, .device = cpu->device},
        {.title = "loop", .table = loop->table, .device = loop->device},
        profile_column("pjrt", "xla"),
        profile_column("neuron", "neuron"),
    };
    char *text = calloc(1, TEXT);
    FILE *out = fmemopen(text, TEXT, "w");
    assert_non_null(out);
    fprintf(out, "%s| op |", head);
    for (int i = 0; i < N_DEVICES; i++)
        fprintf(out, " %s |", columns[i].title);
    fprintf(out, "\n|---|---|---|---|---|\n");
    for (uint32_t op = 0; op < TRN_OP_LIMIT; op++) {
        if (trn__ops[op].name != NULL)
            put_row(out, op, columns);
    }
    assert_int_equal(fclose(out), 0);
    if (getenv("TRN_WRITE_DOCS") != NULL) {
        FILE *f = fopen(PAGE, "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
    }
    char *page = read_page();
    CHECK(strcmp(page, text) == 0, "%s is not current; `make docs` writes it\n",
          PAGE);
    free(page);
    free(text);
    assert_int_equal(trn_close(loop), TRN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(the_page_is_what_the_devices_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
