/* SPDX-License-Identifier: Apache-2.0
 *
 * A verified module as HLO text, which XLA's tools read: an instruction a line,
 * in the order and by the names of the bytes.
 *
 *   reduce.9 = f32[64]{0} reduce(param.0, constant.8), dimensions={1},
 *   to_apply=add_f32.1                             (on one line)
 *
 * Numbers look the same in every locale.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/hlo/hlo_names.h"

typedef struct writer {
    const trn__hlo_module *m;
    trn__hlo_put put;
    void *user;
} writer;

static void say(const writer *w, const char *format, ...) TRN_PRINTF(2, 3);

static void say(const writer *w, const char *format, ...)
{
    char text[TRN__HLO_SHAPE_SIZE + 2 * TRN__HLO_NAME_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->put(w->user, text);
}

static void say_shape(const writer *w, const trn__hlo_shape *shape)
{
    char text[TRN__HLO_SHAPE_SIZE];
    w->put(w->user, trn__hlo_shape_text(shape, true, text));
}

/* ", name={1,0}" */
static void say_list(const writer *w, const char *name,
                     const trn__hlo_list *list)
{
    say(w, ", %s={", name);
    for (int32_t i = 0; i < list->n; i++)
        say(w, "%s%lld", i > 0 ? "," : "", (long long)list->at[i]);
    w->put(w->user, "}");
}

/* ---- literals ---- */

static double half(uint32_t bits)
{
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    const uint32_t wide = (exponent == 31 ? 255 : exponent + 112) << 23;
    const uint32_t whole = wide | fraction << 13;
    float value;
    memcpy(&value, &whole, sizeof value);
    if (exponent == 0)
        value = (float)fraction * 0x1p-24f;
    return bits >> 15 != 0 ? -(double)value : (double)value;
}

