/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a module: a named node of a tree with parameters of its own, children,
 * and a forward function.
 */
#ifndef TRN_LIBTRN_MODULE_H
#define TRN_LIBTRN_MODULE_H

#include "libtrn/tensor/tensor.h"
#include "trn/nn.h"

/* How a parameter's initial values are drawn. */
typedef enum trn__init {
    TRN__INIT_NONE,    /* the user's own */
    TRN__INIT_UNIFORM, /* U(-bound, bound) */
    TRN__INIT_NORMAL   /* N(0, 1) */
} trn__init;

typedef struct trn__parameter {
    struct trn__parameter *next;
    trn_tensor *tensor;
    char *name;
    trn__init init;
    double bound;
    uint64_t fresh; /* the tensor's version when it was drawn */
} trn__parameter;

struct trn_module {
    trn__owned owned; /* first; roots only are on the context's ring */
    trn_context *c;
    trn_module *parent, *first_child, *last_child, *next;
    char *name; /* in its parent; NULL for a root */
    trn__parameter *first_parameter, *last_parameter;
    trn_forward_fn forward;
    void *user;
    uint64_t number; /* of modules made before it in the context */
    bool training;
    /* what the built-in layers keep */
    bool is_dropout;
    double p;
    trn_generator *generator;
};

/* A module with `what` for messages; NULL with the error raised. */
trn_module *trn__module_new(trn_context *c, const char *what,
                            trn_forward_fn forward, void *user);

/* Makes a parameter of m out of t, which leaves its scope. */
trn_status trn__module_take(trn_module *m, const char *name, trn_tensor *t);

/* Makes a parameter of m with drawn initial values. */
trn_status trn__module_draw(trn_module *m, const char *name, trn__init init,
                            double bound, int rank, const int64_t *shape);

/* Draws the initial values below m again, of all parameters that nobody has
 * written since: they depend on the place in the tree, which has changed. */
trn_status trn__module_redraw(trn_module *m);

/* "2.dropout": m's place in its tree; "" for a root.  Cut to size. */
void trn__module_path(const trn_module *m, char *text, size_t size);

/* The module behind m in the tree below root, parents before children; NULL: m
 * is the last. */
trn_module *trn__module_next(const trn_module *root, const trn_module *m);

/* The generator of a dropout module, made by its first use; NULL with the error
 * raised.  And the stream that it has or will have. */
trn_generator *trn__dropout_generator(trn_module *m);
uint64_t trn__dropout_stream(const trn_module *m);

/* Gives up a module that could not be completed; NULL is allowed. */
void trn__module_drop(trn_module *m);

/* The element type of new parameters. */
trn_dtype trn__parameter_dtype(trn_context *c);

#endif
