/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of checkpoints that somebody has changed and given checksums that fit,
 * and a program that tries to load them.
 */
#ifndef TRN_TESTS_HOSTILE_H
#define TRN_TESTS_HOSTILE_H

#include "harness.h"

/* ---- a file ---- */

enum { HOSTILE_LINES = 64, HOSTILE_NUL = 0x0E /* in a path: a 0 */ };

/* A dataset's line of the index; numbers are text, so that any can be had. */
typedef struct hostile_line {
    char at[32], bytes[32], type[96], path[200];
} hostile_line;

/* A file, and what its index says. */
typedef struct hostile_file {
    unsigned char *bytes;
    size_t n, room; /* `room` bytes of index */
    char head[64];  /* the first line */
    char size[32], index[32], count[32];
    hostile_line line[HOSTILE_LINES];
    int n_lines;
} hostile_file;

/* Reads a checkpoint that the library has written; to be ended. */
hostile_file hostile_read(const char *path);
hostile_file hostile_copy(const hostile_file *f);
void hostile_end(hostile_file *f);
/* Writes the index anew, with SHA-256s of the bytes as they are now. */
void hostile_seal(hostile_file *f);
/* That many bytes out of the file at `at`, and others in. */
void hostile_splice(hostile_file *f, size_t at, size_t out, const void *bytes,
                    size_t in);
/* The line of a dataset; the test fails if there is none. */
hostile_line *hostile_find(hostile_file *f, const char *path);
/* Is the byte neither the index's nor a dataset's? */
bool hostile_is_metadata(const hostile_file *f, size_t at);

/* ---- a program ---- */

typedef struct hostile_world {
    trn_context *c;
    trn_tensor *a; /* f32[2,3], and others */
    trn_module *net;
    trn_optim *optim;
    trn_loader *data;
    trn_generator *dice;
    trn_checkpoint *k;
    const char *path, *mine; /* the file that is tried, one with its state */
    uint64_t state;          /* as `mine` has it, */
    uint64_t other;          /* and as the file has it that is changed */
    hostile_file file;
    int n_loaded, n_refused;
} hostile_world;

/* Opens a context with little memory, and makes both files. */
hostile_world hostile_begin(void);
void hostile_finish(hostile_world *w);

/* Tries to load a file: it must be refused, with a message that names the file
 * and a place in it and has `part`, without any change; or, if `part` is NULL,
 * be loaded with the values of w->file.  Gives the status. */
trn_status hostile_try(hostile_world *w, const hostile_file *f,
                       const char *part);
/* The same with what stands at w->path, or at another. */
trn_status hostile_try_path(hostile_world *w, const char *path,
                            const char *part);
/* After a load of one's own: nothing has changed, or all is as in w->file. */
void hostile_result(hostile_world *w, bool loaded);

#endif
