/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads IDX files: header, elements, the checks of both.
 *
 * Memory for the elements grows with what has arrived, so a header that lies
 * costs nothing.  Of a plain file the size is known, and compared before
 * anything is allocated.
 */
#include "libtrn/data/file_kind.h"
#include "libtrn/data/idx.h"
#include "libtrn/data/idx_source.h"

#include <stdio.h>
#include <string.h>

#define FIRST_CAPACITY (INT64_C(1) << 20)

/* Elements times their largest size, and a header, stay within an int64_t. */
#define MAX_COUNT ((INT64_MAX - 64) / 8)

typedef struct element_type {
    int code;
    trn_dtype dtype;
    const char *name;
    int file_bytes;
    int memory_bytes;
} element_type;

static const element_type element_types[] = {
    {0x08, TRN_U8, "u8", 1, 1},   {0x09, TRN_I32, "i8", 1, 4},
    {0x0B, TRN_I32, "i16", 2, 4}, {0x0C, TRN_I32, "i32", 4, 4},
    {0x0D, TRN_F32, "f32", 4, 4}, {0x0E, TRN_F64, "f64", 8, 8},
};

#define N_TYPES (sizeof element_types / sizeof *element_types)

typedef struct header {
    const element_type *type;
    int rank;
    int64_t dims[8];
    int64_t count;
    int64_t bytes; /* of the header itself */
} header;

static trn_status out_of_memory(trn__source *s, int64_t bytes)
{
    return trn__source_fail(s, TRN_ERR_NOMEM, -1,
                            "out of memory for %lld bytes", (long long)bytes);
}

static void use(trn__source *s, size_t bytes)
{
    s->begin += bytes;
    s->position += (int64_t)bytes;
}

static const element_type *find_type(int code)
{
    for (size_t i = 0; i < N_TYPES; ++i) {
        if (element_types[i].code == code)
            return &element_types[i];
    }
    return NULL;
}

/* What a file that is no IDX file looks like, or NULL. */
static const char *looks_like(const unsigned char *b, size_t n)
{
    if (n >= 4 && b[2] == 0 && b[3] == 0 && b[0] >= 1 && b[0] <= 8 &&
        find_type(b[1]) != NULL)
        return "IDX in little-endian byte order";
    return trn__file_kind(b, n);
}

static trn_status check_magic(trn__source *s)
{
    const unsigned char *b = s->piece + s->begin;
    size_t n = s->fill - s->begin;
    const char *kind = looks_like(b, n);
    if (n == 0)
        return trn__source_fail(s, TRN_ERR_FORMAT, 0,
                                "found an empty file; expected an IDX header");
    if (n < 4 && kind == NULL)
        return trn__source_fail(
            s, TRN_ERR_FORMAT, (int64_t)n,
            "found a file of %d bytes (truncated); expected an IDX "
            "header of at least 8",
            (int)n);
    if (n >= 4 && b[0] == 0 && b[1] == 0)
        return TRN_OK;
    return trn__source_fail(
        s, TRN_ERR_FORMAT, 0,
        "found %02x %02x%s%s%s%s; expected 00 00 of an IDX file", b[0],
        n > 1 ? b[1] : 0, kind ? " (the file looks like " : "",
        kind ? kind : "", kind && s->packed ? " inside gzip" : "",
        kind ? ")" : "");
}

static uint32_t big32(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 |
           b[3];
}

/* "u8[10,28,28]", as the file has it. */
static void describe(const header *h, char *text, size_t size)
{
    int used = snprintf(text, size, "%s", h->type->name);
    for (int i = 0; i < h->rank; ++i)
        used += snprintf(text + used, size - (size_t)used, "%c%lld",
                         i == 0 ? '[' : ',', (long long)h->dims[i]);
    snprintf(text + used, size - (size_t)used, "]");
}

