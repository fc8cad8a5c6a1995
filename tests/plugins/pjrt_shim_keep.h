/* SPDX-License-Identifier: Apache-2.0
 *
 * For the shim before a real plug-in: while it keeps, the client without
 * options and what it has compiled outlive their destruction, and are given
 * out again to whoever asks for the same.  So hundreds of runs compile once.
 */
#ifndef TRN_TESTS_PJRT_SHIM_KEEP_H
#define TRN_TESTS_PJRT_SHIM_KEEP_H

#include <stdlib.h>
#include <string.h>

#include "../../backends/pjrt/pjrt_api.h"

typedef struct kept_program {
    pjrt_loaded *loaded;
    char *bytes; /* the code, then the options */
    size_t n_code, n_options;
} kept_program;

enum { MAX_KEPT = 16 };
static kept_program kept[MAX_KEPT];
static int n_kept;
static pjrt_client *kept_client;
static bool keeping;
static pjrt_calls keep_below; /* what is kept comes from here */

static pjrt_error *keep_client_create(pjrt_client_create_args *a)
{
    if (!keeping || a->n_options > 0)
        return keep_below.client_create(a);
    pjrt_error *e = NULL;
    if (kept_client == NULL) {
        e = keep_below.client_create(a);
        kept_client = e == NULL ? a->client : NULL;
    }
    a->client = kept_client;
    return e;
}

static pjrt_error *keep_client_destroy(pjrt_client_destroy_args *a)
{
    return a->client == kept_client ? NULL : keep_below.client_destroy(a);
}

static kept_program *keep_find(const pjrt_compile_args *a)
{
    for (int i = 0; i < n_kept; i++) {
        kept_program *k = &kept[i];
        if (k->n_code == a->source->code_size &&
            k->n_options == a->options_size &&
            memcmp(k->bytes, a->source->code, k->n_code) == 0 &&
            memcmp(k->bytes + k->n_code, a->options, k->n_options) == 0)
            return k;
    }
    return NULL;
}

static void keep_program(const pjrt_compile_args *a)
{
    kept_program *k = &kept[n_kept];
    char *bytes = malloc(a->source->code_size + a->options_size);
    if (bytes == NULL)
        return;
    memcpy(bytes, a->source->code, a->source->code_size);
    memcpy(bytes + a->source->code_size, a->options, a->options_size);
    k->loaded = a->loaded;
    k->bytes = bytes;
    k->n_code = a->source->code_size;
    k->n_options = a->options_size;
    n_kept++;
}

static pjrt_error *keep_compile(pjrt_compile_args *a)
{
    if (!keeping || a->client != kept_client)
        return keep_below.compile(a);
    const kept_program *k = keep_find(a);
    if (k != NULL) {
        a->loaded = k->loaded;
        return NULL;
    }
    pjrt_error *e = keep_below.compile(a);
    if (e == NULL && n_kept < MAX_KEPT)
        keep_program(a);
    return e;
}

static pjrt_error *keep_loaded_destroy(pjrt_loaded_destroy_args *a)
{
    for (int i = 0; i < n_kept; i++) {
        if (kept[i].loaded == a->loaded)
            return NULL;
    }
    return keep_below.loaded_destroy(a);
}

static void keep_fill(pjrt_calls *c)
{
    keep_below = *c;
    c->client_create = keep_client_create;
    c->client_destroy = keep_client_destroy;
    c->compile = keep_compile;
    c->loaded_destroy = keep_loaded_destroy;
}

/* Begins, or ends and gives back what is kept; nobody may use it then. */
static void keep_set(bool keep)
{
    keeping = keep;
    if (keep)
        return;
    while (n_kept > 0) {
        kept_program *k = &kept[--n_kept];
        pjrt_loaded_destroy_args end =
            PJRT_INIT(pjrt_loaded_destroy_args, loaded);
        end.loaded = k->loaded;
        keep_below.loaded_destroy(&end);
        free(k->bytes);
    }
    if (kept_client != NULL) {
        pjrt_client_destroy_args end =
            PJRT_INIT(pjrt_client_destroy_args, client);
        end.client = kept_client;
        keep_below.client_destroy(&end);
        kept_client = NULL;
    }
}

#endif
