/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of the index, and writing it.
 *
 *     libtrn checkpoint 1
 *     size 20480 index 2048 datasets 2
 *     metadata <sha256 of all bytes that are neither index nor dataset>
 *     4096 16 <sha256> /modules/net/parameters/bias
 *     4112 64 <sha256> /modules/net/parameters/weight
 *     index <sha256 of the lines above>
 *
 * The rest of its room is zeros.  Datasets stand in the order of their places,
 * empty ones, with place 0, before them.  Checking believes no number before
 * the index's own SHA-256 fits, and none that does not make sense after that.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/io/index.h"

#define HEAD 256 /* more than the lines around the datasets need */
#define LINE 110 /* more than a dataset's line needs beside its path */

uint64_t trn__index_room(const trn__items *l)
{
    uint64_t bytes = HEAD, room = TRN__INDEX_LEAST;
    for (int64_t i = 0; i < l->n; i++)
        bytes += LINE + strlen(l->at[i].path);
    while (room < bytes)
        room *= 2;
    if (room <= TRN__INDEX_MOST)
        return room;
    trn__fail(l->c, TRN_ERR_UNSUPPORTED,
              "a checkpoint: the index of %lld datasets would have %llu bytes; "
              "expected at most %llu",
              (long long)l->n, (unsigned long long)room,
              (unsigned long long)TRN__INDEX_MOST);
    return 0;
}

/* ---- the bytes behind the index ---- */

bool trn__file_hash(trn__file *f, trn__sha256 *sha, char *piece, uint64_t from,
                    uint64_t to)
{
    while (from < to) {
        uint64_t n =
            to - from < TRN__INDEX_PIECE ? to - from : TRN__INDEX_PIECE;
        if (!trn__file_read(f, from, piece, (size_t)n))
            return false;
        trn__sha256_add(sha, piece, (size_t)n);
        from += n;
    }
    return true;
}

/* The SHA-256 of what is neither index nor dataset.  l: in order of places. */
static bool hash_metadata(trn__file *f, const trn__items *l, char *piece,
                          uint64_t room, uint64_t size, char out[65])
{
    trn__sha256 s;
    uint64_t at = room;
    trn__sha256_begin(&s);
    for (int64_t i = 0; i < l->n; i++) {
        const trn__item *item = &l->at[i];
        if (item->bytes == 0)
            continue;
        if (!trn__file_hash(f, &s, piece, at, item->offset))
            return false;
        at = item->offset + item->bytes;
    }
    if (!trn__file_hash(f, &s, piece, at, size))
        return false;
    trn__sha256_end(&s, out);
    return true;
}

/* ---- writing ---- */

/* By place: HDF5 gives them out in the order of the items but for little, so
 * the items are nearly sorted. */
static void sort_by_place(trn__items *l)
{
    for (int64_t i = 1; i < l->n; i++) {
        trn__item item = l->at[i];
        int64_t j = i;
        for (; j > 0 && l->at[j - 1].offset > item.offset; j--)
            l->at[j] = l->at[j - 1];
        l->at[j] = item;
    }
}

static size_t put_lines(const trn__items *l, char *text, size_t room,
                        uint64_t size, const char *metadata)
{
    char digest[65];
    trn__sha256 s;
    size_t n = (size_t)snprintf(
        text, room,
        TRN__INDEX_MAGIC
        "%d\nsize %llu index %llu datasets %lld\nmetadata %s\n",
        TRN__INDEX_FORMAT, (unsigned long long)size, (unsigned long long)room,
        (long long)l->n, metadata);
    for (int64_t i = 0; i < l->n; i++) {
        const trn__item *item = &l->at[i];
        n += (size_t)snprintf(text + n, room - n, "%llu %llu %s %s\n",
                              (unsigned long long)item->offset,
                              (unsigned long long)item->bytes, item->sha256,
                              item->path);
    }
    trn__sha256_begin(&s);
    trn__sha256_add(&s, text, n);
    trn__sha256_end(&s, digest);
    n += (size_t)snprintf(text + n, room - n, "index %s\n", digest);
    return n;
}

bool trn__index_write(trn__file *f, trn__items *l, uint64_t room, uint64_t size)
{
    char metadata[65];
    const size_t bytes =
        room < TRN__INDEX_PIECE ? TRN__INDEX_PIECE : (size_t)room;
    char *text = trn__alloc(f->c, bytes); /* first for pieces of the file */
    if (text == NULL) {
        trn__fail_memory(f->c, "a checkpoint", bytes);
        return false;
    }
    sort_by_place(l);
    bool good = hash_metadata(f, l, text, room, size, metadata);
    if (good) {
        memset(text, 0, (size_t)room);
        size_t used = put_lines(l, text, (size_t)room, size, metadata);
        TRN_ASSERT(used < room);
        (void)used;
        good = trn__file_write(f, 0, text, (size_t)room);
    }
    trn__free(f->c, text);
    return good;
}
