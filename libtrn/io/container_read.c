/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the items of a checkpoint.
 *
 * Once all of the file is checked against its index, the index alone says what
 * there is and where: the names are compared with those that are looked for,
 * types and shapes with the items', and values are read from their places.
 * HDF5 has no part in it, so a build without it can load, too.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/data/sha256.h"
#include "libtrn/io/container.h"
#include "libtrn/io/index.h"

typedef struct reader {
    trn_context *c;
    trn__file f;
    trn__items have;    /* what the index has */
    trn__item **sorted; /* by path */
    uint64_t size;
    char list[TRN__MESSAGE_SIZE - 200]; /* what does not fit */
    int n_listed, n_more;
} reader;

static trn_status odd(reader *r, const trn__item *had, const char *what)
{
    return trn__fail(
        r->c, TRN_ERR_FORMAT,
        "%.400s: %.300s at byte %llu: found %s; expected a dataset "
        "as trn_checkpoint_save() writes it",
        r->f.path, had->path, (unsigned long long)had->offset, what);
}

/* ---- one dataset ---- */

/* The file is little-endian. */
static void to_host(char *values, const trn__item *had)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    size_t size = had->type == TRN__ITEM_TEXT  ? 1
                  : had->type == TRN__ITEM_U64 ? 8
                                               : trn_dtype_size(had->type);
    for (uint64_t at = 0; at < had->bytes; at += size) {
        for (size_t i = 0, j = size - 1; i < j; i++, j--) {
            char kept = values[at + i];
            values[at + i] = values[at + j];
            values[at + j] = kept;
        }
    }
#else
    (void)values;
    (void)had;
#endif
}

/* The dataset's values into new memory of `had`; had->text for a text. */
static trn_status read_values(reader *r, trn__item *had)
{
    char digest[65];
    trn__sha256 s;
    void *to = trn__alloc_zeroed(r->c, (size_t)had->bytes + 1);
    if (to == NULL)
        return trn__fail_memory(r->c, "trn_checkpoint_load", had->bytes);
    trn__free(r->c, had->stage);
    had->stage = to;
    if (!trn__file_read(&r->f, had->offset, to, (size_t)had->bytes))
        return trn__file_raise(&r->f);
    trn__sha256_begin(&s); /* it may have changed since it was checked */
    trn__sha256_add(&s, to, (size_t)had->bytes);
    trn__sha256_end(&s, digest);
    if (strcmp(digest, had->sha256) != 0)
        return odd(r, had, "other bytes than a moment ago");
    to_host(to, had);
    if (had->type == TRN__ITEM_TEXT) {
        had->text = to;
        had->stage = NULL;
        if (strlen(had->text) + 1 != had->bytes || !trn__is_utf8(had->text))
            return odd(r, had, "a text that is not UTF-8 up to its end");
    } else if (had->shape.rank == 0 && had->bytes == 8) {
        memcpy(&had->value, to, 8);
    }
    return TRN_OK;
}

/* ---- comparing ---- */

/* One more thing that does not fit; a long list ends with a count. */
static void list(reader *r, const char *path, const char *text,
                 const char *found, const char *expected)
{
    size_t used = strlen(r->list), room = sizeof r->list - used;
    int n =
        snprintf(r->list + used, room, "%s%s%s%s%s%s%s", used == 0 ? "" : "; ",
                 text, text[0] == '\0' ? "" : " ", path, found,
                 expected[0] == '\0' ? "" : ", expected ", expected);
    if (n >= 0 && (size_t)n < room && r->n_more == 0) {
        r->n_listed++;
        return;
    }
    r->list[used] = '\0';
    r->n_more++;
}

static bool same_kind(const trn__item *a, const trn__item *b)
{
    return a->type == b->type && a->shape.rank == b->shape.rank &&
           memcmp(a->shape.shape, b->shape.shape,
                  a->shape.rank * sizeof a->shape.shape[0]) == 0;
}