/* A dimension of 0 empties the array, but the others must still make sense. */
static trn_status count_elements(trn__source *s, header *h)
{
    char text[128];
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < h->rank; ++i) {
        int64_t d = h->dims[i];
        empty = empty || d == 0;
        if (d > 0 && product > MAX_COUNT / d) {
            describe(h, text, sizeof text);
            return trn__source_fail(
                s, TRN_ERR_FORMAT, 4,
                "found dimensions of %s, whose product overflows; "
                "expected at most %lld elements",
                text, (long long)MAX_COUNT);
        }
        product *= d > 0 ? d : 1;
    }
    h->count = empty ? 0 : product;
    return TRN_OK;
}

static trn_status read_header(trn__source *s, header *h)
{
    trn_status status = check_magic(s);
    const unsigned char *b = s->piece;
    if (status != TRN_OK)
        return status;
    h->type = find_type(b[2]);
    h->rank = b[3];
    h->bytes = 4 + 4 * h->rank;
    if (h->type == NULL)
        return trn__source_fail(
            s, TRN_ERR_FORMAT, 2,
            "found type code 0x%02X; expected 0x08 (u8), 0x09 (i8), "
            "0x0B (i16), 0x0C (i32), 0x0D (f32) or 0x0E (f64)",
            b[2]);
    if (h->rank < 1 || h->rank > 8)
        return trn__source_fail(s, TRN_ERR_FORMAT, 3,
                                "found rank %d; expected 1 to 8", h->rank);
    if (s->fill < (size_t)h->bytes)
        return trn__source_fail(
            s, TRN_ERR_FORMAT, (int64_t)s->fill,
            "the file ends in its header (truncated); expected %d "
            "bytes for %d dimensions",
            (int)h->bytes, h->rank);
    for (int i = 0; i < h->rank; ++i)
        h->dims[i] = (int64_t)big32(b + 4 + 4 * i);
    use(s, (size_t)h->bytes);
    return count_elements(s, h);
}

static trn_status wrong_size(trn__source *s, const header *h, int64_t found)
{
    char text[128];
    int64_t expected = h->bytes + h->count * h->type->file_bytes;
    describe(h, text, sizeof text);
    if (found < expected)
        return trn__source_fail(
            s, TRN_ERR_FORMAT, found,
            "found the end (truncated); expected %lld bytes for %s",
            (long long)expected, text);
    return trn__source_fail(s, TRN_ERR_FORMAT, expected,
                            "found extra bytes; expected the end after %s",
                            text);
}

