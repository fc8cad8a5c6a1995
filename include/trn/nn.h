/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: trees of layers with named parameters.
 *
 * A module belongs to its context until a container takes it; trn_close() frees
 * all.  Its parameters are leaves with gradient, named by their place in the
 * tree: "0.weight", "2.bias".  Initial values depend on the context's seed,
 * the place in the tree, and the number of modules made before its root; not on
 * the order in which C evaluates the arguments of a call.
 *
 * Functions that return a module or a tensor give NULL and leave the error in
 * the context; those that return trn_status return it.
 */
#ifndef TRN_NN_H
#define TRN_NN_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* ---- layers; parameters are f32 unless trn_nn_set_dtype says otherwise ----
 */

/* The element type of parameters made from now on in c: a float type. */
TRN_API trn_status trn_nn_set_dtype(trn_context *c, trn_dtype dtype);

/* y = x weight^T + bias     x: [.., n_in], weight: [n_out, n_in], bias: [n_out]
 * Initial values: U(-1/sqrt(n_in), 1/sqrt(n_in)). */
TRN_API trn_module *trn_nn_linear(trn_context *c, int64_t n_in, int64_t n_out);
/* The same without bias. */
TRN_API trn_module *trn_nn_linear_no_bias(trn_context *c, int64_t n_in,
                                          int64_t n_out);
/* y[.., :] = weight[x[..], :]   x: i32 or i64, weight: [n_rows, width] ~ N(0,1)
 */
TRN_API trn_module *trn_nn_embedding(trn_context *c, int64_t n_rows,
                                     int64_t width);
/* y = trn_dropout(x, p) while training, x in evaluation.  Its generator's
 * stream is a hash of the module's path in its tree. */
TRN_API trn_module *trn_nn_dropout(trn_context *c, double p);
/* Changes p of a dropout module: a VALUE, it compiles nothing. */
TRN_API trn_status trn_nn_set_dropout(trn_module *m, double p);
TRN_API trn_module *trn_nn_relu(trn_context *c);
TRN_API trn_module *trn_nn_tanh(trn_context *c);
/* y = x as [x0, product of the other dimensions] */
TRN_API trn_module *trn_nn_flatten(trn_context *c);

/* One module after the other; the list ends with NULL.  Children are named "0",
 * "1", ...  Takes them over.  A NULL that comes from an error ends the list:
 * the error is pending then, and NULL is returned. */
TRN_API trn_module *trn_nn_sequential(trn_context *c, ...);

/* ---- modules of the user's own ---- */

/* y = f(m, x); user is what trn_nn_custom was given */
typedef trn_tensor *(*trn_forward_fn)(trn_module *m, trn_tensor *x, void *user);

/* A module with a forward function and no parameters yet. */
TRN_API trn_module *trn_nn_custom(trn_context *c, trn_forward_fn forward,
                                  void *user);
/* Adds a child under a name (no '.', not used in m yet), and takes it over. */
TRN_API trn_status trn_nn_add_child(trn_module *m, const char *name,
                                    trn_module *child);
/* Adds a parameter; m holds a reference of its own. */
TRN_API trn_status trn_nn_add_parameter(trn_module *m, const char *name,
                                        trn_tensor *t);
/* A child or a parameter by its path, "0.weight"; NULL if there is none. */
TRN_API trn_module *trn_nn_child(trn_module *m, const char *path);
TRN_API trn_tensor *trn_nn_parameter(trn_module *m, const char *path);

/* ---- use ---- */

/* y = m(x) */
TRN_API trn_tensor *trn_nn_forward(trn_module *m, trn_tensor *x);

/* Training (the default) or evaluation, for the whole tree. */
TRN_API trn_status trn_nn_train(trn_module *m, bool training);
TRN_API bool trn_nn_is_training(const trn_module *m);

/* Parameters wanted (true) or frozen, for the whole tree. */
TRN_API trn_status trn_nn_set_requires_grad(trn_module *m, bool requires_grad);

/* All parameters in the order of the tree: how many, the i-th (borrowed) and
 * its name (valid until the next call with c). */
TRN_API int64_t trn_nn_parameter_count(const trn_module *m);
TRN_API trn_tensor *trn_nn_parameter_at(const trn_module *m, int64_t i);
TRN_API const char *trn_nn_parameter_name(trn_module *m, int64_t i);
/* The number of elements of all parameters. */
TRN_API int64_t trn_nn_parameter_numel(const trn_module *m);

TRN_API trn_context *trn_nn_context(const trn_module *m);

TRN_END_DECLS

#endif
