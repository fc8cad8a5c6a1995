/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking a file against its index.
 *
 * No number is believed before the index's own SHA-256 fits, and none that does
 * not make sense after that.  What HDF5 will look at is kept in memory as it
 * was checked, so that it sees neither other bytes nor a disk that fails.
 */
#include <string.h>

#include "libtrn/data/file_kind.h"
#include "libtrn/io/index.h"

#define HEAD 256 /* the first lines fit into it */

/* The text that is left to read; what does not fit makes `at` NULL. */
typedef struct reader {
    const char *at, *end;
} reader;

static void skip_word(reader *r, const char *word)
{
    size_t n = strlen(word);
    if (r->at == NULL || (size_t)(r->end - r->at) < n ||
        memcmp(r->at, word, n) != 0)
        r->at = NULL;
    else
        r->at += n;
}

/* Digits without a zero in front, and no number beyond an int64_t. */
static uint64_t take_number(reader *r)
{
    uint64_t n = 0;
    int digits = 0;
    bool zero = r->at != NULL && r->at < r->end && *r->at == '0';
    for (; r->at != NULL && r->at < r->end && *r->at >= '0' && *r->at <= '9';
         r->at++) {
        n = 10 * n + (uint64_t)(*r->at - '0');
        if (++digits > 18)
            r->at = NULL;
        if (r->at == NULL)
            break;
    }
    if (digits == 0 || (zero && digits > 1))
        r->at = NULL;
    return n;
}

static void take_sha256(reader *r, char out[65])
{
    memset(out, 0, 65);
    if (r->at == NULL || r->end - r->at < 64) {
        r->at = NULL;
        return;
    }
    memcpy(out, r->at, 64);
    if (strspn(out, "0123456789abcdef") == 64)
        r->at += 64;
    else
        r->at = NULL;
}

static trn_status bad_index(trn__file *f, const char *text)
{
    return trn__fail(f->c, TRN_ERR_FORMAT, "%.500s: index: %s", f->path, text);
}

/* What is no checkpoint says what it looks like. */
static trn_status wrong_kind(trn__file *f, const char *head, size_t n,
                             uint64_t size)
{
    const char *kind = trn__file_kind((const unsigned char *)head, n);
    if (size == 0)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.600s: byte 0: found an empty file; expected a "
                         "libtrn checkpoint",
                         f->path);
    bool hdf5 = kind != NULL && strcmp(kind, "HDF5") == 0;
    return trn__fail(f->c, TRN_ERR_FORMAT,
                     "%.600s: byte 0: found %s%s%s; expected a libtrn "
                     "checkpoint, which begins with \"" TRN__INDEX_MAGIC "\"",
                     f->path,
                     kind == NULL ? "a file of an unknown kind"
                                  : "a file that looks like ",
                     kind == NULL ? "" : kind,
                     hdf5 ? " without the index of a checkpoint" : "");
}

/* The first lines, whose numbers say how much there is to read.  Nothing in
 * them is believed beyond that. */
static trn_status check_head(trn__file *f, uint64_t size, const char *head,
                             size_t n, uint64_t *room)
{
    reader r = {head, head + n};
    if (n < strlen(TRN__INDEX_MAGIC) ||
        memcmp(head, TRN__INDEX_MAGIC, strlen(TRN__INDEX_MAGIC)) != 0)
        return wrong_kind(f, head, n, size);
    skip_word(&r, TRN__INDEX_MAGIC);
    uint64_t format = take_number(&r);
    if (r.at != NULL && r.at < r.end && *r.at == '\n' &&
        format != TRN__INDEX_FORMAT)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.600s: index: found format %llu; expected %d, which "
                         "this library (%s) reads",
                         f->path, (unsigned long long)format, TRN__INDEX_FORMAT,
                         trn_version());
    skip_word(&r, "\nsize ");
    uint64_t told = take_number(&r);
    skip_word(&r, " index ");
    *room = take_number(&r);
    skip_word(&r, " datasets ");
    take_number(&r);
    skip_word(&r, "\n");
    if (r.at == NULL)
        return bad_index(f, "its first lines are damaged");
    if (told != size)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.600s: index: the file has %llu bytes; expected "
                         "%llu%s",
                         f->path, (unsigned long long)size,
                         (unsigned long long)told,
                         told > size ? " (truncated)" : "");
    if (*room < TRN__INDEX_LEAST || *room > TRN__INDEX_MOST || *room > size ||
        (*room & (*room - 1)) != 0)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.600s: index: found %llu bytes of index; expected a "
                         "power of two, from %d to the file's %llu",
                         f->path, (unsigned long long)*room, TRN__INDEX_LEAST,
                         (unsigned long long)size);
    return TRN_OK;
}

