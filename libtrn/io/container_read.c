/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the items of a checkpoint.
 *
 * The index is checked against every byte of the file before HDF5 looks at any.
 * Then the names of the index are compared with those that are looked for, each
 * dataset's type and shape with the item's, and what HDF5 says of its place
 * with the index: only hard links, plain storage, nothing outside of the file.
 */
#include "libtrn/io/container.h"

#ifdef TRN_HAVE_HDF5
#include <stdio.h>
#include <string.h>

#include "libtrn/data/sha256.h"
#include "libtrn/io/h5_file.h"
#include "libtrn/io/index.h"

typedef struct reader {
    trn_context *c;
    trn__file f;
    trn__h5 h5;
    trn__items have; /* what the index has */
    trn__gaps gaps;
    trn__item **sorted; /* by path */
    uint64_t room, size;
    char list[TRN__MESSAGE_SIZE - 200]; /* what does not fit */
    int n_listed, n_more;
} reader;

static trn_status odd(reader *r, const trn__item *had, const char *what)
{
    if (r->f.error != 0) /* HDF5 did not get what it wanted to look at */
        return trn__file_raise(&r->f);
    return trn__fail(
        r->c, TRN_ERR_FORMAT,
        "%.400s: %.300s at byte %llu: found %s; expected a dataset "
        "as trn_checkpoint_save() writes it",
        r->f.path, had->path, (unsigned long long)had->offset, what);
}

/* ---- one dataset ---- */

/* Each part of the path is a hard link: no other file, no other path. */
static bool has_hard_links(hid_t file, char *path)
{
    H5L_info_t info;
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        bool hard = H5Lget_info(file, path, &info, H5P_DEFAULT) >= 0 &&
                    info.type == H5L_TYPE_HARD;
        *p = kept;
        if (!hard)
            return false;
        if (kept == '\0')
            return true;
    }
}

/* Is it stored in one piece, as it is, in this file, where the index says? */
static bool is_plain(hid_t dataset, const trn__item *had)
{
    hid_t list = H5Dget_create_plist(dataset);
    bool good = list >= 0 && H5Pget_layout(list) == H5D_CONTIGUOUS &&
                H5Pget_external_count(list) == 0 && H5Pget_nfilters(list) == 0;
    trn__h5_drop(list);
    if (!good || H5Dget_storage_size(dataset) != had->bytes)
        return false;
    return had->bytes == 0 || H5Dget_offset(dataset) == had->offset;
}

static bool read_shape(hid_t dataset, trn__desc *shape)
{
    hsize_t dims[TRN_MAX_RANK];
    hid_t space = H5Dget_space(dataset);
    H5S_class_t kind =
        space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    bool good = (kind == H5S_SCALAR || kind == H5S_SIMPLE) && rank >= 0 &&
                rank <= TRN_MAX_RANK &&
                H5Sget_simple_extent_dims(space, dims, NULL) == rank;
    trn__h5_drop(space);
    memset(shape, 0, sizeof *shape);
    shape->rank = good ? (uint32_t)rank : 0;
    for (uint32_t d = 0; good && d < shape->rank; d++) {
        good = dims[d] <= (hsize_t)INT64_MAX;
        shape->shape[d] = (int64_t)dims[d];
    }
    return good;
}

/* Opens what the index has; gives its type and shape.  < 0 with the error
 * raised. */
static hid_t open_dataset(reader *r, trn__item *had)
{
    const char *what = NULL;
    hid_t dataset = -1;
    if (!has_hard_links(r->h5.file, had->path))
        what = "no hard link";
    else if ((dataset = H5Dopen2(r->h5.file, had->path, H5P_DEFAULT)) < 0)
        what = "no dataset";
    else if (!is_plain(dataset, had))
        what = "a dataset that is stored in another way";
    else if (!read_shape(dataset, &had->shape))
        what = "a shape of another kind";
    else
        had->type = trn__h5_type_of(dataset);
    if (what == NULL)
        return dataset;
    trn__h5_drop(dataset);
    odd(r, had, what);
    return -1;
}