static bool same_value(const trn__item *a, const trn__item *b)
{
    return a->type == TRN__ITEM_TEXT ? strcmp(a->text, b->text) == 0
                                     : a->value.bits == b->value.bits;
}

/* Type and shape of one item; and its value, where that must be equal. */
static trn_status compare(reader *r, trn__item *item, trn__item *had)
{
    char found[180];
    trn_status status = TRN_OK;
    if (!same_kind(item, had)) {
        snprintf(found, sizeof found, ": found %s",
                 trn__item_describe(had->type, &had->shape).s);
        list(r, item->path, "", found,
             trn__item_describe(item->type, &item->shape).s);
    } else if (item->use == TRN__USE_EQUAL) {
        status = read_values(r, had);
        if (status == TRN_OK && !same_value(item, had)) {
            snprintf(found, sizeof found, ": found %s", trn__item_value(had).s);
            list(r, item->path, "", found, trn__item_value(item).s);
        }
    }
    return status;
}

static bool is_note(const char *path)
{
    return strncmp(path, TRN__NOTES "/", sizeof TRN__NOTES) == 0;
}

/* Everything that does not fit, in the order of the list, then of the file. */
static trn_status compare_all(reader *r, trn__items *l, bool part)
{
    trn__item **mine = trn__items_sorted(l, NULL);
    if (mine == NULL)
        return r->c->status;
    trn_status status = TRN_OK;
    for (int64_t i = 0; status == TRN_OK && i < l->n; i++) {
        trn__item *had = trn__items_find(r->sorted, r->have.n, l->at[i].path);
        if (had == NULL)
            list(r, l->at[i].path, "missing:", "", "");
        else
            status = compare(r, &l->at[i], had);
    }
    for (int64_t i = 0; !part && i < r->have.n; i++) {
        const char *path = r->sorted[i]->path;
        if (!is_note(path) && trn__items_find(mine, l->n, path) == NULL)
            list(r, path, "unexpected:", "", "");
    }
    trn__free(r->c, mine);
    if (status != TRN_OK || r->n_listed + r->n_more == 0)
        return status;
    char more[40] = "";
    if (r->n_more > 0)
        snprintf(more, sizeof more, "; and %d more", r->n_more);
    return trn__fail(r->c, TRN_ERR_SHAPE, "%.100s: %s%s", r->f.path, r->list,
                     more);
}

/* ---- reading all ---- */

static trn_status read_item(reader *r, trn__item *item)
{
    trn__item *had = trn__items_find(r->sorted, r->have.n, item->path);
    if (item->use == TRN__USE_EQUAL || item->use == TRN__USE_TELL)
        return TRN_OK;
    trn_status status = read_values(r, had);
    item->value = had->value;
    if (had->type == TRN__ITEM_TEXT) {
        item->stage = had->text;
        had->text = NULL;
    } else {
        item->stage = had->stage;
        had->stage = NULL;
    }
    return status;
}

static trn_status read_note(reader *r, trn__item *had, trn__items *texts)
{
    trn_status status =
        had->type == TRN__ITEM_TEXT
            ? read_values(r, had)
            : odd(r, had, trn__item_describe(had->type, &had->shape).s);
    if (status != TRN_OK)
        return status;
    char *name = trn__item_name(r->c, had->path);
    if (name == NULL)
        return r->c->status != TRN_OK
                   ? r->c->status
                   : odd(r, had, "a name that is not escaped as we do");
    trn__item *item =
        trn__items_add(texts, TRN__NOTES, name, TRN__USE_TELL, TRN__ITEM_TEXT);
    trn__free(r->c, name);
    if (item == NULL)
        return r->c->status;
    if (strcmp(item->path, had->path) != 0) /* two paths, one name */
        return odd(r, had, "a name that is not escaped as we do");
    item->text = had->text;
    had->text = NULL;
    return TRN_OK;
}

