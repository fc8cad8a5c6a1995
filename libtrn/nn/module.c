/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of modules: making, joining, walking, naming.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/nn/module.h"
#include "trn/autograd.h"

static void free_tree(trn_module *m)
{
    while (m->first_child != NULL) {
        trn_module *child = m->first_child;
        m->first_child = child->next;
        free_tree(child); /* as deep as the user's tree */
    }
    while (m->first_parameter != NULL) {
        trn__parameter *p = m->first_parameter;
        m->first_parameter = p->next;
        trn__unref(p->tensor);
        trn__free(m->c, p->name);
        trn__free(m->c, p);
    }
    trn__free(m->c, m->name);
    trn__free(m->c, m);
}

static void module_destroy(trn__owned *self)
{
    free_tree((trn_module *)self);
}

trn_module *trn__module_new(trn_context *c, const char *what,
                            trn_forward_fn forward, void *user)
{
    if (trn__pending(c) != TRN_OK)
        return NULL;
    trn_module *m = trn__alloc_zeroed(c, sizeof *m);
    if (m == NULL) {
        trn__fail_memory(c, what, sizeof *m);
        return NULL;
    }
    m->c = c;
    m->forward = forward;
    m->user = user;
    m->training = true;
    m->number = c->modules_made++;
    trn__own(c, &m->owned, module_destroy);
    return m;
}

void trn__module_drop(trn_module *m)
{
    if (m == NULL)
        return;
    trn__disown(&m->owned);
    free_tree(m);
}

trn_module *trn_nn_custom(trn_context *c, trn_forward_fn forward, void *user)
{
    if (trn__pending(c) == TRN_OK && forward == NULL)
        trn__fail(c, TRN_ERR_ARG,
                  "trn_nn_custom: forward is NULL; expected a function");
    return trn__module_new(c, "trn_nn_custom", forward, user);
}

static char *copy_name(trn_context *c, const char *name)
{
    size_t n = strlen(name) + 1;
    char *copy = trn__alloc(c, n);
    if (copy != NULL)
        memcpy(copy, name, n);
    else
        trn__fail_memory(c, "a module's name", n);
    return copy;
}

/* The child of that name, of n characters. */
static trn_module *child_named(const trn_module *m, const char *name, size_t n)
{
    for (trn_module *k = m->first_child; k != NULL; k = k->next) {
        if (strlen(k->name) == n && memcmp(k->name, name, n) == 0)
            return k;
    }
    return NULL;
}