/* Does the index hash to what its last line says, and nothing follows? */
static trn_status check_own(trn__file *f, const char *text, uint64_t room,
                            const char **last)
{
    static const char word[] = "\nindex ";
    char told[65], found[65];
    trn__sha256 s;
    size_t used = (size_t)room;
    while (used > 0 && text[used - 1] == '\0')
        used--;
    if (used < 80 || text[used - 1] != '\n')
        return bad_index(f, "its last line is damaged");
    reader r = {text + used - 72, text + used};
    *last = r.at + 1;
    skip_word(&r, word);
    take_sha256(&r, told);
    if (r.at == NULL)
        return bad_index(f, "its last line is damaged");
    trn__sha256_begin(&s);
    trn__sha256_add(&s, text, (size_t)(*last - text));
    trn__sha256_end(&s, found);
    if (strcmp(told, found) != 0)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.500s: index: bytes 0 to %llu have SHA-256 %s; "
                         "expected %s",
                         f->path, (unsigned long long)(*last - text), found,
                         told);
    return TRN_OK;
}

/* A line of the index as an item; *end is where the dataset before it ends. */
static trn_status take_dataset(trn__file *f, reader *r, trn__items *out,
                               uint64_t size, uint64_t *end)
{
    char sha256[65];
    uint64_t offset = take_number(r);
    skip_word(r, " ");
    uint64_t bytes = take_number(r);
    skip_word(r, " ");
    take_sha256(r, sha256);
    skip_word(r, " /");
    const char *stop =
        r->at == NULL ? NULL : memchr(r->at, '\n', (size_t)(r->end - r->at));
    if (stop == NULL)
        return bad_index(f, "a line of a dataset is damaged");
    size_t n = (size_t)(stop - r->at) + 1;
    char *path = trn__alloc(out->c, n + 1);
    if (path == NULL)
        return trn__fail_memory(f->c, "a checkpoint", n + 1);
    memcpy(path, r->at - 1, n);
    path[n] = '\0';
    r->at = stop + 1;
    trn__item *item = trn__items_add(out, "", "", TRN__USE_TELL, 0);
    if (item == NULL) {
        trn__free(out->c, path);
        return f->c->status;
    }
    trn__free(out->c, item->path);
    item->path = path;
    item->offset = offset;
    item->bytes = bytes;
    memcpy(item->sha256, sha256, sizeof sha256);
    bool fits = bytes == 0
                    ? offset == 0
                    : offset >= *end && bytes <= size && offset <= size - bytes;
    if (!fits)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.400s: index: %.200s lies at byte %llu with %llu "
                         "bytes; expected a place behind byte %llu, up to "
                         "%llu",
                         f->path, path, (unsigned long long)offset,
                         (unsigned long long)bytes, (unsigned long long)*end,
                         (unsigned long long)size);
    *end = bytes == 0 ? *end : offset + bytes;
    return TRN_OK;
}

static trn_status take_lines(trn__file *f, const char *text, const char *last,
                             uint64_t size, uint64_t room, trn__items *out,
                             char metadata[65])
{
    reader r = {text, last};
    uint64_t end = room;
    skip_word(&r, TRN__INDEX_MAGIC);
    take_number(&r);
    skip_word(&r, "\nsize ");
    take_number(&r);
    skip_word(&r, " index ");
    take_number(&r);
    skip_word(&r, " datasets ");
    uint64_t n = take_number(&r);
    skip_word(&r, "\nmetadata ");
    take_sha256(&r, metadata);
    skip_word(&r, "\n");
    while (r.at != NULL && r.at < r.end)
        TRN_TRY(take_dataset(f, &r, out, size, &end));
    if (r.at == NULL || (uint64_t)out->n != n)
        return bad_index(f, "its lines are damaged");
    return TRN_OK;
}

static trn_status differs(trn__file *f, const char *what, uint64_t from,
                          uint64_t to, const char *found, const char *expected)
{
    return trn__fail(f->c, TRN_ERR_FORMAT,
                     "%.400s: %.200s: bytes %llu to %llu have SHA-256 %s; "
                     "expected %s",
                     f->path, what, (unsigned long long)from,
                     (unsigned long long)to, found, expected);
}