/* The dataset's values into new memory of `had`; had->text for a text. */
static trn_status read_values(reader *r, trn__item *had, hid_t dataset)
{
    char digest[65];
    trn__sha256 s;
    void *to = trn__alloc_zeroed(r->c, (size_t)had->bytes + 1);
    if (to == NULL)
        return trn__fail_memory(r->c, "trn_checkpoint_load", had->bytes);
    trn__free(r->c, had->stage);
    had->stage = to;
    hid_t type = trn__h5_type(had->type, had->bytes, true);
    bool good = type >= 0 &&
                (had->bytes == 0 || H5Dread(dataset, type, H5S_ALL, H5S_ALL,
                                            H5P_DEFAULT, to) >= 0);
    trn__h5_drop(type);
    if (!good)
        return odd(r, had, "a dataset that HDF5 cannot read");
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__
    trn__sha256_begin(&s); /* it may have changed since it was checked */
    trn__sha256_add(&s, to, (size_t)had->bytes);
    trn__sha256_end(&s, digest);
    if (strcmp(digest, had->sha256) != 0)
        return odd(r, had, "other bytes than a moment ago");
#endif
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
    int n = snprintf(r->list + used, room, "%s%s %s%s%s%s",
                     used == 0 ? "" : "; ", text, path, found,
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
    hid_t dataset = open_dataset(r, had);
    if (dataset < 0)
        return r->c->status;
    if (!same_kind(item, had)) {
        snprintf(found, sizeof found, ": found %s",
                 trn__item_describe(had->type, &had->shape).s);
        list(r, item->path, "", found,
             trn__item_describe(item->type, &item->shape).s);
    } else if (item->use == TRN__USE_EQUAL) {
        status = read_values(r, had, dataset);
        if (status == TRN_OK && !same_value(item, had)) {
            snprintf(found, sizeof found, ": found %s", trn__item_value(had).s);
            list(r, item->path, "", found, trn__item_value(item).s);
        }
    }
    trn__h5_drop(dataset);
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
    hid_t dataset = open_dataset(r, had);
    if (dataset < 0)
        return r->c->status;
    trn_status status = read_values(r, had, dataset);
    trn__h5_drop(dataset);
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
    hid_t dataset = open_dataset(r, had);
    if (dataset < 0)
        return r->c->status;
    trn_status status =
        had->type == TRN__ITEM_TEXT
            ? read_values(r, had, dataset)
            : odd(r, had, trn__item_describe(had->type, &had->shape).s);
    trn__h5_drop(dataset);
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

/* The text of one dataset, for the reader. */
static trn_status print_item(reader *r, trn__item *had, trn_put_fn put,
                             void *user)
{
    char line[100];
    hid_t dataset = open_dataset(r, had);
    if (dataset < 0)
        return r->c->status;
    bool tells = had->type == TRN__ITEM_TEXT ||
                 (had->shape.rank == 0 && had->bytes == 8);
    trn_status status = tells ? read_values(r, had, dataset) : TRN_OK;
    trn__h5_drop(dataset);
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
        put(user,
            had->type == TRN__ITEM_TEXT ? had->text : trn__item_value(had).s);
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
    trn__items *l, *texts;
    bool part;
    trn_put_fn put;
    void *user;
} task;

static trn_status look_into(reader *r, const task *t)
{
    r->f.error = 0;
    trn__h5_begin(&r->h5, &r->f);
    trn_status status = TRN_OK;
    if (!trn__h5_open(&r->h5, r->room, r->size, &r->gaps))
        status = r->f.error != 0
                     ? trn__file_raise(&r->f)
                     : trn__fail(r->c, TRN_ERR_FORMAT,
                                 "%.600s: HDF5 metadata: HDF5 finds no file at "
                                 "byte %llu",
                                 r->f.path, (unsigned long long)r->room);
    else
        status = t->put != NULL ? print_all(r, t->put, t->user)
                                : read_all(r, t->l, t->texts, t->part);
    trn__h5_end(&r->h5);
    return status;
}

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
        status = trn__index_check(&r->f, r->size, &r->have, &r->room, &r->gaps);
    if (status == TRN_OK) {
        r->sorted = trn__items_sorted(&r->have, path);
        status = r->sorted == NULL ? c->status : look_into(r, t);
    }
    trn__file_close(&r->f);
    trn__free(c, r->sorted);
    trn__gaps_free(c, &r->gaps);
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

#else

static trn_status lacking(trn_context *c, const char *path)
{
    return trn__fail(c, TRN_ERR_UNSUPPORTED,
                     "%.600s: this build has no HDF5, without which nothing "
                     "can be loaded",
                     path);
}

trn_status trn__container_read(trn__items *l, trn__items *texts, bool part,
                               const trn__file_calls *calls, const char *path)
{
    (void)texts;
    (void)part;
    (void)calls;
    return lacking(l->c, path);
}

trn_status trn__container_print(trn_context *c, const trn__file_calls *calls,
                                const char *path, trn_put_fn put, void *user)
{
    (void)calls;
    (void)put;
    (void)user;
    return lacking(c, path);
}

#endif
