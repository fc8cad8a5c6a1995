/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing the items of a checkpoint.
 *
 * A dataset is hashed as it goes to HDF5, not as it comes back, so that what is
 * damaged on its way does not get a checksum that fits.  Nothing in the file
 * depends on the time or on what was in memory: the same state is the same
 * file.
 */
#include "libtrn/io/container.h"

#ifdef TRN_HAVE_HDF5
#include <string.h>

#include "libtrn/data/sha256.h"
#include "libtrn/io/h5_file.h"
#include "libtrn/io/index.h"
#include "libtrn/io/replace.h"

typedef struct writer {
    trn_context *c;
    trn__h5 h5;
    trn__replace replace;
    hid_t links, create; /* property lists of all datasets */
    void *stage;         /* for the largest tensor */
} writer;

/* HDF5 itself does not work: out of memory, or a fault of ours. */
static trn_status hdf5_failed(writer *w, const char *what)
{
    if (w->h5.f->error != 0)
        return trn__file_raise(w->h5.f);
    return trn__fail(w->c, TRN_ERR_IO, "%.500s: %.400s: HDF5 cannot write it",
                     w->h5.f->path, what);
}

static bool make_lists(writer *w)
{
    w->links = H5Pcreate(H5P_LINK_CREATE);
    w->create = H5Pcreate(H5P_DATASET_CREATE);
    return w->links >= 0 && w->create >= 0 &&
           H5Pset_create_intermediate_group(w->links, 1) >= 0 &&
           H5Pset_char_encoding(w->links, H5T_CSET_UTF8) >= 0 &&
           H5Pset_layout(w->create, H5D_CONTIGUOUS) >= 0 &&
           H5Pset_alloc_time(w->create, H5D_ALLOC_TIME_EARLY) >= 0 &&
           H5Pset_fill_time(w->create, H5D_FILL_TIME_NEVER) >= 0 &&
           H5Pset_obj_track_times(w->create, false) >= 0;
}

/* What HDF5 has no type for has its name beside it. */
static bool write_name(hid_t dataset, const char *name)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t type = trn__h5_type(TRN__ITEM_TEXT, strlen(name) + 1, false);
    hid_t a = space < 0 || type < 0 ? -1
                                    : H5Acreate2(dataset, "dtype", type, space,
                                                 H5P_DEFAULT, H5P_DEFAULT);
    bool good = a >= 0 && H5Awrite(a, type, name) >= 0;
    trn__h5_drop(a);
    trn__h5_drop(type);
    trn__h5_drop(space);
    return good;
}

static hid_t make_dataset(writer *w, const trn__item *item)
{
    hsize_t dims[TRN_MAX_RANK];
    const char *name = trn__h5_type_name(item->type);
    for (uint32_t d = 0; d < item->shape.rank; d++)
        dims[d] = (hsize_t)item->shape.shape[d];
    hid_t space = item->shape.rank == 0
                      ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple((int)item->shape.rank, dims, NULL);
    hid_t type = trn__h5_type(item->type, item->bytes, false);
    hid_t dataset = -1;
    if (space >= 0 && type >= 0)
        dataset = H5Dcreate2(w->h5.file, item->path, type, space, w->links,
                             w->create, H5P_DEFAULT);
    if (dataset >= 0 && name != NULL && !write_name(dataset, name)) {
        trn__h5_drop(dataset);
        dataset = -1;
    }
    trn__h5_drop(type);
    trn__h5_drop(space);
    return dataset;
}

/* The item's values in host memory, borrowed; NULL with the error raised. */
static const void *values_of(writer *w, const trn__item *item)
{
    if (item->type == TRN__ITEM_TEXT)
        return item->text;
    if (item->use != TRN__USE_TENSOR)
        return &item->value;
    return trn_tensor_read(item->tensor, w->stage, (size_t)item->bytes) ==
                   TRN_OK
               ? w->stage
               : NULL;
}

