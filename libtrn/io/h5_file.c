/* SPDX-License-Identifier: Apache-2.0
 *
 * The file driver that HDF5 gets from us.
 *
 * It writes the file that is open already, so permissions, locks and names are
 * no matter of HDF5's.  HDF5 makes files here and never reads one that was
 * there before.  The first write that fails is remembered, and
 * from then on HDF5 is told that everything works: a library that meets an
 * error while it closes a file keeps memory and ids that nobody can give back.
 * The save fails all the same, with the reason that the driver has kept.
 */
#ifdef TRN_HAVE_HDF5
#include "libtrn/io/h5_file.h"

#include <string.h>

#include "libtrn/context/process.h"

/* What the file access list carries from us to driver_open. */
typedef struct driver_info {
    trn__h5 *h5;
} driver_info;

static trn__h5 *of(const H5FD_t *file)
{
    return ((const trn__h5_handle *)(const void *)file)->h5;
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access,
                           haddr_t most)
{
    const driver_info *info = H5Pget_driver_info(access);
    (void)name;
    (void)flags;
    (void)most;
    if (info == NULL)
        return NULL;
    trn__h5 *h = info->h5;
    memset(&h->handle, 0, sizeof h->handle);
    h->handle.h5 = h;
    return &h->handle.pub;
}

static herr_t driver_close(H5FD_t *file)
{
    (void)file; /* the file stays ours */
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
    return a < b ? -1 : a > b;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    if (flags != NULL)
        *flags = 0;
    return 0;
}

static haddr_t driver_claimed(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return of(file)->claimed;
}

static herr_t driver_claim(H5FD_t *file, H5FD_mem_t type, haddr_t at)
{
    (void)type;
    of(file)->claimed = at;
    return 0;
}

static haddr_t driver_end(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return of(file)->end;
}

/* Zeros where it fails, and behind the end of the file. */
static void read_or_zero(trn__h5 *h, haddr_t at, char *to, size_t n)
{
    uint64_t there = at >= h->end ? 0 : h->end - at;
    size_t part = there < n ? (size_t)there : n;
    memset(to + part, 0, n - part);
    if (h->f->error != 0 || !trn__file_read(h->f, at, to, part))
        memset(to, 0, part);
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer,
                          haddr_t at, size_t n, void *data)
{
    (void)type;
    (void)transfer;
    read_or_zero(of(file), at, data, n);
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer,
                           haddr_t at, size_t n, const void *data)
{
    trn__h5 *h = of(file);
    (void)type;
    (void)transfer;
    if (h->f->error == 0)
        trn__file_write(h->f, at, data, n);
    if (at + n > h->end)
        h->end = at + n;
    return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    trn__h5 *h = of(file);
    (void)transfer;
    (void)closing;
    if (h->end == h->claimed)
        return 0;
    if (h->f->error == 0)
        trn__file_resize(h->f, h->claimed);
    h->end = h->claimed;
    return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 14, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)500, /* of the range that nobody registers */
#endif
    .name = "libtrn",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG, /* nothing stays open behind a closed file */
    .fapl_size = sizeof(driver_info),
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_compare,
    .query = driver_query,
    .get_eoa = driver_claimed,
    .set_eoa = driver_claim,
    .get_eof = driver_end,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_SINGLE,
};

/* ---- the library: its version, its lock, its printing ---- */

/* Types and structs differ between minor versions, not between releases.  HDF5
 * has such a check too, but that one prints and aborts. */
trn_status trn__h5_check(trn_context *c, const trn__file_calls *calls,
                         const char *path)
{
    unsigned major = 0, minor = 0, release = 0;
    trn__process_hdf5_lock();
    int result = calls->hdf5_version != NULL
                     ? calls->hdf5_version(&major, &minor, &release)
                     : H5get_libversion(&major, &minor, &release);
    trn__process_hdf5_unlock();
    if (result < 0)
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "%.600s: HDF5 does not tell its version", path);
    if (major != H5_VERS_MAJOR || minor != H5_VERS_MINOR)
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "%.600s: found HDF5 %u.%u.%u in this process; "
                         "expected %d.%d as in %d.%d.%d, with which this "
                         "library was built",
                         path, major, minor, release, H5_VERS_MAJOR,
                         H5_VERS_MINOR, H5_VERS_MAJOR, H5_VERS_MINOR,
                         H5_VERS_RELEASE);
    return TRN_OK;
}

