/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking a file against its index.
 *
 * No number is believed before the index's own SHA-256 fits, and none that does
 * not make sense after that: who makes a file to do harm makes its sums fit.
 * HDF5's own bytes are checked for damage, and never looked at: the index has
 * all that there is to know, and HDF5 reads beyond its memory, divides by zero
 * or goes round for ever on bytes that were made for that.
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
         digits++) {
        uint64_t digit = (uint64_t)(*r->at++ - '0');
        if (n > ((uint64_t)INT64_MAX - digit) / 10)
            r->at = NULL;
        n = 10 * n + digit;
    }
    if (digits == 0 || (zero && digits > 1))
        r->at = NULL;
    return r->at == NULL ? 0 : n;
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

static bool take_word(reader *r, const char *word)
{
    reader tried = *r;
    skip_word(&tried, word);
    if (tried.at != NULL)
        *r = tried;
    return tried.at != NULL;
}

/* "f32[", and the bytes of an element; 0: no type. */
static uint32_t take_element(reader *r, int64_t *bytes)
{
    *bytes = 8;
    if (take_word(r, "u64["))
        return TRN__ITEM_U64;
#define X(name, code, text, size) \
    if (take_word(r, text "[")) { \
        *bytes = size;            \
        return TRN_##name;        \
    }
    TRN_DTYPE_LIST(X)
#undef X
    return 0;
}

/* "f32[2,3]", all of it; false: it is none, or does not come to the bytes. */
static bool take_type(reader *r, trn__item *item)
{
    trn__desc *shape = &item->shape;
    int64_t n;
    bool empty = false, fits = true;
    if (take_word(r, "text")) {
        item->type = TRN__ITEM_TEXT;
        return r->at == r->end && item->bytes > 0; /* it has its 0 */
    }
    item->type = take_element(r, &n);
    if (item->type == 0)
        return false;
    while (!take_word(r, "]")) {
        if (shape->rank == TRN_MAX_RANK)
            return false;
        if (shape->rank > 0)
            skip_word(r, ",");
        int64_t size = (int64_t)take_number(r);
        if (r->at == NULL)
            return false;
        shape->shape[shape->rank++] = size;
        empty = empty || size == 0;
        fits = fits && (size == 0 || trn__mul_size(n, size, &n));
    }
    if (r->at != r->end || (item->type == TRN__ITEM_U64 && shape->rank != 0))
        return false;
    return empty ? item->bytes == 0 : fits && (uint64_t)n == item->bytes;
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

/* A line without its place and sums: "f32[2,3] /path". */
static trn_status take_object(trn__file *f, const char *at, const char *end,
                              trn__item *item)
{
    const char *space = memchr(at, ' ', (size_t)(end - at));
    bool good = space != NULL && space + 1 < end && space[1] == '/';
    for (const char *p = at; good && p < end; p++)
        good = (unsigned char)*p >= ' ' && *p != 0x7F;
    if (!good)
        return TRN_ERR_FORMAT;
    size_t n = (size_t)(end - space) - 1;
    char *path = trn__alloc(f->c, n + 1);
    if (path == NULL)
        return trn__fail_memory(f->c, "a checkpoint", n + 1);
    memcpy(path, space + 1, n);
    path[n] = '\0';
    trn__free(f->c, item->path);
    item->path = path;
    reader r = {at, space};
    if (take_type(&r, item))
        return TRN_OK;
    return trn__fail(f->c, TRN_ERR_FORMAT,
                     "%.400s: index: %.200s: found %.*s in %llu bytes; "
                     "expected a type and a shape that come to them",
                     f->path, path, (int)(space - at < 180 ? space - at : 180),
                     at, (unsigned long long)item->bytes);
}

static trn_status check_place(trn__file *f, const trn__item *item,
                              uint64_t size, uint64_t end)
{
    bool fits = item->bytes == 0 ? item->offset == 0
                                 : item->offset >= end && item->bytes <= size &&
                                       item->offset <= size - item->bytes;
    if (fits)
        return TRN_OK;
    return trn__fail(f->c, TRN_ERR_FORMAT,
                     "%.400s: index: %.200s lies at byte %llu with %llu "
                     "bytes; expected a place behind byte %llu, up to %llu",
                     f->path, item->path, (unsigned long long)item->offset,
                     (unsigned long long)item->bytes, (unsigned long long)end,
                     (unsigned long long)size);
}

/* A line of the index as an item; *end is where the dataset before it ends. */
static trn_status take_dataset(trn__file *f, reader *r, trn__items *out,
                               uint64_t size, uint64_t *end)
{
    trn__item *item = trn__items_add(out, "", "", TRN__USE_TELL, 0);
    if (item == NULL)
        return f->c->status;
    item->offset = take_number(r);
    skip_word(r, " ");
    item->bytes = take_number(r);
    skip_word(r, " ");
    take_sha256(r, item->sha256);
    skip_word(r, " ");
    const char *stop =
        r->at == NULL ? NULL : memchr(r->at, '\n', (size_t)(r->end - r->at));
    trn_status status = TRN_ERR_FORMAT;
    if (stop != NULL)
        status = take_object(f, r->at, stop, item);
    if (status != TRN_OK && f->c->status == TRN_OK)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.500s: index: line %lld is damaged", f->path,
                         (long long)out->n + 3);
    TRN_TRY(status);
    r->at = stop + 1;
    TRN_TRY(check_place(f, item, size, *end));
    if (item->bytes > 0)
        *end = item->offset + item->bytes;
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
    if (r.at == NULL)
        return bad_index(f, "its first lines are damaged");
    if ((uint64_t)out->n != n)
        return trn__fail(f->c, TRN_ERR_FORMAT,
                         "%.500s: index: found %lld datasets; expected %llu",
                         f->path, (long long)out->n, (unsigned long long)n);
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

static trn_status check_datasets(trn__file *f, const trn__items *l, char *piece)
{
    char found[65];
    trn__sha256 s;
    for (int64_t i = 0; i < l->n; i++) {
        const trn__item *item = &l->at[i];
        uint64_t end = item->offset + item->bytes;
        trn__sha256_begin(&s);
        if (!trn__file_hash(f, &s, piece, item->offset, end))
            return trn__file_raise(f);
        trn__sha256_end(&s, found);
        if (strcmp(found, item->sha256) != 0)
            return differs(f, item->path, item->offset, end, found,
                           item->sha256);
    }
    return TRN_OK;
}

static trn_status check_rest(trn__file *f, const trn__items *l, char *piece,
                             uint64_t room, uint64_t size, const char *metadata)
{
    char found[65];
    if (!trn__index_hash_rest(f, l, piece, room, size, found))
        return trn__file_raise(f);
    if (strcmp(found, metadata) == 0)
        return TRN_OK;
    return differs(f, "HDF5 metadata, in what the datasets leave of them", room,
                   size, found, metadata);
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

trn_status trn__index_check(trn__file *f, uint64_t size, trn__items *out)
{
    char metadata[65];
    uint64_t room = 0;
    TRN_TRY(read_index(f, size, out, &room, metadata));
    char *piece = trn__alloc(f->c, TRN__INDEX_PIECE);
    if (piece == NULL)
        return trn__fail_memory(f->c, "a checkpoint", TRN__INDEX_PIECE);
    trn_status status = check_datasets(f, out, piece);
    if (status == TRN_OK)
        status = check_rest(f, out, piece, room, size, metadata);
    trn__free(f->c, piece);
    return status;
}