static void convert_elements(const element_type *type, int64_t n,
                             const unsigned char *from, unsigned char *to)
{
    if (type->code == 0x08) {
        memcpy(to, from, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; ++i) {
        int32_t narrow = 0;
        uint32_t word = 0;
        uint64_t wide = 0;
        switch (type->file_bytes) {
        case 1: /* A byte above 127 is negative, as in two's complement. */
            narrow = from[i] - (from[i] > 0x7F ? 0x100 : 0);
            memcpy(to + 4 * i, &narrow, 4);
            break;
        case 2:
            narrow = from[2 * i] << 8 | from[2 * i + 1];
            narrow -= narrow > 0x7FFF ? 0x10000 : 0;
            memcpy(to + 4 * i, &narrow, 4);
            break;
        case 4:
            word = big32(from + 4 * i);
            memcpy(to + 4 * i, &word, 4);
            break;
        default:
            wide = (uint64_t)big32(from + 8 * i) << 32;
            wide |= big32(from + 8 * i + 4);
            memcpy(to + 8 * i, &wide, 8);
            break;
        }
    }
}

/* Makes room for `needed` bytes, of which `used` are kept. */
static trn_status grow(trn__source *s, trn__idx *out, int64_t *capacity,
                       int64_t used, int64_t needed)
{
    int64_t total = (int64_t)out->bytes;
    int64_t size = *capacity > total / 2 ? total : 2 * *capacity;
    void *data;
    if (*capacity == 0) /* The bytes of a plain file are known to be there. */
        size = s->packed || s->file_size < 0 ? FIRST_CAPACITY : total;
    if (size < needed)
        size = needed;
    if (size > total)
        size = total;
    data = s->mem->alloc(s->mem->user, (size_t)size);
    if (data == NULL)
        return out_of_memory(s, size);
    if (out->data != NULL) {
        memcpy(data, out->data, (size_t)used);
        s->mem->dealloc(s->mem->user, out->data);
    }
    out->data = data;
    *capacity = size;
    return TRN_OK;
}

static trn_status read_elements(trn__source *s, const header *h, trn__idx *out)
{
    int64_t capacity = 0;
    int64_t n_done = 0;
    int64_t each = h->type->memory_bytes;
    trn_status status = TRN_OK;
    while (n_done < h->count && status == TRN_OK) {
        int64_t n = (int64_t)(s->fill - s->begin) / h->type->file_bytes;
        if (n == 0) {
            status = trn__source_refill(s);
            n = (int64_t)s->fill / h->type->file_bytes;
            if (status == TRN_OK && n == 0)
                status = wrong_size(s, h, s->position + (int64_t)s->fill);
            continue;
        }
        if (n > h->count - n_done)
            n = h->count - n_done;
        if ((n_done + n) * each > capacity)
            status =
                grow(s, out, &capacity, n_done * each, (n_done + n) * each);
        if (status != TRN_OK)
            break;
        convert_elements(h->type, n, s->piece + s->begin,
                         (unsigned char *)out->data + n_done * each);
        use(s, (size_t)(n * h->type->file_bytes));
        n_done += n;
    }
    return status;
}

static trn_status read_all(trn__source *s, trn__idx *out)
{
    header h = {0};
    int64_t expected;
    trn_status status = trn__source_open(s);
    if (status == TRN_OK)
        status = read_header(s, &h);
    if (status != TRN_OK)
        return status;
    expected = h.bytes + h.count * h.type->file_bytes;
    if (!s->packed && s->file_size >= 0 && s->file_size != expected)
        return wrong_size(s, &h, s->file_size);
    if ((uint64_t)(h.count * h.type->memory_bytes) > SIZE_MAX)
        return out_of_memory(s, h.count * h.type->memory_bytes);
    out->dtype = h.type->dtype;
    out->rank = h.rank;
    memcpy(out->dims, h.dims, sizeof out->dims);
    out->bytes = (size_t)(h.count * h.type->memory_bytes);
    status = read_elements(s, &h, out);
    /* One more look also lets gzip compare its checksum. */
    if (status == TRN_OK)
        status = trn__source_refill(s);
    if (status == TRN_OK && s->fill > 0)
        status = wrong_size(s, &h, s->position + (int64_t)s->fill);
    return status;
}

trn_status trn__idx_load(const char *path, const trn__alloc_hooks *mem,
                         trn__idx *out, char *message, size_t message_size)
{
    trn__source *s;
    trn_status status;
    memset(out, 0, sizeof *out);
    if (message == NULL)
        message_size = 0;
    if (message_size > 0)
        message[0] = 0;
    if (path == NULL) {
        if (message_size > 0)
            snprintf(message, message_size, "idx: path is NULL");
        return TRN_ERR_ARG;
    }
    s = mem->alloc(mem->user, sizeof *s);
    if (s == NULL) {
        if (message_size > 0)
            snprintf(message, message_size, "%s: out of memory", path);
        return TRN_ERR_NOMEM;
    }
    memset(s, 0, sizeof *s);
    s->path = path;
    s->mem = mem;
    s->message = message;
    s->message_size = message_size;
    s->fd = -1;
    s->file_size = -1;
    status = read_all(s, out);
    if (status != TRN_OK) {
        if (out->data != NULL)
            mem->dealloc(mem->user, out->data);
        memset(out, 0, sizeof *out);
    }
    trn__source_close(s);
    mem->dealloc(mem->user, s);
    return status;
}