/* HDF5 has little-endian bytes in the file, whatever the host has. */
static void hash(const trn__item *item, const void *values, char out[65])
{
    trn__sha256 s;
    trn__sha256_begin(&s);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    size_t size = item->type == TRN__ITEM_TEXT  ? 1
                  : item->type == TRN__ITEM_U64 ? 8
                                                : trn_dtype_size(item->type);
    for (uint64_t at = 0; at < item->bytes; at += size)
        for (size_t i = size; i-- > 0;)
            trn__sha256_add(&s, (const char *)values + at + i, 1);
#else
    trn__sha256_add(&s, values, (size_t)item->bytes);
#endif
    trn__sha256_end(&s, out);
}

static trn_status write_item(writer *w, trn__item *item)
{
    const void *values = values_of(w, item);
    if (values == NULL)
        return w->c->status;
    hash(item, values, item->sha256);
    hid_t dataset = make_dataset(w, item);
    hid_t type = trn__h5_type(item->type, item->bytes, true);
    bool good = dataset >= 0 && type >= 0;
    if (good && item->bytes > 0) {
        haddr_t at = H5Dget_offset(dataset);
        good = at != HADDR_UNDEF && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL,
                                             H5P_DEFAULT, values) >= 0;
        item->offset = at;
    }
    trn__h5_drop(type);
    trn__h5_drop(dataset);
    return good && w->h5.f->error == 0 ? TRN_OK : hdf5_failed(w, item->path);
}

static trn_status write_items(writer *w, const trn__items *l, uint64_t room)
{
    trn_status status = TRN_OK;
    if (!make_lists(w) || !trn__h5_create(&w->h5, room))
        status = hdf5_failed(w, "/");
    for (int64_t i = 0; status == TRN_OK && i < l->n; i++)
        status = write_item(w, &l->at[i]);
    trn__h5_drop(w->links);
    trn__h5_drop(w->create);
    bool closed = trn__h5_close(&w->h5);
    if (status == TRN_OK && (!closed || w->h5.f->error != 0))
        status = hdf5_failed(w, "/");
    return status;
}

static trn_status write_file(writer *w, trn__items *l, uint64_t room)
{
    trn__file *f = &w->replace.file;
    w->links = w->create = -1;
    trn_status status = write_items(w, l, room);
    if (status == TRN_OK && !trn__index_write(f, l, room, w->h5.end))
        status = w->c->status != TRN_OK ? w->c->status : trn__file_raise(f);
    return status;
}

static trn_status make_stage(writer *w, const trn__items *l)
{
    uint64_t most = 0;
    for (int64_t i = 0; i < l->n; i++) {
        if (l->at[i].tensor != NULL && l->at[i].bytes > most)
            most = l->at[i].bytes;
    }
    w->stage = trn__alloc(w->c, (size_t)most);
    return w->stage != NULL
               ? TRN_OK
               : trn__fail_memory(w->c, "trn_checkpoint_save", most);
}

trn_status trn__container_write(trn__items *l, const trn__file_calls *calls,
                                const char *path)
{
    trn_context *c = l->c;
    TRN_TRY(trn__h5_check(c, calls, path));
    trn__item **sorted = trn__items_sorted(l, NULL); /* no name twice */
    if (sorted == NULL)
        return c->status;
    trn__free(c, sorted);
    uint64_t room = trn__index_room(l);
    writer *w = room == 0 ? NULL : trn__alloc_zeroed(c, sizeof *w);
    if (w == NULL)
        return trn__fail_memory(c, "trn_checkpoint_save", sizeof *w);
    w->c = c;
    trn_status status = make_stage(w, l);
    if (status == TRN_OK) {
        /* HDF5's lock is held over all of it: the lock of the temporary file
         * keeps other processes away, not our own threads. */
        trn__h5_begin(&w->h5, &w->replace.file);
        status = trn__replace_begin(&w->replace, c, calls, path);
        if (status == TRN_OK)
            status = write_file(w, l, room);
        if (status == TRN_OK)
            status = trn__replace_commit(&w->replace);
        trn__replace_end(&w->replace);
        trn__h5_end(&w->h5);
    }
    trn__free(c, w->stage);
    trn__free(c, w);
    return status;
}

#else

trn_status trn__container_write(trn__items *l, const trn__file_calls *calls,
                                const char *path)
{
    (void)calls;
    return trn__fail(l->c, TRN_ERR_UNSUPPORTED,
                     "%.600s: this build has no HDF5, without which nothing "
                     "can be saved",
                     path);
}

#endif
