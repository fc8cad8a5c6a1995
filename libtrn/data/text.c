/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts: bytes from files or memory as indices into a vocabulary of bytes.
 *
 * A text never changes, so loaders point into it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "libtrn/data/data.h"
#include "libtrn/data/stream.h"

#define FIRST_CAPACITY ((size_t)1 << 16)

/* Bytes that grow. */
typedef struct pile {
    char *bytes;
    size_t n, capacity;
} pile;

static void text_destroy(trn__owned *self)
{
    trn_text *t = (trn_text *)self;
    trn__free(t->c, t->indices);
    trn__free(t->c, t);
}

static trn_status grow(trn_context *c, pile *p)
{
    size_t capacity = p->capacity == 0 ? FIRST_CAPACITY : 2 * p->capacity;
    char *bytes = trn__alloc(c, capacity);
    if (bytes == NULL)
        return trn__fail_memory(c, "trn_text_read", capacity);
    if (p->n > 0)
        memcpy(bytes, p->bytes, p->n);
    trn__free(c, p->bytes);
    p->bytes = bytes;
    p->capacity = capacity;
    return TRN_OK;
}

static trn_status file_failed(trn_context *c, const char *path,
                              const char *verb, int error)
{
    return trn__fail(c, TRN_ERR_IO, "%s: cannot be %s: %s", path, verb,
                     strerror(error));
}

static trn_status read_open(trn_context *c, const char *path, int fd, pile *p)
{
    for (;;) {
        size_t n;
        if (p->n == p->capacity)
            TRN_TRY(grow(c, p));
        const int error =
            trn__stream_read(fd, p->bytes + p->n, p->capacity - p->n, &n);
        p->n += n;
        if (error != 0)
            return file_failed(c, path, "read", error);
        if (n == 0)
            return TRN_OK;
    }
}

/* Adds the bytes of a file to the pile. */
static trn_status read_file(trn_context *c, const char *path, pile *p)
{
    if (path == NULL)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_text_read: a path is NULL; expected a file");
    const int fd = trn__stream_open(path);
    if (fd < 0)
        return file_failed(c, path, "opened", errno);
    trn_status status = read_open(c, path, fd, p);
    close(fd); /* only read from: nothing can be lost */
    return status;
}

/* The bytes that occur, in increasing order. */
static void make_vocabulary(trn_text *t, const uint8_t *bytes, size_t n)
{
    bool occurs[256] = {false};
    for (size_t i = 0; i < n; i++)
        occurs[bytes[i]] = true;
    for (int b = 0; b < 256; b++) {
        t->index_of[b] = -1;
        if (occurs[b]) {
            t->index_of[b] = (int16_t)t->n_vocabulary;
            t->byte_of[t->n_vocabulary++] = (uint8_t)b;
        }
    }
}

static void copy_vocabulary(trn_text *t, const trn_text *from)
{
    t->n_vocabulary = from->n_vocabulary;
    memcpy(t->byte_of, from->byte_of, sizeof t->byte_of);
    memcpy(t->index_of, from->index_of, sizeof t->index_of);
}

/* Index of the nearest byte of the vocabulary, which is not empty; of two as
 * near the smaller byte. */
static int32_t nearest(const trn_text *t, int byte)
{
    for (int distance = 0; distance < 256; distance++) {
        int low = byte - distance, high = byte + distance;
        if (low >= 0 && t->index_of[low] >= 0)
            return t->index_of[low];
        if (high < 256 && t->index_of[high] >= 0)
            return t->index_of[high];
    }
    return -1;
}

static void make_indices(trn_text *t, const uint8_t *bytes)
{
    int32_t index[256];
    for (int b = 0; b < 256; b++)
        index[b] = nearest(t, b);
    for (int64_t i = 0; i < t->length; i++)
        t->indices[i] = index[bytes[i]];
}

/* A text of n bytes, which stay the caller's. */
static trn_text *make_text(trn_context *c, const char *what, const char *bytes,
                           size_t n, const trn_text *vocabulary)
{
    if (vocabulary != NULL && vocabulary->n_vocabulary == 0 && n > 0) {
        trn__fail(c, TRN_ERR_ARG,
                  "%s: the vocabulary is of an empty text; expected at least "
                  "one byte in it",
                  what);
        return NULL;
    }
    trn_text *t = trn__alloc_zeroed(c, sizeof *t);
    int32_t *indices = NULL;
    if (t != NULL && n < SIZE_MAX / 2 / sizeof *indices)
        indices = trn__alloc(c, n * sizeof *indices);
    if (indices == NULL) {
        trn__free(c, t);
        trn__fail_memory(c, what, n * sizeof *indices);
        return NULL;
    }
    t->c = c;
    t->length = (int64_t)n;
    t->indices = indices;
    if (vocabulary != NULL)
        copy_vocabulary(t, vocabulary);
    else
        make_vocabulary(t, (const uint8_t *)bytes, n);
    make_indices(t, (const uint8_t *)bytes);
    trn_sha256(bytes, n, t->sha256);
    trn__own(c, &t->owned, text_destroy);
    return t;
}

trn_text *trn_text_read(trn_context *c, int n_paths, const char *const *paths,
                        const trn_text *vocabulary)
{
    static const char what[] = "trn_text_read";
    trn_text *t = NULL;
    pile p = {NULL, 0, 0};
    if (trn__pending(c) != TRN_OK)
        return NULL;
    if (n_paths < 1 || paths == NULL) {
        trn__fail(c, TRN_ERR_ARG,
                  "%s: %d paths were given%s; expected 1 or more", what,
                  n_paths, paths == NULL ? " as NULL" : "");
        return NULL;
    }
    trn_status status = TRN_OK;
    for (int i = 0; i < n_paths && status == TRN_OK; i++)
        status = read_file(c, paths[i], &p);
    if (status == TRN_OK)
        t = make_text(c, what, p.bytes, p.n, vocabulary);
    trn__free(c, p.bytes);
    return t;
}

trn_text *trn_text_from(trn_context *c, const char *bytes, size_t n,
                        const trn_text *vocabulary)
{
    static const char what[] = "trn_text_from";
    if (trn__pending(c) != TRN_OK)
        return NULL;
    if (bytes == NULL && n > 0) {
        trn__fail(c, TRN_ERR_ARG, "%s: bytes is NULL; expected %llu bytes",
                  what, (unsigned long long)n);
        return NULL;
    }
    return make_text(c, what, bytes, n, vocabulary);
}

/* ---- questions ---- */

int64_t trn_text_length(const trn_text *t)
{
    return t == NULL ? 0 : t->length;
}

int trn_text_vocabulary(const trn_text *t)
{
    return t == NULL ? 0 : t->n_vocabulary;
}

const int32_t *trn_text_indices(const trn_text *t)
{
    return t == NULL ? NULL : t->indices;
}

int trn_text_index_of(const trn_text *t, char byte)
{
    return t == NULL ? -1 : t->index_of[(unsigned char)byte];
}

char trn_text_byte_of(const trn_text *t, int index)
{
    bool inside = t != NULL && index >= 0 && index < t->n_vocabulary;
    return inside ? (char)t->byte_of[index] : '\0';
}

const char *trn_text_sha256(const trn_text *t)
{
    return t == NULL ? "" : t->sha256;
}