static trn__parameter *parameter_named(const trn_module *m, const char *name)
{
    for (trn__parameter *p = m->first_parameter; p != NULL; p = p->next) {
        if (strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

static trn_status check_name(trn_module *m, const char *what, const char *name)
{
    if (name == NULL || name[0] == '\0' || strchr(name, '.') != NULL)
        return trn__fail(m->c, TRN_ERR_ARG,
                         "%s: the name is \"%s\"; expected one without '.'",
                         what, name == NULL ? "NULL" : name);
    if (child_named(m, name, strlen(name)) != NULL ||
        parameter_named(m, name) != NULL)
        return trn__fail(m->c, TRN_ERR_ARG,
                         "%s: the name \"%s\" is taken; expected a new one",
                         what, name);
    return TRN_OK;
}

trn_status trn__module_take(trn_module *m, const char *name, trn_tensor *t)
{
    trn__parameter *p = trn__alloc(m->c, sizeof *p);
    if (p == NULL)
        return trn__fail_memory(m->c, "a parameter", sizeof *p);
    *p = (trn__parameter){.tensor = t, .name = copy_name(m->c, name)};
    if (p->name == NULL) {
        trn__free(m->c, p);
        return m->c->status;
    }
    trn__adopt_tensor(t);
    t->storage->step = 0; /* it outlives the step that may have made it */
    *(m->last_parameter == NULL ? &m->first_parameter
                                : &m->last_parameter->next) = p;
    m->last_parameter = p;
    t->requires_grad = true;
    return TRN_OK;
}

trn_status trn_nn_add_parameter(trn_module *m, const char *name, trn_tensor *t)
{
    const char *what = "trn_nn_add_parameter";
    if (m == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(m->c));
    if (t == NULL)
        return trn__fail(m->c, TRN_ERR_ARG, "%s: the tensor is NULL", what);
    TRN_TRY(check_name(m, what, name));
    TRN_TRY(trn__check_tensor(m->c, what, t));
    if (!trn__is_float(t->arg.dtype) || t->record != NULL ||
        t->storage->read_only || !trn__is_contiguous(&t->arg))
        return trn__fail(m->c, TRN_ERR_ARG,
                         "%s: %s cannot be a parameter; expected a contiguous "
                         "float tensor of its own memory that was not "
                         "computed",
                         what, trn__describe(&t->arg).s);
    return trn__module_take(m, name, t);
}

trn_status trn_nn_add_child(trn_module *m, const char *name, trn_module *child)
{
    const char *what = "trn_nn_add_child";
    if (m == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(m->c));
    if (child == NULL || child->c != m->c || child->parent != NULL)
        return trn__fail(m->c, TRN_ERR_ARG,
                         "%s: the child is %s; expected a module of this "
                         "context that is nobody's child",
                         what, child == NULL ? "NULL" : "taken");
    for (const trn_module *up = m; up != NULL; up = up->parent) {
        if (up == child)
            return trn__fail(m->c, TRN_ERR_ARG,
                             "%s: a module cannot be below itself", what);
    }
    TRN_TRY(check_name(m, what, name));
    child->name = copy_name(m->c, name);
    if (child->name == NULL)
        return m->c->status;
    trn__disown(&child->owned);
    child->parent = m;
    *(m->last_child == NULL ? &m->first_child : &m->last_child->next) = child;
    m->last_child = child;
    return trn__module_redraw(child);
}

trn_module *trn_nn_child(trn_module *m, const char *path)
{
    while (m != NULL && path != NULL) {
        const char *dot = strchr(path, '.');
        size_t n = dot == NULL ? strlen(path) : (size_t)(dot - path);
        m = child_named(m, path, n);
        path = dot == NULL ? NULL : dot + 1;
    }
    return m;
}

trn_tensor *trn_nn_parameter(trn_module *m, const char *path)
{
    if (m == NULL || path == NULL)
        return NULL;
    const char *dot;
    while (m != NULL && (dot = strchr(path, '.')) != NULL) {
        m = child_named(m, path, (size_t)(dot - path));
        path = dot + 1;
    }
    trn__parameter *p = m == NULL ? NULL : parameter_named(m, path);
    return p == NULL ? NULL : p->tensor;
}

void trn__module_path(const trn_module *m, char *text, size_t size)
{
    text[0] = '\0';
    if (m->parent == NULL)
        return;
    trn__module_path(m->parent, text, size);
    size_t n = strlen(text);
    snprintf(text + n, size - n, n == 0 ? "%s" : ".%s", m->name);
}

/* ---- walking ---- */

trn_module *trn__module_next(const trn_module *root, const trn_module *m)
{
    if (m->first_child != NULL)
        return m->first_child;
    while (m != root && m->next == NULL)
        m = m->parent;
    return m == root ? NULL : m->next;
}

static trn__parameter *parameter_at(const trn_module *root, int64_t i,
                                    const trn_module **where)
{
    for (const trn_module *m = root; m != NULL; m = trn__module_next(root, m)) {
        for (trn__parameter *p = m->first_parameter; p != NULL; p = p->next) {
            if (i-- == 0) {
                *where = m;
                return p;
            }
        }
    }
    return NULL;
}

int64_t trn_nn_parameter_count(const trn_module *root)
{
    int64_t n = 0;
    for (const trn_module *m = root; m != NULL; m = trn__module_next(root, m)) {
        for (trn__parameter *p = m->first_parameter; p != NULL; p = p->next)
            n++;
    }
    return n;
}

trn_tensor *trn_nn_parameter_at(const trn_module *m, int64_t i)
{
    const trn_module *where;
    trn__parameter *p = m == NULL || i < 0 ? NULL : parameter_at(m, i, &where);
    return p == NULL ? NULL : p->tensor;
}

const char *trn_nn_parameter_name(trn_module *m, int64_t i)
{
    const trn_module *where;
    trn__parameter *p = m == NULL || i < 0 ? NULL : parameter_at(m, i, &where);
    if (p == NULL)
        return NULL;
    /* Names start below m, wherever m itself stands. */
    char path[TRN__MESSAGE_SIZE / 2], own[TRN__MESSAGE_SIZE / 2];
    trn__module_path(where, path, sizeof path);
    trn__module_path(m, own, sizeof own);
    const char *below = path + strlen(own);
    below += below[0] == '.' ? 1 : 0;
    snprintf(m->c->name, sizeof m->c->name, below[0] == '\0' ? "%s%s" : "%s.%s",
             below, p->name);
    return m->c->name;
}

int64_t trn_nn_parameter_numel(const trn_module *root)
{
    int64_t n = 0;
    for (const trn_module *m = root; m != NULL; m = trn__module_next(root, m)) {
        for (trn__parameter *p = m->first_parameter; p != NULL; p = p->next)
            n += trn__numel(p->tensor->arg.rank, p->tensor->arg.shape);
    }
    return n;
}

trn_context *trn_nn_context(const trn_module *m)
{
    return m == NULL ? NULL : m->c;
}

trn_status trn_nn_train(trn_module *m, bool training)
{
    if (m == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(m->c));
    m->training = training;
    for (trn_module *k = m->first_child; k != NULL; k = k->next)
        TRN_TRY(trn_nn_train(k, training));
    return TRN_OK;
}

bool trn_nn_is_training(const trn_module *m)
{
    return m != NULL && m->training;
}

trn_status trn_nn_set_requires_grad(trn_module *m, bool requires_grad)
{
    if (m == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(m->c));
    int64_t n = trn_nn_parameter_count(m);
    for (int64_t i = 0; i < n; i++)
        TRN_TRY(
            trn_set_requires_grad(trn_nn_parameter_at(m, i), requires_grad));
    return TRN_OK;
}

trn_tensor *trn_nn_forward(trn_module *m, trn_tensor *x)
{
    if (m == NULL || trn__pending(m->c) != TRN_OK)
        return NULL;
    if (x == NULL) {
        trn__fail(m->c, TRN_ERR_ARG,
                  "trn_nn_forward: x is NULL; expected a tensor");
        return NULL;
    }
    if (trn__check_tensor(m->c, "trn_nn_forward", x) != TRN_OK)
        return NULL;
    trn_tensor *y = m->forward(m, x, m->user);
    if (y == NULL && m->c->status == TRN_OK) {
        char path[TRN__MESSAGE_SIZE / 2];
        trn__module_path(m, path, sizeof path);
        trn__fail(m->c, TRN_ERR_ARG,
                  "trn_nn_forward: the forward function of module \"%s\" gave "
                  "NULL without an error; expected a tensor",
                  path);
    }
    return y;
}
