/* SPDX-License-Identifier: Apache-2.0
 *
 * What the Neuron compiler is known to take; see xla_neuron.h.
 *
 * Sources: the opcodes that AWS's own generator (nkipy) emits; the footnotes of
 * "Supported operators [XLA]" and the index of compiler errors in the Neuron
 * SDK's documentation.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/xla/xla_neuron.h"
#include "trn.h"

static const char *const opcodes[] = {
    "parameter",
    "constant",
    "tuple",
    "copy",
    "convert",
    "reshape",
    "broadcast",
    "transpose",
    "slice",
    "concatenate",
    "pad",
    "iota",
    "select",
    "compare",
    "add",
    "subtract",
    "multiply",
    "divide",
    "power",
    "maximum",
    "minimum",
    "and",
    "or",
    "xor",
    "not",
    "abs",
    "negate",
    "sign",
    "exponential",
    "log",
    "sqrt",
    "sine",
    "cosine",
    "tanh",
    "ceil",
    "floor",
    "atan2",
    "reduce",
    "dot",
    "convolution",
    "gather",
    "scatter",
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
    "get-tuple-element",
};

/* No f64, s64, u64, no complex numbers. */
static const char *const types[] = {"pred", "s8",  "u8",  "s16",  "u16",
                                    "s32",  "u32", "f16", "bf16", "f32"};
static const char *const floats[] = {"f16", "bf16", "f32"};

#define IN(list, text) is_in(text, list, sizeof(list) / sizeof(list)[0])

enum { NAME = 80, MAX_OPERANDS = 4, MAX_LIST = 16 };

typedef struct inst {
    const char *line;
    size_t n_line;
    int computation;
    bool root;
    char name[NAME], type[NAME], op[NAME];
    char operand[MAX_OPERANDS][NAME]; /* the first ones */
    const char *attrs;                /* behind the operands */
} inst;

typedef struct module {
    inst *list;
    int n, room;
    char computation[64][NAME];
    int n_computations;
    char *why;
    size_t size;
} module;

static bool is_in(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, list[i]) == 0)
            return true;
    }
    return false;
}

static bool refuse(module *m, const inst *i, const char *format, ...)
    TRN_PRINTF(3, 4);

static bool refuse(module *m, const inst *i, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(m->why, m->size, "%s: %.*s", text, i == NULL ? 0 : (int)i->n_line,
             i == NULL ? "" : i->line);
    return false;
}

/* ---- reading ---- */

/* A word up to any of `ends`; the place behind it. */
static const char *word(const char *p, const char *ends, char out[NAME])
{
    size_t n = strcspn(p, ends);
    snprintf(out, NAME, "%.*s", (int)n, p);
    return p + n;
}

/* The type of an array or, at its root, a tuple: "f32[2,3]{1,0}", "(..)". */
static const char *read_shape(const char *p, inst *i)
{
    if (*p == '(') {
        snprintf(i->type, NAME, "tuple");
        for (int depth = 0; *p != '\0'; p++) {
            depth += (*p == '(') - (*p == ')');
            if (depth == 0)
                return p + 1;
        }
        return p;
    }
    p = word(p, "[", i->type);
    return p + strcspn(p, " ");
}

static const char *read_operands(const char *p, inst *i)
{
    int n = 0;
    while (*p != ')' && *p != '\n' && *p != '\0') {
        char name[NAME];
        p = word(p, ",)\n", name);
        if (n < MAX_OPERANDS)
            snprintf(i->operand[n++], NAME, "%s", name);
        p += strspn(p, ", ");
    }
    return p;
}

/* "  ROOT name = shape op(operands), attributes" */
static bool read_inst(module *m, const char *line, size_t n)
{
    if (m->n == m->room) {
        m->room = m->room * 2 + 64;
        inst *more = realloc(m->list, (size_t)m->room * sizeof *more);
        if (more == NULL)
            return refuse(m, NULL, "no memory");
        m->list = more;
    }
    inst *i = &m->list[m->n];
    memset(i, 0, sizeof *i);
    i->line = line;
    i->n_line = n;
    i->computation = m->n_computations - 1;
    const char *p = line + strspn(line, " ");
    i->root = strncmp(p, "ROOT ", 5) == 0;
    p = word(i->root ? p + 5 : p, " \n", i->name);
    if (strncmp(p, " = ", 3) != 0)
        return refuse(m, i, "this is no instruction");
    p = read_shape(p + 3, i);
    p = word(p + strspn(p, " "), "(\n", i->op);
    if (*p != '(')
        return refuse(m, i, "this is no instruction");
    p = read_operands(p + 1, i);
    i->attrs = *p == ')' ? p + 1 : p;
    m->n++;
    return true;
}