static double single(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* The fewest digits of `low` and more that give the value back, `high` at
 * most, where single precision is all that counts if `narrow`. */
static void shortest(char *text, size_t size, int low, int high, bool narrow,
                     double value)
{
    for (int digits = low; digits <= high; digits++) {
        double back = 0;
        snprintf(text, size, "%.*g", digits, value);
        if (sscanf(text, "%lf", &back) == 1 &&
            (narrow ? (float)back == (float)value : back == value))
            return;
    }
}

/* Whatever the locale puts between the digits is a point in HLO. */
static void say_double(const writer *w, int low, int high, double value)
{
    char text[64], plain[64];
    size_t n = 0;
    if (isnan(value) || isinf(value)) {
        say(w, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    shortest(text, sizeof text, low, high, high < 10, value);
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr("0123456789e+-", *c) != NULL)
            plain[n++] = *c;
        else if (n == 0 || plain[n - 1] != '.')
            plain[n++] = '.';
    }
    plain[n] = '\0';
    w->put(w->user, plain);
}

static void say_literal(const writer *w, uint32_t type, uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    double wide;
    memcpy(&wide, &bits, sizeof wide);
    if (type == TRN__HLO_PRED)
        say(w, "%s", bits != 0 ? "true" : "false");
    else if (type == TRN__HLO_S32)
        say(w, "%ld", (long)(int32_t)low);
    else if (type == TRN__HLO_S64)
        say(w, "%lld", (long long)(int64_t)bits);
    else if (type == TRN__HLO_F16)
        say_double(w, 5, 5, half(low));
    else if (type == TRN__HLO_BF16)
        say_double(w, 4, 4, single(low << 16));
    else if (type == TRN__HLO_F32)
        say_double(w, 6, 9, single(low));
    else if (type == TRN__HLO_F64)
        say_double(w, 15, 17, wide);
    else
        say(w, "%llu", (unsigned long long)bits);
}

/* ---- attributes ---- */

static void say_slice(const writer *w, const trn__hlo_list *list)
{
    w->put(w->user, ", slice={");
    for (int32_t d = 0; d < list[0].n; d++)
        say(w, "%s[%lld:%lld:%lld]", d > 0 ? ", " : "",
            (long long)list[0].at[d], (long long)list[1].at[d],
            (long long)list[2].at[d]);
    w->put(w->user, "}");
}

static void say_padding(const writer *w, const trn__hlo_list *list)
{
    w->put(w->user, ", padding=");
    for (int32_t d = 0; d < list[0].n; d++)
        say(w, "%s%lld_%lld_%lld", d > 0 ? "x" : "", (long long)list[0].at[d],
            (long long)list[1].at[d], (long long)list[2].at[d]);
}

static void say_dot(const writer *w, const trn__hlo_list *list)
{
    if (list[2].n > 0)
        say_list(w, "lhs_batch_dims", &list[2]);
    say_list(w, "lhs_contracting_dims", &list[0]);
    if (list[3].n > 0)
        say_list(w, "rhs_batch_dims", &list[3]);
    say_list(w, "rhs_contracting_dims", &list[1]);
}

static void say_gather(const writer *w, const trn__hlo_inst *inst)
{
    say_list(w, "offset_dims", &inst->list[0]);
    say_list(w, "collapsed_slice_dims", &inst->list[1]);
    say_list(w, "start_index_map", &inst->list[2]);
    say(w, ", index_vector_dim=%d", (int)inst->number);
    say_list(w, "slice_sizes", &inst->list[3]);
}

static void say_scatter(const writer *w, const trn__hlo_inst *inst)
{
    say_list(w, "update_window_dims", &inst->list[0]);
    say_list(w, "inserted_window_dims", &inst->list[1]);
    say_list(w, "scatter_dims_to_operand_dims", &inst->list[2]);
    say(w, ", index_vector_dim=%d", (int)inst->number);
}

static void say_attributes(const writer *w, const trn__hlo_inst *inst)
{
    const uint32_t op = inst->op;
    char name[TRN__HLO_NAME_SIZE];
    if (op == TRN__HLO_OP_BROADCAST || op == TRN__HLO_OP_TRANSPOSE ||
        op == TRN__HLO_OP_REVERSE || op == TRN__HLO_OP_CONCATENATE ||
        op == TRN__HLO_OP_REDUCE)
        say_list(w, "dimensions", &inst->list[0]);
    else if (op == TRN__HLO_OP_IOTA)
        say(w, ", iota_dimension=%lld", (long long)inst->list[0].at[0]);
    else if (op == TRN__HLO_OP_SLICE)
        say_slice(w, inst->list);
    else if (op == TRN__HLO_OP_PAD)
        say_padding(w, inst->list);
    else if (op == TRN__HLO_OP_COMPARE)
        say(w, ", direction=%s", trn__hlo_direction_text(inst->number));
    else if (op == TRN__HLO_OP_DOT)
        say_dot(w, inst->list);
    else if (op == TRN__HLO_OP_GATHER)
        say_gather(w, inst);
    else if (op == TRN__HLO_OP_SCATTER)
        say_scatter(w, inst);
    if (op == TRN__HLO_OP_REDUCE || op == TRN__HLO_OP_SCATTER)
        say(w, ", to_apply=%s", trn__hlo_helper_name(w->m, inst->helper, name));
}

/* ---- instructions, computations, the module ---- */

static void say_tuple_type(const writer *w, const trn__hlo_inst *inst)
{
    w->put(w->user, "(");
    for (int32_t k = 0; k < inst->n_operands; k++) {
        w->put(w->user, k > 0 ? ", " : "");
        say_shape(w, &w->m->insts[trn__hlo_operand(w->m, inst, k)].shape);
    }
    w->put(w->user, ")");
}

static void say_operands(const writer *w, const trn__hlo_inst *inst)
{
    char name[TRN__HLO_NAME_SIZE];
    if (inst->op == TRN__HLO_OP_PARAMETER)
        say(w, "%d", (int)inst->number);
    if (inst->op == TRN__HLO_OP_CONSTANT)
        say_literal(w, inst->shape.type, inst->literal);
    for (int32_t k = 0; k < inst->n_operands; k++)
        say(w, "%s%s", k > 0 ? ", " : "",
            trn__hlo_name(w->m, trn__hlo_operand(w->m, inst, k), name));
}

static void say_entry(const writer *w)
{
    const trn__hlo_module *m = w->m;
    char name[TRN__HLO_NAME_SIZE];
    say(w, "ENTRY %s {\n", TRN__HLO_ENTRY_NAME);
    for (int32_t i = 0; i < m->n_insts; i++) {
        const trn__hlo_inst *inst = &m->insts[i];
        say(w, "  %s%s = ", i + 1 == m->n_insts ? "ROOT " : "",
            trn__hlo_name(m, i, name));
        if (inst->op == TRN__HLO_OP_TUPLE_OF)
            say_tuple_type(w, inst);
        else
            say_shape(w, &inst->shape);
        say(w, " %s(", trn__hlo_op_text(inst->op));
        say_operands(w, inst);
        w->put(w->user, ")");
        say_attributes(w, inst);
        w->put(w->user, "\n");
    }
    w->put(w->user, "}\n");
}

static void say_helper(const writer *w, int32_t helper)
{
    const trn__hlo_module *m = w->m;
    const trn__hlo_helper *h = &m->helpers[helper];
    const char *type = trn__hlo_type_text(h->type);
    char a[TRN__HLO_NAME_SIZE], b[TRN__HLO_NAME_SIZE];
    char name[TRN__HLO_NAME_SIZE];
    const bool copies = h->op == TRN__HLO_OP_COPY;
    trn__hlo_part_name(m, helper, 0, a);
    trn__hlo_part_name(m, helper, 1, b);
    say(w, "%s {\n", trn__hlo_helper_name(m, helper, name));
    say(w, "  %s = %s[] parameter(0)\n", a, type);
    say(w, "  %s = %s[] parameter(1)\n", b, type);
    say(w, "  ROOT %s = %s[] %s(%s%s%s)\n",
        trn__hlo_part_name(m, helper, 2, name), type, trn__hlo_op_text(h->op),
        copies ? "" : a, copies ? "" : ", ", b);
    w->put(w->user, "}\n\n");
}

static void say_head(const writer *w)
{
    const trn__hlo_module *m = w->m;
    say(w, "HloModule %s", TRN__HLO_MODULE_NAME);
    for (int32_t i = 0; i < m->n_aliases; i++)
        say(w, "%s{%d}: (%d, {}, may-alias)",
            i == 0 ? ", input_output_alias={ " : ", ",
            (int)m->aliases[i].result, (int)m->aliases[i].param);
    say(w, "%s\n\n", m->n_aliases > 0 ? " }" : "");
}

void trn__hlo_write_text(const trn__hlo_module *m, trn__hlo_put put, void *user)
{
    const writer w = {.m = m, .put = put, .user = user};
    say_head(&w);
    for (int32_t helper = 0; helper < m->n_helpers; helper++)
        say_helper(&w, helper);
    say_entry(&w);
}