static trn_status check_datasets(trn__file *f, const trn__items *l)
{
    char found[65];
    trn__sha256 s;
    char *piece = trn__alloc(f->c, TRN__INDEX_PIECE);
    if (piece == NULL)
        return trn__fail_memory(f->c, "a checkpoint", TRN__INDEX_PIECE);
    trn_status status = TRN_OK;
    for (int64_t i = 0; status == TRN_OK && i < l->n; i++) {
        const trn__item *item = &l->at[i];
        uint64_t end = item->offset + item->bytes;
        trn__sha256_begin(&s);
        if (!trn__file_hash(f, &s, piece, item->offset, end)) {
            status = trn__file_raise(f);
            break;
        }
        trn__sha256_end(&s, found);
        if (strcmp(found, item->sha256) != 0)
            status =
                differs(f, item->path, item->offset, end, found, item->sha256);
    }
    trn__free(f->c, piece);
    return status;
}

/* ---- what lies between the datasets ---- */

static trn_status make_gaps(trn_context *c, const trn__items *l, uint64_t room,
                            uint64_t size, trn__gaps *g)
{
    uint64_t at = room, bytes = 0;
    size_t list = (size_t)(l->n + 1) * sizeof *g->at;
    g->at = trn__alloc(c, list);
    if (g->at == NULL)
        return trn__fail_memory(c, "a checkpoint", list);
    for (int64_t i = 0; i <= l->n; i++) {
        uint64_t to = i == l->n ? size : l->at[i].offset;
        if (i < l->n && l->at[i].bytes == 0)
            continue;
        if (to > at)
            g->at[g->n++] = (trn__gap){.from = at, .to = to, .place = bytes};
        bytes += to - at;
        at = i == l->n ? size : to + l->at[i].bytes;
    }
    g->n_bytes = bytes;
    g->bytes = trn__alloc(c, (size_t)bytes);
    if (g->bytes == NULL)
        return trn__fail_memory(c, "a checkpoint", bytes);
    return TRN_OK;
}

static trn_status check_gaps(trn__file *f, uint64_t room, uint64_t size,
                             const trn__gaps *g, const char *metadata)
{
    char found[65];
    trn__sha256 s;
    for (int64_t i = 0; i < g->n; i++) {
        const trn__gap *gap = &g->at[i];
        if (!trn__file_read(f, gap->from, g->bytes + gap->place,
                            (size_t)(gap->to - gap->from)))
            return trn__file_raise(f);
    }
    trn__sha256_begin(&s);
    trn__sha256_add(&s, g->bytes, (size_t)g->n_bytes);
    trn__sha256_end(&s, found);
    if (strcmp(found, metadata) == 0)
        return TRN_OK;
    return differs(f, "HDF5 metadata, in what the datasets leave of them", room,
                   size, found, metadata);
}

void trn__gaps_free(trn_context *c, trn__gaps *g)
{
    trn__free(c, g->at);
    trn__free(c, g->bytes);
    *g = (trn__gaps){0};
}

const trn__gap *trn__gaps_find(const trn__gaps *g, uint64_t at)
{
    int64_t low = 0, high = g->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (g->at[middle].to > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low < g->n ? &g->at[low] : NULL;
}

/* ---- all of it ---- */

static trn_status read_index(trn__file *f, uint64_t size, trn__items *out,
                             uint64_t *room, char metadata[65])
{
    char head[HEAD];
    const char *last = NULL;
    size_t n = size < HEAD ? (size_t)size : HEAD;
    if (!trn__file_read(f, 0, head, n))
        return trn__file_raise(f);
    TRN_TRY(check_head(f, size, head, n, room));
    char *text = trn__alloc(f->c, (size_t)*room);
    if (text == NULL)
        return trn__fail_memory(f->c, "a checkpoint", *room);
    trn_status status = TRN_OK;
    if (!trn__file_read(f, 0, text, (size_t)*room))
        status = trn__file_raise(f);
    if (status == TRN_OK)
        status = check_own(f, text, *room, &last);
    if (status == TRN_OK)
        status = take_lines(f, text, last, size, *room, out, metadata);
    trn__free(f->c, text);
    return status;
}

trn_status trn__index_check(trn__file *f, uint64_t size, trn__items *out,
                            uint64_t *room, trn__gaps *gaps)
{
    char metadata[65];
    TRN_TRY(read_index(f, size, out, room, metadata));
    TRN_TRY(check_datasets(f, out));
    TRN_TRY(make_gaps(f->c, out, *room, size, gaps));
    return check_gaps(f, *room, size, gaps, metadata);
}
