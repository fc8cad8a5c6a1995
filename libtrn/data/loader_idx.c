/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaders over IDX files: bytes become fractions, labels become i32.
 */
#include "libtrn/data/data.h"
#include "libtrn/data/idx.h"

static const char what[] = "trn_data_idx";

static void *hook_alloc(void *user, size_t bytes)
{
    return trn__alloc(user, bytes);
}

static void hook_free(void *user, void *memory)
{
    trn__free(user, memory);
}

static trn_status load(trn_context *c, const char *path, trn__idx *out)
{
    const trn__alloc_hooks hooks = {
        .alloc = hook_alloc,
        .dealloc = hook_free,
        .user = c,
    };
    char message[TRN__MESSAGE_SIZE] = "";
    trn_status status =
        trn__idx_load(path, &hooks, out, message, sizeof message);
    return status == TRN_OK ? TRN_OK : trn__fail(c, status, "%s", message);
}

/* Element i of a file that does not hold bytes; exact for each of its types. */
static double element(const trn__idx *x, int64_t i)
{
    switch ((uint32_t)x->dtype) {
    case TRN_I32:
        return ((const int32_t *)x->data)[i];
    case TRN_F32:
        return (double)((const float *)x->data)[i];
    default:
        return ((const double *)x->data)[i];
    }
}

static void convert_f32(const trn__idx *x, int64_t begin, int64_t n, float *y)
{
    const uint8_t *bytes = x->data;
    if (x->dtype == TRN_U8) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)bytes[begin + i] / 255.0f;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)element(x, begin + i);
}

static void convert_f64(const trn__idx *x, int64_t begin, int64_t n, double *y)
{
    const uint8_t *bytes = x->data;
    if (x->dtype == TRN_U8) {
        for (int64_t i = 0; i < n; i++)
            y[i] = (double)bytes[begin + i] / 255.0;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = element(x, begin + i);
}

/* Memory for o->count samples of `width` elements each; NULL with the error
 * raised. */
static void *column_alloc(trn_context *c, const trn_loader_options *o,
                          int64_t width, trn__column *out)
{
    int64_t element = (int64_t)trn_dtype_size((trn_dtype)out->dtype);
    int64_t bytes, all;
    if (!trn__mul_size(width, element, &bytes) ||
        !trn__mul_size(bytes, o->count, &all)) {
        trn__fail(c, TRN_ERR_SHAPE,
                  "%s: %lld samples of %lld elements are too many", what,
                  (long long)o->count, (long long)width);
        return NULL;
    }
    out->bytes = out->pitch = (size_t)bytes;
    out->memory = trn__alloc(c, (size_t)all);
    out->first = out->memory;
    if (out->memory == NULL)
        trn__fail_memory(c, what, (uint64_t)all);
    return out->memory;
}

static trn_status make_images(trn_context *c, const trn_loader_options *o,
                              const trn__idx *x, trn__column *out)
{
    int64_t width = 1;
    for (int d = 1; d < x->rank; d++) {
        if (!trn__mul_size(width, x->dims[d], &width))
            return trn__fail(c, TRN_ERR_SHAPE,
                             "%s: the size of an image overflows", what);
    }
    *out = (trn__column){.dtype = o->dtype, .rank = 1, .shape = {width}};
    void *y = column_alloc(c, o, width, out);
    if (y == NULL)
        return c->status;
    trn__fp_env saved; /* the quotients are rounded to nearest */
    trn__fp_enter(&saved);
    if (o->dtype == TRN_F32)
        convert_f32(x, o->first * width, o->count * width, y);
    else
        convert_f64(x, o->first * width, o->count * width, y);
    trn__fp_leave(&saved);
    return TRN_OK;
}

static trn_status make_labels(trn_context *c, const trn_loader_options *o,
                              const trn__idx *x, trn__column *out)
{
    *out = (trn__column){.dtype = TRN_I32};
    int32_t *y = column_alloc(c, o, 1, out);
    if (y == NULL)
        return c->status;
    for (int64_t i = 0; i < o->count; i++)
        y[i] = x->dtype == TRN_U8 ? ((const uint8_t *)x->data)[o->first + i]
                                  : ((const int32_t *)x->data)[o->first + i];
    return TRN_OK;
}

static trn_status check_files(trn_context *c, const char *images,
                              const trn__idx *x, const char *labels,
                              const trn__idx *y)
{
    if (x->rank < 1)
        return trn__fail(c, TRN_ERR_SHAPE,
                         "%s: found rank 0; expected images, rank 1 or more",
                         images);
    if (y->rank != 1)
        return trn__fail(c, TRN_ERR_SHAPE,
                         "%s: found rank %d; expected labels, rank 1", labels,
                         y->rank);
    if (y->dtype != TRN_U8 && y->dtype != TRN_I32)
        return trn__fail(c, TRN_ERR_DTYPE,
                         "%s: found %s; expected labels of an integer type",
                         labels, trn_dtype_name(y->dtype));
    if (x->dims[0] != y->dims[0])
        return trn__fail(c, TRN_ERR_SHAPE,
                         "%s: found %lld labels; expected %lld, as many as "
                         "images in %s",
                         labels, (long long)y->dims[0], (long long)x->dims[0],
                         images);
    return TRN_OK;
}

/* From loaded files to columns. */
static trn_status make_columns(trn_context *c, trn_loader_options *o,
                               const trn__idx *x, const trn__idx *y,
                               trn__column columns[2])
{
    TRN_TRY(trn__loader_select(c, what, x->dims[0], o));
    TRN_TRY(make_images(c, o, x, &columns[0]));
    return make_labels(c, o, y, &columns[1]);
}

trn_loader *trn_data_idx(trn_context *c, const char *images, const char *labels,
                         int64_t batch_size, const trn_loader_options *options)
{
    trn_loader_options o = TRN_LOADER_INIT;
    trn__idx x = {0}, y = {0};
    trn__column columns[2] = {0};
    if (trn__loader_check(c, what, batch_size, options, &o) != TRN_OK)
        return NULL;
    if (o.dtype != TRN_F32 && o.dtype != TRN_F64) {
        trn__fail(c, TRN_ERR_DTYPE,
                  "%s: options.dtype is %s; expected f32 or f64", what,
                  trn_dtype_name((trn_dtype)o.dtype));
        return NULL;
    }
    trn_status status = load(c, images, &x);
    if (status == TRN_OK)
        status = load(c, labels, &y);
    if (status == TRN_OK)
        status = check_files(c, images, &x, labels, &y);
    if (status == TRN_OK)
        status = make_columns(c, &o, &x, &y, columns);
    trn__free(c, x.data);
    trn__free(c, y.data);
    if (status != TRN_OK) {
        trn__free(c, columns[0].memory);
        trn__free(c, columns[1].memory);
        return NULL;
    }
    return trn__loader_new(c, what, batch_size, &o, &columns[0], &columns[1]);
}