static trn_status read_all(reader *r, trn__items *l, trn__items *texts,
                           bool part)
{
    TRN_TRY(compare_all(r, l, part));
    for (int64_t i = 0; i < l->n; i++)
        TRN_TRY(read_item(r, &l->at[i]));
    for (int64_t i = 0; i < r->have.n; i++) {
        if (is_note(r->sorted[i]->path))
            TRN_TRY(read_note(r, r->sorted[i], texts));
    }
    return TRN_OK;
}

/* ---- the file ---- */

/* A text of the user's with what would break its line or reach a terminal as a
 * command written as names are: %0A. */
static void put_text(const char *text, trn_put_fn put, void *user)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != 0; p++) {
        char piece[4] = {(char)*p};
        if (*p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0))
            *trn__item_escape(piece, *p) = '\0';
        put(user, piece);
    }
}

/* The text of one dataset, for the reader. */
static trn_status print_item(reader *r, trn__item *had, trn_put_fn put,
                             void *user)
{
    char line[100];
    bool tells = had->type == TRN__ITEM_TEXT ||
                 (had->shape.rank == 0 && had->bytes == 8);
    trn_status status = tells ? read_values(r, had) : TRN_OK;
    if (status != TRN_OK)
        return status;
    snprintf(line, sizeof line, "%s %10llu %10llu  ", had->sha256,
             (unsigned long long)had->offset, (unsigned long long)had->bytes);
    put(user, line);
    put(user, had->path);
    put(user, "  ");
    put(user, trn__item_describe(had->type, &had->shape).s);
    if (tells) {
        put(user, "  ");
        if (had->type == TRN__ITEM_TEXT)
            put_text(had->text, put, user);
        else
            put(user, trn__item_value(had).s);
    }
    put(user, "\n");
    return TRN_OK;
}

static trn_status print_all(reader *r, trn_put_fn put, void *user)
{
    char line[100];
    snprintf(line, sizeof line,
             "%lld datasets in %llu bytes, all SHA-256 as they should be\n",
             (long long)r->have.n, (unsigned long long)r->size);
    put(user, line);
    for (int64_t i = 0; i < r->have.n; i++)
        TRN_TRY(print_item(r, r->sorted[i], put, user));
    return TRN_OK;
}

/* What is to be done with an open file: print, or read. */
typedef struct task {
    trn__items *l, *texts; /* reading; l NULL: printing */
    bool part;
    trn_put_fn put;
    void *user;
} task;

static trn_status with_file(trn_context *c, const trn__file_calls *calls,
                            const char *path, const task *t)
{
    reader *r = trn__alloc_zeroed(c, sizeof *r);
    if (r == NULL)
        return trn__fail_memory(c, "trn_checkpoint_load", sizeof *r);
    r->c = r->have.c = c;
    r->f = (trn__file){.c = c, .calls = calls, .path = path, .fd = -1};
    trn_status status = trn__file_open(&r->f, &r->size);
    if (status == TRN_OK)
        status = trn__index_check(&r->f, r->size, &r->have);
    if (status == TRN_OK) {
        r->sorted = trn__items_sorted(&r->have, path);
        status = r->sorted == NULL ? c->status
                 : t->l != NULL    ? read_all(r, t->l, t->texts, t->part)
                                   : print_all(r, t->put, t->user);
    }
    trn__file_close(&r->f);
    trn__free(c, r->sorted);
    trn__items_free(&r->have);
    trn__free(c, r);
    return status;
}

trn_status trn__container_read(trn__items *l, trn__items *texts, bool part,
                               const trn__file_calls *calls, const char *path)
{
    const task t = {.l = l, .texts = texts, .part = part};
    return with_file(l->c, calls, path, &t);
}

trn_status trn__container_print(trn_context *c, const trn__file_calls *calls,
                                const char *path, trn_put_fn put, void *user)
{
    const task t = {.put = put, .user = user};
    return with_file(c, calls, path, &t);
}
