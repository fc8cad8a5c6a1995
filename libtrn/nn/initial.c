/* SPDX-License-Identifier: Apache-2.0
 *
 * Initial values of parameters.
 *
 * A parameter's values depend on the context's seed, its path in its tree and
 * the number of modules made before the tree's root; not on the order in which
 * modules were made, which C leaves to the compiler where one call makes
 * several of its arguments.  So they are drawn again when a module gets a
 * parent.
 */
#include <string.h>

#include "kernels/philox.h"
#include "libtrn/nn/module.h"
#include "libtrn/ops/op_table.h"
#include "libtrn/ops/randoms.h"

static uint64_t stream_of(const trn_module *m, const trn__parameter *p)
{
    char path[TRN__MESSAGE_SIZE / 2];
    const trn_module *root = m;
    while (root->parent != NULL)
        root = root->parent;
    trn__module_path(m, path, sizeof path);
    uint64_t hash = trn__hash_text(path) * 31 + trn__hash_text(p->name);
    return trn__philox_key(hash, root->number);
}

static trn_tensor *drawn(trn_module *m, const trn__parameter *p)
{
    const trn_arg *arg = &p->tensor->arg;
    trn_random_attrs at;
    memset(&at, 0, sizeof at);
    at.dtype = (int32_t)arg->dtype;
    at.shape.rank = arg->rank;
    memcpy(at.shape.dim, arg->shape, sizeof arg->shape);
    uint32_t op = p->init == TRN__INIT_NORMAL ? TRN_OP_normal : TRN_OP_uniform;
    trn__call k = trn__call_of(op, NULL, NULL, &at, sizeof at);
    k.c = m->c;
    k.key = trn__philox_key(m->c->seed, stream_of(m, p));
    trn_tensor *y = trn__apply(&k);
    if (p->init == TRN__INIT_UNIFORM) /* y = 2 bound (u - 1/2) */
        y = trn_mul_scalar(trn_add_scalar(y, -0.5), 2.0 * p->bound);
    return y;
}

static trn_status draw(trn_module *m, trn__parameter *p)
{
    trn__scope scope;
    trn__scope_enter(m->c, &scope);
    bool mode = trn__grad_mode(m->c, false);
    trn_tensor *y = drawn(m, p);
    if (y != NULL)
        trn_assign(p->tensor, y);
    trn__grad_mode(m->c, mode);
    trn__scope_leave(m->c, &scope, NULL);
    p->fresh = p->tensor->storage->version;
    return m->c->status;
}

trn_status trn__module_draw(trn_module *m, const char *name, trn__init init,
                            double bound, int rank, const int64_t *shape)
{
    trn_tensor *t =
        trn_tensor_zeros(m->c, trn__parameter_dtype(m->c), rank, shape);
    if (t == NULL || trn__module_take(m, name, t) != TRN_OK)
        return m->c->status;
    m->last_parameter->init = init;
    m->last_parameter->bound = bound;
    return draw(m, m->last_parameter);
}

trn_status trn__module_redraw(trn_module *m)
{
    for (trn__parameter *p = m->first_parameter; p != NULL; p = p->next) {
        if (p->init != TRN__INIT_NONE &&
            p->fresh == p->tensor->storage->version)
            TRN_TRY(draw(m, p));
    }
    for (trn_module *k = m->first_child; k != NULL; k = k->next)
        TRN_TRY(trn__module_redraw(k));
    return TRN_OK;
}