static bool read_module(module *m, const char *text)
{
    for (const char *p = text; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        const char *start = strncmp(p, "ENTRY ", 6) == 0 ? p + 6 : p;
        bool head = strncmp(p, "HloModule ", 10) == 0;
        if (*p == ' ') {
            if (m->n_computations == 0 || !read_inst(m, p, n))
                return *m->why != '\0' ? false
                                       : refuse(m, NULL, "no computation");
        } else if (!head && n > 0 && *p != '}') {
            if (m->n_computations == 64)
                return refuse(m, NULL, "too many computations");
            word(start, " ({\n", m->computation[m->n_computations++]);
        }
        p += n + (p[n] == '\n');
    }
    return m->n > 0 || refuse(m, NULL, "the module is empty");
}

/* ---- asking ---- */

static const inst *find(const module *m, const inst *user, const char *name)
{
    for (int k = 0; k < m->n; k++) {
        if (m->list[k].computation == user->computation &&
            strcmp(m->list[k].name, name) == 0)
            return &m->list[k];
    }
    return NULL;
}

static const inst *operand(const module *m, const inst *i, int k)
{
    return find(m, i, i->operand[k]);
}

/* The numbers of " name={1,0}"; -1 if there is no such attribute. */
static int numbers(const inst *i, const char *name, long *out)
{
    char key[NAME];
    snprintf(key, sizeof key, " %s={", name);
    const char *end = i->line + i->n_line;
    const char *p = strstr(i->attrs, key);
    int n = 0;
    if (p == NULL || p >= end)
        return -1;
    for (p += strlen(key); *p != '}' && n < MAX_LIST;) {
        char *behind;
        out[n++] = strtol(p, &behind, 10);
        p = *behind == ',' ? behind + 1 : behind;
    }
    return n;
}

/* The root of the computation that the instruction applies. */
static const inst *applied(const module *m, const inst *i)
{
    char name[NAME] = "";
    const char *p = strstr(i->attrs, " to_apply=");
    if (p == NULL || p >= i->line + i->n_line)
        return NULL;
    word(p + 10, ", \n", name);
    for (int k = 0; k < m->n; k++) {
        if (m->list[k].root &&
            strcmp(m->computation[m->list[k].computation], name) == 0)
            return &m->list[k];
    }
    return NULL;
}

/* ---- rules ---- */

static bool check_reduce(module *m, const inst *i)
{
    static const char *const four[] = {"minimum", "maximum", "add", "multiply"};
    const inst *f = applied(m, i), *start = operand(m, i, 1);
    if (i->operand[2][0] != '\0')
        return refuse(m, i, "a reduce of several arrays");
    if (f == NULL || !IN(four, f->op))
        return refuse(m, i, "a reduce by another computation");
    if (start == NULL || strcmp(start->op, "constant") != 0)
        return refuse(m, i, "a reduce whose start is no constant");
    return true;
}

static bool check_scatter(module *m, const inst *i)
{
    const inst *f = applied(m, i);
    bool adds = f != NULL && strcmp(f->op, "add") == 0;
    bool assigns = false;
    if (f != NULL && strcmp(f->op, "copy") == 0) {
        const inst *second = operand(m, f, 0);
        assigns = second != NULL && strcmp(second->op, "parameter") == 0 &&
                  strcmp(second->operand[0], "1") == 0;
    }
    if (!adds && !assigns)
        return refuse(m, i, "a scatter that neither assigns nor adds");
    if (adds && !IN(floats, i->type))
        return refuse(m, i, "a scatter that adds no floats");
    return true;
}

/* Dimensions of the operand that are indexed may not be those that go to the
 * result as windows ("disjoint start_index_map and remapped_offset_dims"). */
static bool check_gather(module *m, const inst *i)
{
    long map[MAX_LIST], gone[MAX_LIST];
    int n = numbers(i, "start_index_map", map);
    int n_gone = numbers(i, "collapsed_slice_dims", gone);
    if (n < 0 || n_gone < 0)
        return refuse(m, i, "a gather without its lists");
    for (int k = 0; k < n; k++) {
        bool collapsed = false;
        for (int d = 0; d < n_gone; d++)
            collapsed = collapsed || gone[d] == map[k];
        if (!collapsed)
            return refuse(m, i,
                          "a gather whose indexed dimension %ld is a "
                          "window",
                          map[k]);
    }
    return true;
}

