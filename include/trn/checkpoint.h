/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: the state of a training run in one file.
 *
 * A checkpoint is a list of named things to save and to load.  A run that is
 * ended, started again and loaded goes on as if it had never ended: with the
 * same bits, also in the middle of an epoch.  The file is HDF5 with an index of
 * its own, in which each byte has a SHA-256; docs/checkpoint.md has the layout.
 *
 * Always part of it: trn_step_index, the context's seed, its default generator,
 * the versions of library and numerics.  Not part of it: gradients (save where
 * none are accumulated: after the optimizer's step), modes of modules
 * (training, frozen), dropout's p, and what the program builds: layers,
 * schedules, options.
 *
 * Saving and loading are done outside of steps (else TRN_ERR_STATE) and wait
 * for steps in flight.  The same state gives the same file, byte by byte.
 *
 * trn_checkpoint_new gives NULL and leaves the error in the context; the others
 * return trn_status, or say what they give.  A build without HDF5 has all of
 * this, and saving and loading are TRN_ERR_UNSUPPORTED.
 */
#ifndef TRN_CHECKPOINT_H
#define TRN_CHECKPOINT_H

#include "trn/step.h"
#include "trn/types.h"

TRN_BEGIN_DECLS

typedef struct trn_checkpoint trn_checkpoint;

/* An empty list.   Owner: the context. */
TRN_API trn_checkpoint *trn_checkpoint_new(trn_context *c);

/*
 * Puts a thing on the list, under a name of its own among those of its kind:
 * any text but "".  What is to be saved is asked for when it is saved.
 *
 * module     parameters by their names, and the generators of dropout layers
 * optim      state of each parameter, update counts, learning rate; its kind,
 *            options and schedule, which must be the same when it is loaded
 * generator  number of draws; its stream must be the same
 * loader     epoch and batch; samples, types, batch size, order, and a SHA-256
 *            of up to 1024 samples must be the same.  A batch that no step has
 *            used yet is handed out again, as after a step that failed
 * tensor     values; it must be contiguous.  The list holds a reference
 *
 * Errors: TRN_ERR_ARG (NULL, another context's, a name that is "" or taken).
 */
TRN_API trn_status trn_checkpoint_module(trn_checkpoint *k, const char *name,
                                         trn_module *m);
TRN_API trn_status trn_checkpoint_optim(trn_checkpoint *k, const char *name,
                                        trn_optim *o);
TRN_API trn_status trn_checkpoint_generator(trn_checkpoint *k, const char *name,
                                            trn_generator *g);
TRN_API trn_status trn_checkpoint_loader(trn_checkpoint *k, const char *name,
                                         trn_loader *l);
TRN_API trn_status trn_checkpoint_tensor(trn_checkpoint *k, const char *name,
                                         trn_tensor *t);

/* Text of the user's own under a key (not ""), UTF-8; NULL takes it away. */
TRN_API trn_status trn_checkpoint_set_text(trn_checkpoint *k, const char *key,
                                           const char *text);
/* The text as set, or as the last file that was loaded has it; NULL if there is
 * none.  Valid until it is set, or another file is loaded. */
TRN_API const char *trn_checkpoint_text(const trn_checkpoint *k,
                                        const char *key);

/*
 * Saves everything on the list as file `path`, in place of the one there.
 *
 * The new file is written beside the old one and takes its place when it is on
 * the disk; whatever fails, and if the process is killed, the old one is as it
 * was.  A link stays a link; what it leads to is replaced.  The mode is that of
 * the old file, else what the process gives new files.
 *
 * Errors: TRN_ERR_IO with path, place and reason; TRN_ERR_ARG (two parameters
 * of one name); TRN_ERR_LOST, TRN_ERR_DEVICE (values that cannot be read);
 *         TRN_ERR_STATE; TRN_ERR_NOMEM; TRN_ERR_UNSUPPORTED.
 */
TRN_API trn_status trn_checkpoint_save(trn_checkpoint *k, const char *path);

/*
 * Loads everything on the list from a file that has just that.
 *
 * Every byte is checked before anything is believed.  All that is missing,
 * unexpected, of another shape, type or fixed value is told in one message.  On
 * an error nothing has changed; only where a device fails while its memory is
 * being written and cannot take the old values back, those tensors are lost
 * (TRN_ERR_LOST when they are read) and the message says so.  A file of another
 * numerics version is loaded with a warning to the log: the run goes on, but
 * its bits are not those of a run without the break.
 *
 * Errors: TRN_ERR_FORMAT (no checkpoint, damaged), TRN_ERR_SHAPE (it does not
 *         fit the list), TRN_ERR_IO, TRN_ERR_DEVICE, TRN_ERR_STATE (a tensor
 *         that cannot be written to), TRN_ERR_NOMEM, TRN_ERR_UNSUPPORTED.
 */
TRN_API trn_status trn_checkpoint_load(trn_checkpoint *k, const char *path);

/* The same for a part of a file, such as a trained module without its
 * optimizer: the file may have more than the list, and the context's own state
 * (step index, seed, default generator) stays as it is. */
TRN_API trn_status trn_checkpoint_load_part(trn_checkpoint *k,
                                            const char *path);

/* Checks a file and writes what it holds: a line for each dataset with path,
 * type, shape, place, SHA-256, and value if it is one number or a text.
 * Errors: as trn_checkpoint_load. */
TRN_API trn_status trn_checkpoint_print(trn_context *c, const char *path,
                                        trn_put_fn put, void *user);

TRN_END_DECLS

#endif