static void silence(trn__h5 *h)
{
    h->host.is_v2 = 1;
    H5Eauto_is_v2(H5E_DEFAULT, &h->host.is_v2);
#ifndef H5_NO_DEPRECATED_SYMBOLS
    if (!h->host.is_v2) {
        H5Eget_auto1(&h->host.print1, &h->host.data);
        H5Eset_auto1(NULL, NULL);
        return;
    }
#endif
    H5Eget_auto2(H5E_DEFAULT, &h->host.print2, &h->host.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void speak_again(trn__h5 *h)
{
#ifndef H5_NO_DEPRECATED_SYMBOLS
    if (!h->host.is_v2) {
        H5Eset_auto1(h->host.print1, h->host.data);
        return;
    }
#endif
    H5Eset_auto2(H5E_DEFAULT, h->host.print2, h->host.data);
}

void trn__h5_begin(trn__h5 *h, trn__file *f)
{
    *h = (trn__h5){.f = f, .driver = -1, .file = -1};
    trn__process_hdf5_lock();
    silence(h);
}

void trn__h5_drop(hid_t id)
{
    if (id >= 0)
        H5Idec_ref(id);
}

bool trn__h5_close(trn__h5 *h)
{
    bool good = h->file < 0 || H5Fclose(h->file) >= 0;
    h->file = -1;
    if (h->driver >= 0)
        H5FDunregister(h->driver);
    h->driver = -1;
    return good;
}

void trn__h5_end(trn__h5 *h)
{
    trn__h5_close(h);
    speak_again(h);
    trn__process_hdf5_unlock();
}

/* ---- the file ---- */

/* The list for opening: our driver, and versions that old libraries read. */
static hid_t access_list(trn__h5 *h)
{
    const driver_info info = {.h5 = h};
    h->driver = H5FDregister(&driver);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (h->driver < 0 || access < 0 ||
        H5Pset_driver(access, h->driver, &info) < 0 ||
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18) < 0) {
        trn__h5_drop(access);
        return -1;
    }
    return access;
}

/* H5F_ACC_TRUNC by its value: the macro may call H5check_version, which
 * ends the process where it does not like what it finds. */
#define TRUNCATE 0x0002u

bool trn__h5_create(trn__h5 *h, uint64_t room)
{
    hid_t access = access_list(h);
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    if (access >= 0 && create >= 0 && H5Pset_userblock(create, room) >= 0)
        h->file = H5Fcreate(h->f->path, TRUNCATE, create, access);
    trn__h5_drop(create);
    trn__h5_drop(access);
    return h->file >= 0;
}

/* ---- types ---- */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_ORDER H5T_ORDER_BE
#else
#define HOST_ORDER H5T_ORDER_LE
#endif

/* The half precision of IEEE 754, for which older versions have no name. */
static hid_t half(void)
{
    hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    if (t >= 0 && H5Tset_fields(t, 15, 10, 5, 0, 10) >= 0 &&
        H5Tset_size(t, 2) >= 0 && H5Tset_ebias(t, 15) >= 0)
        return t;
    trn__h5_drop(t);
    return -1;
}

static hid_t text_type(uint64_t bytes)
{
    hid_t t = H5Tcopy(H5T_C_S1);
    if (t >= 0 && H5Tset_size(t, (size_t)bytes) >= 0 &&
        H5Tset_strpad(t, H5T_STR_NULLTERM) >= 0 &&
        H5Tset_cset(t, H5T_CSET_UTF8) >= 0)
        return t;
    trn__h5_drop(t);
    return -1;
}

hid_t trn__h5_type(uint32_t type, uint64_t bytes, bool in_memory)
{
    hid_t t = -1;
    switch (type) {
    case TRN_F64:
        t = H5Tcopy(H5T_IEEE_F64LE);
        break;
    case TRN_F32:
        t = H5Tcopy(H5T_IEEE_F32LE);
        break;
    case TRN_BF16:
        t = H5Tcopy(H5T_STD_U16LE);
        break;
    case TRN_F16:
        t = half();
        break;
    case TRN_I64:
        t = H5Tcopy(H5T_STD_I64LE);
        break;
    case TRN_I32:
        t = H5Tcopy(H5T_STD_I32LE);
        break;
    case TRN_U32:
        t = H5Tcopy(H5T_STD_U32LE);
        break;
    case TRN_U8:
    case TRN_BOOL:
        t = H5Tcopy(H5T_STD_U8LE);
        break;
    case TRN__ITEM_U64:
        t = H5Tcopy(H5T_STD_U64LE);
        break;
    case TRN__ITEM_TEXT:
        return text_type(bytes);
    default:
        break;
    }
    if (t >= 0 && in_memory && H5Tset_order(t, HOST_ORDER) < 0) {
        trn__h5_drop(t);
        return -1;
    }
    return t;
}

const char *trn__h5_type_name(uint32_t type)
{
    return type == TRN_BF16 ? "bf16" : type == TRN_BOOL ? "bool" : NULL;
}
#else
typedef int trn__no_hdf5; /* C has no empty files */
#endif
