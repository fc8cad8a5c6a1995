/* SPDX-License-Identifier: Apache-2.0
 *
 * The arena of a tree of messages: taken piece by piece, given back at once.
 */
#ifdef TRN_HAVE_PROTOBUFC

#include <stdalign.h>
#include <string.h>

#include "backends/hlo/hlo_encode.h"

enum { CHUNK_BYTES = 1 << 16 };

struct trn__hlo_chunk {
    alignas(max_align_t) trn__hlo_chunk *next;
};

static bool more(trn__hlo_arena *a, size_t bytes)
{
    const size_t head = sizeof(trn__hlo_chunk);
    const size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    trn__hlo_chunk *chunk = room > SIZE_MAX - head
                                ? NULL
                                : a->host->alloc(a->host->host, head + room);
    if (chunk == NULL) {
        a->failed = true;
        return false;
    }
    chunk->next = a->chunks;
    a->chunks = chunk;
    a->at = (unsigned char *)chunk + head;
    a->left = room;
    return true;
}

void *trn__hlo_take(trn__hlo_arena *a, size_t count, size_t size)
{
    const size_t step = alignof(max_align_t);
    if (a->failed || (size > 0 && count > (SIZE_MAX - step) / size)) {
        a->failed = true;
        return NULL;
    }
    const size_t bytes = (count * size + step - 1) / step * step;
    if (bytes > a->left && !more(a, bytes))
        return NULL;
    void *memory = a->at;
    a->at += bytes;
    a->left -= bytes;
    return memory;
}

void trn__hlo_arena_free(trn__hlo_arena *a)
{
    while (a->chunks != NULL) {
        trn__hlo_chunk *chunk = a->chunks;
        a->chunks = chunk->next;
        a->host->dealloc(a->host->host, chunk);
    }
}

char *trn__hlo_take_text(trn__hlo_arena *a, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = trn__hlo_take(a, size, 1);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

int64_t *trn__hlo_take_list(trn__hlo_arena *a, const trn__hlo_list *list,
                            size_t *n)
{
    const size_t count = (size_t)list->n;
    int64_t *copy = trn__hlo_take(a, count, sizeof *copy);
    *n = copy == NULL ? 0 : count;
    if (copy != NULL)
        memcpy(copy, list->at, count * sizeof *copy);
    return copy;
}

int64_t *trn__hlo_take_number(trn__hlo_arena *a, int64_t number, size_t *n)
{
    const trn__hlo_list one = {.n = 1, .at = {number}};
    return trn__hlo_take_list(a, &one, n);
}

#else

/* A build without protobuf-c has no tree; ISO C wants something here. */
typedef int trn__hlo_no_arena;

#endif
