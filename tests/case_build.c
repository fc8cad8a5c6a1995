/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases of cases.def as a table, and reading their texts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "case_build.h"

const op_case op_cases[] = {
#define TRN_CASE(nm, shapes_, attrs_) \
    {                                 \
        .op = TRN_OP_##nm,            \
        .name = #nm,                  \
        .shapes = shapes_,            \
        .attrs = attrs_,              \
    },
#include "cases.def"
#undef TRN_CASE
};
const int n_op_cases = (int)(sizeof op_cases / sizeof op_cases[0]);

const char *case_text(const case_args *a)
{
    static char text[200];
    snprintf(text, sizeof text, "%s \"%s\" \"%s\" %s", a->tc->name,
             a->tc->shapes, a->tc->attrs, trn_dtype_name(a->dtype));
    return text;
}

/* ---- attributes: "name=value name=value" ---- */

static const char *attr_find(const op_case *tc, const char *name)
{
    size_t n = strlen(name);
    const char *p = tc->attrs;
    while (*p != '\0') {
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            return p + n + 1;
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
    return NULL;
}

bool attr_has(const op_case *tc, const char *name)
{
    return attr_find(tc, name) != NULL;
}

int64_t attr_int(const op_case *tc, const char *name, int64_t otherwise)
{
    const char *p = attr_find(tc, name);
    return p == NULL ? otherwise : strtoll(p, NULL, 10);
}

double attr_real(const op_case *tc, const char *name, double otherwise)
{
    const char *p = attr_find(tc, name);
    return p == NULL ? otherwise : strtod(p, NULL);
}

int attr_list(const op_case *tc, const char *name, int64_t *out)
{
    const char *p = attr_find(tc, name);
    int n = 0;
    while (p != NULL && *p != '\0' && *p != ' ') {
        char *end;
        assert_in_range(n, 0, TRN_MAX_RANK - 1);
        out[n++] = strtoll(p, &end, 10);
        assert_ptr_not_equal(end, p);
        p = *end == ',' ? end + 1 : end;
    }
    return n;
}

trn_dtype attr_dtype(const op_case *tc, const char *name, trn_dtype otherwise)
{
    const char *p = attr_find(tc, name);
    for (int i = 1; p != NULL && i <= TRN_BOOL; i++) {
        const char *text = trn_dtype_name((trn_dtype)i);
        if (strcspn(p, " ") == strlen(text) &&
            strncmp(p, text, strlen(text)) == 0)
            return (trn_dtype)i;
    }
    assert_null(p);
    return otherwise;
}

uint32_t attr_axes(const op_case *tc, int rank)
{
    int64_t axes[TRN_MAX_RANK];
    const char *p = attr_find(tc, "axes");
    if (p == NULL || *p == 'a')
        return (1u << rank) - 1u;
    uint32_t bits = 0;
    for (int i = attr_list(tc, "axes", axes); i-- > 0;)
        bits |= 1u << axes[i];
    return bits;
}

int attr_axis(const op_case *tc, int rank)
{
    int64_t axis = attr_int(tc, "axis", 0);
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- shapes: "[2,3] t[4,5]" ---- */

static case_layout layout_of(char c)
{
    switch (c) {
    case 't':
        return LAYOUT_TRANSPOSED;
    case 's':
        return LAYOUT_SLICED;
    case 'e':
        return LAYOUT_EXPANDED;
    default:
        return LAYOUT_PLAIN;
    }
}

static const char *parse_input(const char *p, case_input *x)
{
    *x = (case_input){.layout = layout_of(*p), .n = 1};
    p += *p != '[';
    CHECK(*p == '[', "a shape is expected at \"%s\"\n", p);
    p++;
    while (*p != ']') {
        char *end;
        assert_in_range(x->rank, 0, TRN_MAX_RANK - 1);
        x->dim[x->rank] = strtoll(p, &end, 10);
        CHECK(end != p, "a number is expected at \"%s\"\n", p);
        x->n *= x->dim[x->rank++];
        p = *end == ',' ? end + 1 : end;
    }
    p++;
    return p + strspn(p, " ");
}

static void set_kinds(case_args *a)
{
    const op_case *tc = a->tc;
    trn_dtype index = attr_dtype(tc, "index", TRN_I32);
    for (int i = 0; i < a->n_in; i++)
        a->in[i].dtype = a->dtype;
    switch (tc->op) {
    case TRN_OP_where:
        a->in[0].kind = KIND_CONDITION;
        a->in[0].dtype = TRN_BOOL;
        break;
    case TRN_OP_embedding:
    case TRN_OP_embedding_grad:
    case TRN_OP_gather:
    case TRN_OP_scatter_add:
    case TRN_OP_cross_entropy:
    case TRN_OP_cross_entropy_grad:
    case TRN_OP_cross_entropy_weighted:
    case TRN_OP_index_select:
        a->in[1].kind = KIND_INDICES;
        a->in[1].dtype = index;
        break;
    case TRN_OP_one_hot:
        a->in[0].kind = KIND_INDICES;
        a->in[0].dtype = index;
        break;
    default:
        break;
    }
}

void case_draw(case_args *a); /* case_inputs.c */

void case_make(case_args *a, const op_case *tc, trn_dtype dtype)
{
    *a = (case_args){.tc = tc, .dtype = dtype};
    for (const char *p = tc->shapes; *p != '\0';) {
        assert_in_range(a->n_in, 0, CASE_MAX_IN - 1);
        p = parse_input(p, &a->in[a->n_in++]);
    }
    CHECK(a->n_in == trn__ops[tc->op].n_in,
          "%s: the row has another number of inputs\n", case_text(a));
    set_kinds(a);
    case_draw(a);
}

void case_free(case_args *a)
{
    for (int i = 0; i < a->n_in; i++) {
        free(a->in[i].v);
        a->in[i].v = NULL;
    }
}