static bool check_dot(module *m, const inst *i)
{
    const inst *a = operand(m, i, 0), *b = operand(m, i, 1);
    if (a == NULL || b == NULL || !IN(floats, a->type) ||
        !IN(floats, b->type) || !IN(floats, i->type))
        return refuse(m, i, "a dot of other than floats");
    return true;
}

/* The exponent: a constant of the program that is a whole number. */
static bool check_power(module *m, const inst *i)
{
    const inst *e = operand(m, i, 1);
    if (e != NULL && strcmp(e->op, "broadcast") == 0)
        e = operand(m, e, 0);
    char *end;
    if (e == NULL || strcmp(e->op, "constant") != 0)
        return refuse(m, i, "a power whose exponent is no constant");
    double v = strtod(e->operand[0], &end);
    if (end == e->operand[0] || v != (double)(long)v)
        return refuse(m, i, "a power whose exponent is no whole number");
    return true;
}

/* Layouts from the last dimension to the first, types of the list, and nothing
 * without elements: such tensors do not exist there. */
static bool check_shapes(module *m, const inst *i)
{
    const char *end = i->line + i->n_line;
    for (const char *p = i->line; (p = memchr(p, '[', (size_t)(end - p)));
         p++) {
        const char *from = p, *at = p + 1;
        char type[NAME];
        long dims = 0;
        while (from > i->line && isalnum((unsigned char)from[-1]))
            from--;
        word(from, "[", type);
        if (from == p) /* the bounds of a slice */
            continue;
        if (!IN(types, type))
            return refuse(m, i, "the type %s", type);
        for (; *at != ']' && at < end; dims++) {
            char *behind;
            if (strtol(at, &behind, 10) <= 0)
                return refuse(m, i, "an array without elements");
            at = *behind == ',' ? behind + 1 : behind;
        }
        if (at + 1 < end && at[1] == '{') {
            char *behind;
            for (at += 2; *at != '}' && at < end;) {
                if (strtol(at, &behind, 10) != --dims || behind == at)
                    return refuse(m, i, "a layout that is not row-major");
                at = *behind == ',' ? behind + 1 : behind;
            }
        }
    }
    return true;
}

static bool check_inst(module *m, const inst *i)
{
    if (!IN(opcodes, i->op))
        return refuse(m, i, "the opcode %s", i->op);
    if (!check_shapes(m, i))
        return false;
    if (strcmp(i->op, "reduce") == 0)
        return check_reduce(m, i);
    if (strcmp(i->op, "scatter") == 0)
        return check_scatter(m, i);
    if (strcmp(i->op, "gather") == 0)
        return check_gather(m, i);
    if (strcmp(i->op, "dot") == 0)
        return check_dot(m, i);
    if (strcmp(i->op, "power") == 0)
        return check_power(m, i);
    return true;
}

bool xla_neuron_takes(const char *text, char *why, size_t size)
{
    module m = {.why = why, .size = size};
    *why = '\0';
    bool good = read_module(&m, text);
    for (int k = 0; good && k < m.n; k++)
        good = check_inst(&m, &m.list[k]);
    free(m.list);
    return good;
}

/* ---- a step's module ---- */

typedef struct printed {
    char *bytes;
    size_t n, room;
} printed;

static void put(void *user, const char *piece)
{
    printed *t = user;
    size_t n = strlen(piece);
    if (t->room != 0 && t->bytes == NULL) /* there was no memory */
        return;
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n + 1);
        char *more = realloc(t->bytes, t->room);
        if (more == NULL)
            free(t->bytes);
        t->bytes = more;
        if (more == NULL)
            return;
    }
    memcpy(t->bytes + t->n, piece, n + 1);
    t->n += n;
}

bool xla_neuron_takes_step(trn_context *c, char *why, size_t size)
{
    printed t = {NULL, 0, 0};
    bool good = trn_capture_print_hlo(c, "neuron", put, &t) == TRN_OK &&
                t.bytes != NULL;
    if (!good)
        snprintf(why, size, "the step is not printed: %s", trn_errmsg(c));
    good = good && xla_neuron_takes(t.bytes, why, size);
    free(t.bytes);
    return good;
}
