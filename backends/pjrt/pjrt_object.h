/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a shared object before it is loaded.  It needs nothing of the rest
 * of this folder: whoever calls dlopen() with a path of the user's may use it.
 */
#ifndef TRN_BACKENDS_PJRT_OBJECT_H
#define TRN_BACKENDS_PJRT_OBJECT_H

/*
 * What would make dlopen() wait for ever or end the process, in words that
 * follow the path: it opens pipes, and maps what is not in the file.  NULL:
 * neither; whether it can be loaded dlopen() tells.
 */
const char *trn__object_fault(const char *path);

#endif
